"""Questions that a turn asks, with its options as commands. Texts of memories and tasks are shown as one line without invisible characters."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

from memgraph.model.results.tasks import Nudge, NudgeOption
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


def ambiguity_nudge(session_id: str, tasks: Sequence[tuple[str, str]], active: str | None) -> Nudge:
    """Ask which of several tasks, given by their ids and titles, a message belongs to."""
    shown = tasks[:_MOST_SHOWN]
    options: list[tuple[str, str | None]] = [
        _stay(task_id) if task_id == active else (f"Switch to {_named(task_id, title)}", _switch(session_id, task_id))
        for task_id, title in shown
    ]
    if active not in [task_id for task_id, _ in shown]:
        options.append(_stay(active) if active else ("None of these", None))
    question = f"The message matches {len(tasks)} tasks about equally well. Which one is it about?"
    return _nudge("ambiguity", question, options, [task_id for task_id, _ in shown])


def topic_nudge(session_id: str, task: tuple[str, str], active: str | None) -> Nudge:
    """Ask whether to work on another task, given by its id and title."""
    task_id, named = task[0], _named(*task)
    options: list[tuple[str, str | None]] = [(f"Switch to {named}", _switch(session_id, task_id))]
    if active is None:
        options.append(("Work on no task", None))
        question = f"The message seems to belong to {named}. Which task is it about?"
    else:
        interrupts = f"Interrupt {_shown(active)} for it", _switch(session_id, task_id, " --push")
        options += [interrupts, _stay(active)]
        question = (
            f"The message seems to belong to {named}, and the session works on {_shown(active)}. Which one is it about?"
        )
    return _nudge("topic_switch", question, options, [task_id])


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


def _named(task_id: str, title: str) -> str:
    return f"{_shown(task_id)} (“{_shown(title)}”)"


def _shown(text: str) -> str:
    return cut(visible_line(text), _SHOWN_CHARS)
