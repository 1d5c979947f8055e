"""The text of a memory: what it begins with, by its kind, what is rendered from the fields of an attempt, and what it states of a quotation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memgraph.text.sentences import ended

LEADS = {
    "fix": "Fix",
    "breaking": "Breaking change",
    "release": "Release",
    "partial": "Partly done",
    "instruction": "Instruction by the user",
    "statement": "The user said",
    "correction": "The user corrected",
    "intervention": "The user stepped in",
}

SAID, CONCLUDED, AT_WORK = "The user said: ", "The agent concluded: ", "The agent, at work: "
BEFORE = " Before that, the agent: "
"""Stands between a turn of the user and the end of what the agent had said before it."""
BY_USER = "The user: "
NOT_VERIFIED = " In other words (not verified): "
"""Stands between quoted sentences of a source and what was stated of them."""


def stated(text: str) -> str:
    """Return what a text states as so: what is quoted of the user, or with a reading beside it, else all of it."""
    quoted = text.partition(f"”{NOT_VERIFIED}")[0].removesuffix("”")
    said = quoted.removeprefix(BY_USER)
    return said[1:] if quoted != text and said.startswith("“") else text


def without_lead(text: str, kinds: Iterable[str]) -> str:
    """Return a text without the lead of one of these kinds."""
    for kind in kinds:
        if kind in LEADS:
            text = text.removeprefix(f"{LEADS[kind]}: ")
    return text


def trial_text(attempt: Mapping[str, Any], *, is_solved: bool) -> str:
    """Return the text of a whole trial of a task."""
    failed = "Solved after a failed trial" if attempt.get("acted_on") else "Solved"
    parts = [f"{failed if is_solved else 'Failed trial'}: {attempt['asked']}"]
    acted_on = "What it acted on" if is_solved else "It failed again after this lesson"
    labels = {acted_on: "acted_on", "Lesson": "lesson"}
    parts += [f"{label}: {attempt[name]}" for label, name in labels.items() if attempt.get(name)]
    done = f"What was done: {done_text(attempt)}." if done_text(attempt) else ""
    parts += [done] if done and is_solved else []
    decided = "What decided it" if is_solved else "What was wrong"
    labels = {decided: "explained", "Last error": "last_error", "Result": "result"}
    parts += [f"{label}: {attempt[name]}" for label, name in labels.items() if attempt.get(name)]
    if done and not is_solved:  # the least of it comes last, where a text may be cut
        parts = [*parts[:-1], ended(parts[-1]), done]
    return " ".join(parts)


def quoted_lesson(lesson: str) -> str:
    """Return how a generalisation of trials quotes their lesson."""
    return f"The lesson: “{lesson}”"


def done_text(attempt: Mapping[str, Any]) -> str:
    """Return which tools a trial called, and how often."""
    if attempt.get("calls") == 0:
        return "no tool was called"
    names = ", ".join(attempt.get("tools_called", ()))
    return (
        names
        if attempt.get("calls") is None
        else f"{names} (calls: {attempt['calls']}, failed: {attempt['failed_calls']})"
    )


def step_text(attempt: Mapping[str, Any]) -> str:
    """Return the text of a step of a session that failed, and of what worked in the end."""
    how = attempt.get("worked_how")
    failures = attempt["attempts"] - (how is not None)
    failed = f"{attempt['tried']} failed{f' {failures} times' if failures > 1 else ''}"
    error = attempt["last_error"]
    text = f"{failed} ({error}){_worked(attempt)}." if how is not None else f"{failed}: {error}."
    return f"{text} {attempt['explained']}" if attempt.get("explained") else text


def _worked(attempt: Mapping[str, Any]) -> str:
    """Return how it came to work; nothing of what worked where that is left out."""
    how, worked = attempt["worked_how"], attempt.get("worked")
    if how == "again":
        return "; it worked when it was run again"
    if worked is None:
        return ""
    if how == "instead":
        return f"; what worked: {worked}"
    return f"; it worked after {worked} had been edited" if how == "edit" else f"; it worked after {worked}"


def failed_task_text(attempt: Mapping[str, Any], *, agent: str, place: str) -> str:
    """Return the text of a build's task that failed."""
    at = f" ({place})" if place else ""
    return sentence(f"{agent} failed at {attempt['tried']}{at}: {attempt.get('last_error') or 'no error was recorded'}")


def recovered_task_text(attempt: Mapping[str, Any], *, agent: str) -> str:
    """Return the text of a build's task that succeeded after it had failed."""
    error = attempt.get("last_error") or "a failure without a recorded error"
    succeeded = sentence(f"{attempt['tried']} succeeded after {agent} had failed with {error}")
    return f"{succeeded} What worked: {attempt['worked']}" if attempt.get("worked") else succeeded


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it has an end."""
    return ended(text.strip(), ends=".!?…”:;", closing="")
