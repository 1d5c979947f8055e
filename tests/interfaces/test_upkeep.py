"""``verify``, ``repair`` and ``doctor`` on stores that are well and on stores that are not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph.interfaces.cli.group import cli
from memgraph.ports import Change
from memgraph.testing import FakeEmbedder
from tests.tables import change, change_payload, copy_journal, forget_journal, lines_of, table, tables

Run = Callable[..., Result]
FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: Callable[[], Any]) -> Run:
    """Run one command in this process, against one store, with a fake model."""

    def fake(_model: str = "minilm") -> FakeEmbedder:
        return FakeEmbedder(dimension=64)

    monkeypatch.setattr("memgraph.store.store.default_embedder", fake)
    monkeypatch.setattr("memgraph.embedding.default_embedder", fake)

    def call(*args: str, stdin: str | None = None) -> Result:
        arguments = ["--home", str(tmp_path / "store"), *args]
        return CliRunner().invoke(cli, arguments, input=stdin, prog_name="memgraph", obj=configured())

    return call


@pytest.fixture
def kept(run: Run, home: Path) -> Run:
    """Make a store of two memories, and keep a copy of its database with the first."""
    assert run("remember", "Deploy on Tuesdays only").exit_code == 0
    copy_journal(home, home.with_name("old"))
    assert run("remember", "Never on Fridays").exit_code == 0
    assert run("recall", "deploy").exit_code == 0
    return run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "store"


def told(result: Result) -> Any:
    return json.loads(result.stdout)


def damage_vector(home: Path) -> None:
    ((place, data),) = ((row[2], row[3]) for row in table(home, "vector") if row[2] == 1)
    change(home, "UPDATE vector SET value = ? WHERE place = ?", bytes([data[0] ^ 1]) + data[1:], place)
    for path in (home / "cache").iterdir():
        path.unlink()


def problems(run: Run) -> list[dict[str, str]]:
    result = run("doctor", "--json")
    document = told(result)
    assert result.exit_code == (1 if document["errors"] else 0)
    assert document["healthy"] == (not document["errors"])
    found: list[dict[str, str]] = [check for check in document["checks"] if check["status"] == "error"]
    assert document["errors"] == [check["message"] for check in found]
    return found


def cut(home: Path) -> None:
    """Put an old copy of the database in its place: that of the first memory."""
    forget_journal(home)
    copy_journal(home.with_name("old"), home)


class TestVerify:
    def test_counts_and_durations(self, kept: Run) -> None:
        plain, deep = told(kept("verify", "--json")), told(kept("verify", "--deep", "--json"))
        assert (plain["vectors"], plain["nodes"], plain["differing"]) == (2, 2, 0)
        assert deep["edges"] >= 2
        assert deep["seconds"].keys() == {"journal", "vectors", "graph", "index"}
        assert plain["digest"] == deep["digest"]
        assert "the index of 2 memories" in kept("verify", "--deep").stdout

    @pytest.mark.embedded
    def test_what_differs_first_and_how_many(self, kept: Run, tmp_path: Path) -> None:
        from memgraph import AgentMemoryConfig, AgentMemoryStore

        config = AgentMemoryConfig(
            home=tmp_path / "store", keys_home=tmp_path / "user" / "keys", embedding_model="none"
        )
        with AgentMemoryStore(config) as store:
            store.digest()  # brings the rows to the journal's end
            rows = store._projector.rows
            changes = [
                Change("Memory", key, row, {**row, "embedded_at": "tampered"}) for key, row in rows.scan("Memory")
            ]
            rows.apply(changes, store._projector.projection)
        result = kept("verify", "--deep", "--json")
        assert result.exit_code == 1
        document = told(result)
        assert document["differing"] == 2
        assert document["first"][0]["table"] == "Memory"
        assert document["first"][0]["column"] == "embedded_at"
        spoken = kept("verify", "--deep")
        assert "2 differences" in spoken.stderr
        assert "memgraph rebuild" in spoken.stderr
        assert "embedded_at: differs" in spoken.stdout
        assert "tampered" not in spoken.output + result.output
        assert kept("rebuild").exit_code == 0
        assert kept("verify", "--deep").exit_code == 0

    def test_a_vector_is_no_matter_of_rebuilding(self, kept: Run, home: Path) -> None:
        """But of embedding anew."""
        damage_vector(home)
        result = kept("verify")
        assert result.exit_code == 1
        assert "memgraph embed --repair" in result.stderr
        assert "rebuild" not in result.stderr
        assert kept("embed", "--repair").exit_code == 0
        assert kept("verify", "--deep").exit_code == 0


class TestRepair:
    def test_a_whole_store_has_nothing_to_repair(self, kept: Run) -> None:
        for args in (["repair"], ["repair", "--accept-head"], ["repair", "--accept-head", "--yes"]):
            result = kept(*args)
            assert result.exit_code == 0
            assert "Nothing needs repair" in result.stdout

    def test_it_says_what_is_lost_and_does_nothing_without_a_word(self, kept: Run, home: Path) -> None:
        whole = len(lines_of(home))
        cut(home)
        before = tables(home)
        assert "memgraph repair --accept-head" in kept("list").stderr
        looked = kept("repair")
        assert looked.exit_code == 1
        assert f"{whole - 3} events are lost" in looked.stderr
        assert f"{whole - 3} events, numbers 4 to {whole}" in " ".join(looked.stdout.split())
        assert "--accept-head" in looked.stdout
        refused = kept("repair", "--accept-head")
        assert refused.exit_code == 1
        assert "--yes" in refused.stderr
        assert tables(home) == before

    def test_accepting(self, kept: Run, home: Path) -> None:
        whole = len(lines_of(home))
        cut(home)
        result = kept("repair", "--accept-head", "--yes", "--reason", "an old copy", "--json")
        assert result.exit_code == 1
        assert (
            result.stderr
            == f"memgraph: {whole - 3} events are lost (numbers 4 to {whole}); the remaining events are accepted\n"
        )
        document = told(result)
        assert document["accepted"]
        assert document["lost"] == {"events": whole - 3, "first": 4, "last": whole}
        record = lines_of(home)[-1]
        assert record["head"]["type"] == "journal.repaired"
        assert record["head"]["seq"] == document["recorded_as"]
        assert record["payload"]["reason"] == "an old copy"
        assert kept("list").exit_code == 0  # the graph, which is ahead of the journal, is rebuilt
        assert kept("list").stderr == ""
        assert kept("verify", "--deep").exit_code == 0
        assert problems(kept) == []

    def test_accepting_without_a_loss_succeeds(self, kept: Run, tmp_path: Path) -> None:
        head = next((tmp_path / "user" / "keys" / "heads").iterdir())
        head.write_text("damaged")
        assert kept("repair").exit_code == 0
        result = kept("repair", "--accept-head", "--yes", "--json")
        assert (result.exit_code, result.stderr) == (0, "")
        assert told(result)["accepted"]

    def test_a_head_that_names_another_event_reveals_a_loss(self, kept: Run, tmp_path: Path) -> None:
        head = next((tmp_path / "user" / "keys" / "heads").iterdir())
        seq = json.loads(head.read_text())["seq"]
        head.write_text(json.dumps({"seq": seq, "signature": "0" * 64}))
        for args in (["repair"], ["repair", "--accept-head", "--yes"]):
            result = kept(*args)
            assert result.exit_code == 1
            assert f"the event {seq} that its head file names" in result.stderr
        assert kept("repair").exit_code == 0

    def test_a_head_in_the_database_that_names_an_earlier_event(self, kept: Run, home: Path) -> None:
        (before,) = table(home, "head")
        assert kept("remember", "Not at night either").exit_code == 0
        change(home, "UPDATE head SET (tenant, seq, signature, body, code) = (?, ?, ?, ?, ?)", *before)
        assert kept("list").exit_code == 1
        for args in (["repair"], ["repair", "--cut-tail", "--yes"]):
            assert f"The head in its database names event {before[1]}." in kept(*args).stdout
        (_, witness) = told(kept("repair", "--json"))["witnesses"]
        assert (witness["kind"], witness["state"], witness["names_event"]) == ("database", "behind", before[1])
        assert kept("repair", "--accept-head", "--yes").exit_code == 0
        assert "Not at night either" in kept("list").stdout
        assert "Nothing needs repair" in kept("repair").stdout

    @pytest.mark.parametrize(("answer", "accepted"), [("y\n", True), ("n\n", False)])
    def test_on_a_terminal_it_asks(
        self, kept: Run, home: Path, monkeypatch: pytest.MonkeyPatch, answer: str, accepted: bool
    ) -> None:
        cut(home)
        monkeypatch.setattr("memgraph.interfaces.cli.recovery.repair._is_terminal", lambda: True)
        result = kept("repair", "--accept-head", stdin=answer)
        assert result.exit_code == 1  # events were lost, or nothing was done
        assert ("are lost" in result.stderr) == accepted
        assert "numbers 4 to" in result.stderr
        assert (kept("list").exit_code == 0) == accepted

    def test_real_damage_is_refused(self, kept: Run, home: Path) -> None:
        change_payload(home, "Tuesdays", "Saturday")
        for args in (["repair"], ["repair", "--accept-head", "--yes"]):
            result = kept(*args)
            assert result.exit_code == 1
            assert "damaged" in result.stderr
            assert "accept-head" not in result.stderr


class TestRepairOfDamage:
    @pytest.fixture
    def damaged(self, kept: Run, home: Path) -> int:
        """Change a byte of the last memory; return the event before it."""
        (seq,) = [one["head"]["seq"] for one in lines_of(home) if "Fridays" in str(one["payload"])]
        change_payload(home, "Fridays", "Sundays")
        return int(seq) - 1

    def test_what_could_be_done_is_shown_and_nothing_is_changed(self, kept: Run, damaged: int, home: Path) -> None:
        before = tables(home)
        result = kept("repair")
        assert result.exit_code == 1
        assert "nothing was changed" in result.stderr
        text = " ".join(result.stdout.split())
        assert f"verifies up to event {damaged}" in text
        assert "would be lost" in text
        for way in ("--from-backup FILE", "--cut-tail", "quarantine/"):
            assert way in text
        refused = kept("repair", "--cut-tail")
        assert refused.exit_code == 1
        assert "--yes" in refused.stderr
        assert refused.stderr.count(" lost") == 1, refused.stderr
        assert "would be lost (numbers" in refused.stderr
        assert tables(home) == before

    def test_cutting_says_what_was_kept_and_lost(self, kept: Run, damaged: int) -> None:
        result = kept("repair", "--cut-tail", "--yes", "--json")
        assert result.exit_code == 1
        cut = told(result)["cut"]
        assert cut["kept"] == damaged
        assert f"{cut['lost']} events are lost (numbers {cut['kept'] + 1} to" in result.stderr
        assert list(Path(cut["quarantine"]).iterdir())
        assert kept("verify", "--deep").exit_code == 0
        assert problems(kept) == []

    def test_a_backup_repairs_without_a_loss(self, kept: Run, home: Path, tmp_path: Path) -> None:
        assert kept("backup", str(tmp_path / "a.tar.gz")).exit_code == 0
        assert kept("remember", "after the backup").exit_code == 0
        change_payload(home, "Fridays", "Sundays")
        assert kept("verify").exit_code == 1
        assert kept("repair", "--from-backup", str(tmp_path / "a.tar.gz")).exit_code == 1  # not confirmed
        result = kept("repair", "--from-backup", str(tmp_path / "a.tar.gz"), "--yes")
        assert (result.exit_code, result.stderr) == (0, "")
        assert "No event is lost" in result.stdout
        assert {"Never on Fridays", "after the backup"} <= set(kept("list").stdout.replace("\n", "\t").split("\t"))
        assert kept("verify", "--deep").exit_code == 0

    def test_ways_exclude_each_other(self, kept: Run) -> None:
        assert kept("repair", "--cut-tail", "--accept-head").exit_code == 2
        assert kept("repair", "--until", "3").exit_code == 2


class TestBackup:
    def test_backup_and_restore(self, kept: Run, tmp_path: Path) -> None:
        file = str(tmp_path / "a.tar.gz")
        made = told(kept("backup", file, "--json"))
        assert made["file"] == file
        refused = kept("backup", file)
        assert (refused.exit_code, "--force" in refused.stderr) == (1, True)
        assert kept("remember", "since the backup").exit_code == 0
        assert "keep both" in kept("backup", str(tmp_path / "b.tar.zst"), "--incremental").stdout
        home = str(tmp_path / "copy")
        result = told(kept("--home", home, "restore", str(tmp_path / "b.tar.zst"), "--json"))
        assert len(result["backup_ids"]) == 2
        assert "since the backup" in kept("--home", home, "list").stdout
        again = kept("--home", home, "restore", file)
        assert again.exit_code == 1
        assert "is not empty" in again.stderr
        dry = kept("--home", str(tmp_path / "none"), "restore", file, "--dry-run", "--until", "2")
        assert "can be restored" in dry.stdout
        assert "were left out" in dry.stdout
        assert not (tmp_path / "none").exists()
        assert problems(kept) == []

    def test_where_there_is_no_store_there_is_no_backup(self, run: Run, tmp_path: Path) -> None:
        result = run("backup", str(tmp_path / "a.tar.gz"))
        assert result.exit_code == 1
        assert "nothing to back up" in result.stderr
        assert not (tmp_path / "store").exists()


class TestDoctor:
    @pytest.mark.parametrize("key_is_there", [True, False])
    def test_a_lost_journal(self, kept: Run, tmp_path: Path, home: Path, key_is_there: bool) -> None:
        keys_home = tmp_path / "user" / "keys"
        lost = [*home.glob("memgraph.db*"), *(keys_home / "heads").iterdir()]
        for path in lost if key_is_there else [*lost, *(keys_home / "keys").iterdir()]:
            path.unlink()
        (problem,) = problems(kept)
        refusal = kept("list")
        assert refusal.exit_code == 1
        assert "to start over, remove" in problem["message"]
        assert problem["message"] == refusal.stderr.removeprefix("memgraph: ").strip()

    def test_all_well(self, kept: Run, tmp_path: Path) -> None:
        document = told(kept("doctor", "--json"))
        assert document["healthy"]
        assert (document["store"]["memories"], document["store"]["awaiting_vectors"]) == (2, 0)
        assert document["graph"]["lag_events"] is not None
        assert document["locks"] == {"journal": {"held": False}}
        assert document["model"]["stored"]["dimension"] == 64
        assert document["disk"]["free_bytes"] > document["disk"]["needed_bytes"]
        assert document["versions"].keys() >= {"memgraph", "kuzu", "python", "numpy"}
        assert "no problem found" in kept("doctor").stdout

    def test_it_changes_nothing_in_the_journal_and_makes_no_head(self, kept: Run, tmp_path: Path, home: Path) -> None:
        head = next((tmp_path / "user" / "keys" / "heads").iterdir())
        head.unlink()
        before = tables(home)
        (found,) = problems(kept)
        assert str(head) in found["message"]
        assert "repair --accept-head" in found["advice"]
        assert not head.exists()
        assert tables(home) == before

    @pytest.mark.parametrize(
        ("case", "said", "todo"),
        [
            ("truncated", "truncated or is an old copy", "repair --accept-head"),
            ("damaged head", "is damaged", "repair --accept-head"),
            ("other head", "names an event", "repair --accept-head"),
            ("damaged journal", "journal damaged", ""),
            ("no key", "signing key is missing", "MEMGRAPH_KEY"),
            ("no database", "is damaged", "memgraph repair --from-backup"),
            ("missing vectors", "1 of 2 vectors", "memgraph embed --repair"),
            ("changed vector", "1 of 2 vectors", "memgraph embed --repair"),
            ("open database", "other users may access", "chmod 0600"),
            ("open key", "other users may access", "chmod 0600"),
            ("unknown setting", "graph_idel_s", "memgraph config init"),
            ("no toml", "not TOML", "memgraph config init"),
        ],
    )
    def test_each_problem_is_reported_once_with_its_remedy(
        self, kept: Run, tmp_path: Path, home: Path, case: str, said: str, todo: str
    ) -> None:
        keys = tmp_path / "user" / "keys"
        key, head = next((keys / "keys").iterdir()), next((keys / "heads").iterdir())
        if case == "truncated":
            cut(home)
        elif case == "damaged head":
            head.write_text("noise")
        elif case == "other head":
            head.write_text(json.dumps({"seq": 2, "signature": "f" * 64}))
        elif case == "damaged journal":
            change_payload(home, "Fridays", "Mondays")
        elif case == "no key":
            key.unlink()
        elif case == "no database":
            (home / "memgraph.db").write_bytes(b"noise" * 1_000)
        elif case == "missing vectors":
            change(home, "DELETE FROM vector WHERE place = 1")
        elif case == "changed vector":
            damage_vector(home)
        elif case == "open database":
            (home / "memgraph.db").chmod(0o644)
        elif case == "open key":
            key.chmod(0o644)
        elif case == "unknown setting":
            (home / "config.toml").write_text("graph_idel_s = 3\n")
        elif case == "no toml":
            (home / "config.toml").write_text("no toml\n")
        found = problems(kept)
        assert len(found) == 1, found
        assert said in found[0]["message"]
        assert todo in found[0]["advice"]
        spoken = kept("doctor")
        assert spoken.exit_code == 1
        assert spoken.output.count(found[0]["message"]) == 1
        assert spoken.stderr == "memgraph: 1 problem found\n"

    def test_who_holds_what(self, kept: Run, tmp_path: Path) -> None:
        program = (
            "import sys, memgraph\n"
            "from pathlib import Path\n"
            "from memgraph.disk.lock import ProcessLock\n"
            "home = Path(sys.argv[1])\n"
            "held = [ProcessLock(home / 'lock', 'x')]\n"
            "[lock.acquire(1) for lock in held]\n"
            "print('held', flush=True); sys.stdin.read()\n"
        )
        holder = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "store")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            document = told(kept("doctor", "--json"))
            lock = document["locks"]["journal"]
            assert (lock["held"], lock["pid"], lock["alive"]) == (True, holder.pid, True)
            assert lock["since"].startswith("20")
            assert document["store"]["memories"] >= 0
            assert document["healthy"]
            assert f"journal held by process {holder.pid} (alive) since 20" in kept("doctor").stdout
        finally:
            holder.communicate()
        assert holder.returncode == 0

    @pytest.mark.embedded
    def test_the_lag_of_graph_and_index(self, kept: Run, tmp_path: Path, home: Path) -> None:
        kept("verify", "--deep")
        document = told(kept("doctor", "--json"))
        assert document["graph"]["lag_events"] == 0
        events = document["journal"]["events"]
        for one in ("node", "edge", "state"):
            change(home, f"DELETE FROM {one}")
        document = told(kept("doctor", "--json"))
        assert document["graph"]["lag_events"] == events
        assert document["healthy"]

    def test_what_an_earlier_release_left(self, run: Run, home: Path) -> None:
        shutil.copytree(FIXTURES / "stores" / "0.2.0" / "store" / "journal", home / "journal")
        document = told(run("doctor", "--json"))
        assert not (home / "memgraph.db").exists(), "who only looks moves nothing"
        assert [one["name"] for one in document["checks"] if one["status"] == "warning"] == ["journal"]
        assert "was not moved into the database yet" in document["warnings"][0]

    def test_a_compacted_store_and_what_is_kept(self, kept: Run, home: Path) -> None:
        assert told(kept("doctor", "--json"))["journal"]["baseline"] is None
        assert kept("compact", "--before", "2999-01-01").exit_code == 0
        (home / "journal-0.2").mkdir()
        journal = told(kept("doctor", "--json"))["journal"]
        assert journal["baseline"]["seq"] == journal["archived_events"] > 0
        assert journal["kept"] == str(home / "journal-0.2")
        spoken = kept("doctor").stdout
        assert f"compacted: {journal['archived_events']} events archived" in spoken
        assert "`memgraph migrate --finish` removes it" in spoken

    def test_a_model_that_is_not_the_stores(self, kept: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memgraph.embedding.default_embedder", lambda _model="minilm": FakeEmbedder(dimension=32))
        (found,) = problems(kept)
        assert "64 dimensions" in found["message"]
        assert "32" in found["message"]

    def test_a_disk_that_is_nearly_full(self, kept: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            "memgraph.health.examination.shutil.disk_usage",
            lambda _path: type("Usage", (), {"free": 1_000})(),
        )
        (found,) = problems(kept)
        assert "1,000 bytes free" in found["message"]

    def test_variables_that_are_none_of_ours_are_named(self, kept: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMGRAPH_GRAPH_IDEL_S", "3")
        document = told(kept("doctor", "--json"))
        assert document["config"]["unknown_variables"] == ["MEMGRAPH_GRAPH_IDEL_S"]
        assert document["healthy"]
