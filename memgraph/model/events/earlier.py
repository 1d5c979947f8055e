"""Earlier versions of payloads: they validate old events, which are then brought up to the present version.

They are only read. A memory of version 1 described an attempt only in its text, and its record has none of the fields of an attempt
(`AttemptFields`), so the sentences that the rules of version 1 composed are parsed here, and nowhere else. Pure: equal events
give equal results.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, Literal

from pydantic import Field, create_model

from memgraph.model.base import MAX_NAME_CHARS, Count, Name, Strict, Text, Timestamp
from memgraph.model.events.memories import (
    FIXED,
    Clearable,
    MemoryAdded,
    MemoryUndeleted,
    RecallAgain,
    Revision,
    VectorRef,
)
from memgraph.model.events.payload import OfOneMemory, Payload, Sha256, Stored
from memgraph.model.events.records import BuildConsolidated, CompressionApplied
from memgraph.model.ids import MemoryId
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


class MemoryAdded1(Payload, type="memory.added"):
    """``memory.added``, version 1."""

    BY_STORE_ALONE = True
    POLICY = MemoryAdded.POLICY

    memory: _Record1  # type: ignore[valid-type]
    vector: VectorRef | None = None


class MemoryAdded2(Payload, type="memory.added", version=2):
    """``memory.added``, version 2."""

    BY_STORE_ALONE = True
    POLICY = MemoryAdded.POLICY

    memory: _Record2  # type: ignore[valid-type]
    vector: VectorRef | None = None


class _Earlier(OfOneMemory):
    BY_STORE_ALONE = True
    POLICY = Revision.POLICY

    cleared: list[Clearable] = Field(default_factory=list)
    vector: VectorRef | None = None


class _Revision1(_Earlier):
    changed: _Patch1  # type: ignore[valid-type]


class _Revision2(_Earlier):
    changed: _Patch2  # type: ignore[valid-type]


class MemoryRevised1(_Revision1, type="memory.revised"):
    """``memory.revised``, version 1."""


class MemoryRevised2(_Revision2, type="memory.revised", version=2):
    """``memory.revised``, version 2."""


class MemoryMerged1(_Revision1, type="memory.merged"):
    """``memory.merged``, version 1."""

    candidate_id: MemoryId | None = None


class MemoryMerged2(_Revision2, type="memory.merged", version=2):
    """``memory.merged``, version 2."""

    candidate_id: MemoryId | None = None


class MemoryMerged3(_Revision2, type="memory.merged", version=3):
    """``memory.merged``, version 3."""

    candidate_id: MemoryId | None = None
    candidate_content: Text | None = None


class MemoryUndeleted1(Payload, type="memory.undeleted"):
    """``memory.undeleted``, version 1."""

    BY_STORE_ALONE = True
    POLICY = MemoryUndeleted.POLICY

    memory: _Record1  # type: ignore[valid-type]
    vector: VectorRef | None = None
    added_seq: Count
    follower_ids: list[MemoryId] = Field(default_factory=list)
    recalls: list[RecallAgain] = Field(default_factory=list)


class MemoryUndeleted2(Payload, type="memory.undeleted", version=2):
    """``memory.undeleted``, version 2."""

    BY_STORE_ALONE = True
    POLICY = MemoryUndeleted.POLICY

    memory: _Record2  # type: ignore[valid-type]
    vector: VectorRef | None = None
    added_seq: Count
    follower_ids: list[MemoryId] = Field(default_factory=list)
    recalls: list[RecallAgain] = Field(default_factory=list)


class BuildConsolidated1(Payload, type="build.consolidated"):
    """``build.consolidated``, version 1."""

    POLICY = BuildConsolidated.POLICY

    project_id: Name
    build_id: Name
    log_sha256: Sha256
    outcome: Literal["success", "failure", "partial"]
    started_at: Timestamp
    completed_at: Timestamp
    task_count: Count
    agents: list[Name] = Field(default_factory=list)
    consumed_keys: list[Name] = Field(default_factory=list)
    complete: bool
    extracted: Count
    merged: Count
    extractor: Name
    consolidated_at: Timestamp


class CompressionApplied1(Payload, type="compression.applied"):
    """``compression.applied``, version 1."""

    SCOPES = CompressionApplied.SCOPES
    POLICY = CompressionApplied.POLICY

    applied_at: Timestamp
    episodes: Count
    communities: Count
    created: Count
    updated: Count
    superseded: Count
    retired: Count


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
    """Parse the fields of an attempt from an episode's text of version 1; empty for any other text.

    Where one of the messages in `errors` ends in the text is known for certain.
    """
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
