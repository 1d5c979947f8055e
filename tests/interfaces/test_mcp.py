"""The MCP server: what clients see of the operations, and a process that only speaks the protocol, whatever it is sent."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage

import memgraph
from memgraph import MemGraph
from memgraph.errors import BusyError
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.mcp import caller_of, mcp
from memgraph.interfaces.mcp.server import INSTRUCTIONS, Perform, server_of
from memgraph.interfaces.operations import OPERATIONS, Answer, Caller, offered, perform
from memgraph.interfaces.resident import Resident
from tests.documents import DOCS, blocks
from tests.tables import cut_events, make_newer

CORE = {one.name for one in offered("core")}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def nothing(name: str, arguments: Any, progress: Any) -> Answer:
    return Answer(text=f"{name} {arguments}", data={})


class Connected:
    """A client in a thread of its own, connected to a server in memory."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal = portal
        self.client = client

    def call(self, name: str, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
        return self.portal.call(lambda: self.client.call_tool(name, arguments, **options))

    def text(self, name: str, arguments: dict[str, Any] | None = None) -> str:
        [content] = self.call(name, arguments).content
        return str(content.text)


@contextlib.contextmanager
def connected(performed: Perform, *, mode: str = "auto", **options: Any) -> Iterator[Connected]:
    sampling = options.pop("sampling", None)
    client = Client(server_of(performed, **options), mode=mode, sampling_callback=sampling)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as opened:
        yield Connected(portal, opened)


class TestWhatIsOffered:
    @pytest.mark.parametrize(("toolset", "names"), [("core", CORE), ("full", OPERATIONS.keys())])
    def test_the_tools_are_the_operations_with_all_four_hints(self, toolset, names):
        with connected(nothing, toolset=toolset) as server:
            tools = {one.name: one for one in server.portal.call(server.client.list_tools).tools}
        assert tools.keys() == names
        for name, tool in tools.items():
            one, hints = OPERATIONS[name], tool.annotations
            assert (tool.description, tool.input_schema, tool.output_schema) == (one.description, one.schema, None)
            assert hints.read_only_hint == (one.effect == "read")
            assert (hints.destructive_hint, hints.idempotent_hint) == (one.is_destructive, one.is_idempotent)
            assert hints.open_world_hint is False

    def test_the_instructions_are_sent_whole_and_name_only_tools_that_there_are(self):
        with connected(nothing, mode="legacy") as server:
            assert server.client.instructions == INSTRUCTIONS
        assert len(INSTRUCTIONS) <= 2_048  # where clients cut
        assert all("three phrases" in text for text in (INSTRUCTIONS, OPERATIONS["recall"].description))
        assert set(re.findall(r"`(\w+)`", INSTRUCTIONS)) <= {*CORE, "also"}  # an argument

    def test_a_resource_and_a_prompt_are_operations_too(self):
        with connected(nothing) as server:
            ask, client = server.portal.call, server.client
            [template] = ask(client.list_resource_templates).resource_templates
            [read] = ask(client.read_resource, template.uri_template.replace("{id}", "a%20b")).contents
            assert read.text == "get_memory {'id': 'a b'}"
            [prompt] = ask(client.list_prompts).prompts
            [message] = ask(client.get_prompt, prompt.name, {"task": "ship it"}).messages
            assert message.content.text == "recall {'task': 'ship it'}\n\nThe task: ship it"
            for wrong in ((client.read_resource, "memgraph://other/1"), (client.get_prompt, "after_task", {})):
                with pytest.raises(MCPError, match=r"are memgraph://memory|are before_task"):
                    ask(*wrong)


class TestSampling:
    """Work orders answered by the client's model, for which a callback of the official client stands in."""

    REPLY = '{"statements": [], "verdict": "newer holds"}'

    @pytest.fixture
    def memory(self, tmp_path: Path) -> Iterator[MemGraph]:
        with MemGraph.open(tmp_path / "store", keys_home=tmp_path / "keys", embedder=None) as memory:
            for text in ("The importer handles empty files.", "The importer does not handle empty files."):
                memory.save_observation(text)
            memory.maintenance.sleep(phases=["work-orders"])
            yield memory

    def answered(self, memory: MemGraph, replies: list[str], **options: Any) -> list[str]:
        """Return what the client's model was asked, after it has given these replies."""
        asked: list[str] = []
        enough = threading.Event()

        async def sample(_context: Any, params: types.CreateMessageRequestParams) -> Any:
            asked.append(params.messages[-1].content.text)
            if not replies:
                enough.set()
                return types.ErrorData(code=-1, message="the user declined")
            reply = replies.pop(0)
            content = types.TextContent(text=reply)
            return types.CreateMessageResult(role="assistant", model="none", content=content)

        def run(name: str, arguments: Any, progress: Any) -> Answer:
            found = perform(memory, Caller(), name, arguments, progress=progress)
            if name == "next_work_order" and found.data["order"] is None:
                enough.set()
            return found

        given = {"answer": run, "mode": "legacy", "sampling": sample, "quiet_s": 0, **options}
        with connected(run, **given) as server:
            if given["answer"] and given["sampling"]:
                assert enough.wait(60)
            assert server.text("stats")  # the session goes on
        return asked

    def test_the_clients_model_answers_an_order(self, memory):
        [order] = memory.distillation.list()
        asked = self.answered(memory, [self.REPLY])
        assert len(asked) == 1
        assert order.id in asked[0]
        assert [one.id for one in memory.distillation.list(state="answered")] == [order.id]

    def test_what_is_refused_can_be_corrected(self, memory):
        asked = self.answered(memory, ["I cannot say", '{"verdict": "no such"}', f"```json\n{self.REPLY}\n```"])
        assert "not a JSON object" in asked[1]
        assert asked[2].startswith("Refused: ")
        assert memory.distillation.list() == []

    def test_what_stays_refused_does_not_keep_from_the_others(self, memory):
        for text in ("The exporter writes tabs.", "The exporter does not write tabs."):
            memory.save_observation(text)
        memory.maintenance.sleep(phases=["work-orders"])
        first, second = memory.distillation.list()
        asked = self.answered(memory, ["I cannot say"] * 3 + [self.REPLY])
        assert [first.id in asked[0], second.id in asked[3]] == [True, True]
        assert memory.distillation.list() == [first]

    def test_a_malformed_reply_does_not_end_the_session(self, memory):
        def run(name: str, arguments: Any, progress: Any) -> Answer:
            return perform(memory, Caller(), name, arguments, progress=progress)

        async def session() -> list[dict[str, Any]]:
            to_server, of_server = anyio.create_memory_object_stream[Any](8)
            to_client, of_client = anyio.create_memory_object_stream[Any](8)
            server, answers = server_of(run, answer=run, quiet_s=0), list[dict[str, Any]]()

            async def send(**message: Any) -> None:
                parsed = types.jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message})
                await to_server.send(SessionMessage(parsed))

            async with to_server, of_server, to_client, of_client, anyio.create_task_group() as tasks:
                tasks.start_soon(server.run, of_server, to_client, server.create_initialization_options())
                offers = {**HANDSHAKE, "capabilities": {"sampling": {}}}
                await send(id=1, method="initialize", params=offers)
                await of_client.receive()
                await send(method="notifications/initialized")
                asked = (await of_client.receive()).message
                await send(id=asked.id, result={"role": "assistant", "model": "none"})  # without content
                for number in (2, 3):
                    await anyio.sleep(0.1)
                    await send(id=number, method="tools/list")
                    answers.append((await of_client.receive()).message.model_dump())
                tasks.cancel_scope.cancel()
            return answers

        assert [one["id"] for one in anyio.run(session)] == [2, 3]

    def test_a_user_who_declines_is_not_asked_again(self, memory):
        assert len(self.answered(memory, [])) == 1
        assert len(memory.distillation.list()) == 1

    def test_nobody_is_asked_while_the_client_calls_something(self, memory):
        happened: list[str] = []
        enough = threading.Event()

        async def sample(_context: Any, _params: Any) -> Any:
            happened.append("asked")
            enough.set()
            return types.ErrorData(code=-1, message="the user declined")

        def run(name: str, arguments: Any, progress: Any) -> Answer:
            if name == "stats":
                happened.append("began")
                enough.wait(1.5)
                happened.append("ended")
            return perform(memory, Caller(), name, arguments, toolset="full", progress=progress)

        with connected(run, answer=run, mode="legacy", sampling=sample, quiet_s=0.3) as server:
            assert server.text("stats")
            assert enough.wait(60)
        assert happened in (["began", "ended", "asked"], ["asked", "began", "ended"])  # the latter on a slow machine

    @pytest.mark.parametrize("options", [{"answer": None}, {"sampling": None}])
    def test_nobody_is_asked_without_consent_and_offer(self, memory, options):
        assert self.answered(memory, [self.REPLY], **options) == []


class TestFailures:
    def test_no_exception_ends_the_server_or_shows_its_text(self, caplog):
        errors: list[Exception] = [
            BusyError("the graph", pid=7, timeout_s=5),
            PermissionError(13, "Permission denied", "/store"),
            ValueError("SECRETWORD"),
        ]

        def fail(name: str, arguments: Any, progress: Any) -> Answer:
            raise errors.pop(0)

        with connected(fail) as server:
            found = [server.call("recall", {"task": "x"}) for _ in range(3)]
            said = [one.content[0].text for one in found]
            assert [one.is_error for one in found] == [True, True, True]
            assert said[0] == "the graph has been held by process 7 for over 5 s; try again, or stop that process"
            assert said[1] == "/store: Permission denied"
            assert said[2].startswith("recall failed unexpectedly (ValueError)")
            assert "SECRETWORD" not in caplog.text
            errors.append(BusyError("the graph", pid=7, timeout_s=5))
            with pytest.raises(MCPError, match="held by process 7"):
                server.portal.call(server.client.read_resource, "memgraph://memory/1")

    def test_a_store_that_could_not_be_opened_is_tried_again(self):
        opened: list[str] = []

        def open_store() -> Any:
            opened.append("")
            if len(opened) == 1:
                raise BusyError("the graph", pid=7, timeout_s=5)
            return memory

        class Memory:
            def close(self) -> None:
                opened.append("closed")

        memory = Memory()
        resident = Resident(open_store)
        with pytest.raises(BusyError):
            resident.memory()
        assert resident.memory() is resident.memory() is memory
        resident.close()
        resident.close()
        assert opened == ["", "", "closed"]
        with pytest.raises(memgraph.MemGraphError, match="shutting down"):
            resident.memory()


def newer(home: Path) -> None:
    MemGraph.open(home, embedding_model="none").close()
    make_newer(home)


def damaged(home: Path) -> None:
    with MemGraph.open(home, embedding_model="none") as memory:
        memory.save_observation("The shop is blue.")
    cut_events(home, 1)


def unreadable(home: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    home.mkdir()
    home.chmod(0)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (newer, "99"),
        (damaged, "journal damaged at .*; `memgraph repair` restores"),
        (lambda home: home.write_text("no folder"), "is a file, not a directory; choose"),
        (lambda home: home.mkdir() or (home / "x").touch(), "is not a memgraph store"),
        (unreadable, "Permission denied"),
    ],
)
def test_a_store_that_cannot_be_opened_is_an_error_that_says_what_to_do(spoil, said, tmp_path):
    spoil(tmp_path / "store")
    resident = Resident(lambda: MemGraph.open(tmp_path / "store", embedding_model="none"))
    with connected(lambda name, given, _: perform(resident.memory(), Caller(), name, given)) as server:
        for name, arguments in (("recall", {"task": "x"}), ("save_observation", {"text": "x"})):
            found = server.call(name, arguments)
            assert found.is_error
            assert re.search(said, found.content[0].text)
        assert len(server.portal.call(server.client.list_tools).tools) == len(CORE)


class TestLongCalls:
    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    def test_progress_is_reported_and_others_are_served_meanwhile(self, mode):
        goes_on, reports = threading.Event(), []

        def work(name: str, arguments: Any, progress: Any) -> Answer:
            if name == "stats":
                goes_on.set()
            else:
                progress(1, 4)
                progress(2, 4)  # too soon after the other
                assert goes_on.wait(60)
            return Answer(text=name, data={})

        async def report(done: float, total: float | None, message: str | None) -> None:
            reports.append((done, total))

        with connected(work, mode=mode, toolset="full") as server:

            async def both() -> list[str]:
                found = []

                async def one(name: str, **options: Any) -> None:
                    found.append((await server.client.call_tool(name, {}, **options)).content[0].text)

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(lambda: one("sleep", progress_callback=report))
                    while not reports:
                        await anyio.sleep(0.01)
                    tasks.start_soon(one, "stats")
                return found

            assert server.portal.call(both) == ["stats", "sleep"]
        assert reports == [(1.0, 4.0)]

    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    def test_a_call_that_is_cancelled_ends_at_its_next_report(self, mode):
        begun, ended = threading.Event(), threading.Event()
        done: list[int] = []

        def work(name: str, arguments: Any, progress: Any) -> Answer:
            try:
                for number in range(2_000):
                    begun.set()
                    progress(number, None)
                    done.append(number)
                    threading.Event().wait(0.005)
            finally:
                ended.set()
            return Answer(text="all of it", data={})

        with connected(work, mode=mode, toolset="full") as server:

            async def cancelled() -> None:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(server.client.call_tool, "sleep", {})
                    while not begun.is_set():
                        await anyio.sleep(0.01)
                    tasks.cancel_scope.cancel()

            server.portal.call(cancelled)
            assert ended.wait(60)
        assert len(done) < 1_000

    def test_a_write_that_is_cancelled_is_done_whole(self, open_store):
        memory, begun = MemGraph(open_store()), threading.Event()

        def work(name: str, arguments: Any, progress: Any) -> Answer:
            begun.set()
            return perform(memory, Caller(), name, arguments, progress=progress)

        with connected(work, mode="legacy", toolset="full") as server:

            async def cancelled() -> None:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(server.client.call_tool, "save_observation", {"text": "The shop is blue."})
                    while not begun.is_set():
                        await anyio.sleep(0)
                    tasks.cancel_scope.cancel()

            server.portal.call(cancelled)
            assert "The shop is red." not in server.text("list_memories")
            server.call("save_observation", {"text": "The shop is red."})
            assert {one.content for one in memory.store.list_memories()} <= {"The shop is blue.", "The shop is red."}
        memory.store.verify(deep=True)


TEXTS = (
    st.sampled_from(["deploy the shop", "The shop runs on port 8080.", "00000000", "", "a\x00b", "🙂" * 30]) | st.text()
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def valid(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Make values that a schema allows, roughly."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "string": TEXTS,
        "integer": st.integers(1, 20),
        "number": st.floats(0.001, 0.01),
        "array": st.lists(TEXTS, max_size=3),
    }
    return kinds.get(schema.get("type", ""), st.just({}))


def arguments_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Make arguments of an operation: mostly what its schema says, sometimes anything."""
    properties = OPERATIONS[name].schema["properties"] if name in OPERATIONS else {}
    chosen = {one: st.one_of(valid(schema), valid(schema), ANYTHING) for one, schema in properties.items()}
    return st.one_of(
        st.fixed_dictionaries(chosen),
        st.fixed_dictionaries({}, optional=chosen),
        st.dictionaries(st.sampled_from([*properties, "agent"]) | TEXTS, ANYTHING, max_size=3),
    )


CALLS = st.sampled_from([*OPERATIONS, "no_such"]).flatmap(lambda name: st.tuples(st.just(name), arguments_of(name)))


class Process:
    """`memgraph mcp` in a process of its own, spoken to line by line."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(command, env=environment, **pipes)  # type: ignore[call-overload]

    def send(self, *messages: Any) -> None:
        for one in messages:
            line = one if isinstance(one, bytes) else json.dumps({"jsonrpc": "2.0", **one}).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self) -> Any:
        return json.loads(self.process.stdout.readline())

    def greet(self) -> None:
        self.send({"id": 0, "method": "initialize", "params": HANDSHAKE}, {"method": "notifications/initialized"})
        assert self.receive()["id"] == 0

    def call(self, number: int, name: str, /, **arguments: Any) -> dict[str, Any]:
        return {"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}

    def ended(self) -> tuple[int, list[Any], str]:
        """Return the exit code, the answers that were not received yet, and what stands on standard error."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(Path(memgraph.__file__).parents[1]),
        "MEMGRAPH_EMBEDDING_MODEL": "none",
        "CLAUDE_PROJECT_DIR": "/home/ada/shop/",
        "CLAUDE_CODE_SESSION_ID": "s1",
    }


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start_one(*options: str, **variables: str) -> Process:
        command = [sys.executable, "-m", "memgraph", "--home", str(tmp_path / "store"), "mcp", *options]
        started.append(Process(command, environment | variables))
        return started[-1]

    yield start_one
    for one in started:
        one.process.kill()
        one.process.communicate()


class TestTheProcess:
    @pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.long)])
    def test_the_official_client_speaks_with_it(self, mode, environment, tmp_path):
        home = str(tmp_path / "store")
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "memgraph", "mcp", "--home", home], env=environment
        )

        async def session() -> list[str]:
            async with Client(stdio_client(server), mode=mode) as client:
                assert {one.name for one in (await client.list_tools()).tools} == CORE
                calls = [
                    ("save_observation", {"text": "The shop runs on port 8080."}),
                    ("recall", {"task": "which port does the shop run on"}),
                    ("recall", {"task": "x", "agent": "owner"}),
                    ("forget", {"id": "x"}),
                ]
                return [(await client.call_tool(*one)).content[0].text for one in calls]

        saved, recalled, unknown, outside = anyio.run(session)
        assert "8080" in recalled
        assert recalled.splitlines()[-1].startswith("query_id: ")
        assert unknown.startswith("agent: recall has no such argument; it has task, also, project")
        assert outside.startswith("no operation 'forget'; there are recall, ")
        with MemGraph.open(home, embedding_model="none") as memory:
            kept = memory.store.get_memory(saved.removeprefix("Saved: "))
            assert (kept.project_id, kept.session_id) == ("shop", "s1")

    def test_it_answers_whatever_it_is_sent_and_a_signal_loses_nothing(self, start, tmp_path, pytestconfig):
        server = start("--toolset", "full", "--project", "mill", "--session", "s2")
        server.greet()
        self.send_nonsense(server)
        self.call_at_random(server, 10_000 if pytestconfig.getoption("--long") else 100)
        server.send(*(server.call(-number, "save_observation", text=f"Fact number {number}.") for number in range(30)))
        acknowledged = [server.receive() for _ in range(10)]
        server.process.send_signal(signal.SIGTERM)
        code, rest, told = server.ended()
        assert (code, told) == (0, "")
        with MemGraph.open(tmp_path / "store", embedding_model="none") as memory:
            kept = {one.content: one for one in memory.store.list_memories(limit=None)}
            assert (kept["Half of ?"].project_id, kept["Half of ?"].session_id) == ("mill", "s2")
            for one in (*acknowledged, *rest):
                assert "error" in one or f"Fact number {-one['id']}." in kept
            memory.store.verify(deep=True)

    def send_nonsense(self, server: Process) -> None:
        half = json.dumps({"jsonrpc": "2.0", **server.call(4, "save_observation", text="Half of \ud83d\ude00")})
        server.send(
            b"nonsense", b"[1, 2]", b'{"jsonrpc": "2.0", "id": 3, "method": 5}', b"", b"\xff\xfe",
            b'{"jsonrpc": "2.0", "id": 6, "method": "x", "params": ' + b"[" * 3_000 + b"]" * 3_000 + b"}",
            half.replace("\\ude00", "").encode(),
            server.call(5, "search_memories", query="x", limit=10**300),
        )  # fmt: skip
        answers = [server.receive() for _ in range(7)]
        errors = sorted((str(one["id"]), one["error"]["code"]) for one in answers if "error" in one)
        assert errors == [("3", -32600), *[("None", -32700)] * 3, ("None", -32600)]
        results = {one["id"]: one["result"]["content"][0]["text"] for one in answers if "result" in one}
        assert results[4].startswith("Saved: ")
        assert results[5].startswith("limit: ")

    def call_at_random(self, server: Process, total: int) -> None:
        numbers, refused = iter(range(100, 100 + 2 * total)), []

        @settings(
            max_examples=total // 10, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate]
        )
        @given(st.lists(CALLS, min_size=10, max_size=10))
        def answered(calls: list[tuple[str, dict[str, Any]]]) -> None:
            sent = {next(numbers): call for call in calls}
            for number, (name, arguments) in sent.items():
                server.send(server.call(number, name) | {"params": {"name": name, "arguments": arguments}})
            found = {one["id"]: one["result"] for one in (server.receive() for _ in sent)}
            for number, call in sent.items():
                [content] = found[number]["content"]
                assert content["text"] or call[0] in ("prompt", "absorb"), (
                    call,
                    "a program uses these texts as they are",
                )
                assert not re.search("failed unexpectedly|Traceback", content["text"]), (call, content)
                refused.append(found[number]["isError"])

        answered()
        assert len(refused) >= total
        assert 0.1 < sum(refused) / len(refused) < 0.9, "both are tried"


class TestWhoCalls:
    @pytest.mark.parametrize(
        ("environment", "given", "expected"),
        [
            ({}, {}, (None, None)),
            ({"CLAUDE_PROJECT_DIR": "/a/shop", "CLAUDE_CODE_SESSION_ID": "s"}, {}, ("shop", "s")),
            ({"CLAUDE_PROJECT_DIR": "C:\\a\\shop\\"}, {}, ("shop", None)),
            ({"CLAUDE_PROJECT_DIR": "/", "CLAUDE_CODE_SESSION_ID": " "}, {}, (None, None)),
            (
                {"CLAUDE_PROJECT_DIR": "/a/b", "CLAUDE_CODE_SESSION_ID": "s"},
                {"project": "c", "session": "t"},
                ("c", "t"),
            ),
        ],
    )
    def test_the_options_come_before_the_clients_environment(self, environment, given, expected):
        caller = caller_of(Settings(), environment, **({"project": None, "session": None} | given))
        assert (caller.project, caller.session) == expected
        assert caller.agent == Caller().agent

    def test_a_dot_is_the_project_of_the_directory_in_which_the_server_is_started(self, tmp_path, monkeypatch):
        (tmp_path / "quay" / ".git").mkdir(parents=True)
        (tmp_path / "quay" / "src").mkdir()
        monkeypatch.chdir(tmp_path / "quay" / "src")
        caller = caller_of(Settings(), {"CLAUDE_PROJECT_DIR": "/a/shop"}, project=".", session=None)
        assert caller.project == "quay"

    def test_the_agent_is_chosen_by_who_starts_the_server(self):
        caller = caller_of(Settings(agent="coach", justification="y" * 30), {}, project=None, session=None)
        assert (caller.agent, caller.justification) == ("coach", "y" * 30)


class TestTheDocumentedConfigurations:
    def commands(self) -> Iterator[list[str]]:
        page = DOCS / "mcp.md"
        documents = [json.loads(block.text) for block in blocks(page, "json")]
        documents += [tomllib.loads(one.text) for one in blocks(page, "text") if one.text.startswith("[mcp_servers")]
        for document in documents:
            [servers] = document.values()
            command = servers["memgraph"]["command"]
            yield [*([command] if isinstance(command, str) else command), *servers["memgraph"].get("args", ())]

    def test_each_starts_the_server_with_options_that_it_has(self):
        found = list(self.commands())
        assert len(found) == 7
        for words in found:
            program = words.index("mcp")
            assert words[:program] in (["memgraph"], ["uvx", "memgraph-kuzu[mcp]"])
            mcp.make_context("mcp", words[program + 1 :])
