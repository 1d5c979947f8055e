"""Reader of Reflexion on HotPotQA, as text: a trial of a question is a build."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from memgraph.errors import SourceError
from memgraph.extraction.readers.documents import Part, part_of, run_id, whole
from memgraph.extraction.readers.files import text_lines
from memgraph.extraction.readers.source import (
    MAX_SAID_CHARS,
    SourceRecord,
    cleaned,
    one_line,
    undated,
)
from memgraph.extraction.readers.trials.trial_reader import AGENT, TrialReader, trial_fields
from memgraph.model.build import BuildTask
from memgraph.text import lazy_re as re

_TRIAL = re.compile(r"BEGIN TRIAL (\d{1,6})\s*")
_SECTION = re.compile(r"-{3,}\s*BEGIN (CORRECT|INCORRECT|HALTED) AGENTS\s*-{3,}\s*")
_LIKE_A_SECTION = re.compile(r".{0,3}-{5}|.{0,40}\bAGENTS\b.{0,3}-{3}")
"""A damaged beginning of a section: how its questions ended is not known."""
_STEP = re.compile(r"(Thought|Action|Observation) (\d{1,4}):\s*(.*)")
_BOILERPLATE = "You have attempted to answer following question before and failed."
_ANSWER = re.compile(r"Finish\[(.*)\]")
_MAX_LINES = 400
_MAX_QUESTIONS = 100_000


@dataclass
class _Question:
    """A question in one trial."""

    text: str
    section: str
    reflections: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)
    correct: str = ""
    is_reflecting: bool = False
    last: list[str] | None = None

    def add(self, line: str) -> None:
        if match := _STEP.match(line):
            self.is_reflecting = False
            self.last = {"Thought": self.thoughts, "Action": self.actions}.get(match[1], self.observations)
            if len(self.last) < _MAX_LINES:
                self.last.append(match[3])
        elif line.startswith("Reflections:"):
            self.is_reflecting = True
        elif line.startswith("Correct answer:"):
            self.correct, self.last = one_line(line.partition(":")[2]), None
        elif self.is_reflecting and line.startswith("- "):
            self.reflections.append(line[2:])
        elif self.is_reflecting and self.reflections and line.strip():
            self.reflections[-1] += f"\n{line}"
        elif self.last and len(self.last[-1]) < MAX_SAID_CHARS:
            self.last[-1] += f"\n{line}"

    def said(self) -> list[str]:
        """Return the texts that distinguish it from the same question in another run."""
        texts = (*self.reflections, *self.thoughts, *self.actions, *self.observations)
        return [self.text, self.section, *(text.strip() for text in texts)]


@dataclass
class _Trial:
    """A trial and its header."""

    number: int
    questions: list[_Question] = field(default_factory=list)
    unplaced: int = 0
    """Questions outside of any section, whose outcome is unknown."""


class HotpotqaReader(TrialReader):
    """Reads trials of questions answered by lookups, in sections of correct, incorrect and halted ones.

    A question has the same number in all trials: that of its first appearance. The reflection on a failure is the last
    one given in the next trial: it is the failure's lesson, and what the next trial acted on (its reasoning). A halted
    agent failed.

    Parameters
    ----------
    path : path-like
        Text.
    project_id : str, optional
        Default: ``hotpotqa``.
    """

    kind = "hotpotqa"

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per question and trial; see `Reader.records`."""
        return whole(self._path, cursor, lambda stream, _: self._parts(stream))

    def _parts(self, stream: BinaryIO) -> Iterator[Part]:
        index: dict[str, int] = {}
        solved: set[str] = set()
        before: _Trial | None = None
        is_told = False
        for trial in _trials(stream):
            for question in trial.questions:
                index.setdefault(question.text, len(index))
            if before is not None:
                yield from self._of_trial(before, index, solved, {one.text: one for one in trial.questions})
            before = trial
            is_told = is_told or bool(trial.questions or trial.unplaced)
        if before is None:
            raise SourceError(
                "is in none of Reflexion's formats: a JSON array (ALFWorld), JSON objects (MBPP), or text with lines "
                "'BEGIN TRIAL <n>' (HotPotQA)",
                path=self._path,
            )
        if not is_told:
            raise SourceError("its trials contain no question ('Question: …')", path=self._path)
        yield from self._of_trial(before, index, solved, {})

    def _of_trial(
        self, trial: _Trial, index: dict[str, int], solved: set[str], following: dict[str, _Question]
    ) -> Iterator[Part]:
        """Yield a build per question, and record in `solved` what the trial solved, since later trials repeat it."""
        for question in trial.questions:
            said = question.said()
            if question.text in solved:
                question.reflections = []
            task = _task(question, index[question.text], following.get(question.text), trial.number)
            build_id = run_id(f"hotpotqa-{task.task_id}-trial-{trial.number}", said)
            fields = trial_fields(build_id, self.project_id, [task], first=trial.number)
            yield part_of(f"trial {trial.number}", fields)
        solved.update(question.text for question in trial.questions if question.section == "CORRECT")
        for _ in range(trial.unplaced):
            yield Part(None, 1, f"trial {trial.number}: a question outside of the sections that say how it ended")


def _trials(stream: BinaryIO) -> Iterator[_Trial]:
    trial: _Trial | None = None
    section = ""
    for line in text_lines(stream):
        if match := _TRIAL.fullmatch(line):
            if trial is not None:
                yield trial
            trial, section = _Trial(int(match[1])), ""
        elif trial is None:
            continue
        elif match := _SECTION.fullmatch(line):
            section = match[1]
        elif _LIKE_A_SECTION.match(line):
            section = ""
        elif line.startswith("Question:") and not section:
            trial.unplaced += 1
        elif line.startswith("Question:"):
            text = one_line(line[len("Question:") :].partition(_BOILERPLATE)[0], 2_000)
            if text and len(trial.questions) < _MAX_QUESTIONS:
                trial.questions.append(_Question(text, section))
        elif trial.questions and section and not line.startswith("####"):
            trial.questions[-1].add(line)
    if trial is not None:
        yield trial


def _task(question: _Question, number: int, later: _Question | None, trial: int) -> BuildTask:
    is_correct = question.section == "CORRECT"
    is_denied = question.observations[-1:] and "INCORRECT" in question.observations[-1]
    answer = next((match[1] for action in reversed(question.actions) if (match := _ANSWER.search(action))), "")
    texts = [f"Answered: {answer}" if answer else f"Gave no answer in {len(question.actions)} steps"]
    texts += question.thoughts[-1:]
    texts += [question.observations[-1]] if question.observations and answer else []
    texts += [f"Correct answer: {question.correct}"] if question.correct else []
    is_new = later is not None and not is_correct and len(later.reflections) > len(question.reflections)
    return BuildTask(
        task_id=f"question-{number}",
        agent_name=AGENT,
        description=one_line(question.text),
        reasoning=cleaned(question.reflections[-1], MAX_SAID_CHARS) if question.reflections else "",
        output=cleaned("\n".join(texts), MAX_SAID_CHARS),
        outcome="failure" if not is_correct else "success" if answer and not is_denied else "partial",
        lesson=cleaned(later.reflections[-1], MAX_SAID_CHARS) if is_new and later is not None else "",
        occurred_at=undated(trial),
        attempt=trial,
    )
