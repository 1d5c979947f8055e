"""The built-in extractor: rules that find what is worth remembering in a build log, with reasons. No model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from memgraph.extraction.error_text import error_lines, failure_fingerprint, first_lines
from memgraph.extraction.readers.commits import bare, kind_of, merged_request, without_kind, without_markup
from memgraph.extraction.rules.findings import LEAST_WORDS, LEFT_OUT, Finding, composed, placed, prose_of, quoted_task
from memgraph.extraction.rules.sessions import from_session, from_trial
from memgraph.extraction.statements import is_correction, is_instruction, steps_in
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.build import BuildEventLog, BuildTask, Candidate, CommitKind, ExtractionResult, UserIntervention
from memgraph.model.ids import canonical_name
from memgraph.model.memory import ActionStep, EpisodicMemory
from memgraph.text import lazy_re as re
from memgraph.text.attempts import sentence
from memgraph.text.cutting import cut, whole_sentences
from memgraph.text.words import content_words, is_bot, overlap, words_of

MAX_CANDIDATES = 1_000
"""Limit for hostile input; the pipeline decides how many candidates are kept."""
_MAX_TASKS = 20_000
_MAX_COMMAND_CHARS = 400
_MAX_TITLE_CHARS = 300
_MAX_BODY_CHARS = 8_000
_SAME_TASK_OVERLAP = 0.5
_BREAKS = re.compile(r"\A\w[\w-]{0,40}(?:\([^()\n]{1,60}\))?!: |^BREAKING[ -]CHANGE: ", re.MULTILINE)
"""The marks of https://www.conventionalcommits.org/en/v1.0.0."""
_OF_VERSIONS: tuple[CommitKind, ...] = ("dependency", "release")
"""Kinds of commits whose text is that of another project, or of what is in a release."""
_RETRIES = frozenset("retry retried rerun re-run again".split())


class RuleExtractor:
    """Finds failures, recoveries, the user's corrections, and changes that their authors explain.

    Salience, from high to low: a failure with its error; statements of the user; a recovery; an explained change, the longer the more
    salient. What nobody explains (see `LEAST_WORDS`), what a bot made and what a merge repeats is skipped. A candidate's key names
    its task and kind, so it is stable when the log grows. Deterministic; linear in the size of the log.
    """

    def __init__(self, *, limit: int = MAX_CANDIDATES) -> None:
        self._limit = limit

    def extract(self, build_log: BuildEventLog) -> ExtractionResult:
        """Return at most `limit` candidates, most salient first, ties in the order of the log."""
        rules = _RULES.get(build_log.source, _from_build)
        candidates: dict[str, Candidate] = {}
        for finding in sorted(rules(build_log), key=lambda finding: -finding.salience):
            if len(candidates) == self._limit:
                break
            memory = composed(finding, build_log)
            found = Candidate(key=finding.key[:400], memory=memory, is_stated=finding.said is not None)
            candidates.setdefault(canonical_name(memory.content), found)
        return ExtractionResult(candidates=list(candidates.values()), extractor="rules")


def _from_build(log: BuildEventLog) -> Iterator[Finding]:
    for place, said in placed(log.user_interventions[:_MAX_TASKS]):
        yield from _from_intervention(said, place)
    yield from _from_tasks(log)
    yield from _from_summary(log)


def _from_history(log: BuildEventLog) -> Iterator[Finding]:
    """Yield the changes that people explain, each title once: a cherry-pick or a retried push repeats it."""
    said: set[str] = set()
    for task in log.tasks[:_MAX_TASKS]:
        if is_bot(task.agent_name) or task.repeats or (name := bare(title_of(task))) in said:
            continue
        if finding := _explained(task):
            said.add(name)
            yield finding


def _from_tasks(log: BuildEventLog) -> Iterator[Finding]:
    failures: list[tuple[BuildTask, frozenset[str]]] = []
    said: set[str] = set()
    for task in log.tasks[:_MAX_TASKS]:
        if is_bot(task.agent_name) or task.repeats:
            continue
        name = bare(title_of(task))
        if name in said and task.outcome == "success" and not failures:
            continue  # a repetition of the same change
        said.add(name)
        words = frozenset(content_words(task.description[:600]))
        recovered = task.outcome == "success" and next(
            (failed for failed, its in reversed(failures) if _same_thing(task, words, failed, its)), None
        )
        if recovered:
            failures = [entry for entry in failures if entry[0] is not recovered]
            yield _recovery(task, recovered)
        elif finding := _from_task(task, log):
            yield finding
        if task.outcome == "failure":
            failures = [*failures[-99:], (task, words)]
        if task.outcome == "success" and (steps := steps_in(task.output) or steps_in(task.description)):
            yield _found("procedure", 6.5, task, "a task states its steps", steps=steps)


_RULES = {"git": _from_history, "transcript": from_session, "trajectory": from_session, "trial": from_trial}
"""Rules by kind of source, for sources other than histories and build logs."""


def title_of(task: BuildTask) -> str:
    """Return the first line of what a task was."""
    return cut(" ".join(task.description.split("\n", 1)[0].split()), _MAX_TITLE_CHARS)


def _from_task(task: BuildTask, log: BuildEventLog) -> Finding | None:
    if task.outcome == "failure":
        errors, command = tuple(_errors_of(task)), " ".join(task.command.split())[:_MAX_COMMAND_CHARS]
        done = (ActionStep(t=0.0, action=command, error=next(iter(errors), "failed")),) if command else ()
        return _found("failure", 10.0, task, "a task failed", errors=errors, actions=done)
    if task.outcome == "partial":
        return _found("partial", 6.0, task, "a task was only partly done", errors=tuple(error_lines(task.output)))
    return None if log.trust_class == "tool" else _explained(task)


def _explained(task: BuildTask) -> Finding | None:
    """Return a change whose author explains it in at least `LEAST_WORDS` words of prose, with the whole text."""
    title, body = task.description, task.output
    if merged_request(title):  # its body begins with the request's title
        title, _, body = body.partition("\n")
    told, words = prose_of(body)
    if words < LEAST_WORDS or task.kind in _OF_VERSIONS:
        return None
    is_breaking = _BREAKS.search(f"{title}\n{body[:_MAX_BODY_CHARS]}") is not None
    kind = "restoration" if task.restores else "breaking" if is_breaking else task.kind or "change"
    told, whole = f"{sentence(title)}\n{told}", f"{sentence(title)}\n{without_markup(body)}"
    # what a colon announces belongs to the text, if all of it fits
    fits = LEFT_OUT in told and len(" ".join(whole.split())) <= MAX_CONTENT_CHARS
    told = whole if fits else whole_sentences(told, MAX_CONTENT_CHARS)
    return _found(kind, 5 + min(words, 100) / 50, task, "its author explains the change", told=told)


def _found(kind: str, salience: float, task: BuildTask, reason: str, **more: Any) -> Finding:
    return Finding(kind, salience, f"{task.task_id[:380]}:{kind}", without_kind(title_of(task)), reason, task, **more)


def task_name(task: BuildTask) -> str:
    """Return what a build's task was, as the memories of its failure and its recovery quote it."""
    return quoted_task(without_kind(title_of(task)))


def failed_with(task: BuildTask) -> dict[str, str]:
    """Return the fingerprint of a failed task's error, as a field of its memories; none if it has no error, or went well."""
    errors = _errors_of(task) if task.outcome == "failure" else []
    return {"failure_fingerprint": failure_fingerprint(errors[0])} if errors else {}


def _errors_of(task: BuildTask) -> list[str]:
    return error_lines(task.output) or first_lines(task.output) or error_lines(task.description)


def recovery_of(log: BuildEventLog, task: BuildTask, failed: EpisodicMemory) -> Candidate:
    """Return the recovery from a failure of an earlier build: the task that succeeded is the one that had failed, or the command that had reported it."""
    errors = [one.message for one in failed.errors_encountered[:1]] or error_lines(failed.content, limit=1)
    agent = next(iter(failed.agents_involved), task.agent_name)
    if task_name(task) != failed.tried:
        name = (failed.tried or "").strip("“”").removesuffix(" failed")
        task = task.model_copy(update={"description": name, "task_id": f"{task.task_id} {name}"[:380]})
    if log.trust_class == "tool":  # what a tool prints says nothing of what was changed
        task = task.model_copy(update={"output": "", "command": ""})
    given = {"task_id": task.task_id, "agent_name": agent, "description": task.description, "outcome": "failure"}
    earlier = BuildTask(**given, output="\n".join(errors), command=command_of(failed))
    finding = replace(_recovery(task, earlier), errors=tuple(errors))
    memory = composed(finding, log)
    own = {"agents_involved": [task.agent_name], "tags": [memory.tags[0], "fix", *memory.tags[1:5]]}
    return Candidate(key=finding.key[:400], memory=memory.model_copy(update=own))


def command_of(failed: EpisodicMemory) -> str:
    """Return the command that reported a failure; empty if it is not known."""
    return next((step.action for step in failed.action_log if step.error), "")


def _recovery(task: BuildTask, failed: BuildTask) -> Finding:
    reason = "a task succeeded after it had failed"
    return _found("recovery", 9.0, task, reason, errors=tuple(error_lines(failed.output)), earlier=failed)


def _same_thing(task: BuildTask, words: frozenset[str], failed: BuildTask, its: frozenset[str]) -> bool:
    if task.test and failed.test:
        return task.test == failed.test  # the names of two tests may have most of their words in common
    if task.task_id == failed.task_id or task.reverts == failed.task_id:
        return True
    if overlap(words, its) >= _SAME_TASK_OVERLAP:
        return True
    same_files = not set(task.files_changed[:500]).isdisjoint(failed.files_changed[:500])
    if len(words & its) < (1 if same_files else 2):
        return False
    is_fix = kind_of(title_of(task), (), undoes=False, closes=False) == "fix"
    return same_files or is_fix or _is_retry(words_of(task.description[:300]))


def _is_retry(words: list[str]) -> bool:
    """Return whether words speak of a retry: "attempt" only beside its number ("attempt 2", "second attempt")."""
    numbered = (pair for pair in pairwise(words) if "second" in pair or any(word[:1].isdigit() for word in pair))
    return not _RETRIES.isdisjoint(words) or any("attempt" in pair for pair in numbered)


def _from_intervention(said: UserIntervention, place: str) -> Iterator[Finding]:
    text = f"{said.action}. {said.context}" if said.context else said.action
    if len(content_words(text)) < 2 and not steps_in(text):
        return
    kind, salience, reason = "intervention", 5.0, "the user stepped in"
    if steps := steps_in(said.action) or steps_in(said.context):
        kind, salience, text, reason = "procedure", 9.2, said.action, "the user stated the steps"
    elif is_instruction(text):
        kind, salience, reason = "instruction", 9.3, "the user gave an instruction"
    elif is_correction(text):
        kind, salience, reason = "correction", 9.4, "the user corrected"
    yield Finding(kind, salience, f"{place}:{kind}", text, reason, said=said, steps=steps)


def _from_summary(log: BuildEventLog) -> Iterator[Finding]:
    has_failed = log.build_outcome == "failure" and not any(task.outcome == "failure" for task in log.tasks)
    told, words = prose_of(log.build_summary)
    if has_failed and (errors := error_lines(log.build_summary, limit=1)):
        yield Finding("failure", 8.0, "summary:failure", errors[0], "a build failed", errors=tuple(errors))
    elif words >= LEAST_WORDS and log.trust_class != "tool":
        yield Finding("summary", 4.0, "summary:summary", told, "the build's summary explains it")
