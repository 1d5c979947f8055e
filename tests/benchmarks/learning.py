"""What repeated trials teach, and whether it is recalled before a task is tried again. See README.md.

python tests/benchmarks/learning.py --logs DIR [--only hotpotqa,tau-bench] [--phases compress,collect] [--scale] [--large] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import numpy as np

from tests.benchmarks import learning_scale
from tests.benchmarks.data import SEED
from tests.benchmarks.embeddings import CachedEmbedder, cache_folder
from tests.benchmarks.learning_logs import LOGS
from tests.benchmarks.learning_replay import SHOWN, WHOLE, WITHOUT, Answer, Life, live_through
from tests.benchmarks.tables import table

_RESAMPLES = 5_000
Record = dict[str, Any]
Say = Callable[[str], None]


def difference(answers: Sequence[Answer], one: Sequence[bool], other: Sequence[bool]) -> tuple[float, float, float]:
    """Return how much larger the share of `one` is than that of `other`, in points, with 95 % of a bootstrap over the tasks.

    A task is drawn with all its trials: its questions are not independent.
    """
    tasks = sorted({answer.task for answer in answers})
    place = {task: number for number, task in enumerate(tasks)}
    gain, count = np.zeros(len(tasks)), np.zeros(len(tasks))
    for answer, left, right in zip(answers, one, other, strict=True):
        gain[place[answer.task]] += float(left) - float(right)
        count[place[answer.task]] += 1
    drawn = np.random.default_rng(SEED).integers(len(tasks), size=(_RESAMPLES, len(tasks)))
    shares = gain[drawn].sum(axis=1) / count[drawn].sum(axis=1)
    low, high = np.percentile(shares, (2.5, 97.5))
    return 100 * float(gain.sum() / count.sum()), 100 * float(low), 100 * float(high)


def _told(found: tuple[float, float, float]) -> str:
    points, low, high = found
    return "–" if points == low == high == 0.0 else f"{points:+.1f} [{low:+.1f}, {high:+.1f}]"


def _spent(life: Life) -> str:
    """Return what reading and each phase of sleep took, and how many memories a phase changed."""
    return ", ".join(
        f"{name} {took:.1f} s{f' ({life.slept[name]})' if name in life.slept else ''}"
        for name, took in life.seconds.items()
    )


def _share(values: Sequence[bool]) -> str:
    return f"{100 * sum(values) / len(values):.1f}" if values else "–"


def lessons(lives: Sequence[Life]) -> Iterator[str]:
    """Yield whether the failure, or the lesson from it, is among the first found, beside BM25."""
    rows = []
    for life in lives:
        if answers := life.answers:
            own, bm25 = [answer.hit[WHOLE] for answer in answers], [answer.bm25 for answer in answers]
            told = _told(difference(answers, own, bm25))
            stored = [answer.stored for answer in answers]
            tasks = len({answer.task for answer in answers})
            rows.append([life.name, f"{len(answers)} ({tasks})", _share(stored), _share(own), _share(bm25), told])
    yield from table(
        [f"lesson hit@{SHOWN}", "questions (tasks)", "stored, %", "memgraph, %", "BM25, %", "difference, points"], rows
    )


def generalisations(lives: Sequence[Life]) -> Iterator[str]:
    """Yield what was generalised, of how much, and how often it is recalled."""
    rows = []
    for life in lives:
        survey = life.survey
        assert survey is not None
        made = survey.builds_of_evidence
        coverable = [answer for answer in life.answers if answer.coverable]
        rows.append(
            [
                life.name,
                str(len(made)),
                str(min(made, default=0)),
                f"{survey.covered_episodes} of {survey.episodes}",
                f"{sum(made) / len(made):.1f}" if made else "–",
                _share([answer.covered[WHOLE] for answer in life.answers]),
                f"{_share([answer.covered[WHOLE] for answer in coverable])} of {len(coverable)}",
            ]
        )
    heads = ["generalisations", "made", "fewest builds", "episodes told of", "builds to one"]
    yield from table([*heads, "in the recall, %", "… where there is one, %"], rows)


def upkeep(lives: Sequence[Life]) -> Iterator[str]:
    """Yield what is kept: how much of it twice, how much that must not be forgotten, what it cost."""
    rows = []
    for life in lives:
        survey = life.survey
        assert survey is not None
        rows.append(
            [
                life.name,
                f"{life.builds} / {life.extracted + life.merged} / {survey.memories}",
                f"{survey.near_alike} ({100 * survey.near_alike / survey.memories:.1f} %)",
                f"{survey.near} ({100 * survey.near / survey.memories:.1f} %)",
                f"{survey.landmarks} of {survey.negative}",
                ", ".join(f"{name} {count}" for name, count in sorted(survey.links.items())) or "–",
                f"{1_000 * life.seconds.get('compress', 0.0) / survey.episodes:.1f}" if survey.episodes else "–",
            ]
        )
    heads = ["kept", "trials / findings / in force", "near-duplicates", "… of any type", "landmarks of negatives"]
    yield from table([*heads, "links", "compress, s per 1,000 episodes"], rows)


def failures(lives: Sequence[Life]) -> Iterator[str]:
    """Yield how often what failed before failed again, with and without the failure or its lesson recalled.

    A trial of which the log lacks most is left out: what is missing are failures.
    """
    rows = []
    for life in lives:
        days = {answer.day: [one.is_solved for one in life.answers if one.day == answer.day] for answer in life.answers}
        cut = {day for day, solved in days.items() if 2 * solved.count(None) > len(solved)}
        whole = [answer for answer in life.answers if answer.day not in cut and answer.is_solved is not None]
        recalled = [not answer.is_solved for answer in whole if answer.recalled]
        others = [not answer.is_solved for answer in whole if not answer.recalled]
        both = [f"{_share(recalled)} of {len(recalled)}", f"{_share(others)} of {len(others)}"]
        rows.append([life.name, *both, " ".join(map(str, life.solved)) + (" (cut)" if cut else "")])
    yield from table(["failed again, %", "recalled before", "not recalled", "solved, trial by trial"], rows)


def ablation(lives: Sequence[Life]) -> Iterator[str]:
    """Yield the differences without each kind of link: of lessons found, and of recalls that hold a generalisation."""
    rows = []
    for name in [one for one in WITHOUT if one != WHOLE]:
        cells = []
        for life in lives:
            for kind in ("hit", "covered"):
                found = [(getattr(answer, kind)[name], getattr(answer, kind)[WHOLE]) for answer in life.answers]
                less, whole = ([pair[place] for pair in found] for place in (0, 1))
                cells.append(_told(difference(life.answers, less, whole)) if found else "–")
        rows.append([name, *cells])
    heads = [f"{life.name} {kind}" for life in lives for kind in (f"hit@{SHOWN}", "generalised")]
    yield from table(["without, points", *heads], rows)


def measure(logs: Path, names: Sequence[str], cache: Path, *, phases: Sequence[str], say: Say) -> list[Life]:
    """Live through the logs, each in a store of its own, and print."""
    embedder = CachedEmbedder(folder=cache)
    lives = []
    try:
        for name in names:
            read, place = LOGS[name]
            with tempfile.TemporaryDirectory(prefix="memgraph-bench-") as folder:
                lives.append(live_through(read(logs / place), Path(folder), embedder, phases=phases))
            say(f"{lives[-1].name}: {_spent(lives[-1])}")
    finally:
        embedder.close()
    asked = [life for life in lives if life.answers]
    for lines in (lessons(asked), generalisations(lives), upkeep(lives), failures(asked), ablation(asked)):
        say("")
        for line in lines:
            say(line)
    return lives


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--logs", required=True, type=Path, help="folder of the logs")
    known = ",".join(LOGS)
    split: Record = {"type": lambda text: text.split(","), "default": []}
    parser.add_argument("--only", **split, help=f"of {known} (default: all)")
    parser.add_argument("--phases", **split, help="of the sleep after each trial (default: all)")
    parser.add_argument("--scale", action="store_true", help="also compress 1,000 and 10,000 made-up episodes")
    parser.add_argument("--large", action="store_true", help="and 100,000 of them: minutes, alone on the machine")
    parser.add_argument("--cache", default=None, help="folder of kept vectors (default: the user's cache)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.only if name not in LOGS]:
        parser.error(f"--only: {', '.join(unknown)} unknown; known are {known}")
    say = partial(print, flush=True, file=sys.stderr if given.json else sys.stdout)
    lives = measure(given.logs, given.only or list(LOGS), cache_folder(given.cache), phases=given.phases, say=say)
    document: Record = {"logs": [life.as_record() for life in lives]}
    if given.scale or given.large:
        sizes = [1_000, 10_000, *([100_000] if given.large else [])]
        document["scale"] = learning_scale.measure(sizes, say)
    if given.json:
        print(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
