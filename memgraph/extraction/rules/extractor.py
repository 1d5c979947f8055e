"""The built-in extractor: rules that find what is worth remembering in a build log, with reasons. No model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from memgraph.extraction.error_text import error_lines, failure_fingerprint, first_lines
from memgraph.extraction.rules.changes import assessed, composed_text, statements
from memgraph.extraction.rules.findings import Finding, composed, place_of, quoted_task, undone_text
from memgraph.extraction.rules.prose import plain, sentences_of
from memgraph.extraction.rules.sessions import from_session
from memgraph.extraction.rules.subjects import MAX_SUBJECT_CHARS, Subject, content_words, parse_subject
from memgraph.extraction.rules.trials import from_trial
from memgraph.extraction.statements import find_decision, is_correction, is_instruction, steps_in
from memgraph.model.build import BuildEventLog, BuildTask, Candidate, ExtractionResult, UserIntervention
from memgraph.model.ids import canonical_name
from memgraph.model.memory import ActionStep, EpisodicMemory
from memgraph.text import lazy_re as re
from memgraph.text.attempts import sentence
from memgraph.text.words import is_bot, overlap

MAX_CANDIDATES = 1_000
"""Limit for hostile input; the pipeline decides how many candidates are kept."""
_MAX_TASKS = 20_000
_MAX_REASON_CHARS = 4_000
_MAX_COMMAND_CHARS = 400
_SAME_TASK_OVERLAP = 0.5
_REASON = re.compile(
    r"^(?:reason(?: for (?:the )?(?:revert|roll ?back|re-?land)\w*)?|revert reason|rationale|why):[ \t]*(\S.*(?:\n(?!.{0,80}:$)\S.*)*)",
    re.IGNORECASE | re.MULTILINE,
)
"""The reason that a form for reverts asks for; in angle brackets, it was not filled in."""
_MERGED_REQUEST = re.compile(r"Merge pull request #(\d+) from \S+$")
_END = re.compile(r"(?<=\w\w[.!])\s+(?=\S)")
_LONG_LINE_CHARS = 140
_CUT = re.compile(
    r"\s(?:an?|the|of|to|for|in|on|by|with|and|or|is|are|was|were|not|getting|being|that|which|when|if|as|from|at)$"
)
"""Ends of a first line that the body continues."""
_RETRY = re.compile(r"\b(?:retr(?:y|ied)|re-?run|again|second attempt|attempt \d+)\b", re.IGNORECASE)


class RuleExtractor:
    """Finds failures, recoveries, reverts, the user's corrections, and changes that say why they were made.

    Salience, from high to low: a failure with its error; a revert that says why; statements of the user; a recovery; a
    breaking change, a security fix, a deprecation or removal; a fix or decision with its cause. A change whose message
    states nothing to act on is skipped (see `changes`), as are bots, merges and version bumps. A candidate's key names
    its task and kind, so it is stable when the log grows.

    Parameters
    ----------
    limit : int
        Maximum number of candidates per log, a safety limit: the pipeline selects from those not yet consumed.

    Notes
    -----
    Deterministic; linear in the size of the log.
    """

    def __init__(self, *, limit: int = MAX_CANDIDATES) -> None:
        self._limit = limit

    def extract(self, build_log: BuildEventLog) -> ExtractionResult:
        """Return at most `limit` candidates, most salient first, ties in the order of the log."""
        findings = list(_RULES.get(build_log.source, _from_build)(build_log))
        findings.sort(key=lambda finding: -finding.salience)
        candidates: list[Candidate] = []
        seen: set[str] = set()
        for finding in findings:
            if len(candidates) == self._limit:
                break
            memory = composed(finding, build_log)
            said = canonical_name(memory.content)
            if said not in seen:
                seen.add(said)
                candidates.append(Candidate(key=finding.key[:400], memory=memory, is_stated=finding.said is not None))
        return ExtractionResult(candidates=candidates, extractor="rules")


def _from_build(log: BuildEventLog) -> Iterator[Finding]:
    yield from _from_interventions(log)
    yield from _from_tasks(log)
    yield from _from_summary(log)


_RULES = {"transcript": from_session, "trajectory": from_session, "trial": from_trial}
"""Rules by kind of source, for sources other than histories and build logs."""


def _from_tasks(log: BuildEventLog) -> Iterator[Finding]:
    failures: list[tuple[BuildTask, frozenset[str]]] = []
    is_history = log.source == "git"
    said: set[str] = set()
    for given in log.tasks[:_MAX_TASKS]:
        if is_bot(given.agent_name) or given.repeats:
            continue
        request = _MERGED_REQUEST.match(given.description) if is_history else None
        task = _opened(given, request) if is_history else given
        subject = parse_subject(task.description.split("\n", 1)[0])
        name = canonical_name(subject.text)
        if name in said and task.outcome == "success" and not failures:
            continue  # a repetition of the same change: a cherry-pick, a retried push
        said.add(name)
        words = frozenset(content_words(task.description[:600]))
        recovered = task.outcome == "success" and next(
            (failed for failed, its in reversed(failures) if _same_thing(task, words, failed, its)), None
        )
        if recovered:
            failures = [entry for entry in failures if entry[0] is not recovered]
            yield _recovery(task, subject, recovered)
        elif finding := _from_task(task, subject, log, is_request=request is not None):
            yield finding
        if task.outcome == "failure" and not _undoes(task):
            failures = [*failures[-99:], (task, words)]
        if is_history or task.outcome != "success":
            continue  # the prose of a commit is no procedure
        if steps := steps_in(task.output) or steps_in(task.description):
            text = subject.text or task.description
            yield Finding(
                "procedure", 6.5, f"{task.task_id}:procedure", text, "a task states its steps", task, steps=steps
            )


def _opened(task: BuildTask, request: re.Match[str] | None) -> BuildTask:
    """Return a commit whose description is one statement: a merged request's title, a long line's first sentence."""
    line = task.description
    if request:
        title, _, body = task.output.strip().partition("\n")
        line = f"{title} (#{request[1]})" if title else ""
    else:
        body = task.output
    if _CUT.search(line) and body[:1].islower():
        line, body = f"{line} {' '.join(body[:_LONG_LINE_CHARS].split())}{body[_LONG_LINE_CHARS:]}", ""
        if not (end := _END.search(line)):
            return task.model_copy(update={"description": line[:MAX_SUBJECT_CHARS], "output": ""})
        line, body = line[: end.start()], line[end.end() :]
    if len(line) > _LONG_LINE_CHARS and (end := _END.search(line, 20)):
        line, body = line[: end.start()], f"{line[end.end() :]}\n\n{body}"
    return task.model_copy(update={"description": line, "output": body.strip()}) if line else task


def _from_task(task: BuildTask, subject: Subject, log: BuildEventLog, *, is_request: bool) -> Finding | None:
    if _undoes(task) and task.outcome != "failure":
        return _undoing(task)
    if task.outcome == "failure":
        errors, command = tuple(_errors_of(task)), " ".join(task.command.split())[:_MAX_COMMAND_CHARS]
        failed = ActionStep(t=0.0, action=command, error=next(iter(errors), "failed")) if command else None
        done = (failed,) if failed else ()
        return _found("failure", 10.0, task, subject, "a task failed", errors=errors, actions=done)
    if task.outcome == "partial" and log.source != "git":
        errors = tuple(error_lines(task.output))
        return _found("partial", 6.0, task, subject, "a task was only partly done", errors=errors)
    return _change(task, subject, log.project_id, is_request=is_request)


def _change(task: BuildTask, subject: Subject, project: str, *, is_request: bool) -> Finding | None:
    """Return what a successful change states, if anything; the title alone of a merged request repeats its commits."""
    change = assessed(task, subject)
    if change is None or (is_request and not change.stated):
        return None
    told = composed_text(subject, change, task, place_of(task, subject, project))
    decision = find_decision(subject.text) or find_decision(" ".join(change.stated))
    return _found(change.kind, change.salience, task, subject, change.reason, decision=decision, told=told)


def _found(kind: str, salience: float, task: BuildTask, subject: Subject, reason: str, **more: Any) -> Finding:
    text, key = subject.text or task.description.strip(), f"{task.task_id[:380]}:{kind}"
    return Finding(kind, salience, key, text, reason, task, scopes=subject.scopes, **more)


def _undoes(task: BuildTask) -> bool:
    """Return whether its source says that a task undoes another one, or does it again."""
    return bool(task.reverts or task.restores or task.undone_subject)


def _undoing(task: BuildTask) -> Finding | None:
    """Return a revert or its revert, if it says why: one that does not only takes back what the other change says."""
    title = parse_subject(task.undone_subject)
    why = _reasons(task.output, title.text)
    if not why or title.kind in {"docs", "chore"}:
        return None
    kind, salience, reason, concerned = (
        ("restoration", 7.5, "what was reverted was done again, and why", task.restores)
        if task.restores or task.kind not in (None, "revert")
        else ("revert", 9.5, "a revert says what did not work", task.reverts)
    )
    found = Finding(kind, salience, f"{task.task_id[:380]}:{kind}", title.text, reason, task, scopes=title.scopes)
    return replace(found, told=undone_text(found, concerned, why))


def _reasons(body: str, known: str) -> tuple[str, ...]:
    """Return why something was undone: as its form states it, else the body's statements, else its first sentences."""
    body = body[:_MAX_REASON_CHARS]
    if (stated := _REASON.search(body)) and not stated[1].startswith("<"):
        said = [plain(stated[1])]
    else:
        body = _REASON.sub("", body)
        if found := statements(body, known=known, is_remedy=True, is_a_fix=True):
            return found
        said = [one.text for one in sentences_of(body)[:2] if not one.is_item]
    return tuple(sentence(one[:1].upper() + one[1:]) for one in said)


def task_name(task: BuildTask) -> str:
    """Return what a build's task was, as the memories of its failure and its recovery quote it."""
    return quoted_task(parse_subject(task.description.split("\n", 1)[0]).text or task.description.strip())


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
    finding = replace(_recovery(task, parse_subject(task.description.split("\n", 1)[0]), earlier), errors=tuple(errors))
    memory = composed(finding, log)
    own = {"agents_involved": [task.agent_name], "tags": [memory.tags[0], "fix", *memory.tags[1:5]]}
    return Candidate(key=finding.key[:400], memory=memory.model_copy(update=own))


def command_of(failed: EpisodicMemory) -> str:
    """Return the command that reported a failure; empty if it is not known."""
    return next((step.action for step in failed.action_log if step.error), "")


def _recovery(task: BuildTask, subject: Subject, failed: BuildTask) -> Finding:
    reason = "a task succeeded after it had failed"
    errors, decision = tuple(error_lines(failed.output)), find_decision(task.output)
    return _found("recovery", 9.0, task, subject, reason, errors=errors, decision=decision, earlier=failed)


def _same_thing(task: BuildTask, words: frozenset[str], failed: BuildTask, its: frozenset[str]) -> bool:
    if task.task_id == failed.task_id or task.reverts == failed.task_id:
        return True
    if overlap(words, its) >= _SAME_TASK_OVERLAP:
        return True
    same_files = not set(task.files_changed[:500]).isdisjoint(failed.files_changed[:500])
    is_retry = _RETRY.search(task.description[:300]) is not None or parse_subject(task.description[:300]).kind == "fix"
    return len(words & its) >= (1 if same_files else 2) and (same_files or is_retry)


def _from_interventions(log: BuildEventLog) -> Iterator[Finding]:
    at: dict[str, int] = {}
    for intervention in log.user_interventions[:_MAX_TASKS]:
        ordinal = at[intervention.timestamp] = at.get(intervention.timestamp, -1) + 1
        place = f"user@{intervention.timestamp}" + (f"#{ordinal}" if ordinal else "")
        yield from _from_intervention(intervention, place)


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
    decision = find_decision(text) if kind == "correction" else None
    yield Finding(kind, salience, f"{place}:{kind}", text, reason, said=said, steps=steps, decision=decision)


def _from_summary(log: BuildEventLog) -> Iterator[Finding]:
    if decision := find_decision(log.build_summary):
        yield Finding("decision", 4.0, "summary:decision", decision.sentence, "a decision was taken", decision=decision)
    elif log.build_outcome != "failure" or any(task.outcome == "failure" for task in log.tasks):
        return
    elif errors := error_lines(log.build_summary, limit=1):
        yield Finding("failure", 8.0, "summary:failure", errors[0], "a build failed", errors=tuple(errors))
