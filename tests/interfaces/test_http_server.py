"""`memgraph serve` as a process: commands, slow and broken clients, signals, and what is left after it was killed."""

from __future__ import annotations

import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result

from memgraph import MemGraph
from memgraph.errors import ClosedError
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.http.access.gate import Gate
from memgraph.interfaces.http.access.stores import Stores
from memgraph.interfaces.http.access.tokens import Token
from memgraph.interfaces.http.limits import Limits
from memgraph.interfaces.http.run import listener, serve
from memgraph.testing import FakeEmbedder, FakeKeys
from tests.documents import DOCS, blocks
from tests.interfaces.servers import Process, Served, running, serving

EPISODE = {"action": "Ran it", "reasoning": "It was due", "outcome": "success"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / "keys"))
    return tmp_path / "store"


@pytest.fixture
def run(home: Path) -> Callable[..., Result]:
    def command(*words: str) -> Result:
        return CliRunner().invoke(cli, [*words], prog_name="memgraph", obj=Settings())

    return command


def post(port: int, name: str, arguments: dict[str, Any], *, timeout_s: float = 60, **headers: str) -> tuple[int, Any]:
    """Send one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request(
            "POST",
            name if name.startswith("/") else f"/v1/{name}",
            json.dumps(arguments),
            {"Content-Type": "application/json", **headers},
        )
        found = connection.getresponse()
        return found.status, json.loads(found.read())
    finally:
        connection.close()


class TestCommands:
    def test_a_token_is_made_listed_and_revoked(self, run, home):
        made = run(
            "token", "create", "--home", str(home), "--scope", "read", "--agent", "coach", "--days", "30", "--json"
        )
        document = json.loads(made.stdout)
        assert document["token"].startswith(f"mg_{document['id']}_")
        assert "sha256" not in document
        listed = run("token", "list", "--home", str(home))
        assert listed.stdout.split()[:3] == [document["id"], "read", "coach"]
        assert document["token"] not in listed.output
        revoked = run("token", "revoke", document["id"], "--home", str(home), "--json")
        assert json.loads(revoked.stdout) == {"revoked": document["id"]}
        again = run("token", "revoke", document["id"], "--home", str(home))
        assert (again.exit_code, "memgraph token list" in again.output) == (1, True)
        assert run("token", "list", "--home", str(home)).stdout == "There are no tokens.\n"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["serve", "--host", "0.0.0.0"], "memgraph token create"),
            (["serve", "--root", "ROOT"], "memgraph token create"),
            (["token", "create", "--tenant", "a"], "belong together"),
            (["token", "create", "--days", "1e12"], "--days"),
            (["token", "create", "--days", "nan"], "days: must be"),
            (["token", "create", "--days", "0"], "--days"),
            (["token", "create", "--root", "ROOT", "--tenant", "../a"], "tenant"),
        ],
    )
    def test_what_is_refused_and_what_to_do(self, run, home, tmp_path, words, said, network_attempts):
        words = [str(tmp_path / "root") if word == "ROOT" else word for word in words]
        found = run(*words, *(() if "--root" in words else ("--home", str(home))))
        network_attempts.clear()
        assert found.exit_code in {1, 2}
        assert said in found.output
        assert found.exception is None or isinstance(found.exception, SystemExit)

    def test_an_address_that_is_taken(self, run, home):
        with listener("127.0.0.1", 0, asks=False) as taken:
            found = run("serve", "--home", str(home), "--port", str(taken.getsockname()[1]))
        assert (found.exit_code, "cannot be listened on" in found.output) == (1, True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        yield served


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving(tmp_path_factory.mktemp("slow")) as served:
        yield served.port


class TestSlowClients:
    @pytest.mark.parametrize(
        ("sent", "answer"),
        [
            (b"", b""),
            (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-", b""),
            (
                b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
                b"408",
            ),
            (b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"408"),
            (b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n{", b"413"),
            (b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"x" * 100_000, b"400"),
            (b"\x16\x03\x01 no HTTP\r\n\r\n", b"400"),
            (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: loc", b"200"),
        ],
    )
    def test_a_connection_that_says_nothing_more_is_closed(self, port, sent, answer):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(sent)
            received = b""
            with suppress(ConnectionResetError):
                while part := connection.recv(65_536):
                    received += part
        assert received.split(b" ")[1:2] == ([answer] if answer else [])

    @pytest.mark.parametrize(
        "begun",
        [
            b"GET /healthz HTTP/1.1\r\n",
            b"POST /v1/stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n",
            b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n",  # answered before its body is there
        ],
    )
    def test_drops_do_not_keep_it_open(self, port, begun):
        def drip(connection: socket.socket) -> None:
            for _ in range(600):
                connection.sendall(b"X-A: b\r\n")
                time.sleep(0.1)

        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(begun)
            with pytest.raises(ConnectionError):
                drip(connection)

    def test_a_client_that_takes_no_answer_is_dropped(self, port):
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.connect(("127.0.0.1", port))
            connection.settimeout(20)
            asked = 2_000
            head = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
            with suppress(ConnectionError, TimeoutError):
                connection.settimeout(3)
                connection.sendall(head * asked)
            time.sleep(1.5)
            received = b""
            with suppress(ConnectionError):
                while part := connection.recv(1 << 20):
                    received += part
        assert 0 < received.count(b"HTTP/1.1 200") < asked / 2

    def test_many_slow_clients_keep_nobody_else_out(self, port):
        head = b"POST /v1/recall HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
        slow = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(200)]
        for one in slow:
            one.sendall(head)
        assert post(port, "stats", {})[0] == 200
        for one in slow:
            one.close()


class TestManyConnections:
    HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

    @pytest.fixture
    def open(self) -> Iterator[Callable[..., socket.socket]]:
        """Opens a connection from an address and sends something."""
        with ExitStack() as stack:

            def opened(port: int, sent: bytes, *, address: str = "127.0.0.1") -> socket.socket:
                made = stack.enter_context(
                    socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(address, 0))
                )
                made.sendall(sent)
                return made

            yield opened

    def is_served(self, connection: socket.socket) -> bool:
        said = b""
        while not said.endswith(b'"ok"}') and (part := connection.recv(4_096)):
            said += part
        return said.startswith(b"HTTP/1.1 200")

    def test_half_a_head_keeps_few_connections_of_an_address_open_and_nobody_out(self, tmp_path, open):
        with serving(tmp_path, connections=8, head_s=30.0) as server:
            idle = []
            for _ in range(3):
                idle.append(open(server.port, self.HEALTH))
                assert self.is_served(idle[-1])
            begun = [open(server.port, b"GET /healthz HTTP/1.1\r\nX-A: ") for _ in range(12)]
            for one in begun[:-2]:
                with suppress(ConnectionError):
                    assert one.recv(4_096) == b"", "it is closed: a quarter of the connections may wait"
            for one in (*idle, *begun[-2:]):
                one.sendall(self.HEALTH if one in idle else b"b\r\nHost: localhost\r\n\r\n")
                assert self.is_served(one)
            for one in idle:  # half of a further head counts as well
                one.sendall(b"GET /healthz HTTP/1.1\r\nX-A: ")
            with suppress(ConnectionError):
                assert idle[0].recv(4_096) == b"", "the oldest is closed"
            begun = [open(server.port, b"GET /healthz HTTP/1.1\r\nX-A: ") for _ in range(2)]
            for address in ("127.0.0.1", "127.0.0.2"):
                assert self.is_served(open(server.port, self.HEALTH, address=address))

    def test_a_connection_too_many_is_told_when_to_come_again(self, tmp_path, open):
        with serving(tmp_path, connections=4, head_s=30.0) as server:
            for _ in range(4):
                assert self.is_served(open(server.port, self.HEALTH))
            refused = open(server.port, self.HEALTH)
            said = b""
            while part := refused.recv(4_096):
                said += part
            assert said.startswith(b"HTTP/1.1 503")
            assert b"\r\nretry-after: 1\r\n" in said.lower()

    @pytest.mark.parametrize("path", [b"/healthz", b"/v1/stats"])
    @pytest.mark.parametrize("first", [b"Content-Length: 5", b"Transfer-Encoding: chunked"])
    def test_a_body_with_two_ends_is_refused_and_nothing_after_it_is_read(self, port, open, path, first):
        lengths = {b"Content-Length: 5", b"Transfer-Encoding: chunked"}
        [second] = lengths - {first}
        head = b"\r\n".join((b"POST " + path + b" HTTP/1.1", b"Host: localhost", first, second))
        asked = open(port, head + b"\r\n\r\n0\r\n\r\n" + self.HEALTH)
        said = b""
        with suppress(ConnectionResetError):
            while part := asked.recv(4_096):
                said += part
        assert said.count(b"HTTP/1.1 ") == 1
        assert said.startswith(b"HTTP/1.1 400")


def test_the_servers_files_are_private(server):
    before = os.umask(0o022)
    try:
        for number in range(3):
            assert post(server.port, "save_episode", {**EPISODE, "task": f"Task {number}"})[0] == 200
        assert post(server.port, "query", {"cypher": "MATCH (m:Memory) RETURN m.id"})[1]["data"]["total"] == 3
        files = [one for one in server.memory.store.config.home.rglob("*") if one.is_file()]
        assert {"memgraph.db", "memgraph.db-wal", "memgraph.db-shm"} <= {one.name for one in files}
        assert [one for one in files if one.name.startswith("base-")], "the graph was written"
        assert [one.name for one in files if one.stat().st_mode & 0o077] == []
    finally:
        os.umask(before)


class TestAFullDisk:
    KEY: ClassVar = {"Idempotency-Key": "full"}

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Iterator[Path]:
        """A disk of 120 MB, if one can be mounted."""
        place = tmp_path / "disk"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=120m", "tmpfs", str(place)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")
        yield place
        subprocess.run(["umount", "-l", str(place)], check=True)

    @pytest.mark.parametrize("left", [0, 12 << 10])
    @pytest.mark.parametrize("headers", [{}, KEY])
    def test_a_write_says_so_and_passes_when_there_is_room_again(self, disk, headers, left):
        with serving(disk, body_s=30.0) as server:
            assert post(server.port, "recall", {"task": "the harbour"})[0] == 200
            ballast = disk / "ballast"
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while file.write(bytes(4_096)):
                    pass
            os.truncate(ballast, ballast.stat().st_size - left)
            self.refuse(server, headers)
            ballast.unlink()
            self.take(server, headers)

    def test_so_does_one_that_a_limit_on_the_size_of_files_stops(self, server):
        post(server.port, "save_episode", {**EPISODE, "task": "The first"}, **{"Idempotency-Key": "first"})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        log = server.memory.store.config.home / "memgraph.db-wal"
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
        try:
            self.refuse(server, self.KEY)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.take(server, self.KEY)

    def refuse(self, server: Served, headers: dict[str, str]) -> None:
        for _ in range(2):
            status, answer = post(server.port, "save_episode", {**EPISODE, "task": "The last"}, **headers)
            assert (status, "free some disk space" in answer["detail"]) == (507, True), answer

    def take(self, server: Served, headers: dict[str, str]) -> None:
        status, answer = post(server.port, "save_episode", {**EPISODE, "task": "The last"}, **headers)
        assert status == 200, answer
        assert [one.content for one in server.memory.store.list_memories()].count("The last") <= 1
        assert answer["data"]["episode_id"] in {one.id for one in server.memory.store.list_memories()}


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_lines_of_the_page_run_as_they_stand(server, tmp_path):
    [block] = [one for one in blocks(DOCS / "server.md", "sh") if one.text.startswith("curl")]
    text = block.text.replace("localhost:8321", f"127.0.0.1:{server.port}")
    done = subprocess.run(
        ["sh", "-e", "-c", text], env={**os.environ, "TOKEN": "none"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("8080") >= 3


class TestSignals:
    def test_what_was_taken_is_answered_before_it_ends(self, server):
        with ThreadPoolExecutor(8) as pool:
            post(server.port, "stats", {})
            taken = [
                pool.submit(post, server.port, "save_episode", {**EPISODE, "task": f"Task number {number}"})
                for number in range(8)
            ]
            time.sleep(0.02)
            server.server.should_exit = True  # what SIGTERM does
            server.thread.join()
            answers = [one.result()[1] for one in taken if one.exception() is None and one.result()[0] == 200]
        assert answers, "some had been taken"
        assert {one["data"]["episode_id"] for one in answers} == {one.id for one in server.memory.store.list_memories()}

    @pytest.mark.parametrize(("path", "closing_s"), [("/v1/stats", 30.0), ("/mcp", 30.0), ("/v1/stats", 0.1)])
    def test_an_operation_that_outlasts_the_end_keeps_its_store(self, tmp_path, caplog, path, closing_s):
        memory = MemGraph.open(
            tmp_path / "store", keys_home=tmp_path / "keys", embedder=FakeEmbedder(), keys=FakeKeys()
        )
        began, may_end, done = threading.Event(), threading.Event(), []

        class SlowGate(Gate):
            def run(self, *arguments: Any, **options: Any) -> Any:
                began.set()
                may_end.wait(30)
                done.append(super().run(*arguments, **options))
                return done[-1]

        local = Token(id="local", sha256="", scope="admin", created_at="2000-01-01T00:00:00.000Z")
        gate = SlowGate(Stores(lambda _: tmp_path / "store", lambda _: memory), None, unasked=local)
        gate.stores.memory(None)
        listening = listener("127.0.0.1", 0, asks=False)
        port = listening.getsockname()[1]
        servers: list[Any] = []
        given = {"limits": Limits(ending_s=0.5, closing_s=closing_s), "on_start": servers.append}
        thread = threading.Thread(target=serve, args=(gate, listening), kwargs=given)
        thread.start()
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "recall", "arguments": {"task": "x"}},
        }
        arguments = call if path == "/mcp" else {}
        with ThreadPoolExecutor(1) as pool:
            accept = {"Accept": "application/json, text/event-stream"}
            slow = pool.submit(post, port, path, arguments, **accept)
            assert began.wait(30)
            servers[0].should_exit = True
            if path == "/mcp":  # a stream of events had begun: it ends without one
                assert isinstance(slow.exception(timeout=60), json.JSONDecodeError)
            else:
                status, answer = slow.result(timeout=60)
                assert (status, "the server is ending" in answer["detail"]) == (503, True)
            if closing_s < 1:
                thread.join(60)
                assert not thread.is_alive()
                assert "1 operations still run" in caplog.text
            may_end.set()
            thread.join()
        until = time.monotonic() + 60
        while not done and time.monotonic() < until:
            time.sleep(0.01)
        assert done, "the store was closed while the operation ran"
        assert "Traceback" not in caplog.text
        if closing_s > 1:
            with pytest.raises(ClosedError):
                gate.stores.memory(None)
        memory.close()

    def test_a_key_is_known_to_the_next_process(self, home, run):
        arguments, key = {**EPISODE, "task": "Run the migration"}, {"Idempotency-Key": "k"}
        bearer = run("token", "create", "--home", str(home)).stdout.strip()  # before there is a store
        key["Authorization"] = f"Bearer {bearer}"
        with running(home, "--json") as server:
            assert json.loads(server.line) == {"address": server.address, "has_tokens": True}
            first = post(server.port, "save_episode", arguments, **key)
            assert first[0] == 200, first[1]
            second = run("serve", "--home", str(home), "--port", "0")
            assert (second.exit_code, f"process {server.process.pid}" in second.output) == (1, True)
            listed = run("list", "--home", str(home))
            assert "Run the migration" in listed.stdout, listed.output
            server.end(signal.SIGKILL)
        with running(home) as server:
            assert post(server.port, "save_episode", arguments, **key) == first
            assert post(server.port, "list_memories", {}, **key)[1]["text"].count("\n") == 0
            assert "Traceback" not in server.end(signal.SIGTERM)
            assert server.process.returncode == 143

    @pytest.mark.long
    def test_what_is_acknowledged_is_stored_once_whatever_ends_the_server(self, home, capsys):
        """50 clients write 200 episodes each, while the server is ended three times and started again."""
        clients, writes = 50, 200
        process = Process("--home", str(home))
        port, done, began = process.port, Counter[str](), time.monotonic()
        acknowledged: dict[str, dict[str, Any]] = {}
        retried = Counter[str]()

        def write(client: int) -> None:
            for number in range(writes):
                key = f"client {client} write {number}"
                while True:
                    try:
                        status, answer = post(
                            port,
                            "save_episode",
                            {**EPISODE, "task": key, "project": "load"},
                            **{"Idempotency-Key": key},
                        )
                    except (OSError, http.client.HTTPException, ValueError) as error:
                        retried[type(error).__name__] += 1
                        time.sleep(0.2)
                        continue
                    if status == 200:
                        break
                    assert status in {409, 429, 503}, answer
                    retried[str(status)] += 1
                    time.sleep(0.2)
                acknowledged[key] = answer["data"]
                done["writes"] += 1

        threads = [threading.Thread(target=write, args=(one,)) for one in range(clients)]
        for thread in threads:
            thread.start()
        for part, number in enumerate((signal.SIGTERM, signal.SIGKILL, signal.SIGKILL), start=1):
            while len(acknowledged) < part * clients * writes // 4:
                time.sleep(0.05)
            process.end(number)
            process = Process("--home", str(home), port=port)
        for thread in threads:
            thread.join()
        process.end(signal.SIGTERM)
        with MemGraph.open(home) as memory:
            stored = {one.id: one.content for one in memory.store.list_memories(type="episodic")}
            memory.store.verify(deep=True)
        ids = [one["memory_ids"][0] if "memory_ids" in one else one["episode_id"] for one in acknowledged.values()]
        recovered = sum("memory_ids" in one for one in acknowledged.values())
        with capsys.disabled():
            print(
                f"\n{len(acknowledged):,} writes acknowledged, {len(stored):,} stored, {recovered} recovered from the journal, "
                f"repeated after {dict(retried)}, {time.monotonic() - began:.0f} s"
            )
        assert len(acknowledged) == clients * writes
        assert set(ids) == stored.keys()
        assert len(ids) == len(set(ids)) == len(stored)
