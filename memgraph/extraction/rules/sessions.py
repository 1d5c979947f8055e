"""Lessons of an agent's session: the user's statements, failures and what ended them, commands that work, and how a task was solved.

A session is a sequence of steps, most of which only look around. Only steps that act are assessed: run, edit, submit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from memgraph.extraction.error_text import failure_fingerprint
from memgraph.extraction.rules.causes import causes_in, joined
from memgraph.extraction.rules.findings import Finding
from memgraph.extraction.rules.remedies import changed_by, confirmed_by, failures
from memgraph.extraction.rules.session_steps import ENDS, Step, is_same, purpose_of, reasoning_after, short
from memgraph.extraction.rules.subjects import content_words
from memgraph.extraction.rules.user import UserStatement, spoken, statements_in, takes_back
from memgraph.extraction.statements import sentences, steps_in
from memgraph.model.build import BuildEventLog, UserIntervention
from memgraph.model.memory import ActionStep
from memgraph.text import lazy_re as re

_MAX_STEPS = 20_000
_MAX_PROCEDURE_STEPS = 10
_MAX_PASTED_CHARS = 4_000
_NEAR_ATTEMPTS = 4
_MAX_CHANGES = 2
_REPEATED = 3
_ASKED = "Asked: "
_REFUSED = "Refused: "
_MARK = re.compile(r"\W{0,3}(?:(?:option|number) )?(\d{1,2}|[a-h])\W{0,3}(?:please\W{0,2})?", re.IGNORECASE)
"""An answer that names one of the marked lines."""
_ORDINARY = re.compile(r"^(?:git|npm (?:install|ci)|pip install|yarn install|rm|mkdir|cp|mv|chmod|kill|pkill|touch)\b")
_TELLS_HOW = re.compile(
    r"\bhow (?:to|we)\b|\b(?:the|these|our) (?:steps|procedure|checklist|recipe)\b|\bin this order\b|\b(?:always|whenever|every time|each time)\b|\b(?:for|before|after) (?:each|every|any)\s|"
    r"^(?:to|when)\s[^.!?\n]{3,80}[,:]",
    re.IGNORECASE | re.MULTILINE,
)
"""What tells a way of doing something from a list of requests."""
_SCRATCH = re.compile(r"(?:^|/)(?:re?pro\w{0,20}|debug\w{0,20}|scratch\w{0,20}|te?mp\w{0,20})\.\w{1,5}$", re.IGNORECASE)
"""Files that a session makes for itself."""


def from_session(log: BuildEventLog) -> Iterator[Finding]:
    """Yield what is worth remembering in a session; see `RuleExtractor` for salience."""
    steps = [Step(task, place) for place, task in enumerate(log.tasks[:_MAX_STEPS])]
    yield from _from_user(log)
    yield from failures(steps)
    yield from _repeated(steps)
    if log.build_outcome == "success":
        yield from _solved(log, steps)


def _from_user(log: BuildEventLog) -> Iterator[Finding]:
    """Yield the user's statements that hold beyond the session, without those taken back later, and what the user refused with which words."""
    at: Counter[str] = Counter()
    kept: list[tuple[str, UserIntervention, UserStatement]] = []
    latest = 0  # the number of statements of earlier messages than the one before
    for said in log.user_interventions[:_MAX_STEPS]:
        place = f"user@{said.timestamp}" + (f"#{at[said.timestamp]}" if at[said.timestamp] else "")
        at[said.timestamp] += 1
        if len(said.action) > _MAX_PASTED_CHARS:
            continue  # pasted text
        if chosen := _chosen(said):
            reason = "the user answered a question"
            text = "The user chose “{}” when asked “{}”".format(*chosen)
            yield Finding("statement", 8.3, f"{place}:answer", text, reason, said=said, told=text)
            continue
        own = "\n".join(filter(None, spoken(said.action)))
        kept = [entry for number, entry in enumerate(kept) if not takes_back(own, entry[2], is_latest=number >= latest)]
        latest = len(kept)
        if (steps := steps_in(said.action)) and _tells_how(said.action, own, steps):
            reason = "the user stated the steps"
            alone = said.model_copy(update={"context": ""})
            yield Finding("procedure", 9.2, f"{place}:procedure", own, reason, said=alone, steps=steps)
            continue
        stated = statements_in(said.action)
        kept += [(place, said, one) for one in stated]
        says_why = content_words(own) and not own.rstrip().endswith("?")
        if not stated and said.context.startswith(_REFUSED) and says_why:
            alone = said.model_copy(update={"action": own})
            yield Finding("correction", 9.4, f"{place}:correction", own, "the user refused a call", said=alone)
    number: Counter[str] = Counter()
    for place, said, one in kept:
        key = f"{place}:{one.kind}"
        number[key] += 1
        key += f"-{number[key]}" if number[key] > 1 else ""
        reason = "the user gave an instruction" if one.kind == "instruction" else "the user stated a fact or a decision"
        told = said.model_copy(update={"action": one.text, "context": ""})
        yield Finding(one.kind, 9.3, key, one.text, reason, said=told)


def _chosen(said: UserIntervention) -> tuple[str, str] | None:
    """Return what the user chose of what the agent offered, by a tool or as a list of marked lines, and the question."""
    if said.context.startswith(_ASKED):
        return said.action, said.context.removeprefix(_ASKED)
    if mark := _MARK.fullmatch(said.action):
        offered = re.findall(
            rf"^\W{{0,6}}{mark[1]}\W{{1,4}}(\w.{{1,200}})$", said.context, re.MULTILINE | re.IGNORECASE
        )
        asked = [line.strip(" *") for line in said.context.splitlines() if line.rstrip(" *").endswith("?")]
        if len(offered) == 1 and asked:
            return offered[0].strip(" *"), asked[-1]
    return None


def _tells_how(message: str, own: str, steps: tuple[str, ...]) -> bool:
    """Return whether the line of the first step or the one before it says that these are steps, all in the user's own words."""
    around = [line for line in message.partition(steps[0])[0].splitlines() if line.strip()][-2:]
    words = own.replace("\n", " ")
    is_own = all(" ".join(step.split()) in words for step in steps)
    return is_own and any(_TELLS_HOW.search(line) for line in (*around, steps[0]) if line.strip("-*• ") in words)


def _repeated(steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield commands that were run repeatedly and worked: how something is done in this project."""
    worked = [step for step in steps if step.runs and step.can_be_repeated and step.worked]
    counts = Counter(step.command for step in worked)
    for command, times in counts.most_common(5):
        if times < _REPEATED:
            return
        if _ORDINARY.match(command) or len(command.split()) < 2:
            continue
        last = next(step for step in reversed(worked) if step.command == command)
        named = last.task.description.split(":", 1)[-1].strip()
        is_named = ":" in last.task.description and named != command and not named.startswith(command[:20])
        purpose = named if is_named else ""
        yield Finding(
            "procedure",
            6.5,
            f"command {failure_fingerprint(command)}:procedure",
            purpose or command,
            "a command was repeated and worked",
            last.task,
            told=f"Command that works here{f' ({purpose})' if purpose else ''}: `{short(' '.join(last.task.command.split()))}`",
        )


def _solved(log: BuildEventLog, steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield how a task was solved: what was edited and why. The steps without those that only looked, failed or were undone are its action log."""
    worked: list[Step] = []
    for step in steps:
        if not step.worked or step.looks:
            continue
        if worked and (step.command == worked[-1].command or (step.edits and is_same(step, worked[-1]))):
            continue
        worked.append(step)
    asked = sentences(log.build_summary.split("\n", 1)[0])
    changes = _lasting_changes(steps)
    if len(worked) < 3 or not any(step.runs for step in worked) or not asked or not changes:
        return
    if len(worked) > _MAX_PROCEDURE_STEPS:
        worked = [*worked[:2], *worked[2 - _MAX_PROCEDURE_STEPS :]]
    lines = tuple(_described(step, reasoning_after(steps, step)) for step in worked)
    goal = asked[0][:200]
    last = changes[-1][0]
    run, printed = confirmed_by(steps, last) or (last, "")
    task = run.task.model_copy(update={"files_changed": last.task.files_changed})
    yield Finding(
        "procedure",
        7.0,
        "session:procedure",
        goal,
        "a session ended well; these changes led there",
        task,
        actions=tuple(ActionStep(t=float(number), action=line) for number, line in enumerate(lines)),
        goal=goal,
        told=f"How “{goal}” was solved: {' Also '.join(text for _, text in changes[-_MAX_CHANGES:])}{f' {printed}' if printed else ''}",
    )


def _lasting_changes(steps: Sequence[Step]) -> list[tuple[Step, str]]:
    """Return the last edit of each file with what is known of it: the replaced line, else its purpose or cause; files that the session created are its scratch."""
    created = {file for step in steps if step.creates for file in step.task.files_changed}
    found: dict[str, tuple[Step, str]] = {}
    for step in steps:
        files = [file for file in step.task.files_changed if file not in created and not _SCRATCH.search(file)]
        if not (step.edits and step.worked and files):
            continue
        after = reasoning_after(steps, step)
        before = steps[max(0, step.place - _NEAR_ATTEMPTS) : step.place]
        attempts = [step, *(one for one in before if one.edits and is_same(one, step))]
        stated = [one for each in attempts for one in causes_in(each.task.reasoning, weak=True, is_about=True)]
        stated = stated or causes_in(after, weak=True, is_about=True)
        purpose = purpose_of(step, after)
        changed = changed_by(step)
        if purpose or stated or changed:
            known = [f"edited {', '.join(files[:2])}{f' ({purpose})' if purpose else ''}.", changed, joined(stated[:1])]
            found[files[0]] = step, " ".join(filter(None, known))
    return list(found.values())


def _described(step: Step, then: str) -> str:
    purpose = purpose_of(step, then)
    files = ", ".join(step.task.files_changed[:2])
    run = step.program if step.program in ENDS else short(step.command)
    what = f"{step.program} {files}" if step.edits and files else f"`{run}`"
    return f"{what} ({purpose})" if purpose else what
