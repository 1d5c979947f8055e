"""A store on a PostgreSQL server: at every door, moved there and back, and what fails is said clearly and leaves nothing."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph import AgentMemoryConfig, AgentMemoryStore, MemGraph
from memgraph.config import load_config
from memgraph.errors import (
    ConfigError,
    DamagedJournalError,
    InvalidInputError,
    JournalError,
    MemGraphError,
    MissingExtraError,
    ReadOnlyError,
    StorageError,
)
from memgraph.interfaces.cli.group import cli
from memgraph.journal import sql
from memgraph.store.maintenance.migration import move
from tests.postgres import Server, running

SECRET = "geheim-9917"
pytestmark = pytest.mark.usefixtures("surroundings")


@pytest.fixture(scope="module")
def running_server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def server(running_server: Server) -> Iterator[Server]:
    """A server with an empty database."""
    yield running_server
    running_server.execute("DROP SCHEMA IF EXISTS memgraph CASCADE")


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / "keys"))
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("MEMGRAPH_WORKER", "off")
    monkeypatch.delenv("MEMGRAPH_HOME", raising=False)
    monkeypatch.delenv("MEMGRAPH_TENANT", raising=False)


@pytest.fixture
def run() -> Callable[..., Result]:
    def call(*arguments: str) -> Result:
        return CliRunner().invoke(cli, arguments, prog_name="memgraph")

    return call


def contents(memory: MemGraph) -> set[str]:
    return {one.content for one in memory.store.query_by_type("semantic")}


def schema(server: Server) -> list[tuple[object, ...]]:
    return server.execute("SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'memgraph'")


class TestDoors:
    def test_python(self, server: Server, tmp_path: Path) -> None:
        with MemGraph.open(server.address(), tenant="acme") as memory:
            memory.commands.remember("The vault is in Bern")
            assert memory.store.config.home.is_relative_to(tmp_path / "data" / "memgraph")
            assert memory.health().healthy
            digest = memory.store.digest()
        with AgentMemoryStore(AgentMemoryConfig(home=server.address(), tenant="acme")) as store:
            assert store.digest() == digest
            store.verify(deep=True)

    def test_command_line_and_environment(
        self, server: Server, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        address = server.address()
        assert "no store yet" in run("--home", address, "doctor").stdout
        assert run("--home", address, "stats", "--prometheus").exit_code == 1
        assert run("--home", address, "recall", "vault").exit_code == 0
        assert schema(server) == [], "who only looks creates nothing"
        assert run("--home", address, "remember", "The vault is in Bern").exit_code == 0
        monkeypatch.setenv("MEMGRAPH_HOME", address)
        assert "The vault is in Bern" in run("list").stdout
        found = json.loads(run("doctor", "--json").stdout)
        assert (found["healthy"], found["store"]["path"]) == (True, f"{address} (tenant default)")
        assert json.loads(run("--json").stdout)["exists"]
        assert "\nmemgraph_journal_events_total " in run("stats", "--prometheus").stdout
        monkeypatch.setenv("MEMGRAPH_TENANT", "other")
        assert "Bern" not in run("list").stdout

    def test_settings_are_written_for_a_store_in_use(self, server: Server, run: Callable[..., Result]) -> None:
        assert run("--home", server.address(), "remember", "The vault is in Bern").exit_code == 0
        assert run("--home", server.address(), "config", "init").exit_code == 0

    def test_tenants_share_nothing(self, server: Server) -> None:
        with MemGraph.open(server.address(), tenant="a") as one, MemGraph.open(server.address(), tenant="b") as other:
            one.commands.remember("The vault is in Bern")
            other.commands.remember("The key is in Thun")
            assert (contents(one), contents(other)) == ({"The vault is in Bern"}, {"The key is in Thun"})
            assert one.store.store_id != other.store.store_id
            assert one.store.config.home != other.store.config.home

    def test_tenants_write_at_the_same_time(self, server: Server) -> None:
        import psycopg

        with MemGraph.open(server.address(), tenant="a", lock_timeout_s=1.0) as memory:
            memory.commands.remember("The vault is in Bern")
            with psycopg.connect(server.address()) as other:  # in the midst of a commit: it has taken the next ids
                other.execute(
                    "INSERT INTO memgraph.node SELECT MAX(id) + n, 99, 0, n::TEXT, 1, 1, 0, '' "
                    "FROM memgraph.node, generate_series(1, 20) n GROUP BY n"
                )
                memory.commands.remember("The key is in Thun")
            assert contents(memory) == {"The vault is in Bern", "The key is in Thun"}
            memory.store.verify(deep=True)

    def test_a_long_read_of_one_holds_up_no_other_and_leaves_a_purge_to_be_completed(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import psycopg

        monkeypatch.setattr(sql, "_WAIT_S", 0.2)
        with MemGraph.open(server.address(), tenant="a") as one:
            secret = one.store.insert_memory({"type": "episodic", "content": "The vault is in Bern"}).id
            one.commands.remember("The key is in Thun")
            with psycopg.connect(server.address()) as reader:
                reader.execute("SELECT count(*) FROM memgraph.event").fetchall()
                assert one.purge(secret).code == ""
                with MemGraph.open(server.address(), tenant="b") as other:
                    other.commands.remember("The map is in Basel")
            home = one.store.config.home
        with MemGraph.open(server.address(), tenant="a") as one:
            (receipt,) = (home / "receipts").iterdir()
            assert one.store.check_receipt(receipt.read_bytes()).events == 1

    def test_two_processes_write_one_store(self, server: Server, run: Callable[..., Result]) -> None:
        with MemGraph.open(server.address()) as memory:
            memory.commands.remember("The vault is in Bern")
            assert run("--home", server.address(), "remember", "The key is in Thun").exit_code == 0
            assert contents(memory) == {"The vault is in Bern", "The key is in Thun"}
            memory.store.verify(deep=True)

    def test_backup_repair_keys_compaction(self, server: Server, run: Callable[..., Result], tmp_path: Path) -> None:
        home = ("--home", server.address())
        assert run(*home, "remember", "The vault is in Bern").exit_code == 0
        for command in (["repair"], ["verify", "--deep"], ["keys", "list"], ["keys", "rotate", "--reseal", "--yes"], ["migrate"], ["compact", "--before", "2999-01-01"]):  # fmt: skip
            done = run(*home, *command)
            assert done.exit_code == 0, (command, done.output, done.exception)
        assert run(*home, "backup", str(tmp_path / "a.tar.gz")).exit_code == 0
        refused = run(*home, "restore", str(tmp_path / "a.tar.gz"))
        assert (refused.exit_code, "memgraph move --to" in refused.stderr) == (1, True)
        assert run(*home, "purge", "--text", "vault", "--yes").exit_code in (0, 2)
        assert run(*home, "verify", "--deep").exit_code == 0


class TestSecrecy:
    def test_the_password_is_shown_nowhere(self, server: Server, run: Callable[..., Result], caplog: Any) -> None:
        address = server.address().replace("tester@", f"tester:{SECRET}@")
        assert run("--home", address, "remember", "The vault is in Bern").exit_code == 0
        shown = [
            run("--home", address, *one) for one in (["config", "show"], ["config", "show", "--json"], ["doctor"], [])
        ]
        config = load_config({"home": address})
        for text in (*[one.output for one in shown], repr(config), str(config), repr(config.server), caplog.text):
            assert SECRET not in text
        assert server.address() in shown[0].stdout
        assert config.home == load_config({"home": server.address()}).home, "the same store whatever the password is"

    @pytest.mark.parametrize(
        "address",
        [f"postgresql://u:{SECRET}@h:x/db", f"mysql://u:{SECRET}@h/db", f"postgresql://u:{SECRET}@h", f"postgresql://u:{SECRET}@127.0.0.1/d?nonsense=x",
         f"postgresql:/u:{SECRET}@h/db", f"postgresql//u:{SECRET}@h/db", f"host=h dbname=db password={SECRET}", f"postgresql://u:p@{SECRET}@h/db", f"postgresql://u:1/{SECRET}@h/db",
         Path(f"postgresql://u:{SECRET}@h/db")],
    )  # fmt: skip
    def test_nor_if_the_address_is_wrong(
        self, run: Callable[..., Result], address: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for use in (lambda: MemGraph.open(address), lambda: AgentMemoryStore(AgentMemoryConfig(home=address))):
            with pytest.raises(
                (ConfigError, StorageError), match="no address of a database: postgresql://USER@HOST/DATABASE"
            ) as refused:
                use()
            assert SECRET not in str(refused.value)
        done = run("--home", str(address), "list")
        assert (done.exit_code, SECRET in done.output) == (1, False)
        assert not list(tmp_path.glob("*=*")), "no directory was made of it"
        assert not list(tmp_path.glob("postgres*")), "no directory was made of it"


class TestErrors:
    """Each is clear, and nothing is half written."""

    def opened(self, *place: Any, **more: Any) -> Any:
        with MemGraph.open(*place, **more) as memory:
            return memory.commands.remember("The vault is in Bern")

    def test_unreachable_at_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(
            StorageError,
            match=r"^postgresql://u@127.0.0.1:1/db \(tenant default\): cannot be used: .*refused; see that the server runs",
        ):
            self.opened("postgresql://u@127.0.0.1:1/db")
        assert not list((tmp_path / "keys").rglob("*.json")), "no key was made for it"

    def test_unreachable_in_the_midst(self, server: Server) -> None:
        with MemGraph.open(server.address()) as memory:
            memory.commands.remember("The vault is in Bern")
            server.stop()
            try:
                for use in (lambda: memory.commands.remember("lost"), lambda: memory.recall("vault")):
                    with pytest.raises(StorageError, match="cannot be used"):
                        use()
            finally:
                server.start()
            memory.commands.remember("found again")
            assert contents(memory) == {"The vault is in Bern", "found again"}
            memory.store.verify(deep=True)

    def test_a_wrong_password(self, server: Server) -> None:
        server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
        try:
            address = server.address(user="guarded:wrong-7731")
            with pytest.raises(StorageError, match="password authentication failed") as refused:
                self.opened(address)
            assert "wrong-7731" not in str(refused.value)
        finally:
            server.execute("DROP ROLE guarded")

    def test_a_user_who_may_not_make_tables(self, server: Server) -> None:
        server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'")
        try:
            with pytest.raises(ReadOnlyError, match="permission denied"):
                self.opened(server.address(user=f"guarded:{SECRET}"))
            assert schema(server) == []
        finally:
            server.execute("DROP ROLE guarded")

    def test_an_unknown_database(self, server: Server) -> None:
        with pytest.raises(StorageError, match='database "nowhere" does not exist'):
            self.opened(server.address("nowhere"))

    def test_tables_of_a_later_release(self, server: Server) -> None:
        self.opened(server.address())
        server.execute("UPDATE memgraph.memgraph_version SET version = 99")
        with pytest.raises(JournalError, match="version 99 of its tables is unknown to this release"):
            self.opened(server.address())

    @pytest.mark.parametrize("tenant", ["", "  ", "x" * 1_000, "a\x00b", 7])
    def test_a_wrong_name_of_a_tenant(self, server: Server, tenant: Any) -> None:
        with pytest.raises((ConfigError, InvalidInputError), match="tenant"):
            self.opened(server.address(), tenant=tenant)
        assert schema(server) == []

    def test_a_missing_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = builtins.__import__

        def without(name: str, *rest: Any) -> Any:
            if name == "psycopg":
                raise ImportError(name)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(MissingExtraError, match=r"memgraph-kuzu\[postgres\]"):
            self.opened("postgresql://u@127.0.0.1:1/db")

    def test_a_standby(self, server: Server) -> None:
        self.opened(server.address())
        with running(standby_of=server) as standby:
            with MemGraph.open(standby.address()) as copy:
                assert contents(copy) == {"The vault is in Bern"}
                with pytest.raises(ReadOnlyError, match="is a standby, which may only be read"):
                    copy.commands.remember("The key is in Thun")
            with pytest.raises(StorageError, match=r"has no store of this name, and .* is a standby"):
                self.opened(standby.address(), tenant="other")

    def test_a_store_that_is_gone(self, server: Server, run: Callable[..., Result]) -> None:
        self.opened(server.address())
        server.execute("DROP SCHEMA memgraph CASCADE")
        with pytest.raises(JournalError, match=r"the journal in postgresql://.* holds no events, but .*graph"):
            self.opened(server.address())
        assert "the journal in postgresql://" in run("--home", server.address(), "list").stderr

    def test_an_event_that_was_changed(self, server: Server) -> None:
        self.opened(server.address())
        server.execute("UPDATE memgraph.event SET payload = convert_to(replace(convert_from(payload, 'UTF8'), 'Bern', 'Thun'), 'UTF8') WHERE seq = 2")  # fmt: skip
        with (
            MemGraph.open(server.address()) as memory,
            pytest.raises(DamagedJournalError, match=r"^journal damaged at postgresql://"),
        ):
            memory.store.verify()


class TestMoving:
    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        with MemGraph.open(tmp_path / "store") as memory:
            memory.commands.remember("The vault is in Bern")
            memory.commands.remember("The key is in Thun")
        (tmp_path / "store" / "config.toml").write_text("archive_retention_days = 1\n")
        return tmp_path / "store"

    def test_there_and_back(self, server: Server, home: Path, run: Callable[..., Result], tmp_path: Path) -> None:
        with MemGraph.open(home) as memory:
            digest = memory.store.digest()
        assert run("--home", str(home), "compact", "--before", "2999-01-01").exit_code == 0
        there = json.loads(
            run("--home", str(home), "move", "--to", server.address(), "--tenant", "acme", "--json").stdout
        )
        assert (there["digest"], there["source"]) == (digest, str(home))
        assert there["target"] == f"{server.address()} (tenant acme)"
        with MemGraph.open(server.address(), tenant="acme") as memory:
            assert memory.store.digest() == digest
            assert memory.store.config.archive_retention_days == 1
            memory.store.verify(deep=True)
            memory.commands.remember("Written there")
            changed = memory.store.digest()
        with pytest.raises(StorageError, match="moved to postgresql"):
            MemGraph.open(home)
        back = move(tmp_path / "back", AgentMemoryConfig(home=server.address(), tenant="acme"))
        assert back.digest == changed
        with MemGraph.open(tmp_path / "back") as memory:
            assert contents(memory) == {"The vault is in Bern", "The key is in Thun", "Written there"}
            memory.store.verify(deep=True)

    def test_the_message_names_both(self, server: Server, home: Path, run: Callable[..., Result]) -> None:
        done = run("--home", str(home), "move", "--to", server.address())
        assert done.exit_code == 0, done.output
        assert server.address() in done.stdout
        assert f"The old store, {home}, is left as it is" in done.stdout

    def test_vectors_come_along(self, server: Server, tmp_path: Path) -> None:
        from memgraph.testing import FakeEmbedder

        config = AgentMemoryConfig(home=tmp_path / "store")
        with AgentMemoryStore(config, embedder=FakeEmbedder(dimension=8)) as store:
            store.insert_memory({"type": "semantic", "content": "The vault is in Bern"})
        assert move(server.address(), config).vectors == 1
        target = AgentMemoryConfig(home=server.address())
        with AgentMemoryStore(target, embedder=FakeEmbedder(dimension=8)) as store:
            store.verify(deep=True)
            assert store.awaiting_vectors() == 0

    def test_what_is_refused_changes_nothing(self, server: Server, home: Path, tmp_path: Path) -> None:
        config = AgentMemoryConfig(home=home)
        with MemGraph.open(server.address()) as memory:
            memory.commands.remember("Another store")
        before = server.execute("SELECT COUNT(*) FROM memgraph.event")
        with pytest.raises(StorageError, match="holds a store already"):
            move(server.address(), config)
        assert server.execute("SELECT COUNT(*) FROM memgraph.event") == before
        with pytest.raises(InvalidInputError, match="must name another place"):
            move(home, config)
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "notes.txt").write_text("mine")
        with pytest.raises(MemGraphError, match="full"):
            move(tmp_path / "full", config)
        with pytest.raises(StorageError, match="there is no store yet"):
            move(tmp_path / "new", AgentMemoryConfig(home=tmp_path / "none"))
        assert not (tmp_path / "new").exists()

    def test_a_damaged_event_is_not_moved(self, server: Server, home: Path) -> None:
        from tests.tables import change_payload

        change_payload(home, "Bern", "Thun")
        with pytest.raises(DamagedJournalError):
            move(server.address(), AgentMemoryConfig(home=home))
        assert schema(server) == [] or server.execute("SELECT COUNT(*) FROM memgraph.tenant") == [(0,)]
