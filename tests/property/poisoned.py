"""Gives the corpus of injections to every door in, and checks what comes out: no structure, no invisible character."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count, cycle
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import memgraph
from memgraph import AgentMemoryStore, MemGraph
from memgraph.config import AgentMemoryConfig
from memgraph.embedding import NoEmbedder
from memgraph.extraction.readers import BuildLogReader
from memgraph.extraction.readers.reports import CiLogReader, JunitReader
from memgraph.extraction.readers.source import Reader
from memgraph.extraction.readers.transcripts import TranscriptReader
from memgraph.interfaces.operations import Caller
from memgraph.items import Items, Put
from memgraph.model.results.retrieval import SECTIONS
from memgraph.testing import FakeClock, FakeKeys
from memgraph.text.safe import xml_text
from tests.doors import DOORS
from tests.engines import LONG
from tests.property.injections import INJECTIONS
from tests.property.rendering import blocks, inlines

TEXTS = list(INJECTIONS.values())
AT_LENGTH = bool(os.environ.get(LONG))
"""Each text goes through every door; otherwise through one of those that take one text at a time, through some of the readers of files, and
through all other doors."""
UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)
BLOCKS = {"paragraph", "inline", "heading", "bullet_list", "ordered_list", "list_item"}
_EIGHTS = [TEXTS[place : place + 8] for place in range(0, len(TEXTS), 8)]
"""What one build may teach at most."""
_MANY = {"episodic": 110, "semantic": 110, "procedural": 110, "max_tokens": 200_000}
_WIDE = dict.fromkeys(SECTIONS, 100_000)
_WHEN = "2026-01-01T00:00:00.000Z"


def opened(home: Path, **given: Any) -> MemGraph:
    """Open a new store whose budgets leave little out."""
    config = AgentMemoryConfig(
        home=home / "store", keys_home=home / "keys", retrieval_budget=_MANY, prompt_budget=_WIDE, **given
    )
    store = AgentMemoryStore(config, embedder=NoEmbedder(), clock=FakeClock(), keys=FakeKeys())
    return MemGraph(store)


def imported() -> dict[str, Any]:
    """Return a document for `import` in which each text is a memory of the web, in every field."""
    kinds = (memgraph.EpisodicMemory, memgraph.SemanticMemory, memgraph.ProceduralMemory)
    memories = [
        kinds[place % 3](
            content=f"{text} imported {place}"[:800], title=text[:80], project_id="shop", tags=[f"{place} {text}"[:40]],
            trust_class="web", source=text[:80],
            **({"steps": [f"{text} {place}", "then this"], "trigger_pattern": text} if place % 3 == 2 else {}),
        ).model_dump(mode="json")
        for place, text in enumerate(TEXTS)
    ]  # fmt: skip
    return {"version": "1.0.0", "exported_at": _WHEN, "total_memories": len(memories), "memories": memories}


def through_doors(memory: MemGraph, folder: Path) -> None:
    """Give the texts to every door in."""
    memory.tasks.upsert("Care for the till", task_id="till")
    memory.tasks.sessions.switch("s1", "till")
    with ExitStack() as doors:
        singles = _singles(memory, doors)
        for place, text in enumerate(TEXTS):
            for give in singles if AT_LENGTH else [singles[place % len(singles)]]:
                give(text)
    _in_bulk(memory)
    _by_readers(memory, folder)
    _for_sessions(memory)
    memory.store.flush()


def _singles(memory: MemGraph, doors: ExitStack) -> list[Callable[[str], Any]]:
    """Return the doors that take one text at a time."""
    tasks, agent = memory.tasks, Caller(session="s1")
    http, mcp = (doors.enter_context(DOORS[name](memory, agent)) for name in ("http", "mcp"))
    rated = memory.store.insert_memories(
        [
            {"type": "episodic", "content": f"Episode {place} of the till", "source": "test"}
            for place in range(len(TEXTS))
        ]
    )
    waiting, kept = iter(rated), count()
    writers = cycle((tasks.decide, tasks.constrain, tasks.ask, tasks.plan))
    return [
        lambda text: http("save_observation", {"text": f"{text} observed"}),
        lambda text: mcp("save_episode", {"task": text, "action": text, "reasoning": text, "outcome": "failure"}),
        lambda text: mcp("feedback", {"id": next(waiting).id, "feedback": "like", "comment": text}),
        lambda text: http("begin_turn", {"message": f"{text} confirmed"}),
        lambda text: memory.commands.remember(f"{text} remembered"[:800], agent="eng"),
        lambda text: tasks.pins.upsert(f"{text} pinned"[:800], kind="constraint", task_id="till"),
        lambda text: tasks.absorb("s1", f"<memory>Fact: {text}</memory> <chat-memory>{text} in the chat</chat-memory>"),
        lambda text: tasks.working.keep(f"kept {next(kept)}", text[:400], ttl_s=3_600),
        lambda text: next(writers)("till", f"{text} planned"[:800]),
    ]  # fmt: skip


def _in_bulk(memory: MemGraph) -> None:
    assert memory.commands.import_memories(imported()).success
    Items(memory.store).apply(
        [Put(("kept", text[:40]), str(place), {"text": text}) for place, text in enumerate(TEXTS)]
    )
    memory.consolidation.consolidate(_build(0, _EIGHTS[0]))


def _build(number: int, texts: list[str]) -> memgraph.BuildEventLog:
    tasks = [
        {"task_id": f"t{place}", "agent_name": "ci", "description": text, "output": text, "outcome": "failure"}
        for place, text in enumerate(texts)
    ]
    return memgraph.BuildEventLog(
        project_id="shop", build_id=f"b{number}", trust_class="tool", build_outcome="failure", tasks=tasks,
        build_summary=texts[0], started_at=_WHEN, completed_at=_WHEN,
    )  # fmt: skip


def _by_readers(memory: MemGraph, folder: Path) -> None:
    """Let files with the texts be read: build logs, test reports, logs, transcripts."""
    builds = folder / "builds.jsonl"
    builds.write_text("\n".join(_build(number, texts).model_dump_json() for number, texts in enumerate(_EIGHTS)))
    readers: list[Reader] = [BuildLogReader(builds)]
    kinds = (_report, _log, _transcript)
    for number, texts in enumerate(_EIGHTS if AT_LENGTH else _EIGHTS[::2]):
        chosen = kinds if AT_LENGTH else [kinds[number % 3]]
        readers += [write(folder / f"{write.__name__}-{number}", texts) for write in chosen]
    for reader in readers:
        assert memory.ingest(reader, compress=False).read, reader.kind


def _report(path: Path, texts: list[str]) -> Reader:
    cases = "".join(
        f"<testcase classname='till' name={quoteattr(xml_text(text[:80]))}><failure message={quoteattr(xml_text(text))}>"
        f"{escape(xml_text(text))}</failure></testcase>"
        for text in texts
    )
    path.write_text(f"<testsuite name='{path.name}' timestamp='2026-01-01T00:00:00'>{cases}</testsuite>")
    return JunitReader(path, project_id="shop")


def _log(path: Path, texts: list[str]) -> Reader:
    steps = (f"$ make part-{place}\n{text}\nmake: *** [part-{place}] Error 1\n" for place, text in enumerate(texts))
    path.write_bytes("".join(steps).encode())
    return CiLogReader(path, project_id="shop")


def _transcript(path: Path, texts: list[str]) -> Reader:
    """Write a session in which a command fails with each text, something is changed, and the command succeeds."""
    shared = {"sessionId": path.name, "cwd": "/shop", "timestamp": _WHEN, "version": "2.0.0"}
    contents: list[tuple[str, dict[str, Any]]] = [("user", {"type": "text", "text": "fix the till"})]
    for place, text in enumerate(texts):
        failed = f"Exit code 2\n{text}\nValueError: part {place} of the till is open\nmake: *** [part-{place}] Error 2"
        run = ("Bash", {"command": f"make part-{place}"})
        edit = ("Edit", {"file_path": f"/shop/part_{place}.py", "old_string": "open", "new_string": "closed"})
        for number, ((name, given), output, is_error) in enumerate(
            ((run, failed, True), (edit, "done", False), (run, "ok", False))
        ):
            call = f"call-{place}-{number}"
            contents += [
                ("assistant", {"type": "tool_use", "id": call, "name": name, "input": given}),
                ("user", {"type": "tool_result", "tool_use_id": call, "is_error": is_error, "content": output}),
            ]
    lines = [
        {**shared, "type": role, "uuid": f"{role}-{place}", "message": {"role": role, "content": [content]}}
        for place, (role, content) in enumerate(contents)
    ]
    path = path.with_suffix(".jsonl")
    path.write_text("\n".join(map(json.dumps, lines)))
    return TranscriptReader(path, project_id="shop")


def _for_sessions(memory: MemGraph) -> None:
    tasks = memory.tasks
    parts = [f"{text} {place}" for place, text in enumerate(TEXTS)][:50]
    tasks.working.replace("s1", task=TEXTS[0], context=parts, pending=parts, notes="\n".join(TEXTS[:20]))
    tasks.working.set_context("s1", " ".join(TEXTS[:20]))
    tasks.handoffs.create(
        "till", " ".join(TEXTS[:20]), from_agent="eng", known_issues=parts, needs_testing=parts, artifacts=parts
    )
    tasks.ledgers.checkpoint("eng", current_task="till", goal=" ".join(TEXTS[:20]))


def check_visible(text: str, *, separators: str = "\n") -> None:
    """Check that a text has no line ends but its own, and no invisible character."""
    found = UNSEEN.search(text.translate(dict.fromkeys(map(ord, separators))))
    assert found is None, (found, text[max(0, found.start() - 60) : found.end() + 20])
    assert text.splitlines() == text.removesuffix("\n").split("\n") or not text


def check_notes(text: str) -> None:
    """Check that Markdown has the lines and blocks of notes, and no link, tag or invisible character."""
    check_visible(text)
    assert {kind.removesuffix("_open").removesuffix("_close") for kind, _, _ in blocks(text)} <= BLOCKS
    assert [kind for kind in inlines(text) if kind != "strong_open"] == []


def headings(text: str) -> list[str]:
    """Return the headings of Markdown, without the remarks in brackets behind them."""
    return [line.partition(" (")[0] for line in text.split("\n") if line.startswith("#")]
