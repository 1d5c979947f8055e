"""The HTTP application: who may call, what a key, a page and a tag mean, what is refused, and what MCP clients and browsers get."""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from starlette.responses import Response
from starlette.testclient import TestClient

from memgraph import MemGraph
from memgraph.errors import BusyError, ConfigError, DiskFullError, InvalidInputError, ReadOnlyError, StorageError
from memgraph.interfaces.http.access.answers import KEPT_S, Answers
from memgraph.interfaces.http.access.gate import Gate
from memgraph.interfaces.http.access.refusals import STATUSES, KeyRunningError, PartlyStoredError, RefusedTokenError
from memgraph.interfaces.http.access.stores import Stores
from memgraph.interfaces.http.access.tokens import Token, TokenFile, token_file
from memgraph.interfaces.http.app import app_of
from memgraph.interfaces.http.limits import Limited, Limits
from memgraph.interfaces.http.problems import problem_of
from memgraph.interfaces.http.run import alone, gate_of, listener
from memgraph.interfaces.operations import OPERATIONS, Answer, Caller, perform
from memgraph.model.memory import EpisodicMemory
from memgraph.testing import FakeClock, FakeEmbedder, FakeKeys
from tests.interfaces.servers import client_of, gate_on

EPISODE = {"task": "Run the migration", "action": "Ran it", "reasoning": "It was due", "outcome": "success"}


@pytest.fixture(scope="module")
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory, clock: FakeClock) -> Iterator[MemGraph]:
    """One store for all tests: each writes into a project of its own."""
    place = tmp_path_factory.mktemp("served")
    with MemGraph.open(
        place / "store",
        keys_home=place / "keys",
        embedder=FakeEmbedder(),
        clock=clock,
        keys=FakeKeys(),
        agents={"coach": {"domain": "health", "write": ["health"]}},
    ) as opened:
        yield opened


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return token_file(tmp_path)


@pytest.fixture
def project() -> str:
    return str(uuid4())


@pytest.fixture
def client(memory: MemGraph, tokens: TokenFile, project: str) -> Iterator[TestClient]:
    """A client with a token that allows everything, in the test's project."""
    _, secret = tokens.create("admin")
    with client_of(gate_on(memory, tokens), secret) as opened:
        opened.headers["Memgraph-Project"] = project
        yield opened


def call_of(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a call of a tool as MCP has it."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


class TestTokens:
    def test_only_hashes_are_kept_in_a_private_file(self, tokens):
        made, secret = tokens.create("read", agent="coach", days=1)
        text = tokens.path.read_text("utf-8")
        assert secret not in text
        assert secret.split("_", 2)[2] not in text
        assert tokens.path.stat().st_mode & 0o777 == 0o600
        assert tokens.verified(secret) == made == token_file(tokens.path.parents[1]).list()[0]

    def test_a_file_that_others_may_read_is_refused(self, tokens):
        tokens.create("read")
        tokens.path.chmod(0o644)
        with pytest.raises(ConfigError, match="chmod 600"):
            token_file(tokens.path.parents[1]).list()

    @pytest.mark.parametrize("damage", ["", "{", '{"tokens": [{"id": "x"}]}', '{"tokens": 1}'])
    def test_a_damaged_file_is_refused(self, tokens, damage):
        tokens.create("read")
        tokens.path.write_text(damage)
        with pytest.raises(ConfigError, match="make new tokens"):
            tokens.list()

    def test_an_expired_and_a_revoked_token_are_refused(self, tmp_path):
        now = datetime(2026, 1, 1, tzinfo=UTC)
        tokens = TokenFile(tmp_path / "tokens.json", now=lambda: now)
        _, brief = tokens.create("read", days=1)
        lasting, secret = tokens.create("read")
        tokens.verified(brief)
        now += timedelta(days=1)
        with pytest.raises(RefusedTokenError, match="expired at 2026-01-02"):
            tokens.verified(brief)
        tokens.verified(secret)
        TokenFile(tokens.path).revoke(lasting.id)
        with pytest.raises(RefusedTokenError, match="revoked"):
            tokens.verified(secret)

    @pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf"), 1e12, 36_501])
    def test_the_days_of_a_token_have_a_range(self, tokens, days):
        with pytest.raises(InvalidInputError, match="days: must be more than 0 and at most"):
            tokens.create("read", days=days)
        assert not tokens.exists

    @pytest.mark.parametrize("tenant", ["", "..", "a/b", "A", "-a", "a" * 64, "a\n", "störe"])
    def test_a_tenant_is_the_name_of_a_directory(self, tokens, tenant):
        with pytest.raises(InvalidInputError, match="tenant"):
            tokens.create("read", tenant=tenant)

    def test_two_processes_lose_no_token(self, tokens):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: TokenFile(tokens.path).create("read"), range(24)))
        assert len(tokens.list()) == 24


class TestWhoMayCall:
    def test_every_path_but_three_needs_a_token(self, memory, tokens):
        tokens.create("read")
        gate = gate_on(memory, tokens)
        opened, pages = {"/healthz", "/openapi.json", "/login"}, {"/", "/query", "/logout"}
        paths = {(one.path, method) for one in app_of(gate).routes for method in one.methods or ()}
        assert {path for path, _ in paths} > opened | pages | {
            "/mcp",
            "/mcp/full",
            "/metrics",
            "/v1/recall",
            "/v1/{name}",
        }
        with client_of(gate) as client:
            for path, method in sorted(paths):
                found = client.request(method, path.format(id="abc", name="none"))
                if path in opened:
                    assert found.status_code == (401 if method == "POST" else 200), path  # a sign-in without a token
                elif path in pages:
                    assert (found.status_code, found.headers["location"]) == (303, "/login"), path
                else:
                    assert found.status_code == 401, path
                    assert method == "HEAD" or found.json()["title"] == "Unauthorized", path
                    assert found.headers["www-authenticate"].startswith("Bearer"), path
            assert client.get("/no/such/path").status_code == 401

    def test_bad_expired_revoked_and_malformed_tokens_are_refused(self, memory, tokens):
        made, good = tokens.create("read")
        _, expired = tokens.create("read", days=1e-9)
        gone, revoked = tokens.create("read")
        tokens.revoke(gone.id)
        number = made.id
        bad = [
            expired,
            revoked,
            good[:-1],
            f"{good}x",
            f"mg_{number}_",
            f"xx{good[2:]}",
            good.upper(),
            "",
            "é",
            "a" * 5000,
        ]
        with client_of(gate_on(memory, tokens)) as client:
            for one in bad:
                found = client.get("/v1/memories", headers={"Authorization": f"Bearer {one}".encode()})
                assert found.status_code == 401, one
            assert client.get("/v1/memories", headers={"Authorization": good}).status_code == 401
            assert client.get("/v1/memories", headers={"Authorization": f"Basic {good}"}).status_code == 401
            assert client.get("/v1/memories", headers=bearer(good)).status_code == 200
            tokens.revoke(number)
            assert client.get("/v1/memories", headers=bearer(good)).status_code == 401, "a running server sees it"

    @pytest.mark.parametrize("path", ["/v1/memories", "/login", "/"])
    @pytest.mark.parametrize("damage", ["mode", "text", "place"])
    def test_tokens_that_cannot_be_read_are_a_problem_without_paths(self, memory, tokens, caplog, path, damage):
        _, secret = tokens.create("read")
        with client_of(gate_on(memory, tokens), secret) as client:
            if damage == "mode":
                tokens.path.chmod(0o644)
            elif damage == "text":
                tokens.path.write_text("{")
            else:  # the directory is a file now: even the file's status cannot be read
                for one in tokens.path.parent.iterdir():
                    one.unlink()
                tokens.path.parent.rmdir()
                tokens.path.parent.write_text("x")
            if path == "/login":
                found = client.post(path, data={"token": secret})
                assert "the tokens cannot be read; ask who runs the server" in found.text
            else:
                found = client.get(path)
                assert found.json()["detail"] == "the tokens cannot be read; ask who runs the server"
        assert found.status_code == 503
        assert str(tokens.path.parent) not in found.text
        assert "tokens cannot be read: " in caplog.text

    @pytest.mark.parametrize(("scope", "allowed"), [("read", {"read"}), ("write", {"read", "write"})])
    def test_a_token_allows_what_its_scope_says(self, memory, tokens, scope, allowed):
        _, secret = tokens.create(scope)
        with client_of(gate_on(memory, tokens), secret) as client:
            for one in OPERATIONS.values():
                found = client.post(f"/v1/{one.name}", json={"no": "such argument"})
                expected = 422 if one.effect in allowed else 403
                assert found.status_code == expected, one.name
                assert ("scope" in found.json()["detail"]) == (expected == 403)

    def test_the_token_decides_the_agent_and_never_the_request(self, memory, tokens):
        private = memory.store.insert_memory(
            EpisodicMemory(content="Took the SECRETWORD dose of insulin", domain="health", source="test")
        ).id
        _, coach = tokens.create("read", agent="coach")
        _, other = tokens.create("admin")
        tries: list[dict[str, Any]] = [{"agent": "coach"}, {"caller": {"agent": "coach"}}, {"owner": True}]
        with client_of(gate_on(memory, tokens)) as client:
            assert "SECRETWORD" in client.get(f"/v1/memories/{private}", headers=bearer(coach)).text
            for more in ({}, *tries):
                found = client.post("/v1/get_memory", json={"id": private, **more}, headers=bearer(other))
                assert found.status_code in {404, 422}
                assert "SECRETWORD" not in found.text
            for headers in ({"Memgraph-Agent": "coach"}, {"X-Forwarded-User": "coach"}, {"Memgraph-Tenant": "x"}):
                found = client.get(f"/v1/memories/{private}", headers={**bearer(other), **headers})
                assert found.status_code == 404
            page = client.get("/", headers=bearer(other)).text
            rows = client.post(
                "/query", data={"cypher": "MATCH (m:Memory) RETURN m.content"}, headers=bearer(other)
            ).text
            assert "SECRETWORD" not in page + rows
            assert "SECRETWORD" in client.get("/", headers=bearer(coach)).text

    def test_a_token_with_a_project_reaches_no_other(self, memory, tokens, project):
        _, anywhere = tokens.create("write")
        _, secret = tokens.create("admin", project=project)
        other = {"Memgraph-Project": "bank"}
        with client_of(gate_on(memory, tokens), secret) as client:
            text = {"text": "The SECRETWORD vault opens at nine."}
            hidden = client.post("/v1/save_observation", json=text, headers={**bearer(anywhere), **other})
            theirs = hidden.json()["data"]["memory_id"]
            shared = memory.store.insert_memory(EpisodicMemory(content="Tea is at four", source="test")).id
            mine = client.post("/v1/save_episode", json=EPISODE).json()["data"]["episode_id"]
            refused = [
                client.post(f"/v1/{name}", json={**given, "project": "bank"})
                for name, given in (
                    ("save_episode", EPISODE),
                    ("save_observation", {"text": "x"}),
                    ("remember", {"text": "x"}),
                    ("recall", {"task": "the vault"}),
                    ("search_memories", {"query": "the vault"}),
                    ("ask", {"question": "when does the vault open"}),
                    ("list_memories", {}),
                    ("next_work_order", {}),
                )
            ]
            refused += [
                client.get("/v1/memories?project=bank"),
                client.get("/v1/memories", headers=other),
                client.get("/?project=bank"),
                client.get("/", headers=other),
                client.post("/v1/query", json={"cypher": "MATCH (m:Memory) RETURN m.content"}),
                client.post("/query", data={"cypher": "MATCH (m:Memory) RETURN m.content"}),
                client.post("/v1/sleep", json={}),
            ]
            assert [one.status_code for one in refused] == [403] * len(refused)
            for name, more in (("forget", {}), ("invalidate_memory", {"reason": "x"}), ("get_memory", {})):
                assert client.post(f"/v1/{name}", json={"id": theirs, **more}).status_code == 404
            assert client.post("/v1/forget", json={"id": shared}).status_code == 403
            found = [
                client.get("/"),
                client.get("/v1/memories"),
                client.post("/v1/recall", json={"task": "the vault", "project": project}),
                client.post("/v1/search_memories", json={"query": "the vault"}),
            ]
            assert [one.status_code for one in found] == [200] * len(found)
            assert not [one.text for one in refused + found if "SECRETWORD" in one.text]
            for readable in (mine, shared):
                assert client.get(f"/v1/memories/{readable}").status_code == 200

            def total() -> int:
                return int(client.post("/v1/stats", json={}).json()["data"]["total"])

            before = total()
            told = {"text": "The vault has two doors."}
            client.post("/v1/save_observation", json=told, headers={**bearer(anywhere), **other})
            assert total() == before
            client.post("/v1/save_episode", json={**EPISODE, "task": "Open the window"})
            assert total() == before + 1
        assert memory.store.get_memory(mine).project_id == project

    def test_the_counts_are_those_of_what_the_agent_may_read(self, memory, tokens):
        _, coach = tokens.create("read", agent="coach")
        _, other = tokens.create("read", agent="planner")

        def counted() -> list[Any]:
            return [client.post("/v1/stats", json={}, headers=bearer(one)).json()["data"] for one in (coach, other)]

        with client_of(gate_on(memory, tokens)) as client:
            before = counted()
            memory.store.insert_memory(EpisodicMemory(content="Took insulin at noon", domain="health", source="test"))
            after = counted()
        assert after[0]["total"] == before[0]["total"] + 1
        assert after[1] == before[1], "not even the size of what others store"


class TestTenants:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        return tmp_path / "root"

    @pytest.fixture
    def gate(self, root: Path, tmp_path: Path) -> Iterator[Gate]:
        def opened(home: Path) -> MemGraph:
            return MemGraph.open(home, keys_home=tmp_path / "keys", embedder=FakeEmbedder(), keys=FakeKeys())

        token_file(root).create("read", tenant="first")
        gate = gate_of(root, has_tenants=True, caller=Caller(), open_store=opened)
        yield gate
        gate.stores.close()

    def test_tenants_cannot_cross(self, gate, root):
        tokens = token_file(root)
        alice, bob = (tokens.create("admin", tenant=name)[1] for name in ("alice", "bob"))
        with client_of(gate) as client:
            saved = client.post(
                "/v1/save_observation",
                json={"text": "The SECRETWORD is hidden in the harbour."},
                headers={**bearer(alice), "Idempotency-Key": "k1"},
            ).json()["data"]["memory_id"]
            recalled = client.post("/v1/recall", json={"task": "harbour"}, headers=bearer(alice)).json()["data"][
                "query_id"
            ]
            posted: list[tuple[str, dict[str, Any]]] = [
                ("get_memory", {"id": saved}),
                ("get_memory", {"id": saved[:8]}),
                ("recall", {"task": "where is it hidden in the harbour"}),
                ("search_memories", {"query": "hidden in the harbour"}),
                ("ask", {"question": "what is hidden in the harbour"}),
                ("list_memories", {"limit": 100}),
                ("invalidate_memory", {"id": saved, "reason": "mine now"}),
                ("forget", {"id": saved}),
                ("feedback", {"id": saved, "feedback": "meh"}),
                ("record_outcome", {"query_id": recalled, "outcome": "failure"}),
                ("record_outcome", {"query_id": recalled, "outcome": "failure", "used": [saved]}),
                ("query", {"cypher": "MATCH (m:Memory) RETURN m.id, m.content"}),
                ("query", {"name": "coverage_by_project"}),
                ("stats", {}),
                ("next_work_order", {}),
                ("answer_work_order", {"order_id": saved}),
                ("sleep", {"max_seconds": 0.1}),
            ]
            headers = [{"Memgraph-Tenant": "alice"}, {"Memgraph-Project": "../alice"}, {"Memgraph-Session": "alice"}]
            paths = [
                "/v1/memories/{}",
                "/v1/memories/{}?tenant=alice",
                "/alice/v1/memories/{}",
                "/v1/alice/memories/{}",
            ]
            paths += ["/stores/alice/{}", "/../alice/v1/memories/{}", "/v1/memories/..%2F..%2Falice%2F{}"]
            answers = [client.post(f"/v1/{name}", json=given, headers=bearer(bob)) for name, given in posted]
            answers += [client.get("/v1/memories", headers={**bearer(bob), **more}) for more in headers]
            answers += [client.get(path.format(saved), headers=bearer(bob)) for path in paths]
            answers += [client.get("/", headers=bearer(bob)), client.get("/metrics", headers=bearer(bob))]
            answers.append(
                client.post(
                    "/v1/save_observation", json={"text": "Mine."}, headers={**bearer(bob), "Idempotency-Key": "k1"}
                )
            )
            assert len(answers) == 30
            assert not [one.text for one in answers if "SECRETWORD" in one.text]
            kept = client.get(f"/v1/memories/{saved}", headers=bearer(alice)).json()["data"]["memory"]
        assert (kept["invalid_at"], kept["is_suppressed"]) == (None, False)
        assert {one.name for one in (root / "stores").iterdir()} == {"alice", "bob"}

    def test_there_is_no_tenant_without_a_token(self, tmp_path):
        with pytest.raises(InvalidInputError, match="memgraph token create"):
            gate_of(tmp_path / "other", has_tenants=True, caller=Caller(), open_store=MemGraph.open)

    def test_a_token_of_one_store_opens_none_of_several_and_the_reverse(self, gate, root, tmp_path, tokens):
        _, secret = token_file(root).create("read")
        with client_of(gate, secret) as client:
            assert client.get("/v1/memories").status_code == 401
        assert not (root / "stores").exists()
        _, secret = tokens.create("read", tenant="a")
        single = gate_of(tmp_path, has_tenants=False, caller=Caller(), open_store=MemGraph.open)
        with client_of(single, secret) as client:
            assert client.get("/v1/memories").status_code == 401


class TestWithoutTokens:
    @pytest.fixture
    def client(self, memory: MemGraph) -> Iterator[TestClient]:
        gate = gate_of(
            memory.store.config.home, has_tenants=False, caller=Caller(agent="coach"), open_store=lambda _: memory
        )
        with client_of(gate) as opened:
            yield opened

    def test_it_acts_for_the_agent_of_who_starts_it(self, client):
        found = client.post("/v1/save_episode", json=EPISODE)
        assert (found.status_code, found.json()["error"]) == (403, "PermissionDeniedError")

    @pytest.mark.parametrize("host", ["0.0.0.0", "::"])
    def test_it_listens_on_loopback_only_and_says_why(self, host):
        with pytest.raises(InvalidInputError, match="reachable from other machines"):
            listener(host, 0, asks=False)
        listener("127.0.0.1", 0, asks=False).close()

    @pytest.mark.parametrize("host", ["attacker.example", "localhost.attacker.example", "", "[", "localhost@x.example"])
    def test_a_name_that_a_site_rebinds_is_refused(self, client, host):
        assert client.get("/v1/memories", headers={"Host": host}).status_code == 421

    def test_a_page_of_another_site_is_refused(self, client):
        for origin in ("https://attacker.example", "null", "http://localhost:1"):
            found = client.post("/v1/recall", json={"task": "x"}, headers={"Origin": origin})
            assert found.status_code == 403
        as_form = client.post("/v1/recall", content=b'{"task": "x"}', headers={"Content-Type": "text/plain"})
        assert as_form.status_code == 415


class TestWhetherTokensAreNeeded:
    def gate(self, place: Path, **options: Any) -> Gate:
        given = {"has_tenants": False, "caller": Caller(), "open_store": MemGraph.open}
        return gate_of(place, **{**given, **options})

    def test_revoking_the_last_token_does_not_open_the_server(self, tokens, tmp_path):
        tokens.revoke(tokens.create("read")[0].id)
        with pytest.raises(InvalidInputError, match="--without-tokens"):
            self.gate(tmp_path)
        assert not self.gate(tmp_path, without_tokens=True).asks
        tokens.create("read")
        assert self.gate(tmp_path).asks

    def test_tenants_need_tokens_whatever_is_asked_for(self, tokens, tmp_path):
        tokens.create("read", tenant="a")
        with pytest.raises(InvalidInputError, match="memgraph token create"):
            self.gate(tmp_path, has_tenants=True, without_tokens=True)

    @pytest.mark.parametrize("caller", [Caller(agent="coach"), Caller(justification="because")])
    def test_an_agent_of_the_command_is_refused_if_there_are_tokens(self, tokens, tmp_path, caller):
        tokens.create("read")
        with pytest.raises(InvalidInputError, match="the token decides the agent"):
            self.gate(tmp_path, caller=caller)


class TestKeys:
    def test_a_repeated_key_returns_the_first_answer(self, client, memory, project):
        answers = [client.post("/v1/save_episode", json=EPISODE, headers={"Idempotency-Key": "k"}) for _ in range(3)]
        assert len({one.text for one in answers}) == 1
        assert [one.headers.get("idempotency-replayed") for one in answers] == [None, "true", "true"]
        assert len(memory.store.list_memories(project_id=project)) == 1

    def test_at_the_same_time_one_is_carried_out(self, client, memory, project):
        def post(_: int) -> Any:
            return client.post("/v1/save_episode", json=EPISODE, headers={"Idempotency-Key": "k"})

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(post, range(8)))
        assert len({one.text for one in answers if one.status_code == 200}) == 1
        assert {one.status_code for one in answers} <= {200, 409}
        assert len(memory.store.list_memories(project_id=project)) == 1

    def test_a_key_that_runs_is_refused_at_once_and_blocks_nobody(self, memory, tmp_path):
        """A request that waited for its key would hold one of the few threads."""
        answers, requests = Answers(tmp_path / "answers.sqlite"), memory.store.auditing.requests
        runs, may_end = threading.Event(), threading.Event()

        def slow() -> Answer:
            runs.set()
            may_end.wait(30)
            return Answer(text="x", data={})

        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(answers.once, "k", owner="o", request={}, requests=requests, run=slow)
            assert runs.wait(30)
            with pytest.raises(KeyRunningError, match="still runs") as refused:
                answers.once("k", owner="o", request={}, requests=requests, run=slow)
            may_end.set()
            assert first.result()[1] is False
        found = problem_of(refused.value)
        assert (found.status_code, found.headers["retry-after"]) == (409, "1")
        assert answers.once("k", owner="o", request={}, requests=requests, run=slow)[1] is True
        answers.close()

    @pytest.mark.parametrize(
        ("error", "status"),
        [
            (InvalidInputError("is too long", field="text"), 422),
            (BusyError("the store", pid=None, timeout_s=1), 500),
            (RuntimeError("SECRETWORD"), 500),
        ],
    )
    def test_a_write_that_failed_half_way_says_so_when_it_is_repeated(self, memory, tmp_path, error, status):
        answers, requests, runs = Answers(tmp_path / "answers.sqlite"), memory.store.auditing.requests, []

        def half() -> Answer:
            runs.append(memory.store.insert_memory(EpisodicMemory(content="The first half", source="test")).id)
            raise error

        said = []
        for _ in range(2):
            with pytest.raises(PartlyStoredError) as failed:
                answers.once("k", owner="o", request={}, requests=requests, run=half)
            said.append(problem_of(failed.value))
        answers.close()
        [stored] = runs
        document = json.loads(said[1].body)
        assert json.loads(said[0].body) == document
        assert (said[1].status_code, document["error"]) == (status, type(error).__name__)
        assert "before that at least this was stored" in document["detail"]
        assert stored in document["detail"]
        assert "SECRETWORD" not in document["detail"]
        assert "retry-after" not in said[1].headers
        assert [one.headers.get("idempotency-replayed") for one in said] == [None, "true"]

    def test_an_operation_that_is_one_commit_makes_one(self, memory):
        requests, caller = memory.store.auditing.requests, Caller(project=str(uuid4()))
        task = memory.tasks.upsert("Move the tables", project=caller.project).id
        caller = caller.model_copy(update={"task": task, "agent": "mason"})
        handed = memory.tasks.handoffs.create(task, "The tables are counted", from_agent="diver").id
        saved = perform(memory, caller, "save_episode", {**EPISODE, "task": "Another"}).data["episode_id"]
        given: dict[str, dict[str, Any]] = {
            "save_episode": EPISODE,
            "feedback": {"id": saved, "feedback": "love", "comment": "Good."},
            "invalidate_memory": {"id": saved, "reason": "It is done."},
            "forget": {"id": saved},
            "create_handoff": {"what_was_done": "The first table is moved"},
            "accept_handoff": {"id": handed},
        }
        assert given.keys() == {one.name for one in OPERATIONS.values() if one.is_one_commit}
        for name, arguments in given.items():
            perform(
                memory, caller, "recall", {"task": "Run the migration"}
            )  # what it read is recorded by the next commit
            request_id, seq = str(uuid4()), requests.seq
            with requests.naming(request_id):
                perform(memory, caller, name, arguments)
            assert len({one.commit_id for one in requests.made_by(request_id, after=seq)}) == 1, name

    def test_what_is_recovered_is_not_said_to_be_all(self, memory, tmp_path):
        answers, requests = Answers(tmp_path / "answers.sqlite"), memory.store.auditing.requests

        def run() -> Answer:
            memory.store.insert_memory(EpisodicMemory(content="The first half", source="test"))
            return Answer(text="x", data={})

        answers.once("k", owner="o", request={}, requests=requests, run=run)
        with sqlite3.connect(tmp_path / "answers.sqlite") as rows:
            rows.execute("UPDATE answers SET status = NULL, answer = NULL")
        found, _ = answers.once("k", owner="o", request={}, requests=requests, run=run)
        answers.close()
        assert "at least this was stored" in found.text
        assert found.data["is_complete"] is False

    def test_a_key_is_for_one_request_and_one_token(self, client, memory, tokens):
        _, other = tokens.create("write")
        first = client.post("/v1/save_episode", json=EPISODE, headers={"Idempotency-Key": "k"})
        changed = client.post("/v1/save_episode", json={**EPISODE, "task": "x"}, headers={"Idempotency-Key": "k"})
        assert (changed.status_code, changed.json()["error"]) == (422, "KeyReusedError")
        theirs = client.post("/v1/save_episode", json=EPISODE, headers={"Idempotency-Key": "k", **bearer(other)})
        assert theirs.json()["data"] != first.json()["data"]

    def test_a_refused_request_does_not_use_up_its_key(self, client, memory):
        refused = client.post("/v1/forget", json={"id": "0" * 8}, headers={"Idempotency-Key": "k"})
        assert refused.status_code == 404
        again = client.post("/v1/save_episode", json=EPISODE, headers={"Idempotency-Key": "k"})
        assert "idempotency-replayed" not in again.headers

    def test_a_refusal_that_is_recorded_in_the_journal_is_no_answer(self, memory, tokens):
        _, secret = tokens.create("write", agent="coach")
        with client_of(gate_on(memory, tokens), secret) as client:
            for _ in range(2):
                found = client.post("/v1/save_episode", json=EPISODE, headers={"Idempotency-Key": "k"})
                assert found.status_code == 403

    @pytest.mark.parametrize("key", ["", "a" * 256, "\x7f"])
    def test_a_key_has_a_form(self, client, key):
        found = client.post("/v1/save_episode", json=EPISODE, headers={"Idempotency-Key": key})
        assert (found.status_code, found.json()["field"]) == (422, "Idempotency-Key")

    def test_what_was_stored_before_a_crash_is_not_stored_again(self, client, memory, project):
        """The answer was not kept any more, as if the process had been killed after the commit."""
        headers = {"Idempotency-Key": "k"}
        saved = client.post("/v1/save_episode", json=EPISODE, headers=headers).json()["data"]["episode_id"]
        path = memory.store.config.home / "server" / "answers.sqlite"
        with sqlite3.connect(path) as rows:
            assert path.stat().st_mode & 0o777 == 0o600
            assert rows.execute("UPDATE answers SET status = NULL, answer = NULL").rowcount > 0
        again = client.post("/v1/save_episode", json=EPISODE, headers=headers)
        assert again.json()["data"] == {"memory_ids": [saved], "is_recovered": True, "is_complete": True}
        assert "This was carried out" in again.json()["text"]
        assert again.text == client.post("/v1/save_episode", json=EPISODE, headers=headers).text
        assert len(memory.store.list_memories(project_id=project)) == 1

    def test_what_was_not_stored_before_a_crash_is_stored_at_the_next_request(self, client, memory, project):
        headers = {"Idempotency-Key": "k"}
        client.post("/v1/save_episode", json=EPISODE, headers=headers)
        path = memory.store.config.home / "server" / "answers.sqlite"
        with sqlite3.connect(path) as rows:
            unknown = "00000000-0000-4000-8000-000000000000"
            rows.execute("UPDATE answers SET status = NULL, answer = NULL, request_id = ?", (unknown,))
        again = client.post("/v1/save_episode", json=EPISODE, headers=headers).json()
        assert "episode_id" in again["data"]
        assert len(memory.store.list_memories(project_id=project)) == 2

    def test_answers_are_kept_for_a_day(self, memory, tmp_path):
        now, runs = 1_000_000.0, []
        answers = Answers(tmp_path / "answers.sqlite", now=lambda: now)

        def once() -> bool:
            def run() -> Answer:
                runs.append(now)
                return Answer(text="x", data={})

            found = answers.once("k", owner="o", request={}, requests=memory.store.auditing.requests, run=run)
            return found[1]

        assert [once(), once()] == [False, True]
        now += KEPT_S + 1
        assert [once(), once()] == [False, True]
        assert len(runs) == 2
        answers.close()

    def test_old_answers_are_removed_when_the_file_is_opened_and_while_it_is_used(self, memory, tmp_path):
        path, now = tmp_path / "answers.sqlite", 1_000_000.0
        answer = Answer(text="x", data={})

        def once(answers: Answers, key: str) -> None:
            answers.once(key, owner="o", request={}, requests=memory.store.auditing.requests, run=lambda: answer)

        def kept() -> int:
            with sqlite3.connect(path) as rows:
                return int(rows.execute("SELECT count(*) FROM answers").fetchone()[0])

        answers = Answers(path, now=lambda: now)
        once(answers, "a")
        now += KEPT_S - 10
        once(answers, "b")
        now += 3_700
        once(answers, "b")  # a repeated key alone
        assert kept() == 1
        answers.close()
        now += KEPT_S
        Answers(path, now=lambda: now).close()
        assert kept() == 0


class TestResources:
    def test_lists_come_in_pages(self, client):
        for number in range(7):
            client.post("/v1/save_episode", json={**EPISODE, "task": f"Task number {number}"})
        seen: list[str] = []
        following = "/v1/memories?limit=3"
        for _ in range(3):
            found = client.get(following)
            seen += [one["id"] for one in found.json()["data"]["memories"]]
            following = found.links.get("next", {}).get("url")
        assert following is None
        assert len(set(seen)) == len(seen) == 7

    def test_a_memory_has_a_tag_that_changes_with_it(self, client, clock):
        saved = client.post("/v1/save_episode", json=EPISODE).json()["data"]["episode_id"]
        first = client.get(f"/v1/memories/{saved}")
        known = {"If-None-Match": first.headers["etag"]}
        clock.advance(days=3)
        later = client.get(f"/v1/memories/{saved}").json()["data"]["memory"]["relevance_score"]
        assert later < first.json()["data"]["memory"]["relevance_score"]
        same = client.get(f"/v1/memories/{saved}", headers=known)
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", first.headers["etag"])
        client.post("/v1/feedback", json={"id": saved, "feedback": "love"})
        changed = client.get(f"/v1/memories/{saved}", headers=known)
        assert changed.status_code == 200
        assert changed.headers["etag"] != first.headers["etag"]

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("/v1/memories?limit=x", 422),
            ("/v1/memories?limit=3&limit=4", 422),
            ("/v1/memories?colour=red", 422),
            ("/v1/memories/abc", 422),
            ("/v1/memories/00000000-0000-4000-8000-000000000000", 404),
            ("/v1/recall", 405),
            ("/nowhere", 404),
        ],
    )
    def test_a_bad_request_gets_a_problem_with_what_to_do(self, client, path, status):
        found = client.get(path)
        assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json")
        assert found.json()["detail"]

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 5000, b'{"task": "\\ud800"}', b"NaN"])
    def test_a_body_that_is_no_object_is_refused(self, client, body):
        found = client.post("/v1/recall", content=body, headers={"Content-Type": "application/json"})
        assert found.status_code in {400, 422}

    def test_a_store_that_cannot_be_opened_is_not_counted_as_open(self, memory, tokens):
        def opened(_: Path) -> MemGraph:
            raise ConfigError("no")

        stores = Stores(lambda _: memory.store.config.home, opened)
        with pytest.raises(ConfigError):
            stores.memory("a")
        assert stores.open_count == 0

    def test_counters_name_routes_and_no_texts(self, client):
        assert "memgraph_stores_open" in client.get("/metrics").text
        client.post("/v1/save_observation", json={"text": "The COUNTEDWORD is here."})
        client.get("/v1/memories/COUNTEDWORD")
        found = client.get("/metrics").text
        assert 'memgraph_requests_total{route="save_observation",status="200"} 1.0' in found
        assert "COUNTEDWORD" not in found

    def test_the_document_has_every_status_of_an_error(self, client):
        responses = client.get("/openapi.json").json()["paths"]["/v1/recall"]["post"]["responses"]
        assert {str(int(status)) for _, status in STATUSES} | {
            "400",
            "408",
            "413",
            "415",
            "421",
            "429",
            "500",
        } <= responses.keys()

    def test_the_document_has_every_operation_with_its_schema(self, client):
        paths = client.get("/openapi.json").json()["paths"]
        for one in OPERATIONS.values():
            body = paths[f"/v1/{one.name}"]["post"]["requestBody"]["content"]["application/json"]
            assert body["schema"] == one.schema


class TestErrors:
    @pytest.mark.parametrize("path", ["/v1/stats", "/query"])
    def test_an_unexpected_error_is_a_problem_that_quotes_nothing(self, memory, tokens, path, caplog):
        def opened(_: Path) -> MemGraph:
            raise RuntimeError("SECRETWORD")

        _, secret = tokens.create("read")
        gate = Gate(Stores(lambda _: memory.store.config.home, opened), tokens)
        with client_of(gate, secret) as client:
            given = {"json": {}} if path == "/v1/stats" else {"data": {"cypher": "RETURN 1 AS x"}}
            found = client.post(path, **given)
        assert (found.status_code, found.json()["title"]) == (500, "Internal Server Error")
        assert "RuntimeError" in found.json()["detail"]
        assert "SECRETWORD" not in found.text + caplog.text

    @pytest.mark.parametrize(
        ("error", "status"),
        [
            (StorageError("/srv/my memory/index.bin cannot be read", path=Path("/srv/my memory/index.bin")), 500),
            (DiskFullError("/srv/my memory is full", path=Path("/srv/my memory")), 507),
            (ConfigError("/srv/memory/config.toml: unknown setting"), 500),
            (PermissionError(13, "Permission denied", "/srv/memory/journal"), 500),
            (OSError(28, "No space left on device", "/srv/memory/journal"), 507),
            (ReadOnlyError("an operation that only reads was about to write"), 500),
        ],
    )
    @pytest.mark.parametrize("path", ["/v1/stats", "/query", "/mcp"])
    def test_no_error_shows_where_the_store_is(self, memory, tokens, path, error, status):
        def opened(_: Path) -> MemGraph:
            raise error

        _, secret = tokens.create("read")
        gate = Gate(Stores(lambda _: memory.store.config.home, opened), tokens)
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "recall", "arguments": {"task": "x"}},
        }
        given: dict[str, Any] = {"json": call if path == "/mcp" else {}}
        if path == "/query":
            given = {"data": {"cypher": "RETURN 1 AS x"}}
        with client_of(gate, secret) as client:
            client.headers["Accept"] = "application/json, text/event-stream"
            found = client.post(path, **given)
        assert "/srv" not in found.text
        assert "my memory" not in found.text
        assert found.status_code == (200 if path == "/mcp" else status)


class TestLimits:
    def test_a_body_of_ten_megabytes_is_refused(self, client):
        body = b'{"task": "' + b"x" * 10_000_000 + b'"}'
        headers = {"Content-Type": "application/json"}
        assert client.post("/v1/recall", content=body, headers=headers).status_code == 413

        def parts() -> Iterator[bytes]:
            yield from (body[at : at + 100_000] for at in range(0, len(body), 100_000))

        assert client.post("/v1/recall", content=parts(), headers=headers).status_code == 413

    def test_without_a_token_a_body_is_small(self, memory, tokens):
        tokens.create("read")
        with client_of(gate_on(memory, tokens)) as client:
            assert client.post("/login", content=b"token=" + b"x" * 9_000).status_code == 413
            assert client.post("/login", data={"token": "x"}).status_code == 401

    def test_bodies_that_arrive_at_the_same_time_have_a_limit_together(self):
        import anyio

        async def talk() -> list[int]:
            statuses: list[int] = []
            may_end = anyio.Event()
            limited = Limited(Response(b"done"), Limits(body_bytes=1_000, buffered_bytes=2_500), open_paths=())

            async def post(*parts: bytes) -> None:
                left = list(parts)

                async def receive() -> Any:
                    if len(left) == 1:
                        await may_end.wait()
                    return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

                async def send(message: Any) -> None:
                    if message["type"] == "http.response.start":
                        statuses.append(message["status"])

                await limited({"type": "http", "path": "/v1/recall", "method": "POST", "headers": []}, receive, send)

            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(post, b"x" * 900, b"")
                await anyio.wait_all_tasks_blocked()
                assert statuses == [503, 503], "two bodies are within the limit"
                may_end.set()
            may_end = anyio.Event()
            may_end.set()
            await post(b"x" * 900, b"")
            return statuses

        assert anyio.run(talk) == [503, 503, 200, 200, 200]

    def test_more_requests_than_may_wait_are_told_when_to_come_again(self, memory, tokens):
        began, may_end = threading.Event(), threading.Event()

        def opened(_: Path) -> MemGraph:
            began.set()
            may_end.wait(30)
            return memory

        _, secret = tokens.create("read")
        gate = Gate(Stores(lambda _: memory.store.config.home, opened), tokens)
        with client_of(gate, secret, limits=Limits(requests=1)) as client, ThreadPoolExecutor(1) as pool:
            slow = pool.submit(client.post, "/v1/stats", json={})
            assert began.wait(30)
            refused = client.post("/v1/stats", json={})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert client.get("/healthz").status_code == 200
            may_end.set()
            assert slow.result().status_code == 200
            assert client.post("/v1/stats", json={}).status_code == 200

    @pytest.mark.parametrize(
        ("path", "given", "most"),
        [
            ("/v1/query", {"json": {"cypher": "RETURN 1 AS x"}}, 1),
            ("/query", {"data": {"cypher": "RETURN 1 AS x"}}, 1),
            ("/mcp/full", {"json": call_of("query", {"cypher": "RETURN 1 AS x"})}, 1),
            ("/v1/recall", {"json": {"task": "the harbour"}}, 2),
            ("/v1/memories", {}, 2),
        ],
    )
    def test_slow_requests_of_one_client_hold_few_slots_and_block_no_other_client(
        self, memory, tokens, path, given, most
    ):
        """Sixteen requests of one token run for ever; another token has its recall, its query and its page."""
        may_end, busy, running = threading.Event(), threading.Semaphore(0), []
        slow, secret = tokens.create("write")
        _, other = tokens.create("write")

        class SlowGate(Gate):
            def run(self, token: Token, *arguments: Any, **options: Any) -> Any:
                if token.id == slow.id:
                    running.append(token.id)
                    busy.release()
                    assert may_end.wait(60)
                return super().run(token, *arguments, **options)

        gate = SlowGate(Stores(lambda _: memory.store.config.home, lambda _: memory), tokens)
        accept = {"Accept": "application/json, text/event-stream"}
        with client_of(gate) as client, ThreadPoolExecutor(16) as pool:
            ask = partial(
                client.request, "POST" if given else "GET", path, headers={**bearer(secret), **accept}, **given
            )
            try:
                asked = [pool.submit(ask) for _ in range(16)]
                for _ in range(most):
                    assert busy.acquire(timeout=30)
                for once, more in (
                    ("/v1/recall", {"json": {"task": "the harbour"}}),
                    ("/v1/query", {"json": {"cypher": "RETURN 1 AS x"}}),
                    ("/", None),
                ):
                    found = client.request("POST" if more else "GET", once, headers=bearer(other), **(more or {}))
                    assert found.status_code == 200, once
                assert len(running) == most
                assert not any(one.done() for one in asked)
            finally:
                may_end.set()
            assert {one.result().status_code for one in asked} == {200}

    def test_one_client_leaves_the_others_half_of_the_requests(self, memory, tokens):
        may_end, busy = threading.Event(), threading.Semaphore(0)
        slow, secret = tokens.create("read")
        _, other = tokens.create("read")

        class SlowGate(Gate):
            def run(self, token: Token, *arguments: Any, **options: Any) -> Any:
                if token.id == slow.id:
                    busy.release()
                    assert may_end.wait(60)
                return super().run(token, *arguments, **options)

        gate = SlowGate(Stores(lambda _: memory.store.config.home, lambda _: memory), tokens)
        with client_of(gate, limits=Limits(requests=4)) as client, ThreadPoolExecutor(2) as pool:
            try:
                asked = [pool.submit(client.post, "/v1/stats", json={}, headers=bearer(secret)) for _ in range(2)]
                for _ in asked:
                    assert busy.acquire(timeout=30)
                refused = client.post("/v1/stats", json={}, headers=bearer(secret))
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
                assert client.post("/v1/stats", json={}, headers=bearer(other)).status_code == 200
            finally:
                may_end.set()
            assert {one.result().status_code for one in asked} == {200}

    @pytest.mark.parametrize("path", ["/healthz", "/v1/recall", "/v1/memories", "/mcp", "/mcp/full", "/query"])
    def test_a_final_slash_changes_nothing(self, client, path):
        def asked(path: str) -> int:
            if path.strip("/") in {"healthz", "v1/memories", "query"}:
                return client.get(path).status_code
            given = {"task": "x"} if "recall" in path else call_of("recall", {"task": "x"})
            accept = {"Accept": "application/json, text/event-stream"}
            return client.post(path, json=given, headers=accept).status_code

        assert [asked(path), asked(path + "/")] == [200, 200]

    def test_a_final_slash_needs_the_token_too(self, memory, tokens):
        tokens.create("read")
        with client_of(gate_on(memory, tokens)) as client:
            assert client.get("/v1/memories/").status_code == 401
            assert client.post("/mcp/", json={}).status_code == 401


class TestPages:
    SCRIPT = "<script>alert(1)</script>"

    def test_one_signs_in_with_a_token_and_out_again(self, memory, tokens):
        made, secret = tokens.create("read")
        with client_of(gate_on(memory, tokens)) as client:
            assert client.post("/login", data={"token": "mg_x_y"}).status_code == 401
            found = client.post("/login", data={"token": secret})
            cookie = found.headers["set-cookie"]
            assert (found.status_code, found.headers["location"]) == (303, "/")
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie
            assert secret not in cookie
            assert client.get("/").status_code == 200
            assert client.get("/query").status_code == 200
            assert client.post("/v1/stats", json={}).status_code == 401, "the cookie is for pages alone"
            client.post("/logout")
            assert client.get("/").status_code == 303
            client.post("/login", data={"token": secret})
            tokens.revoke(made.id)
            assert client.get("/").status_code == 303

    def test_texts_are_escaped_and_no_script_may_run(self, client, memory):
        client.post("/v1/save_observation", json={"text": f"A sign says {self.SCRIPT} in the harbour\u202e."})
        query = f'MATCH (m:Memory) RETURN m.content, "{self.SCRIPT}" AS x'
        pages = [client.get("/"), client.post("/query", data={"cypher": query}), client.get("/login")]
        pages.append(client.post("/query", data={"cypher": self.SCRIPT}))
        for found in pages:
            policy = found.headers["content-security-policy"]
            assert self.SCRIPT not in found.text
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
        assert "sign says" in pages[0].text
        assert "&lt;script&gt;alert(1)" in pages[1].text
        assert "\u202e" not in pages[1].text
        assert pages[3].status_code == 422
        for found in pages[1:]:
            assert "script-src" not in found.headers["content-security-policy"]
            assert "<script" not in found.text
        assert re.search(r"script-src 'sha256-[^' ]+';", pages[0].headers["content-security-policy"])

    @pytest.mark.parametrize(
        "cypher", ["MATCH (m:Memory) DELETE m", "CALL show_tables() RETURN *", "COPY (RETURN 1) TO 'x'"]
    )
    def test_queries_only_read(self, client, memory, cypher):
        before = memory.store.digest()
        assert client.post("/query", data={"cypher": cypher}).status_code in {200, 422}
        assert memory.store.digest() == before

    def test_a_named_query_with_its_parameters(self, client):
        client.post("/v1/save_episode", json=EPISODE, headers={"Memgraph-Project": "harbour"})
        found = client.post("/query", data={"name": "coverage_by_project", "params": "{}", "cypher": " "})
        assert (found.status_code, "<td>harbour</td>" in found.text) == (200, True)
        assert client.post("/query", data={"name": "coverage_by_project", "params": "{"}).status_code == 422


class TestMcp:
    @pytest.mark.parametrize("mode", ["auto", "legacy"])
    def test_the_official_client_calls_tools_as_the_tokens_agent(self, memory, tokens, mode, project):
        import anyio
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        _, reading = tokens.create("read", project=project)
        _, writing = tokens.create("write", project=project)

        async def talk() -> list[Any]:
            app = app_of(gate_on(memory, tokens), close_stores=False)
            found: list[Any] = []
            async with lifespan(app):
                for secret in (writing, reading):
                    transport = httpx2.ASGITransport(app=app)
                    async with (
                        httpx2.AsyncClient(transport=transport, headers=bearer(secret)) as http,
                        Client(streamable_http_client("http://localhost/mcp", http_client=http), mode=mode) as client,
                    ):
                        found.append(await client.list_tools())
                        found.append(await client.call_tool("save_episode", EPISODE))
                        found.append(await client.call_tool("recall", {"task": "run the migration"}))
                        found.append(await client.call_tool("forget", {"id": "x"}))
            return found

        tools, saved, recalled, outside, _, refused, read, _ = anyio.run(talk)
        assert [one.name for one in tools.tools] == [name for name, one in OPERATIONS.items() if one.toolset == "core"]
        assert saved.content[0].text.startswith("Saved: ")
        assert "query_id: " in recalled.content[0].text
        assert outside.is_error
        assert refused.is_error
        assert "scope write" in refused.content[0].text
        assert not read.is_error
        assert len(memory.store.list_memories(project_id=project)) == 1


def lifespan(app: Any) -> Any:
    """Start and end an application around a block, as a server does."""
    from contextlib import asynccontextmanager

    import anyio

    @asynccontextmanager
    async def started() -> Any:
        to_app, from_test = anyio.create_memory_object_stream[Any](4)
        to_test, from_app = anyio.create_memory_object_stream[Any](4)
        async with anyio.create_task_group() as group:
            group.start_soon(app, {"type": "lifespan"}, from_test.receive, to_test.send)
            await to_app.send({"type": "lifespan.startup"})
            assert (await from_app.receive())["type"] == "lifespan.startup.complete"
            yield
            await to_app.send({"type": "lifespan.shutdown"})
            assert (await from_app.receive())["type"] == "lifespan.shutdown.complete"
        for stream in (to_app, from_test, to_test, from_app):
            stream.close()

    return started()


def test_the_answer_of_an_operation_is_json_whatever_a_query_computes(client):
    for expression in ("CAST(170141183460469231731687303715884105727 AS INT128)", "1.0 / 0.0", "'\\u202e'", "NULL"):
        found = client.post("/v1/query", json={"cypher": f"RETURN {expression} AS x"})
        assert found.status_code in {200, 422}, found.text
        json.loads(found.text)


def test_a_tenants_store_is_served_by_one_server_at_a_time(tmp_path: Path) -> None:
    home = tmp_path / "stores" / "acme"
    opened: list[Path] = []

    class Memory:
        def close(self) -> None:
            opened.clear()

    def open_store(place: Path) -> Any:
        opened.append(place)
        return Memory()

    stores = Stores(lambda _: home, open_store, locks=True)
    stores.memory("acme")
    with pytest.raises(BusyError), alone(home):
        pass
    stores.close()
    with alone(home):
        pass
    assert opened == []
