"""Questions that a turn asks, with its options as commands. Texts of memories and tasks are shown as one line without invisible characters."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

from memgraph.model.results.tasks.turns import Nudge, NudgeOption, TaskMatch
from memgraph.text.cutting import cut
from memgraph.text.safe import visible_line

ASK_FROM = 0.35
"""Confidence from which it is worth asking which task is meant."""
_MOST_SHOWN = 5
_SHOWN_CHARS = 300
_SHORT = 8


class Rule(NamedTuple):
    """A text that may forbid something.

    Attributes
    ----------
    kind : {"pin", "constraint", "memory"}
        A pin; a constraint of a task; or another pinned memory.
    task_id : str or None
        The task of a constraint.
    """

    kind: Literal["pin", "constraint", "memory"]
    id: str
    text: str
    task_id: str | None = None


def conflict_nudge(rule: Rule) -> Nudge:
    """Ask what holds: the message, or what forbids what it asks for."""
    short = rule.id[:_SHORT]
    task = f" --task {shlex.quote(rule.task_id)}" if rule.task_id else ""
    changes: dict[str, list[tuple[str, str | None]]] = {
        "pin": [
            ("Change the pin", f"memgraph pins edit {short} --text TEXT"),
            ("Remove the pin", f"memgraph pins remove {short}"),
        ],
        "constraint": [("Lift the constraint", f"memgraph task done {short}{task}")],
        "memory": [("Forget it", f"memgraph forget {rule.id}")],
    }
    what = {"pin": "a pin", "constraint": "a constraint of the task", "memory": "a memory"}[rule.kind]
    question = f"The message asks for what {what} rules out: “{_shown(rule.text)}”. Which holds?"
    return _nudge("conflict", question, [("Keep it, and change the request", None), *changes[rule.kind]], [rule.id])


def ambiguity_nudge(session_id: str, candidates: Sequence[TaskMatch], active: str | None) -> Nudge:
    """Ask which of several tasks a message belongs to."""
    shown = candidates[:_MOST_SHOWN]
    options: list[tuple[str, str | None]] = [
        _stay(one.task_id) if one.task_id == active else (f"Switch to {_named(one)}", _switch(session_id, one.task_id))
        for one in shown
    ]
    if active not in [one.task_id for one in shown]:
        options.append(_stay(active) if active else ("None of these", None))
    question = f"The message matches {len(candidates)} tasks about equally well. Which one is it about?"
    return _nudge("ambiguity", question, options, [one.task_id for one in shown])


def topic_nudge(session_id: str, match: TaskMatch, active: str | None) -> Nudge:
    """Ask whether to work on another task."""
    options: list[tuple[str, str | None]] = [(f"Switch to {_named(match)}", _switch(session_id, match.task_id))]
    if active is None:
        options.append(("Work on no task", None))
        question = f"The message seems to belong to {_named(match)}. Which task is it about?"
    else:
        interrupts = f"Interrupt {_shown(active)} for it", _switch(session_id, match.task_id, " --push")
        options += [interrupts, _stay(active)]
        question = f"The message seems to belong to {_named(match)}, and the session works on {_shown(active)}. Which one is it about?"
    return _nudge("topic_switch", question, options, [match.task_id])


def what_was_asked(kind: str, about: Sequence[str]) -> str:
    """Return what a question was about, by ids alone: this is stored, and texts can be purged."""
    ids = ", ".join(about)
    return {"conflict": "conflict with ", "ambiguity": "which task: ", "topic_switch": "switch to "}[kind] + ids


def _nudge(
    kind: Literal["conflict", "ambiguity", "topic_switch"],
    question: str,
    options: Sequence[tuple[str, str | None]],
    about: list[str],
) -> Nudge:
    numbered = [
        NudgeOption(key=str(number), label=label, command=command)
        for number, (label, command) in enumerate(options, start=1)
    ]
    return Nudge(kind=kind, question=question, options=numbered, about=about)


def _stay(active: str) -> tuple[str, None]:
    return f"Stay with {_shown(active)}", None


def _switch(session_id: str, task_id: str, how: str = "") -> str:
    return f"memgraph task switch {shlex.quote(task_id)}{how} --session {shlex.quote(session_id)}"


def _named(match: TaskMatch) -> str:
    return f"{_shown(match.task_id)} (“{_shown(match.title)}”)"


def _shown(text: str) -> str:
    return cut(visible_line(text), _SHOWN_CHARS)
