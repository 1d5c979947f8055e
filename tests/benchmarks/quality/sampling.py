"""Draw a sample of what memgraph made of sources, for independent readers to judge. See README.md.

python tests/benchmarks/quality/sampling.py --git REPO --transcripts FILE --out FOLDER [--seed 1] [--per-kind 60] [--store FOLDER]

Writes ``sample.jsonl``: one item a line, in random order, with its text and the part of the source it was made of, without anything
about the rules that made it. Readers judge it by ``criteria.md``; ``readings.py`` compares their labels.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[3])

import numpy as np

from memgraph import MemGraph
from memgraph.extraction import readers
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.memory import StoredMemory

READERS: dict[str, Callable[[Path], readers.Reader]] = {
    "git": readers.GitReader,
    "gitlog": readers.SavedGitLogReader,
    "transcripts": readers.TranscriptReader,
    "trajectories": readers.TrajectoryReader,
    "reflexion": readers.reflexion_reader,
    "tau-bench": readers.TauBenchReader,
    "junit": readers.JunitReader,
    "ci-log": readers.CiLogReader,
}
_MAX_EVENT_CHARS = 1_500
_MAX_EVENTS = 6
_MAX_SESSION_MEMORIES = 40
_BY_USER = "/user@"
Item = dict[str, Any]


@dataclass
class Made:
    """What was made of the sources.

    Attributes
    ----------
    events : dict
        The text of each task and statement as a reader of the source sees it, by ``build/task``.
    memories : dict
        Every memory that a recall may return, by id.
    contents : dict
        The content that each memory was added with, by id: also of those that were merged into others since.
    supports : dict
        What each memory was derived from, by id.
    contradictions : list of (str, str)
        Pairs of ids.
    used : set of str
        The tasks and statements that memories were made of, also memories that are not recalled any more.
    """

    events: dict[str, str]
    memories: dict[str, StoredMemory]
    contents: dict[str, str]
    supports: dict[str, list[str]] = field(default_factory=dict)
    contradictions: list[tuple[str, ...]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)


def made_of(sources: Iterable[readers.Reader], folder: Path) -> Made:
    """Ingest sources into one store, sleep once, and return what was made."""
    events: dict[str, str] = {}
    with MemGraph.open(folder / "store", keys_home=folder / "keys") as graph:
        for source in sources:
            events |= dict(_events(source))
            graph.ingest(source)
        graph.maintenance.sleep()
        store = graph.store
        with store.reader.frozen():
            recalled = store.reader.listed() & ~store.reader.superseded()
            shown_ids = {store.reader.index.ids.names[slot] for slot in np.flatnonzero(recalled)}
        shown = {one.id: one for one in store.every_memory() if one.id in shown_ids}
        added = (event.payload for event in store.reader.events_after(0))
        contents = {one.memory.id: one.memory.content for one in added if isinstance(one, MemoryAdded)}
        made = Made(events, shown, contents)
        made.used = {event for one in store.every_memory() for event in one.source_event_ids}
        supports = defaultdict(list)
        for row in store.cypher("MATCH (a:Memory)-[:DERIVED_FROM]->(b:Memory) RETURN a.id AS a, b.id AS b"):
            supports[row["a"]].append(row["b"])
        made.supports = dict(supports)
        pairs = store.cypher("MATCH (a:Memory)-[:CONTRADICTS]->(b:Memory) RETURN a.id AS a, b.id AS b")
        made.contradictions = sorted({tuple(sorted((row["a"], row["b"]))) for row in pairs})
    return made


def _events(source: readers.Reader) -> Iterator[tuple[str, str]]:
    for record in source.records(None):
        if record.build is None:
            continue
        for task in record.build.tasks:
            files = ", ".join(task.files_changed[:8])
            parts = [
                f"[{task.outcome}] {task.description}",
                task.reasoning,
                task.output,
                f"files: {files}" if files else "",
            ]
            parts += [f"said then: {task.lesson}" if task.lesson else ""]
            yield f"{record.build.build_id}/{task.task_id}", "\n".join(filter(None, parts))
        for said in record.build.user_interventions:
            yield (
                f"{record.build.build_id}{_BY_USER}{said.timestamp}",
                f"[user] {said.action}\n{said.context or ''}".strip(),
            )
            if said.reply:
                yield f"{record.build.build_id}/agent@{said.replied_at or said.timestamp}", f"[agent] {said.reply}"


def drawn(made: Made, chance: Random, per_kind: int) -> list[Item]:
    """Draw up to `per_kind` items of each kind, in random order."""
    found: dict[str, list[Item]] = defaultdict(list)
    for item in _items(made):
        found[item["kind"]].append(item)
    chosen = [item for _, items in sorted(found.items()) for item in chance.sample(items, min(per_kind, len(items)))]
    chance.shuffle(chosen)
    return [{"item": f"i{number:04}", **item} for number, item in enumerate(chosen, start=1)]


def _items(made: Made) -> Iterator[Item]:
    for one in sorted(made.memories.values(), key=lambda memory: memory.id):
        sources = one.source_event_ids
        is_derived = one.id in made.supports
        kind = "procedure" if one.type == "procedural" else "generalisation" if is_derived else "memory"
        evidence = [made.memories[it].content for it in made.supports.get(one.id, ()) if it in made.memories]
        evidence = evidence or [text for event in sources if (text := made.events.get(event))]
        yield {"kind": kind, "text": _shown(one), "date": one.occurred_at[:10], "evidence": _cut(evidence)}
        if kind == "memory" and len(set(sources)) > 1:
            texts = [made.events.get(event) or made.contents.get(event, "") for event in dict.fromkeys(sources)]
            yield {"kind": "merge", "text": one.content, "evidence": _cut(filter(None, texts))}
        for error in getattr(one, "errors_encountered", ()):
            if error.resolution and not is_derived:
                text = f"Failure: {error.message}\nResolution: {error.resolution}"
                yield {"kind": "resolution", "text": text, "evidence": _cut(evidence, from_end=True)}
    for pair in made.contradictions:
        both = [made.memories[one] for one in pair if one in made.memories]
        if len(both) == 2:
            text = "\n".join(f"{one.occurred_at[:10]}: {one.content}" for one in both)
            yield {"kind": "contradiction", "text": text, "evidence": []}
    of_sessions = _memories_of_sessions(made)
    for event, text in made.events.items():
        session, is_by_user, _ = event.rpartition(_BY_USER)
        if is_by_user:
            yield {"kind": "user turn", "text": text[:_MAX_EVENT_CHARS], "evidence": of_sessions[session]}
        elif event not in made.used:
            yield {"kind": "dropped", "text": text[:_MAX_EVENT_CHARS], "evidence": []}


def _memories_of_sessions(made: Made) -> dict[str, list[str]]:
    """Return what is recalled of each session in which a user spoke, by build id."""
    sessions = {event.rpartition(_BY_USER)[0] for event in made.events if _BY_USER in event}
    found: dict[str, list[str]] = defaultdict(list)
    for one in sorted(made.memories.values(), key=lambda memory: memory.id):
        for session in sorted(
            {one.build_id, *(source.rpartition("/")[0] for source in one.source_event_ids)} & sessions
        ):
            found[session].append(_shown(one))
    return defaultdict(list, {session: texts[:_MAX_SESSION_MEMORIES] for session, texts in found.items()})


def _shown(memory: StoredMemory) -> str:
    """Return what a memory says to the agent that recalls it."""
    steps = [f"{number}. {step}" for number, step in enumerate(getattr(memory, "steps", ()), start=1)]
    return "\n".join([memory.content, *steps])


def _cut(texts: Iterable[str], *, from_end: bool = False) -> list[str]:
    part = slice(-_MAX_EVENT_CHARS, None) if from_end else slice(_MAX_EVENT_CHARS)
    return [text[part] for text in texts][:_MAX_EVENTS]


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw a sample and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    for name in READERS:
        parser.add_argument(f"--{name}", type=Path, action="append", default=[], metavar="PATH", help=f"read as {name}")
    parser.add_argument("--out", type=Path, required=True, help="folder for sample.jsonl and counts.json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-kind", type=int, default=60, help="most items of each kind")
    parser.add_argument("--store", type=Path, help="keep the store in this folder; a second run goes on with it")
    given = parser.parse_args(arguments)
    sources = [read(path) for name, read in READERS.items() for path in getattr(given, name.replace("-", "_"))]
    with tempfile.TemporaryDirectory(prefix="memgraph-quality-") as folder:
        made = made_of(sources, given.store or Path(folder))
    items = drawn(made, Random(given.seed), given.per_kind)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "sample.jsonl").write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items))
    counts: dict[str, int] = defaultdict(int)
    for item in _items(made):
        counts[item["kind"]] += 1
    (given.out / "counts.json").write_text(json.dumps(counts, indent=2) + "\n")
    print(", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
