"""All event payloads by (type, version), the policies of all types, and what brings earlier versions up to the present one.

Events state effects as absolute values, never commands, so replay calls no model and no clock. A payload class never changes once it has been
released: any change is a higher version, and a fixture of the old one stays readable. A memory of version 1 described an attempt only in its text
(see `AttemptFields`), so the sentences that the rules of version 1 composed are parsed here, and nowhere else. Pure: equal events give equal results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any

from pydantic import create_model

from memgraph.model.base import MAX_NAME_CHARS, Strict
from memgraph.model.events import memories, records, store, tasks
from memgraph.model.events.memories import FIXED, MemoryAdded, MemoryMerged, MemoryRevised, MemoryUndeleted
from memgraph.model.events.payload import Payload, Policy, Stored
from memgraph.model.events.records import BuildConsolidated, CompressionApplied
from memgraph.model.memory import ATTEMPT_FIELDS, COMMIT_FIELDS, MemoryRecord
from memgraph.model.timestamps import to_iso

_NEW_IN_3 = COMMIT_FIELDS | {"cues"}
_NEW_IN_2 = ATTEMPT_FIELDS | {"is_solved"} | _NEW_IN_3


def _without(new: frozenset[str]) -> tuple[type[Strict], type[Strict]]:
    """Return the record of a memory without the fields that came later, and the patch of one."""
    fields: dict[str, Any] = {
        name: (field.rebuild_annotation(), field)
        for name, field in MemoryRecord.model_fields.items()
        if name not in new
    }
    changes: dict[str, Any] = {name: (kind | None, None) for name, (kind, _) in fields.items() if name not in FIXED}
    return create_model("MemoryRecord", __base__=Strict, **fields), create_model(
        "RecordPatch", __base__=Strict, **changes
    )


_Record1, _Patch1 = _without(_NEW_IN_2)
_Record2, _Patch2 = _without(_NEW_IN_3)


def _earlier(newest: type[Payload], version: int, *, without: Iterable[str] = (), **others: Any) -> type[Payload]:
    """Return the payload of an earlier version: the present one without some fields, and with others in place of some."""

    class Earlier(Payload):
        BY_STORE_ALONE = True
        POLICY = newest.POLICY

    kept = {name: (one.rebuild_annotation(), one) for name, one in newest.model_fields.items() if name not in without}
    fields = kept | {name: (kind, ...) for name, kind in others.items()}
    named: dict[str, Any] = {"type": newest.TYPE, "version": version}
    made: type[Payload] = create_model(newest.__name__, __base__=Earlier, __cls_kwargs__=named, **fields)  # type: ignore[call-overload]
    return made


_EARLIER = [
    *(_earlier(kind, 1, memory=_Record1) for kind in (MemoryAdded, MemoryUndeleted)),
    *(_earlier(kind, 2, memory=_Record2) for kind in (MemoryAdded, MemoryUndeleted)),
    _earlier(MemoryRevised, 1, changed=_Patch1),
    _earlier(MemoryRevised, 2, changed=_Patch2),
    _earlier(MemoryMerged, 1, changed=_Patch1, without=["candidate_content"]),
    _earlier(MemoryMerged, 2, changed=_Patch2, without=["candidate_content"]),
    _earlier(MemoryMerged, 3, changed=_Patch2),
    _earlier(BuildConsolidated, 1, without=["git_commit", "passed", "failed"]),
    _earlier(CompressionApplied, 1, without=["up_to_seq", "builds_left"]),
]
"""The payloads of earlier versions."""


def _kinds() -> Iterator[type[Payload]]:
    for family in (memories, records, store, tasks):
        for kind in vars(family).values():
            if isinstance(kind, type) and issubclass(kind, Payload) and hasattr(kind, "TYPE"):
                yield kind
    yield from _EARLIER


PAYLOADS: dict[tuple[str, int], type[Payload]] = {(kind.TYPE, kind.VERSION): kind for kind in _kinds()}
POLICIES: dict[str, Policy] = {kind.TYPE: kind.POLICY for kind in PAYLOADS.values()}


def types_where(holds: Callable[[Policy], bool]) -> frozenset[str]:
    """Return the types of events of whose policy something holds."""
    return frozenset(name for name, policy in POLICIES.items() if holds(policy))


STATES_MEMORY = types_where(lambda policy: policy.purge == "restated")
"""Types that state fields of a memory."""
NEVER_PURGED = types_where(lambda policy: policy.purge == "stays")

_TRIAL = re.compile(r"(?:Failed trial|Solved after a failed trial|Solved): ")
_PART = re.compile(r"\s(Lesson|What it acted on|What was done|Last error|Result): ")
_FIELD_OF_PART = {"Lesson": "lesson", "What it acted on": "acted_on", "Last error": "last_error", "Result": "result"}
_CALLED = re.compile(r"(.+?)(?: \(calls: (\d{1,9}), failed: (\d{1,9})\))?\.", re.DOTALL)
_NO_CALLS = "no tool was called."
_TRIAL_SOURCE = "trial"
_FIRST_DAY, _UNDATED_DAYS = date(2000, 1, 1).toordinal(), 366
"""Trial n of a source without dates is day n after 2000-01-01."""
_MIDNIGHT = "T00:00:00.000Z"

_STEP = re.compile(r"(`.+?`|An edit(?: of .+?)?) failed(?: (\d{1,9}) times)?(: | \()(.+)", re.DOTALL)
_REMEDY = re.compile(
    r"; (?:what worked: (?P<instead>`.+?`)|it worked after (?P<edit>.+?) had been edited|it worked after (?P<after>`.+?`)"
    r"|(?P<again>it worked when it was run again))\.(?: (?P<explained>.+))?",
    re.DOTALL,
)
_ERROR_CHARS = {": ": 240, " (": 200}
_FAILED_TASK = re.compile(r".+? failed at (“.+?”)(?: \(.*?\))?: (.+)", re.DOTALL)
_RECOVERED_TASK = re.compile(r"(“.+?”) succeeded after .+? had failed with (.+?)[.!?:;]? What worked: (.+)", re.DOTALL)
_NO_ERROR = frozenset({"no error was recorded.", "a failure without a recorded error"})
_GOAL = re.compile(r"What led to success in “(.+?)”: 1\. ", re.DOTALL)

_TRIALS = re.compile(
    r"(?:Failed|Never solved|Solved) in [\d,]+ \w+(?: of ([^:“”]{1,80}?))?(, solved in |, after it had failed|: “|\.(?: |$))"
)
_LESSON_OF_TRIALS = re.compile(r"(?:Failed|Never solved) in .+? The lesson: “(.+?)”", re.DOTALL)
_SOLVED_BY_ONE = re.compile(r"The same task failed in .{1,400}? One that went well acted on this: ", re.DOTALL)
_OF_THE_TEXT = (ATTEMPT_FIELDS | {"is_solved"}) - {"attempt"}


def attempt_in(content: str, errors: Iterable[str] = ()) -> dict[str, Any]:
    """Parse the fields of an attempt from an episode's text of version 1, which may quote one of `errors`; empty for any other text."""
    known = list(errors)
    if _TRIAL.match(content):
        return _trial(content)
    if step := _STEP.fullmatch(content):
        return _step(step, known)
    if task := _RECOVERED_TASK.fullmatch(content):
        error = known[0] if known else None if task[2] in _NO_ERROR else task[2]
        return _set({"tried": task[1], "last_error": error, "worked": task[3]})
    if task := _FAILED_TASK.fullmatch(content):
        error = " / ".join(known) or (None if task[2] in _NO_ERROR else task[2])
        return _set({"tried": task[1], "last_error": error})
    return {}


def _set(values: Stored) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [])}


def _trial(content: str) -> dict[str, Any]:
    about, *parts = _PART.split(_TRIAL.sub("", content, count=1))
    if not about.strip():
        return {}
    fields: dict[str, Any] = {"asked": about.strip()}
    for label, text in zip(parts[::2], parts[1::2], strict=True):
        if label in _FIELD_OF_PART:
            fields[_FIELD_OF_PART[label]] = text
        elif text == _NO_CALLS:
            fields["calls"] = fields["failed_calls"] = 0
        elif called := _CALLED.match(text):
            fields["tools_called"] = [name[:MAX_NAME_CHARS] for name in called[1].split(", ") if name.strip()]
            if called[2]:
                fields |= {"calls": int(called[2]), "failed_calls": int(called[3])}
    return _set(fields)


def _step(step: re.Match[str], errors: list[str]) -> dict[str, Any]:
    failures, opening, rest = int(step[2] or 1), step[3], step[4]
    closing = ")" if opening == " (" else "."
    error = next((one[: _ERROR_CHARS[opening]] for one in errors), "")
    if not error or not rest.startswith(error + closing):
        error = rest.partition("); " if closing == ")" else ". ")[0].removesuffix(closing)
    fields = {"tried": step[1], "attempts": failures, "last_error": error}
    after = rest[len(error) + len(closing) :]
    if closing == ".":
        return _set({**fields, "explained": after.strip() or None})
    remedy = _REMEDY.fullmatch(after)
    if remedy is None:
        return {}
    how, worked = next((name, text) for name, text in remedy.groupdict().items() if text)
    fields |= {"attempts": failures + 1, "worked_how": how}
    return _set({**fields, "worked": None if how == "again" else worked, "explained": remedy["explained"]})


def trials_in(content: str) -> dict[str, Any]:
    """Parse the fields of trials of one task from a generalisation's text of version 1; empty for any other text."""
    found: dict[str, Any] = {}
    if trials := _TRIALS.match(content):
        found = {"asked": trials[1], "is_solved": True if trials[2] == ", solved in " else None}
    elif _SOLVED_BY_ONE.match(content):
        found["is_solved"] = True
    if lesson := _LESSON_OF_TRIALS.match(content):
        found["lesson"] = lesson[1]
    return _set(found)


def _number_of_day(occurred_at: str) -> int | None:
    occurred_at = to_iso(occurred_at)
    number = date.fromisoformat(occurred_at[:10]).toordinal() - _FIRST_DAY if occurred_at.endswith(_MIDNIGHT) else -1
    return number if 0 <= number < _UNDATED_DAYS else None


def _with_fields(content: Stored) -> Stored:
    """Bring up what holds a whole memory."""
    memory = content["memory"]
    text = memory["content"]
    if memory["type"] == "semantic":
        found = trials_in(text)
    elif memory["type"] == "episodic":
        found = attempt_in(text, (error["message"] for error in memory.get("errors_encountered", ())))
        if "asked" in found and memory.get("source") == _TRIAL_SOURCE:
            found |= _set({"attempt": _number_of_day(memory["occurred_at"])})
        if "goal" not in memory and (goal := _GOAL.match(text)):
            found["goal"] = goal[1]
    else:
        return content
    return {**content, "memory": {**memory, **found}} if found else content


def _with_changed_fields(content: Stored) -> Stored:
    """Upcast a change of a memory: a new text sets or clears the fields of the attempt."""
    changed = content["changed"]
    if changed.get("content") is None:
        return content
    errors = (error["message"] for error in changed.get("errors_encountered") or ())
    found = attempt_in(changed["content"], errors) or trials_in(changed["content"])
    gone = _OF_THE_TEXT - found.keys()
    if "asked" not in found:
        gone |= {"attempt"}
    elif changed.get("occurred_at"):
        number = _number_of_day(changed["occurred_at"])
        found |= _set({"attempt": number})
        gone |= {"attempt"} if number is None else set()
    cleared = dict.fromkeys([*content.get("cleared", ()), *sorted(gone)])
    return {**content, "changed": {**changed, **found}, "cleared": list(cleared)}


UPCASTERS: dict[tuple[str, int], Callable[[Stored], Stored]] = {
    ("memory.added", 1): _with_fields,
    ("memory.undeleted", 1): _with_fields,
    ("memory.revised", 1): _with_changed_fields,
    ("memory.merged", 1): _with_changed_fields,
    ("memory.merged", 2): dict,
    ("build.consolidated", 1): dict,
    ("compression.applied", 1): dict,
    **dict.fromkeys([("memory.added", 2), ("memory.undeleted", 2), ("memory.revised", 2), ("memory.merged", 3)], dict),
}
"""What turns the payload of a type and version, as the journal holds it, into one of the next version."""
