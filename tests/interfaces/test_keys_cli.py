"""``memgraph keys``."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.http.access.tokens import Token
from memgraph.testing import FakeEmbedder
from tests.interfaces.servers import client_of, gate_on
from tests.tables import change

NEW = "cd" * 32


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def invoke(*args: str, given: str | None = None, code: int = 0, home: str = "s") -> str:
        result = CliRunner().invoke(
            cli,
            ["--home", str(tmp_path / home), *args],
            input=given,
            obj=Settings(embedder=FakeEmbedder()),
        )
        assert result.exit_code == code, result.output
        return result.stderr if code else result.stdout

    return invoke


@pytest.fixture
def key_file(run: Any, isolated_environment: Path) -> Path:
    """The key file of a store of one memory."""
    run("remember", "The cache is cold")
    (path,) = (isolated_environment / "keys" / "keys").iterdir()
    return path


def states(run: Any, **options: Any) -> list[str]:
    return [one["state"] for one in json.loads(run("keys", "list", "--json", **options))["keys"]]


def test_after_a_compaction_each_key_has_its_events(run: Any, key_file: Path) -> None:
    run("keys", "rotate")
    run("remember", "The cache is warm")
    run("compact", "--before", "2999-01-01")
    first, second = run("keys", "list").splitlines()
    assert first.endswith(": archived (events 1 to 4)")
    assert second.endswith(": signs (from event 5)")


def test_a_key_from_the_shell(run: Any, key_file: Path, tmp_path: Path) -> None:
    assert run("keys", "list").startswith("file:store:1-")
    said = run("keys", "rotate")
    assert "signs from now on" in said
    assert "`memgraph keys export FILE`" in said
    assert states(run) == ["verifies", "signs"]
    assert "until 20" in run("keys", "list")
    assert run("keys", "check") == "2 keys needed, all present (provider file).\n"
    run("remember", "The cache is warm")
    assert "Verified" in run("verify")
    assert "--yes" in run("keys", "rotate", "--only-reseal", code=1)
    assert states(run) == ["verifies", "signs"]
    resealed = json.loads(run("keys", "rotate", "--only-reseal", "--yes", "--json"))
    assert resealed["rotated"] is None
    assert len(resealed["resealed"]["freed_key_ids"]) == 1
    assert states(run) == ["signs", "not needed"]
    assert run("list").count("The cache") == 2
    assert "nothing to reseal" in run("keys", "rotate", "--only-reseal", "--yes", code=1)
    said = run("keys", "rotate", "--reseal", "--yes").splitlines()
    assert said[0].endswith("signs from now on."), "not that the earlier key verifies, which is freed at once"
    assert "no longer needed: file:store:" in said[2]
    both = json.loads(run("keys", "rotate", "--reseal", "--yes", "--json"))
    assert both["rotated"]["key_id"] == both["resealed"]["key_id"]
    run("keys", "rotate")
    change(tmp_path / "s", "DELETE FROM head")
    assert "1 problem found" in run("doctor", code=1), "the fake embedder is no packaged model; the journal verifies"


def doctor_output(tmp_path: Path) -> str:
    return CliRunner().invoke(cli, ["--home", str(tmp_path / "s"), "doctor"]).output


@pytest.mark.usefixtures("key_file")
def test_doctor_reports_an_expired_key_as_opening_does(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("keys", "rotate")
    assert "may no longer verify" not in doctor_output(tmp_path)
    monkeypatch.setenv("MEMGRAPH_KEY_VERIFICATION_DAYS", "0")
    assert "memgraph keys rotate --reseal" in run("list", code=1)
    assert "may no longer verify" in doctor_output(tmp_path)


@pytest.mark.usefixtures("key_file")
def test_doctor_says_of_each_provider_where_its_key_is(
    run: Any, tmp_path: Path, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key_of() -> dict[str, Any]:
        document = json.loads(CliRunner().invoke(cli, ["--home", str(tmp_path / "s"), "doctor", "--json"]).stdout)
        (check,) = (one for one in document["checks"] if one["name"] == "key")
        return {**document["key"], **check}

    document = tmp_path / "keys.json"
    run("keys", "export", str(document))
    assert (key_of()["place"], key_of()["present"], key_of()["status"]) == (str(key_file), True, "ok")
    monkeypatch.setenv("MEMGRAPH_KEY_PROVIDER", "json")
    monkeypatch.setenv("MEMGRAPH_KEY_SOURCE", str(document))
    assert (key_of()["place"], key_of()["present"], key_of()["status"]) == (str(document), True, "ok")
    assert f"key         {document}: present" in doctor_output(tmp_path)
    document.unlink()
    found = key_of()
    assert (found["present"], found["status"], found["message"]) == (
        False,
        "error",
        f"the signing key is missing: {document}",
    )
    assert found["advice"] == f"restore the document {document}, or correct MEMGRAPH_KEY_SOURCE"
    assert f"key         {document}: missing" in doctor_output(tmp_path)
    assert f"restore the document {document}" in run("list", code=1)
    assert f"restore the document {document}" in run("keys", "list", code=1)
    monkeypatch.setenv("MEMGRAPH_KEY_PROVIDER", "file")
    monkeypatch.delenv("MEMGRAPH_KEY_SOURCE")
    key_file.unlink()
    assert "MEMGRAPH_KEY" not in run("list", code=1), "it would have no effect"
    monkeypatch.setenv("MEMGRAPH_KEY_PROVIDER", "command")
    monkeypatch.setenv("MEMGRAPH_KEY_SOURCE", '["/nowhere/at/all"]')
    assert (key_of()["place"], key_of()["status"]) == ("the output of the key command 'all'", "error")
    assert "key         the output of the key command 'all': cannot be read" in doctor_output(tmp_path)


def test_doctor_names_every_earlier_key_that_is_missing(run: Any, tmp_path: Path, key_file: Path) -> None:
    for _ in range(2):
        run("keys", "rotate")
        run("remember", "The cache is warm")
    stored = json.loads(key_file.read_text())
    earlier = [one["key_id"] for one in stored["earlier"]]
    assert len(earlier) == 2
    key_file.write_text(json.dumps({**stored, "earlier": []}))
    document = json.loads(CliRunner().invoke(cli, ["--home", str(tmp_path / "s"), "doctor", "--json"]).stdout)
    (check,) = (one for one in document["checks"] if one["name"] == "key")
    assert check["status"] == "error"
    assert all(key_id in check["message"] for key_id in earlier)
    assert "keys import" in check["message"]
    assert "keys import" in run("repair", code=1)


def test_export_and_import_move_a_store(run: Any, key_file: Path, tmp_path: Path) -> None:
    run("keys", "rotate")
    secrets = [json.loads(key_file.read_text())["secret"], json.loads(key_file.read_text())["earlier"][0]["secret"]]
    target = tmp_path / "keys.json"
    said = run("keys", "export", str(target))
    assert said.startswith("Wrote 2 keys to ")
    assert not any(secret in said for secret in secrets)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "exists already" in run("keys", "export", str(target), code=1)
    key_file.unlink()
    assert "is missing" in run("list", code=1)
    assert "problem" in run("keys", "check", code=1)
    assert run("keys", "import", str(target)).count("Added file:store:") == 2
    assert run("keys", "import", str(target)) == "The key file has all of them.\n"
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert "The cache is cold" in run("list")
    assert states(run) == ["verifies", "signs"]


def test_an_exported_document_serves_as_provider_json(
    run: Any, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("keys", "rotate")
    run("keys", "export", str(tmp_path / "keys.json"))
    key_file.unlink()
    monkeypatch.setenv("MEMGRAPH_KEY_PROVIDER", "json")
    monkeypatch.setenv("MEMGRAPH_KEY_SOURCE", str(tmp_path / "keys.json"))
    assert "The cache is cold" in run("list")
    assert "provider json" in run("keys", "check")


def test_an_exported_document_restores_a_backup_on_another_machine(run: Any, key_file: Path, tmp_path: Path) -> None:
    exported, archive = str(tmp_path / "keys.json"), str(tmp_path / "b.tar.gz")
    run("keys", "export", exported)
    run("backup", archive)
    run("remember", "The cache is warm")
    aside = run("restore", archive, home="other/../aside")
    assert str(tmp_path / "aside") in aside
    assert ".." not in aside
    assert "Any memory that was purged in that time is here again" in aside
    for path in (tmp_path / "s", tmp_path / "aside", key_file.parent, key_file.parent.parent / "heads"):
        shutil.rmtree(path, ignore_errors=True)
    assert "memgraph keys import FILE" in run("restore", archive, code=1)
    first, second = run("keys", "import", exported).splitlines()
    assert first.startswith("Added file:store:1-")
    assert "memgraph restore FILE" in second
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert not (tmp_path / "s").exists()
    assert "Restored the store" in run("restore", archive)
    assert "The cache is cold" in run("list")


@pytest.mark.parametrize("store_id", [None, 7, "", "../../elsewhere", "{00000000-0000-4000-8000-000000000000}"])
def test_without_a_store_a_document_that_names_none_is_refused(run: Any, tmp_path: Path, store_id: object) -> None:
    document = {"key_id": "json:prod:1", "secret": NEW} | ({} if store_id is None else {"store_id": store_id})
    (tmp_path / "keys.json").write_text(json.dumps(document))
    before = sorted(tmp_path.rglob("*"))
    said = run("keys", "import", str(tmp_path / "keys.json"), code=1)
    assert "names no store" in said
    assert "MEMGRAPH_KEY_SOURCE" in said
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_key_is_not_looked_for_in_a_backup(
    run: Any, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("keys", "export", str(tmp_path / "keys.json"))
    key_file.write_text("{}")
    for command in (["list"], ["keys", "import", str(tmp_path / "keys.json")]):
        assert "contains no key; move the file away and run `memgraph keys import" in run(*command, code=1)
    key_file.rename(tmp_path / "damaged.json")
    run("keys", "import", str(tmp_path / "keys.json"))
    assert "The cache is cold" in run("list")
    monkeypatch.setenv("MEMGRAPH_KEY_PROVIDER", "json")
    monkeypatch.setenv("MEMGRAPH_KEY_SOURCE", str(tmp_path / "damaged.json"))
    assert "correct MEMGRAPH_KEY_SOURCE" in run("list", code=1)


def test_keys_of_another_store_are_refused(run: Any, key_file: Path, tmp_path: Path) -> None:
    run("remember", "Another store", home="other")
    run("keys", "export", str(tmp_path / "keys.json"), home="other")
    before = key_file.read_bytes()
    said = run("keys", "import", str(tmp_path / "keys.json"), code=1)
    assert "another store" in said
    assert "wrote for this store" in said
    document = {**json.loads(before), "secret": NEW, "key_id": "json:prod:1"}
    (tmp_path / "keys.json").write_text(json.dumps({**document, "earlier": [{"key_id": "json:prod:1", "secret": NEW}]}))
    assert "alike" in run("keys", "import", str(tmp_path / "keys.json"), code=1)
    assert key_file.read_bytes() == before


def test_an_export_that_finds_no_room_leaves_no_file(
    run: Any, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()

    def full(descriptor: int, data: Any) -> int:
        if "out" not in str(Path(f"/proc/self/fd/{descriptor}").resolve()):
            return write(descriptor, data)
        write(descriptor, bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write = os.write
    monkeypatch.setattr(os, "write", full)
    assert "No space left" in run("keys", "export", str(out / "keys.json"), code=1)
    assert list(out.iterdir()) == []
    monkeypatch.undo()


def test_an_export_works_without_hard_links_and_never_replaces_a_file(
    run: Any, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    target = tmp_path / "keys.json"
    target.symlink_to(tmp_path / "elsewhere.json")
    assert "exists already" in run("keys", "export", str(target), code=1)
    assert not (tmp_path / "elsewhere.json").exists()
    target.unlink()
    run("keys", "export", str(target))
    assert json.loads(target.read_text())["secret"] == json.loads(key_file.read_text())["secret"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "exists already" in run("keys", "export", str(target), code=1)
    assert sorted(path.name for path in tmp_path.glob("*keys.json*")) == ["keys.json"]


def test_an_import_that_would_exceed_the_limit_adds_nothing(run: Any, key_file: Path, tmp_path: Path) -> None:
    before = key_file.read_bytes()
    one, *earlier = [{"key_id": f"json:prod:{number}", "secret": f"{number:064x}"} for number in range(1, 65)]
    (tmp_path / "keys.json").write_text(json.dumps({**one, "earlier": earlier}))
    assert "nothing was changed" in run("keys", "import", str(tmp_path / "keys.json"), code=1)
    assert key_file.read_bytes() == before


def test_rotation_to_the_environments_key(
    run: Any, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMGRAPH_KEY", NEW)
    assert states(run) == ["signs", "next"]
    result = CliRunner().invoke(cli, ["--home", str(tmp_path / "s"), "list"], obj=Settings())
    assert "MEMGRAPH_KEY may be another store's: then correct or unset it" in result.stderr
    assert "The cache is cold" in run("list")
    said = run("keys", "rotate")
    assert "env:MEMGRAPH_KEY:" in said
    assert "keys export" not in said, "who set the variable keeps the key"
    assert "already in use" in run("keys", "rotate", code=1)
    assert states(run) == ["verifies", "signs"]
    monkeypatch.delenv("MEMGRAPH_KEY")
    refused = run("keys", "check", code=1)
    assert "problem" in refused
    assert "missing" in run("list", code=1)


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("keychain", "", "key_provider"),
        ("vault", "secret/memgraph", "cannot be read"),
        ("command", '["/nowhere/at/all"]', "cannot be run"),
        ("json", "/nowhere/at/all.json", "missing"),
        ("file", "x", "no meaning"),
    ],
)
def test_bad_providers(
    run: Any, key_file: Path, name: str, source: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_ADDR", "http://127.0.0.1:9")
    monkeypatch.setenv("MEMGRAPH_KEY_PROVIDER", name)
    monkeypatch.setenv("MEMGRAPH_KEY_SOURCE", source)
    before = {path: path.read_bytes() for path in key_file.parent.iterdir()}
    for command in (["list"], ["remember", "x"], ["keys", "rotate"]):
        assert reason in run(*command, code=1)
    run("keys", "check", code=1)
    assert {path: path.read_bytes() for path in key_file.parent.iterdir()} == before


def test_without_a_store_nothing_is_made(run: Any, tmp_path: Path) -> None:
    for command in (["list"], ["check"], ["rotate"], ["export", str(tmp_path / "k")]):
        assert "no store yet" in run("keys", *command, code=1)
    assert not (tmp_path / "s").exists()
    assert not (tmp_path / "k").exists()


def test_dev_needs_the_flag(run: Any, key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key_file.unlink()
    monkeypatch.setenv("MEMGRAPH_SECURITY_MODE", "dev")
    assert "is missing" in run("list", code=1)
    monkeypatch.setenv("MEMGRAPH_ALLOW_UNSIGNED_REPLAY", "true")
    assert "The cache is cold" in run("list")
    assert "read-only" in run("remember", "x", code=1)
    monkeypatch.setenv("MEMGRAPH_SECURITY_MODE", "developer")
    assert "is missing" in run("list", code=1)


class TestAnOpenStoreWhoseJournalIsResealed:
    """Another process signs the journal anew while a program, or a server, has the store open."""

    @pytest.fixture
    def reseal(self, run: Any, key_file: Path) -> Any:
        return lambda: run("keys", "rotate", "--reseal", "--yes")

    def test_a_program_goes_on_writing_and_reading(self, reseal: Any, run: Any, tmp_path: Path) -> None:
        with MemGraph.open(tmp_path / "s", embedder=FakeEmbedder()) as memory:
            memory.recall("the cache")
            store = memory.store
            for number, write in enumerate(
                (
                    lambda: memory.save_observation("The port is 8080."),
                    lambda: store.insert_memory({"type": "semantic", "content": "The queue is empty", "source": "x"}),
                    lambda: memory.commands.remember("The disk is full"),
                    lambda: memory.tasks.upsert("Empty the disk"),
                    lambda: memory.curation.tag(store.list_memories()[0].id, ["old"]),
                )
            ):
                reseal()
                write()
                assert len(store.list_memories()) == min(2 + number, 4)
            reseal()
            assert memory.recall("the port").memories
        assert run("list").count("\n") == 4
        assert "Verified" in run("verify")

    def test_a_block_of_reads_sees_one_journal(self, reseal: Any, tmp_path: Path) -> None:
        with MemGraph.open(tmp_path / "s", embedder=FakeEmbedder()) as memory:
            with memory.store.reader.frozen():
                before = memory.store.reader
                reseal()
                assert memory.store.reader is before
            assert memory.store.reader is not before

    def test_a_write_that_waits_while_it_is_resealed_is_stored_once(
        self, reseal: Any, run: Any, tmp_path: Path
    ) -> None:
        class Resealing(FakeEmbedder):
            """Makes vectors before the store is locked, as a slow model does."""

            is_due = False

            def embed(self, texts: Any) -> Any:
                if self.is_due:
                    self.is_due = False
                    reseal()
                return super().embed(texts)

        embedder = Resealing()
        with MemGraph.open(tmp_path / "s", embedder=embedder) as memory:
            for text in ("The port is 8080.", "The queue is empty."):
                embedder.is_due = True
                memory.save_observation(text)
                assert not embedder.is_due
            embedder.is_due = True
            memory.store.insert_memory({"type": "semantic", "content": "The disk is full", "source": "x"})
        assert run("list").count("\n") == 4
        assert "Verified" in run("verify")

    def test_a_server_stores_what_it_is_sent(self, reseal: Any, run: Any, tmp_path: Path) -> None:
        with MemGraph.open(tmp_path / "s", embedder=FakeEmbedder()) as memory:
            local = Token(id="local", sha256="", scope="admin", created_at="2000-01-01T00:00:00.000Z")
            with client_of(gate_on(memory, None, unasked=local)) as client:
                for number in range(2):
                    reseal()
                    given = {"text": f"The port of service {number} is {8080 + number}."}
                    found = client.post("/v1/save_observation", json=given, headers={"Idempotency-Key": f"k{number}"})
                    assert found.status_code == 200, found.text
        assert run("list").count("\n") == 3
