"""Failures of a session and what ended them: what was changed or run between the last failure and the success.

Never the command that failed. No remedy is given if nothing lies between them, or if several acts do and neither the error nor the agent names one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memgraph.extraction.error_text import error_lines, error_type, normalised_error
from memgraph.extraction.rules.causes import causes_in, joined
from memgraph.extraction.rules.findings import Finding
from memgraph.extraction.rules.session_steps import (
    CALL,
    MAX_COMMAND_CHARS,
    QUOTED,
    Step,
    is_by_another_program,
    is_part,
    is_same,
    purpose_of,
    reasoning_after,
    short,
)
from memgraph.model.memory import Attempt, Worked
from memgraph.text import lazy_re as re

_SIGN_WORDS = 3
_NEAR_STEPS = 40
"""Maximum number of steps between a failure and its remedy."""
_MAX_ACTS = 2
_MAX_CHANGED_CHARS = 100
_REPLACED = re.compile(r"edit\s+(['\"])(.{1,2000})\1\s+(['\"])(.{1,2000})\3\s*", re.DOTALL)
_MAX_CHANGED_ARGUMENTS = 2
_UNUSABLE = re.compile(
    r"command not found|not recognized as|No such file or directory|unrecogni[sz]ed|unknown (?:option|command|flag|argument)|no such (?:option|command)|invalid option|^usage:|Permission denied|"
    r"[Nn]o module named|Cannot find module|ENOENT|[Mm]issing script|must be run|externally[- ]managed|not a git repository|requires? (?:python|node)|is not installed",
    re.IGNORECASE | re.MULTILINE,
)
"""Errors of the way something was called, not of what it found."""
_NOT_OF_THE_RULES = re.compile(r"not found|invalid|does not exist|not enough", re.IGNORECASE)
_PASSES = re.compile(
    r"\b5\d\d\b|unavailable|time(?:d|s)?[- ]?out|rate limit|too many requests|connection (?:reset|refused|closed|aborted)|network|try again|temporar|cannot (?:allocate memory|fork)|too many open files|input/output error|overloaded|\b429\b",
    re.IGNORECASE,
)
"""Errors that pass by themselves: what was called next is no remedy unless the error or the agent names it."""
_OF_PLACE = re.compile(r"(?:^|[:\s])cd:(?:\d+:)?.{0,200}(?:no such file|not a directory)|^cd: ", re.IGNORECASE)
"""The directory was wrong: the program did not run."""
_GUESSED = re.compile(
    r"\b(?:wrong|incorrect|invalid|bad|not the (?:right|correct))\s+(?:flag|password|passphrase|answer|guess|key|solution|pin|code|token|number)\b|\btry again\b",
    re.IGNORECASE,
)
"""Errors that reject a guess: another guess is no remedy."""
_ROUTINE = re.compile(r"git (?:add|commit)\b")
"""Commands whose failures are stopped by hooks and staging, as everywhere."""
_STATUS = re.compile(
    r"\.{5,}|\bFAILED\s*\[|^(?:FAIL(?:\s+\S+\s+\d[\d.]*s)?|ok\s.*|PASS)$|npm (?:error|ERR!) (?:Lifecycle script|code \S+$|path |workspace |location |command |A complete log)|completed with exit code|exited with code|^Exit code \d+$|found no collectors|^=+ .{0,80} =+$"
)
"""Lines that say that something failed, and not what."""
_FAILED_TEST = re.compile(r"^\s{0,8}(?:--- FAIL:|✕|✗|×|●) \S.{0,200}$", re.MULTILINE)
_TARGET = re.compile(r"^[^-\s].*[/.:]")
_TOPIC = re.compile(r"[^\W\d_]{4,40}|\d{3,10}")
_INNER_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_GENERIC = frozenset(
    str.split(
        "this that with from have were been when then than into they them your what which because error errors failed fails failure test tests file files line code true false none most"
    )
)
_MISTYPED = re.compile(
    r"\bE999\b|SyntaxError|IndentationError|unexpected (?:EOF|indent)|unterminated|syntax error", re.IGNORECASE
)


class _Remedy(NamedTuple):
    """What ended a failure: how, in short for the memory, in full as resolution, and why it helped."""

    how: Worked
    worked: str
    resolution: str
    explained: str


def failures(steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield each failure once, with what ended it or as unresolved; failed attempts to edit, and failures without a statement, are left out."""
    told: set[int] = set()
    struck: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for step in steps:
        for said in _signs(step) if step.runs and not step.worked else ():
            struck[said].add(step.program.partition(" ")[0])
    created: set[str] = set()
    for step in steps:
        if step.creates:
            created.update(step.task.files_changed)
        if step.worked or step.place in told or not step.runs or _ROUTINE.match(step.command):
            continue
        if _GUESSED.search(step.task.output[-2_000:]) or _OF_PLACE.search(step.task.output[:400]):
            continue
        remedy = _ended_by(steps, step)
        alike = [
            other
            for other in steps[step.place : remedy.place if remedy else step.place + _NEAR_STEPS]
            if not other.worked and is_same(step, other)
        ]
        told |= {other.place for other in alike}
        near = steps[step.place + 1 : step.place + 1 + _NEAR_STEPS]
        is_unknown = not remedy and any(one.worked and not one.is_seen_to_work and is_same(step, one) for one in near)
        alike = [
            one for one in alike if one is alike[-1] or _signs(one) & _signs(alike[-1])
        ]  # another error is another failure
        found = _recovered(steps, alike, remedy, created) if remedy else _stayed(steps, alike)
        is_shared = any(len(struck[said]) > 1 for said in _signs(step))
        if found and not is_unknown and not (is_shared and _is_by_chance(found)):
            yield found


def _signs(failed: Step) -> set[tuple[str, ...]]:
    """Return the words of an error, three by three: programs put their own names, and those of files, around what the system says."""
    words = normalised_error(_said_of(failed)).split()
    return {
        tuple(words[place : place + _SIGN_WORDS])
        for place in range(max(len(words) - _SIGN_WORDS + 1, min(len(words), 1)))
    }


def _is_by_chance(found: Finding) -> bool:
    """Return whether a failure that struck unrelated commands stayed, or ended without an edit and by nothing that its error names."""
    done, command = found.resolution or "", found.earlier.command if found.earlier else ""
    is_edit = found.attempt is not None and found.attempt.worked_how == "edit"
    return not is_edit and not _is_named(done, command, " ".join(found.errors))


def _ended_by(steps: Sequence[Step], failed: Step) -> Step | None:
    near = steps[failed.place + 1 : failed.place + 1 + _NEAR_STEPS]
    is_unusable = _UNUSABLE.search(failed.task.output[-2_000:]) is not None
    for one in near:
        if one.worked and is_part(one, failed):
            continue
        if one.is_seen_to_work and is_same(failed, one) and (failed.acts or is_unusable or _is_covered(failed, one)):
            return one
        if one.is_seen_to_work and is_unusable and is_by_another_program(failed, one):
            return one
    return None


def _recovered(steps: Sequence[Step], failed: Sequence[Step], worked: Step, created: set[str]) -> Finding | None:
    first, last = failed[0], failed[-1]
    said = _said_of(last)
    if not said or _MISTYPED.search(said):
        return None
    remedy = (
        _remedy_of_call(last, worked, said) if CALL.match(last.command) else _remedy(steps, last, worked, said, created)
    )
    if remedy is None:
        return None
    vain = _in_vain(steps[first.place + 1 : last.place], remedy)
    return Finding(
        "recovery",
        9.0,
        f"{worked.task.task_id[:380]}:recovery",
        worked.command,
        "what failed worked later in the session",
        worked.task,
        errors=(said,),
        earlier=first.task,
        attempt=Attempt(
            tried=f"`{short(first.program if CALL.match(first.command) else first.command)}`",
            attempts=len(failed) + 1,
            last_error=said[:200],
            worked_how=remedy.how,
            worked=remedy.worked,
            explained=f"{remedy.explained} {vain}".strip() or None,
        ),
        resolution=remedy.resolution,
    )


def _remedy(steps: Sequence[Step], last: Step, worked: Step, error: str, created: set[str]) -> _Remedy | None:
    between = [step for step in steps[last.place + 1 : worked.place] if step.worked]
    edits = [step for step in between if step.edits and step.task.files_changed]
    acting = [step for step in between if step.acts and not (is_same(step, last) or is_part(step, last))]
    acts = list({step.essence: step for step in acting}.values())
    differs = last.essence != worked.essence
    why = _explained(steps, last, worked)
    dropped = last.words - worked.words if worked.words < last.words else set()
    if dropped and not (edits or acts or any(word.strip("-") in error for word in dropped)):
        return None
    if differs and (_UNUSABLE.search(last.task.output[-2_000:]) or not (edits or acts)):
        different = _different(last, worked)
        return _Remedy("instead", f"`{different}`", f"`{different}`", why) if different else None
    if edits:
        files = list(dict.fromkeys(file for step in edits for file in step.task.files_changed))
        if created.issuperset(files) and any(file.rsplit("/", 1)[-1] in last.command for file in files):
            return None  # a script of the session's own, mended while it was written
        changed = " ".join(filter(None, (changed_by(step) for step in edits))) if len(edits) <= _MAX_ACTS else ""
        purposes = [purpose for step in edits if (purpose := purpose_of(step, reasoning_after(steps, step)))]
        why = why or (f"The edit was made to {purposes[-1]}." if purposes else "")
        also = [act for act in acts if _is_named(act.command, last.command, f"{error} {why}")]
        if not (why or changed):
            return None
        done = ", ".join(f"`{short(act.command)}`" for act in also[:1])
        resolution = " ".join(
            filter(None, (f"Edited {', '.join(files[:3])}{f' and ran {done}' if done else ''}.", changed, why))
        )
        return _Remedy("edit", ", ".join(files[:3]), resolution, f"{why} {changed}".strip())
    if acts:
        named = [act for act in acts if _is_named(act.command, last.command, f"{error} {why}")]
        chosen = named or ([] if _PASSES.search(QUOTED.sub("", error)) else acts)
        chosen = chosen if len(chosen) <= _MAX_ACTS else []
        told = ", then ".join(f"`{short(act.command)}`" for act in chosen)
        return _Remedy("after", told, told, why) if told else None
    return None


def _remedy_of_call(last: Step, worked: Step, error: str) -> _Remedy | None:
    """Return which arguments a call needed, where the error states a rule about them and the call is about the same thing.

    An unknown name is a case of its own; a call none of whose arguments stayed is about another thing, and so is one whose changed
    arguments the error does not mention.
    """
    if _NOT_OF_THE_RULES.search(error):
        return None
    before, after = (arguments_of(step.task.command) for step in (last, worked))
    new = [argument for argument in after if argument not in before]
    if not 0 < len(new) <= _MAX_CHANGED_ARGUMENTS or len(", ".join(new)) > MAX_COMMAND_CHARS:
        return None
    names = {argument.partition("=")[0] for argument in new}
    replaced = " ".join([*names, *(argument for argument in before if argument.partition("=")[0] in names)])
    if len(new) == len(after) or not _parts(replaced) & _parts(error):
        return None
    told = f"`{short(', '.join(new))}`"
    return _Remedy("instead", told, told, "")


def arguments_of(call: str) -> list[str]:
    """Return the arguments of a call, each as it is written."""
    depth, start, found = 0, 0, []
    inside = call[:8_000].partition("(")[2].removesuffix(")")
    for place, sign in enumerate(inside):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            found.append(inside[start:place].strip())
            start = place + 1
    return [*found, inside[start:].strip()]


def _parts(text: str) -> set[str]:
    """Return the words of a text, also as parts of names, without the endings of plurals."""
    return {word.rstrip("s") for word in _topics(text.replace("_", " "))}


def _topics(text: str) -> set[str]:
    """Return the words of a text that name something, also as parts of names."""
    return set(_TOPIC.findall(_INNER_WORD.sub(" ", text[:4_000]).casefold())) - _GENERIC


def _is_covered(failed: Step, worked: Step) -> bool:
    """Return whether a check that succeeded is about the same files and tests as the one that failed, or about everything."""
    its, others = ({word for word in step.command.split()[1:] if _TARGET.search(word)} for step in (failed, worked))
    return its <= others or not others


def _is_named(act: str, failed: str, text: str) -> bool:
    """Return whether the error or the agent names what a command does beside what the failed one did."""
    own, known, named = (_topics(one.replace("_", " ")) for one in (act, failed, text))
    return not named.isdisjoint(own - known)


def _different(failed: Step, worked: Step) -> str:
    """Return how the working command differs from the failed one: all of it if it is short, else the new parts."""
    before, after = (" ".join(step.task.command[:8_000].split()) for step in (failed, worked))
    if after in before:
        return ""
    if len(after) <= MAX_COMMAND_CHARS:
        return after
    known = set(before.split(" "))
    new = [part for part in after.split(" ") if part not in known]
    return short(f"… {' '.join(new)} …") if new else ""


def changed_by(edit: Step) -> str:
    """Return what a small edit replaced by what."""
    if match := _REPLACED.fullmatch(edit.task.command):
        before, after = ([line.strip() for line in match[part].splitlines() if line.strip()] for part in (2, 4))
    else:
        lines = edit.task.command.splitlines()[1:]
        before, after = (
            [line[2:].strip() for line in lines if line[:2] == sign and line[2:].strip()] for sign in ("- ", "+ ")
        )
    after = [line for line in after if not line.startswith(("#", "//"))] or after
    shared = set(before) & set(after)
    before, after = ([line for line in part if line not in shared] for part in (before, after))
    if len(before) > 1 or len(after) != 1 or any(len(line) > _MAX_CHANGED_CHARS for line in (*before, *after)):
        return ""
    file = edit.task.files_changed[0]
    return f"In {file}, `{before[0]}` became `{after[0]}`." if before else f"In {file}, `{after[0]}` was added."


def confirmed_by(steps: Sequence[Step], edit: Step) -> tuple[Step, str] | None:
    """Return the run after an edit that printed something else than the same run before it, with both outputs in words."""
    for step in steps[edit.place + 1 : edit.place + 1 + _NEAR_STEPS]:
        if not (step.runs and step.worked) or len(step.task.output.strip()) > _MAX_CHANGED_CHARS:
            continue
        for earlier in reversed(steps[max(0, edit.place - _NEAR_STEPS) : edit.place]):
            before, now = earlier.task.output.strip(), step.task.output.strip()
            if earlier.essence == step.essence and before and now and len(before) <= _MAX_CHANGED_CHARS:
                printed = f"`{short(step.command)}` printed `{' '.join(before.split())}` before and `{' '.join(now.split())}` after."
                return (step, printed) if before != now else None
    return None


def _explained(steps: Sequence[Step], last: Step, worked: Step) -> str:
    """Return what the agent said about the cause right after the last failure, with the last act, and after the success."""
    done = [step for step in steps[last.place + 1 : worked.place] if step.edits or step.acts]
    before = [step for step in steps[last.place + 1 : done[-1].place] if step.task.reasoning] if done else []
    near = [*steps[last.place + 1 : last.place + 2], *before[-1:], *done[-1:], *steps[worked.place : worked.place + 2]]
    texts = dict.fromkeys([*(step.task.reasoning for step in near), worked.task.lesson])
    about = _topics(" ".join([last.task.output[-2_000:], last.command, *(step.task.command for step in done[-1:])]))
    found = [one for text in texts for one in causes_in(text, weak=True, is_about=True) if one not in last.task.output]
    return joined([one for one in dict.fromkeys(found) if _topics(one) & about][-2:], 300)


def _in_vain(steps: Sequence[Step], remedy: _Remedy) -> str:
    """Return what was tried between the first failure and the last."""
    tried = [f"`{short(step.command)}`" for step in steps if step.worked and step.acts]
    tried += [f"editing {file}" for step in steps if step.worked and step.edits for file in step.task.files_changed]
    tried = [
        one
        for one in dict.fromkeys(tried)
        if one not in remedy.resolution and one.removeprefix("editing ") not in remedy.resolution
    ]
    return f"Tried in vain before: {', '.join(tried[:3])}." if tried else ""


def _stayed(steps: Sequence[Step], failed: Sequence[Step]) -> Finding | None:
    last = failed[-1]
    errors = _errors_of(last)
    said = _said_of(last)
    why = causes_in(reasoning_after(steps, last), weak=True, is_about=True)
    is_worth_it = bool(why) or (len(failed) > 1 and last.runs and bool(errors) and error_type(errors[0]) is not None)
    if not said or _MISTYPED.search(said) or not is_worth_it or CALL.match(last.command):
        return None
    return Finding(
        "failure",
        8.0,
        f"{last.task.task_id[:380]}:failure",
        last.command,
        "a step failed and never worked in the session",
        last.task,
        errors=tuple(errors) or (said,),
        attempt=Attempt(
            tried=f"`{short(last.command)}`", attempts=len(failed), last_error=said[:240], explained=joined(why) or None
        ),
    )


def _errors_of(failed: Step) -> list[str]:
    """Return the lines that say what failed; of a test run without any, the tests."""
    errors = [line for line in error_lines(failed.task.output, limit=6) if not _STATUS.search(line)][:2]
    return errors or [line.strip()[:240] for line in _FAILED_TEST.findall(failed.task.output[-8_000:])][-1:]


def _said_of(failed: Step) -> str:
    """Return the first of these lines, else the last line of the output if it says something."""
    lines = [line.strip() for line in failed.task.output[-4_000:].splitlines() if line.strip()]
    last = [line[:240] for line in lines[-1:] if not _STATUS.search(line) and " " in line]
    return next(iter([*_errors_of(failed), *last]), "")
