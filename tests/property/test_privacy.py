"""What agents get: nothing that their permissions exclude, from any public reader, by rules that this test states on its own.

Every memory has a word that no other has. Of each reader's whole output only the words of permitted memories may be there.
"""

from __future__ import annotations

import inspect
import json
import logging
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph
from memgraph.commands import MemoryCommands
from memgraph.errors import MemGraphError
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings
from memgraph.interfaces.cli.group import cli
from memgraph.model.events.tasks import HandoffCreated
from memgraph.model.ids import new_id
from memgraph.model.memory import StoredMemory
from memgraph.retrieval import MemoryRetrieval
from memgraph.store.listing import listings_for
from memgraph.testing import FakeClock, FakeEmbedder

COUNT = 200
DOMAINS = ("health", "journal", "identity", "financial", "relationships", "travel", "work", None)
TIERS = ("public", "sensitive", "private")
TIER_OF = {
    "health": "private",
    "journal": "private",
    "identity": "private",
    "financial": "sensitive",
    "relationships": "sensitive",
}
WHY = "needed for the plan that the user asked for"
WORD = re.compile(r"zq\d{4}zq")
ASKS = {"recall", "prompt", "search", "ask", "handoff list", "handoff show", "continuity"}
"""Commands that act for an agent."""
OWNERS = {
    "list", "show", "history", "why", "stats", "query", "export", "viz page", "viz series", "viz charts", "viz export",
    "contradictions list", "distil list", "distil show", "proposals list", "task list", "task show", "pins list", "pins write", "session show",
    "session kept", "ledger list", "ledger show",
}  # fmt: skip
"""Commands that act for the owner, or with ``--agent`` show what an agent may have."""
NOT_READERS = {
    "edit", "pin", "unpin", "tag", "untag", "merge", "split", "undo", "ingest", "remember", "forget", "unforget", "observe", "episode", "feedback", "outcome", "queries list", "queries show", "queries schema", "about", "learning", "compress",
    "proposals approve", "proposals reject", "proposals reopen", "contradictions find", "contradictions resolve",
    "contradictions dismiss", "distil answer", "distil run", "distil skip", "sleep", "collect", "archive",
    "unarchive", "invalidate", "revalidate", "supersede", "unsupersede", "delete", "undelete", "purge", "secrets scan", "link", "unlink", "import", "embed", "reembed",
    "format-age", "completion", "rebuild", "verify", "audit", "doctor", "reset", "repair", "backup", "restore", "migrate", "move", "compact", "config init", "config show", "docs", "demo",
    "connect", "disconnect", "mcp", "worker run", "worker status", "worker stop", "serve", "token create", "token list", "token revoke",
    "task new", "task switch", "task resume", "task link", "task unlink", "task archive", "task close", "task status", "task add", "task done",
    "task set", "pins add", "pins edit", "pins remove", "pins confirm", "pins cancel", "pins read", "session set", "session clear", "session about",
    "session keep", "session promote", "session prune", "session absorb", "handoff create", "handoff accept", "handoff withdraw", "ledger checkpoint",
    "session autoswitch", "session mode", "turn", "keys list", "keys check", "keys rotate", "keys export", "keys import",
}  # fmt: skip
"""Commands of the owner that change, maintain or explain the store, and print at most the memory that they were given."""
ASKING_METHODS = {
    MemGraph: {"recall", "build_agent_context", "overview", "search_memories"},
    MemoryRetrieval: {"retrieve", "search_memories"},
    MemoryCommands: {"ask"},
}
"""Methods that act for an agent; every other method of these classes acts for the owner, or on what it is given."""
OWNERS_METHODS = {
    MemGraph: {
        "as_agent", "at", "audit", "backup", "check_may_write", "close", "create_enriched_system_prompt", "format_context_for_prompt", "health", "ingest", "invalidate_memory",
        "open", "purge", "record_outcome", "remember", "save_episode", "save_observation", "update_episode_with_feedback",
    },
    MemoryRetrieval: {
        "apply_decay", "calculate_decayed_relevance", "format_injected_prefix", "get_confidence_label", "get_confidence_text",
    },
    MemoryCommands: {
        "export_memories", "forget", "format_age", "import_memories", "list", "remember", "show", "stats", "unforget", "wordings",
    },
}  # fmt: skip


class Agent:
    """An agent by the words of the documentation."""

    def __init__(self, name: str, *, domain: str | None, search: list[str], read: list[str], why: str | None) -> None:
        self.name, self.domain, self.search, self.read, self.why = name, domain, search, read, why

    def may(self, listed: list[str], tier: str, domain: str | None) -> bool:
        if "*" not in listed and (domain or "general") not in listed:
            return False
        if tier == "sensitive":
            return self.why is not None and self.name != "agent"
        return tier == "public" or (domain is not None and domain == self.domain)


def agents() -> list[Agent]:
    chance = random.Random(7)
    found = [Agent("agent", domain=None, search=["*"], read=["*"], why=None)]
    for number in range(11):
        domain = chance.choice(DOMAINS)
        lists = [
            ["*"] if chance.random() < 0.5 else chance.sample(["general", *filter(None, DOMAINS)], 4) for _ in range(2)
        ]
        why = WHY if chance.random() < 0.5 else None
        found.append(Agent(f"agent-{number}", domain=domain, search=lists[0], read=lists[1], why=why))
    return found


AGENTS = agents()


class World:
    """A store with memories of all tiers and domains, and for each word the (tier, domain) pairs that it repeats."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.said: dict[str, list[tuple[str, str | None]]] = {}
        self.ids: dict[str, str] = {}
        permissions = {
            one.name: {"domain": one.domain, "search": one.search, "read": one.read}
            for one in AGENTS
            if one.name != "agent"
        }
        lines = [
            f"[agents.{name}]\n"
            + (f"domain = {json.dumps(given['domain'])}\n" if given["domain"] else "")
            + f"search = {json.dumps(given['search'])}\nread = {json.dumps(given['read'])}\n"
            for name, given in permissions.items()
        ]
        home.mkdir()
        (home / "config.toml").write_text("\n".join(lines))
        with self.opened() as memory:
            self.fill(memory)

    def opened(self) -> MemGraph:
        return MemGraph.open(
            self.home,
            keys_home=self.home.parent / "keys",
            embedder=FakeEmbedder(),
            clock=FakeClock("2026-02-01T09:00:00Z"),
        )

    def fill(self, memory: MemGraph) -> None:
        chance = random.Random(3)
        ids: list[str] = []
        for number in range(COUNT):
            word, domain, tier = f"zq{number:04}zq", chance.choice(DOMAINS), chance.choice((None, *TIERS))
            kind = ("episodic", "semantic", "procedural")[number % 3]
            given: dict[str, Any] = {
                "type": kind, "content": f"The plan {word} was made for the week", "title": f"About {word}", "domain": domain,
                "tags": [f"tag {word}"], "project_id": chance.choice(["alpha", "beta", f"project {word}"]), "reason": f"because of {word}",
                "session_id": chance.choice(["monday", f"session {word}", None]), "agents_involved": [f"helper {word}"],
            }  # fmt: skip
            if tier is not None:
                given["privacy_tier"] = tier
            if kind == "episodic":
                given |= {"speaker": f"Speaker {word}", "build_id": f"build {word}", "outcome": "failure"}
            if kind == "procedural":
                given |= {"trigger_pattern": f"plan {word}", "steps": [f"open {word}", "close it"]}
            source = chance.choice(ids) if ids and kind == "semantic" and chance.random() < 0.6 else None
            if source is not None:
                given["supporting_memory_ids"] = [source]
            kept = memory.store.insert_memory(given)
            ids.append(kept.id)
            self.ids[kept.id] = word
            of_source = self.said[self.ids[source]] if source is not None else []
            self.said[word] = [(tier or TIER_OF.get(domain or "", "public"), domain), *of_source]
        for number in range(0, COUNT - 1, 17):
            memory.store.link(ids[number], "CONTRADICTS", ids[number + 1], reason="they say otherwise")
        self.delete_sources(memory)
        memory.recall("the plan of the week", agent="agent-1")

    def delete_sources(self, memory: MemGraph) -> None:
        """Delete some memories from which others are derived: these stay as restricted as they were."""
        links = [one for one in memory.store.every_link() if one.relation == "DERIVED_FROM"]
        for source in sorted({one.target_id for one in links})[::3]:
            del self.said[self.ids.pop(source)]
            memory.store.delete_memory(source)

    def allowed(self, agent: Agent, operation: str) -> set[str]:
        listed = getattr(agent, operation)
        return {word for word, pairs in self.said.items() if all(agent.may(listed, *pair) for pair in pairs)}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("privacy") / "store")


def words(found: object) -> set[str]:
    return set(WORD.findall(found if isinstance(found, str) else repr(found)))


def fields(memories: list[StoredMemory]) -> list[dict[str, Any]]:
    """Return what is the same in an agent's view; after a deletion, a view does not know what came before."""
    return [one.model_dump(exclude={"embedding", "previous_id"}) for one in memories]


def asked(memory: MemGraph, agent: Agent) -> Iterator[tuple[str, object]]:
    """Yield everything that the methods return that act for an agent."""
    who: dict[str, Any] = {"agent": agent.name, "justification": agent.why}
    for task in ("the plan of the week", "zq0003zq of Speaker zq0006zq"):
        yield (
            "recall",
            memory.recall(task, **who, max_episodic=200, max_semantic=200, max_procedural=200, max_tokens=10**6),
        )
        yield "context", memory.build_agent_context(task, **who)
        yield "overview", memory.overview(None, agent=agent.name)
        yield "prompt", memory.format_context_for_prompt(memory.recall(task, **who), format="context")
        yield "search", memory.search_memories(task, **who, limit=200, include_archived=True)
        yield "ask", memory.commands.ask(task, **who)


def seen(view: MemGraph, folder: Path) -> Iterator[tuple[str, object]]:
    """Yield everything that an agent's view returns."""
    from memgraph.viz.page.page import write_page
    from memgraph.viz.series import learning_series

    yield "list", view.commands.list(limit=1_000)
    yield "every", list(view.store.every_memory())
    yield "links", view.store.every_link()
    yield "export", view.commands.export_memories()
    yield "network", list(view.store.to_networkx(include=("sensitive", "private")).nodes(data=True))
    for table in ("Memory", "Agent", "Session", "Tag", "Project", "Build", "Entity", "Source", "Recall"):
        yield f"cypher {table}", view.store.cypher(f"MATCH (n:{table}) RETURN n.*")
    yield "series", [one.to_dict() for one in learning_series(view.store)]
    yield "events", [(event.content, event.type) for event in view.store.reader.events_after(0)]
    yield "history", view.store.reader.histories(list(view.store.reader.index.ids.names))
    yield (
        "page",
        write_page(view.store, folder / "page.html", include=("sensitive", "private"))
        or (folder / "page.html").read_text(),
    )


@pytest.mark.parametrize("agent", AGENTS, ids=lambda one: one.name)
def test_an_agent_finds_what_it_may_have_and_nothing_else(world: World, agent: Agent, caplog: Any) -> None:
    allowed = world.allowed(agent, "search")
    caplog.set_level(logging.DEBUG, "memgraph")
    with world.opened() as memory:
        found = {name: words(what) for name, what in asked(memory, agent) if name != "recall"}
        result = memory.recall("the plan of the week", agent=agent.name, justification=agent.why, max_episodic=200, max_semantic=200, max_procedural=200, max_tokens=10**6)  # fmt: skip
    assert {world.ids[one.id] for one in result.memories} == allowed
    assert words(result) <= allowed
    assert {name: got - allowed for name, got in found.items() if got - allowed} == {}
    assert words(caplog.text) == set()


@pytest.mark.parametrize(
    "agent",
    [pytest.param(one, marks=[] if place in (0, 5) else pytest.mark.long) for place, one in enumerate(AGENTS)],
    ids=lambda one: one.name,
)
@pytest.mark.embedded
def test_an_agents_view_holds_what_it_may_have_and_nothing_else(world: World, agent: Agent, tmp_path: Path) -> None:
    allowed = world.allowed(agent, "read")
    with world.opened() as memory, memory.as_agent(agent.name, justification=agent.why) as view:
        assert words(view.commands.list(limit=1_000)) == allowed
        found = {name: words(what) for name, what in seen(view, tmp_path)}
        for memory_id, word in world.ids.items():
            assert (view.commands.show(memory_id) is not None) == (word in allowed)
        lists = listings_for(memory.store.reader, memory.store.access_of(agent.name, agent.why), memory.store.auditing)
        assert fields(lists.list_memories()) == fields(view.store.list_memories())
        assert {one.previous_id for one in lists.list_memories()} <= {
            None,
            *(one for one, word in world.ids.items() if word in allowed),
        }
        assert words(fields(lists.read_memories(list(world.ids)))) == allowed
        size = {"db_size_bytes": 0}
        assert lists.get_stats().model_copy(update=size) == view.commands.stats().model_copy(update=size)
    assert {name: got - allowed for name, got in found.items() if got - allowed} == {}


def handed_over(memory: MemGraph, world: World) -> str:
    """Hand a task over, to any agent, with memories of all tiers and a decision about a health matter; return the handoff's id."""
    memory.tasks.upsert("The plan of the week", task_id="weekly")
    memory.tasks.decide("weekly", "She was diagnosed with zq9999zq")
    made = memory.store.commit(
        "task",
        [
            HandoffCreated(
                id=new_id(),
                from_agent="lead",
                what_was_done="The plan of the week was made",
                memories=list(world.ids)[:100],
            )
        ],
        task_id="weekly",
    )
    memory.tasks.ledgers.checkpoint("lead", current_task="weekly", goal="She was diagnosed with zq9999zq")
    return made[0].payload.id


@pytest.mark.embedded
def test_the_commands_show_an_agent_no_more(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = AGENTS[0]
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(world.home.parent / "keys"))
    hidden = next(one for one, word in world.ids.items() if word not in world.allowed(agent, "read"))
    with world.opened() as memory:
        handoff = handed_over(memory, world)
    commands = [
        ["prompt", "the plan of the week", "--session", "monday"], ["prompt", "--json"], ["recall", "the plan of the week", "--explain", "-vv"], ["recall", "plans", "--project", "nothing", "--json"],
        ["search", "plan", "--limit", "200"], ["ask", "the plan of the week"], ["list", "--limit", "1000", "--json"],
        ["show", hidden], ["history", hidden], ["why", hidden], ["stats"], ["query", "--cypher", "MATCH (m:Memory) RETURN m.*", "--json"], ["export"],
        ["viz", "page", str(tmp_path / "page.html"), "--include", "private"], ["viz", "series", "-vv"],
        ["viz", "export", str(tmp_path / "graph.json"), "--include", "private"], ["contradictions", "list"], ["distil", "list"],
        ["proposals", "list"], ["task", "list", "--all"], ["task", "show", "t1"], ["pins", "list", "--all-tasks"], ["pins", "write"],
        ["session", "show"], ["session", "kept"], ["ledger", "list"], ["ledger", "show", "lead"],
        ["handoff", "list"], ["handoff", "show", handoff], ["continuity", "--handoff", handoff], ["continuity", "--task", "weekly"],
    ]  # fmt: skip
    told = ""
    for words_ in commands:
        groups = ("viz", "contradictions", "distil", "proposals", "task", "pins", "session", "ledger", "handoff")
        place = 2 if words_[0] in groups else 1
        line = ["--home", str(world.home), *words_[:place], "--agent", agent.name, *words_[place:]]
        result = CliRunner().invoke(cli, line, prog_name="memgraph", obj=Settings(embedder=FakeEmbedder()))
        is_refused = words_[0] in {"show", "history", "why"} or words_[:2] in (["task", "show"], ["ledger", "show"])
        assert (result.exit_code != 0) == is_refused, result.output
        told += result.output
    told += (tmp_path / "page.html").read_text() + (tmp_path / "graph.json").read_text()
    assert words(told) <= world.allowed(agent, "read") | words(repr(commands))
    assert len(words(told)) > 10


@pytest.mark.embedded
def test_a_view_of_the_past_is_no_way_round(world: World) -> None:
    agent = AGENTS[0]
    with world.opened() as memory:
        changed = next(one for one, word in world.ids.items() if word in world.allowed(agent, "read"))
        now = memory.store.now()
        memory.store.update_memory(changed, privacy_tier="private")
        try:
            with memory.at(now) as past:
                assert world.ids[changed] in words(past.commands.list(limit=1_000))  # the owner
                assert world.ids[changed] not in words(past.search_memories("the plan of the week", limit=200))
                with past.as_agent(agent.name) as view:
                    assert words(view.commands.list(limit=1_000)) == world.allowed(agent, "read") - {world.ids[changed]}
                    with pytest.raises(MemGraphError, match="view of the past first"):
                        view.at(now)
        finally:
            memory.store.update_memory(changed, privacy_tier="public")
        with memory.as_agent(agent.name) as view:  # what was private in between is there again, from then on
            assert words(view.commands.list(limit=1_000)) == world.allowed(agent, "read")


def test_every_command_is_accounted_for() -> None:
    """A new command must be named here, and tried above if it shows memories."""

    def names(command: Any, ctx: Any, before: str = "") -> Iterator[tuple[str, Any]]:
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            if hasattr(found, "list_commands"):
                yield from names(found, ctx, f"{before}{name} ")
            else:
                yield f"{before}{name}", found

    found = dict(names(cli, cli.make_context("memgraph", ["list"], resilient_parsing=True)))
    groups = {name.split()[0] for name in found if name.startswith("ingest ")}
    found = {name: command for name, command in found.items() if name.split()[0] not in groups} | dict.fromkeys(groups)
    assert found.keys() == ASKS | OWNERS | NOT_READERS
    assert {name for name, command in found.items() if isinstance(command, ReadingCommand)} == ASKS | OWNERS


@pytest.mark.parametrize("kind", [MemGraph, MemoryRetrieval, MemoryCommands])
def test_every_method_is_accounted_for(kind: type) -> None:
    """A new public method must be named here, and tried above if it acts for an agent."""
    found = {name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_")}
    assert found == ASKING_METHODS[kind] | OWNERS_METHODS[kind]
    for name in ASKING_METHODS[kind] - {"retrieve"}:
        taken: Callable[..., Any] = getattr(kind, name)
        parameters = inspect.signature(taken).parameters
        assert "agent" in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
