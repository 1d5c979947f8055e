"""The built-in extractor: rules that find what is worth remembering in a build log, with reasons. No model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memgraph.extraction.components import component_name, components_of, is_incidental
from memgraph.extraction.error_text import error_lines, first_lines
from memgraph.extraction.rules.findings import Finding, Setting, composed
from memgraph.extraction.rules.sessions import from_session
from memgraph.extraction.rules.subjects import (
    Subject,
    content_words,
    is_by_bot,
    is_noise,
    is_trivial,
    is_vague,
    parse_subject,
)
from memgraph.extraction.rules.trials import from_trial
from memgraph.extraction.statements import (
    Decision,
    find_decision,
    is_correction,
    is_fix,
    is_instruction,
    is_novel,
    is_prevention,
    is_reshaping,
    is_severe,
    reasons_in,
    removes_something,
    steps_in,
)
from memgraph.model.build import BuildEventLog, BuildTask, Candidate, ExtractionResult, UserIntervention
from memgraph.model.ids import canonical_name
from memgraph.text.overlap import overlap

MAX_CANDIDATES = 1_000
"""Limit for hostile input; the pipeline decides how many candidates are kept."""
_MAX_TASKS = 20_000
_SAME_TASK_OVERLAP = 0.5
_TELLING_WORDS = 3
"""Minimum number of content words in the subject of a plain change; shorter subjects cannot be found again."""
_REVERT = re.compile(r'revert:?\s+"(.{1,280}?)"?$', re.IGNORECASE)
_REINSTATES = re.compile(r"(?:re-?apply|reland|reinstate|restore|bring back)\b|revert:?\s+\"revert\b", re.IGNORECASE)
_RETRY = re.compile(r"\b(?:retr(?:y|ied)|re-?run|again|second attempt|attempt \d+)\b", re.IGNORECASE)
_IDLE_KINDS = frozenset({"docs", "ci", "chore", "wip", "release"})
_RELEASE = re.compile(
    r"^(?:release|bump (?:the )?version|version)\s+(?:to\s+)?v?\d+(?:\.\d+){0,3}(?![\w.]*dev)\b", re.IGNORECASE
)


class RuleExtractor:
    """Finds failures, recoveries, reverts, the user's corrections, decisions, fixes and novelties.

    Salience, from high to low: a failure with its error; a revert and what it undid; statements of the user; a
    recovery; a breaking change; a fix or decision (more if severe or explained); a prevention; the first appearance of
    a feature or component. Skipped are bots, merges, version bumps, changes of wording, formatting, tests and docs, and
    vague changes ("fix bugs"). A candidate's key names its task and kind, so it is stable when the log grows.

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
        setting = Setting(build_log)
        findings = list(_RULES.get(build_log.source, _from_build)(build_log))
        findings.sort(key=lambda finding: -finding.salience)
        candidates: list[Candidate] = []
        seen: set[str] = set()
        for finding in findings:
            if len(candidates) == self._limit:
                break
            memory = composed(finding, setting)
            said = canonical_name(memory.content)
            if said not in seen:
                seen.add(said)
                candidates.append(Candidate(key=finding.key[:400], memory=memory))
        return ExtractionResult(candidates=candidates, extractor="rules")


def _from_build(log: BuildEventLog) -> Iterator[Finding]:
    yield from _from_interventions(log)
    yield from _from_tasks(log)
    yield from _from_summary(log)


_RULES = {"transcript": from_session, "trajectory": from_session, "trial": from_trial}
"""Rules by kind of source, for sources other than histories and build logs."""


def _from_tasks(log: BuildEventLog) -> Iterator[Finding]:
    failures: list[tuple[BuildTask, frozenset[str]]] = []
    novel: set[str] = set()
    said: set[str] = set()
    for task in log.tasks[:_MAX_TASKS]:
        if is_by_bot(task.agent_name):
            continue
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
        elif finding := _from_task(task, subject, novel):
            yield finding
        if task.outcome == "failure" and not _is_revert(task):
            failures = [*failures[-99:], (task, words)]
        steps = steps_in(task.output if task.outcome == "success" else "") or steps_in(task.description)
        if steps and task.outcome == "success":
            text = subject.text or task.description
            yield Finding(
                "procedure", 6.5, f"{task.task_id}:procedure", text, "a task states its steps", task, steps=steps
            )


def _from_task(task: BuildTask, subject: Subject, novel: set[str]) -> Finding | None:
    if _is_revert(task):
        return _revert(task, subject)
    if task.outcome == "failure":
        error = error_lines(task.output) or first_lines(task.output) or error_lines(task.description)
        return _found("failure", 10.0, task, subject, "a task failed", errors=tuple(error))
    if _RELEASE.match(subject.text) and not subject.scopes:
        return _found("release", 2.0, task, subject, "a version was released")
    if is_noise(task.description) or subject.kind in {"wip", "release"}:
        return None
    if task.outcome == "partial" and not re.match(r"\W{0,2}(?:wip|draft)\b", task.description, re.IGNORECASE):
        errors = tuple(error_lines(task.output))
        return _found("partial", 6.0, task, subject, "a task was only partly done", errors=errors)
    return _change(task, subject, novel)


def _change(task: BuildTask, subject: Subject, novel: set[str]) -> Finding | None:
    """Assess a successful change by the kind in its subject, raised by severity and stated reasons."""
    reasons = reasons_in(task.output)
    extra = (1.0 if reasons else 0.0) + (1.0 if is_severe(task.description) else 0.0)
    decision = find_decision(subject.text)
    if subject.is_breaking or "BREAKING CHANGE" in task.output[:6_000]:
        return _found("breaking", 8.0 + extra, task, subject, "a change breaks what others rely on", decision=decision)
    is_new = subject.kind == "feature" or any(is_novel(clause) for clause in re.split(r"[.;]\s", subject.text))
    is_a_fix = subject.kind == "fix" or is_fix(subject.text)
    if is_trivial(task.description) or subject.kind in _IDLE_KINDS:
        return None
    if is_vague(subject.text, subject.scopes, may_be_a_name=is_new and not is_a_fix):
        return None
    if task.files_changed and all(is_incidental(file) for file in task.files_changed[:500]):
        return None
    is_first = is_new and _is_first(task, subject, novel)
    if decision and (decision.alternatives or not is_a_fix):
        return _found("decision", 6.0 + extra, task, subject, "a decision was taken", decision=decision)
    if is_a_fix:
        return _found(
            "fix",
            5.0 + extra + (0.5 if len(content_words(subject.text)) > 3 else 0.0),
            task,
            subject,
            "a fix says what was wrong",
        )
    if subject.kind == "feature" and is_first:
        return _found("novelty", 5.2 + extra, task, subject, "something appears for the first time")
    if is_prevention(subject.text):
        return _found("prevention", 5.0 + extra, task, subject, "a change guards against a failure")
    if removes_something(subject.text):
        return _found("removal", 4.0 + extra, task, subject, "something was removed")
    if subject.kind == "change":
        return _found("decision", 4.2 + extra, task, subject, "a change of behaviour was declared")
    stated = find_decision(" ".join(reasons)) if reasons else None
    if stated:
        return _found("decision", 4.5 + extra, task, subject, "a decision was taken", decision=stated)
    if is_first:
        return _found("novelty", 3.5 + extra, task, subject, "something appears for the first time")
    if reasons and not is_new:
        return _found("change", 3.0 + extra, task, subject, "a change says why it was made")
    says_enough = len(set(content_words(subject.text))) >= _TELLING_WORDS
    if says_enough and task.files_changed and subject.kind != "refactoring" and not is_reshaping(subject.text):
        return _found("change", 2.0 + extra, task, subject, "a change says what is different now")
    return None


def _found(
    kind: str,
    salience: float,
    task: BuildTask,
    subject: Subject,
    reason: str,
    *,
    decision: Decision | None = None,
    errors: tuple[str, ...] = (),
) -> Finding:
    text = subject.text or task.description.strip()
    return Finding(
        kind,
        salience,
        f"{task.task_id[:380]}:{kind}",
        text,
        reason,
        task,
        scopes=subject.scopes,
        decision=decision,
        errors=errors,
    )


def _is_revert(task: BuildTask) -> bool:
    line = task.description[:300]
    return not _REINSTATES.match(line) and (task.reverts is not None or _REVERT.match(line) is not None)


def _revert(task: BuildTask, subject: Subject) -> Finding | None:
    line = task.description.split("\n", 1)[0][:300]
    match = _REVERT.match(line)
    undone = parse_subject(match[1]) if match else subject
    is_incidental_only = bool(task.files_changed) and all(is_incidental(file) for file in task.files_changed[:500])
    if is_incidental_only or is_trivial(undone.text) or undone.kind in {"docs", "chore"}:
        return None  # undoing a change of wording teaches nothing
    reason = "a revert says what did not work"
    return Finding("revert", 9.5, f"{task.task_id[:380]}:revert", undone.text, reason, task, scopes=undone.scopes)


def _recovery(task: BuildTask, subject: Subject, failed: BuildTask) -> Finding:
    errors = tuple(error_lines(failed.output))
    text = subject.text or task.description
    return Finding(
        "recovery",
        9.0,
        f"{task.task_id[:380]}:recovery",
        text,
        "a task succeeded after it had failed",
        task,
        scopes=subject.scopes,
        errors=errors,
        decision=find_decision(task.output),
        earlier=failed,
    )


def _same_thing(task: BuildTask, words: frozenset[str], failed: BuildTask, its: frozenset[str]) -> bool:
    if task.task_id == failed.task_id or task.reverts == failed.task_id:
        return True
    if overlap(words, its) >= _SAME_TASK_OVERLAP:
        return True
    same_files = not set(task.files_changed[:500]).isdisjoint(failed.files_changed[:500])
    is_retry = _RETRY.search(task.description[:300]) is not None or parse_subject(task.description[:300]).kind == "fix"
    return len(words & its) >= (1 if same_files else 2) and (same_files or is_retry)


def _is_first(task: BuildTask, subject: Subject, novel: set[str]) -> bool:
    """Return whether a feature's component appears for the first time in this log, and record it."""
    scopes = [name for scope in subject.scopes if (name := component_name(scope))]
    about = (scopes or components_of(task.files_changed, limit=1) or content_words(subject.text)[:1])[:1]
    is_first = bool(about) and about[0] not in novel
    novel.update(about)
    return is_first


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
    if steps := (steps_in(said.action) or steps_in(said.context)):
        yield Finding(
            "procedure", 9.2, f"{place}:procedure", said.action, "the user stated the steps", said=said, steps=steps
        )
    elif is_instruction(text):
        yield Finding("instruction", 9.3, f"{place}:instruction", text, "the user gave an instruction", said=said)
    elif is_correction(text):
        decision = find_decision(text)
        yield Finding(
            "correction", 9.4, f"{place}:correction", text, "the user corrected", said=said, decision=decision
        )
    else:
        yield Finding("intervention", 5.0, f"{place}:intervention", text, "the user stepped in", said=said)


def _from_summary(log: BuildEventLog) -> Iterator[Finding]:
    if decision := find_decision(log.build_summary):
        yield Finding("decision", 4.0, "summary:decision", decision.sentence, "a decision was taken", decision=decision)
    elif log.build_outcome == "failure" and all(task.outcome != "failure" for task in log.tasks):
        for errors in filter(None, [error_lines(log.build_summary, limit=1)]):
            yield Finding("failure", 8.0, "summary:failure", errors[0], "a build failed", errors=tuple(errors))
