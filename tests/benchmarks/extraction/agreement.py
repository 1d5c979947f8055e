"""How far what is kept of real logs agrees with a labelled sample. See README.md.

python tests/benchmarks/extraction/agreement.py LOGS [--labels readers|first] [--half dev|test] [--show] [--json]

``readers``: whether two independent readers would miss the event if nothing were made of it (tests/benchmarks/quality/criteria.md; Cohen's kappa
0.86); events on which they differ are not certain, and count as not to be kept. ``first``: what one reader, by looser criteria, found worth keeping.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[3])

from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.extraction import readers
from memgraph.lifecycle import ingest

LABELS = Path(__file__).with_name("labels.jsonl")
READERS: dict[str, Callable[[Path], readers.Reader]] = {
    "git": readers.SavedGitLogReader,
    "swe_agent": readers.TrajectoryReader,
    "tau_bench": readers.TauBenchReader,
    "reflexion": readers.reflexion_reader,
}


@dataclass(frozen=True)
class Event:
    """A labelled event, and the (build, task) that it is to a reader; without a task the whole build."""

    log: str
    label: dict[str, Any]
    build: str
    task: str | None


def events(logs: Path, label: dict[str, Any]) -> Event:
    """Find what a label means."""
    log, event = label["log"], label["event"]
    kind = log.split("/", 1)[0]
    if kind == "git":
        return Event(log, label, "", event)
    if kind == "swe_agent":
        return Event(log, label, Path(log).name.removesuffix(".traj"), event)
    if kind == "tau_bench":
        trial, _, call = event.partition("/")
        return Event(log, label, f"tau-{trial}", call or None)
    trial, _, part = event.partition("/")
    if part.startswith("question: "):
        return Event(log, label, f"hotpotqa-{_question(logs / log, part.removeprefix('question: '))}-{trial}", None)
    if part:
        return Event(log, label, f"alfworld-{part}-{trial}", None)
    line = (logs / log).read_text().splitlines()[int(event.removeprefix("line-"))]
    return Event(log, label, json.loads(line)["name"], None)


def _question(path: Path, digest: str) -> str:
    for record in readers.reflexion_reader(path).records(None):
        for task in record.build.tasks if record.build else ():
            if hashlib.sha1(task.description.encode(), usedforsecurity=False).hexdigest()[:8] == digest:
                return task.task_id
    raise SystemExit(f"{path}: no question has the digest {digest}")


def kept(logs: Path, names: list[str]) -> tuple[set[str], float]:
    """Ingest logs with the default settings; return the (build/task) that memories were made of, or count as evidence."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as folder:
        config = AgentMemoryConfig(home=Path(folder) / "store", keys_home=Path(folder) / "keys")
        with AgentMemoryStore(config) as store:
            for name in names:
                ingest(store, READERS[name.split("/", 1)[0]](logs / name))
            found = {source for memory in store.every_memory() for source in memory.source_event_ids}
    return set(map(_without_run, found)), time.monotonic() - started


def _without_run(source: str) -> str:
    """Return a build/task without what tells the build's run (``@<digest>``): a label names a log, and so the run."""
    build, slash, task = source.partition("/")
    return f"{build.rpartition('@')[0] or build}{slash}{task}"


def is_kept(event: Event, sources: set[str]) -> bool:
    """Tell whether a memory holds an event; of a whole build, whether any part of it."""
    if event.task is None:
        return any(source.split("/", 1)[0] == event.build for source in sources)
    if not event.build:
        return any(source.rsplit("/", 1)[-1].startswith(event.task) for source in sources)
    return f"{event.build}/{event.task}" in sources


def measured(judged: list[tuple[Event, bool]]) -> dict[str, Any]:
    """Return counts, precision and recall of what was kept."""
    counts = Counter((event.label["keep"], was_kept) for event, was_kept in judged)
    right, wrong, missed = counts[True, True], counts[False, True], counts[True, False]
    return {
        "events": len(judged),
        "kept_rightly": right,
        "kept_wrongly": wrong,
        "missed": missed,
        "precision": right / (right + wrong) if right + wrong else None,
        "recall": right / (right + missed) if right + missed else None,
    }


def rows(judged: list[tuple[Event, bool]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the table: all, those whose label is certain, and each kind of log."""
    yield "all", measured(judged)
    yield "certain labels", measured([one for one in judged if one[0].label["certain"]])
    for kind in READERS:
        yield kind, measured([one for one in judged if one[0].log.startswith(f"{kind}/")])


def _by(whose: str, label: dict[str, Any]) -> dict[str, Any]:
    """Return a label with the judgement of the first reader, or of the two by the present criteria."""
    if whose == "first":
        return label
    return label | {"keep": all(label["readers"]), "certain": len(set(label["readers"])) == 1}


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("logs", type=Path, help="folder of the logs that the labels name")
    parser.add_argument("--labels", choices=["readers", "first"], default="readers", help="whose labels")
    parser.add_argument("--half", choices=["dev", "test"], help="only this half of the labels")
    parser.add_argument("--show", action="store_true", help="print the events on which rules and labels differ")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    labels = [_by(given.labels, json.loads(line)) for line in LABELS.read_text().splitlines()]
    chosen = [events(given.logs, label) for label in labels if given.half in {None, label["half"]}]
    sources, seconds = kept(given.logs, sorted({label["log"] for label in labels}))
    judged = [(event, is_kept(event, sources)) for event in chosen]
    table = dict(rows(judged))
    if given.json:
        print(json.dumps({"half": given.half or "both", "seconds": seconds, "kept": table}, indent=2))
        return 0
    print(f"{given.half or 'both halves'}: {len(judged)} events; all logs ingested in {seconds:.1f} s\n")
    print(f"{'':<16}{'events':>8}{'rightly':>9}{'wrongly':>9}{'missed':>8}{'precision':>11}{'recall':>8}")
    for name, row in table.items():
        ratios = [f"{row[key]:.0%}" if row[key] is not None else "–" for key in ("precision", "recall")]
        numbers = [row[key] for key in ("events", "kept_rightly", "kept_wrongly", "missed")]
        print(f"{name:<16}{numbers[0]:>8}{numbers[1]:>9}{numbers[2]:>9}{numbers[3]:>8}{ratios[0]:>11}{ratios[1]:>8}")
    if given.show:
        for event, was_kept in judged:
            if was_kept != event.label["keep"]:
                said = "certain" if event.label["certain"] else "uncertain"
                print(
                    f"{'kept' if was_kept else 'missed'}: {event.log} {event.label['event']} ({said}, {event.label['kind']})"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
