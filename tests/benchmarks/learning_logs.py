"""Logs of repeated trials, trial by trial: what each brings, and what was asked before it was made."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memgraph.extraction import readers
from memgraph.extraction.readers import Reader, SourceRecord
from memgraph.model.build import BuildEventLog
from memgraph.model.timestamps import epoch_days

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task that was tried.

    Attributes
    ----------
    query : str
        What memory is asked before it is tried.
    build_id : str or None
        Of the trial; None where the log was cut before it.
    """

    task: str
    query: str
    build_id: str | None = None
    is_solved: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """All that was tried on one day: an undated trial *n* is day *n*."""

    day: int
    records: list[SourceRecord]
    attempts: list[Attempt]


@dataclass(frozen=True, slots=True)
class Question:
    """What memory is asked before a task is tried again.

    Attributes
    ----------
    gold : frozenset of str
        The builds in which it failed before.
    """

    attempt: Attempt
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Log:
    """One log.

    Attributes
    ----------
    tries_solved : bool
        Whether what is solved is tried again all the same.
    """

    name: str
    project_id: str
    trials: list[Trial]
    tries_solved: bool = False

    def questions(self) -> list[list[Question]]:
        """Return for each trial the tasks that failed before and are tried again, also where the log was cut before that."""
        failed: dict[str, tuple[set[str], str]] = {}
        solved: set[str] = set()
        found: list[list[Question]] = []
        for trial in self.trials:
            shown = {attempt.task: attempt for attempt in trial.attempts}
            pending = failed if not self.tries_solved else failed.keys() & shown.keys()
            found.append(
                [
                    Question(shown.get(task) or Attempt(task, failed[task][1]), frozenset(failed[task][0]))
                    for task in sorted(pending)
                    if self.tries_solved or task not in solved
                ]
            )
            for attempt in trial.attempts:
                if attempt.is_solved:
                    solved.add(attempt.task)
                elif attempt.build_id:
                    failed.setdefault(attempt.task, (set(), attempt.query))[0].add(attempt.build_id)
        return found


class TrialReader:
    """A trial of a log as a source of its own: a `Reader`."""

    kind = "trials"

    def __init__(self, log: Log, trial: Trial) -> None:
        self._records = trial.records
        self.project_id = log.project_id
        self.source_id = self.locator = f"{log.name}, trial {trial.day}"

    def count(self) -> int:
        """Return how many records there are."""
        return len(self._records)

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield them; a trial is read once, and whole."""
        return iter(self._records if cursor is None else ())


def hotpotqa(path: Path) -> Log:
    """Read Reflexion on HotPotQA. The question itself is stored nowhere: a task is known by its number.

    The query is the question without its rarest word: of its words (lower case) one that the fewest questions of the log hold, of several the
    longest, of these the first. What was not yet solved is tried again in the next trial, also where the log was cut before it.
    """
    records = _read(readers.HotpotqaReader(path))
    questions = {build.tasks[0].task_id: build.tasks[0].description for build, _ in records}
    queries = dict(zip(questions, without_rarest(list(questions.values())), strict=True))
    hidden = [(_without(build, questions[build.tasks[0].task_id]), record) for build, record in records]
    return _log("HotPotQA", hidden, lambda build: build.tasks[0].task_id, lambda build: queries[build.tasks[0].task_id])


def tau_bench(path: Path) -> Log:
    """Read tau-bench. The query is the customer's opening message, which differs from trial to trial."""
    return _log(
        "tau-bench",
        _read(readers.TauBenchReader(path, project_id="tau-bench")),
        lambda build: build.tasks[0].task_id,
        lambda build: build.tasks[0].description,
        tries_solved=True,
    )


def alfworld(folder: Path) -> Log:
    """Read Reflexion on ALFWorld. The query is the environment's name: the log says nothing else of a task."""
    records = [record for path in sorted(folder.glob("alfworld*")) for record in _read(readers.AlfworldReader(path))]
    return _log("ALFWorld", records, lambda build: build.tasks[0].task_id, lambda build: build.tasks[0].description)


def mbpp(path: Path) -> Log:
    """Read Reflexion on MBPP: all attempts at a problem are one build, so nothing is asked between them."""
    records = _read(readers.MbppReader(path))
    trial = Trial(0, [record for _, record in records], [])
    return Log("MBPP", records[0][0].project_id, [trial])


LOGS: dict[str, tuple[Callable[[Path], Log], str]] = {
    "hotpotqa": (hotpotqa, "reflexion/hotpotqa_react_reflexion_5_trials.head.txt"),
    "tau-bench": (tau_bench, "tau_bench/gpt-4o-airline.tasks0-9x4trials.jsonl"),
    "alfworld": (alfworld, "reflexion"),
    "mbpp": (mbpp, "reflexion/mbpp_py_reflexion_gpt4.head120.jsonl"),
}
"""What reads each log, and where it lies in the folder of logs."""


def without_rarest(questions: Sequence[str]) -> list[str]:
    """Return the questions, each without its rarest word."""
    frequency = Counter(word for question in questions for word in {*_words(question)})

    def shorter(question: str) -> str:
        words = _words(question)
        if not words:
            return question
        rarest = min(words, key=lambda word: (frequency[word], -len(word), words.index(word)))
        return " ".join(re.sub(rf"(?<!\w){re.escape(rarest)}(?!\w)", " ", question, flags=re.IGNORECASE).split())

    return [shorter(question) for question in questions]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _read(reader: Reader) -> list[tuple[BuildEventLog, SourceRecord]]:
    return [(record.build, record) for record in reader.records(None) if record.build is not None]


def _without(build: BuildEventLog, question: str) -> BuildEventLog:
    """Return a build that holds its question nowhere, as the words of it in their order."""
    asked = re.compile(r"\W+".join(map(re.escape, _words(question))), re.IGNORECASE)
    tasks = [
        task.model_copy(
            update={
                "description": f"HotPotQA {task.task_id}",
                **{name: asked.sub("the question", getattr(task, name)) for name in ("reasoning", "lesson", "output")},
            }
        )
        for task in build.tasks
    ]
    return build.model_copy(update={"tasks": tasks})


def _log(
    name: str,
    records: Sequence[tuple[BuildEventLog, SourceRecord]],
    task_of: Callable[[BuildEventLog], str],
    query_of: Callable[[BuildEventLog], str],
    *,
    tries_solved: bool = False,
) -> Log:
    days = defaultdict[int, list[tuple[BuildEventLog, SourceRecord]]](list)
    for build, record in records:
        days[_day(build)].append((build, record))
    trials = []
    for day in sorted(days):
        brought = [SourceRecord(build, record.cursor, record.records) for build, record in days[day]]
        attempts = [
            Attempt(task_of(build), query_of(build), build.build_id, build.build_outcome == "success")
            for build, _ in days[day]
        ]
        trials.append(Trial(day, brought, attempts))
    return Log(name, records[0][0].project_id, trials, tries_solved)


def _day(build: BuildEventLog) -> int:
    """Return which day after the first one that an undated trial can have."""
    return round(epoch_days(build.started_at) - epoch_days("2000-01-01T00:00:00.000Z"))
