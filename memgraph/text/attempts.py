"""Renders the text of an episode from the fields of its attempt (`memgraph.model.attempts`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memgraph.text.sentences import ended


def trial_text(told: Mapping[str, Any], *, is_solved: bool) -> str:
    """Return the text of a whole trial of a task."""
    failed = "Solved after a failed trial" if told.get("acted_on") else "Solved"
    parts = [f"{failed if is_solved else 'Failed trial'}: {told['asked']}"]
    acted_on = "What it acted on" if is_solved else "It failed again after this lesson"
    labels = {acted_on: "acted_on", "Lesson": "lesson"}
    parts += [f"{label}: {told[name]}" for label, name in labels.items() if told.get(name)]
    done = f"What was done: {done_text(told)}." if done_text(told) else ""
    parts += [done] if done and is_solved else []
    decided = "What decided it" if is_solved else "What was wrong"
    labels = {decided: "explained", "Last error": "last_error", "Result": "result"}
    parts += [f"{label}: {told[name]}" for label, name in labels.items() if told.get(name)]
    if done and not is_solved:  # the least of it comes last, where a text may be cut
        parts = [*parts[:-1], ended(parts[-1]), done]
    return " ".join(parts)


def quoted_lesson(lesson: str) -> str:
    """Return how a generalisation of trials quotes their lesson."""
    return f"The lesson: “{lesson}”"


def done_text(told: Mapping[str, Any]) -> str:
    """Return which tools a trial called, and how often."""
    if told.get("calls") == 0:
        return "no tool was called"
    names = ", ".join(told.get("tools_called", ()))
    return names if told.get("calls") is None else f"{names} (calls: {told['calls']}, failed: {told['failed_calls']})"


def step_text(told: Mapping[str, Any]) -> str:
    """Return the text of a step of a session that failed, and of what worked in the end."""
    how = told.get("worked_how")
    failures = told["attempts"] - (how is not None)
    failed = f"{told['tried']} failed{f' {failures} times' if failures > 1 else ''}"
    error = told["last_error"]
    text = f"{failed} ({error}){_worked(told)}." if how is not None else f"{failed}: {error}."
    return f"{text} {told['explained']}" if told.get("explained") else text


def _worked(told: Mapping[str, Any]) -> str:
    """Return how it came to work; nothing of what worked where that is left out."""
    how, worked = told["worked_how"], told.get("worked")
    if how == "again":
        return "; it worked when it was run again"
    if worked is None:
        return ""
    if how == "instead":
        return f"; what worked: {worked}"
    return f"; it worked after {worked} had been edited" if how == "edit" else f"; it worked after {worked}"


def failed_task_text(told: Mapping[str, Any], *, agent: str, place: str) -> str:
    """Return the text of a build's task that failed."""
    at = f" ({place})" if place else ""
    return sentence(f"{agent} failed at {told['tried']}{at}: {told.get('last_error') or 'no error was recorded'}")


def recovered_task_text(told: Mapping[str, Any], *, agent: str) -> str:
    """Return the text of a build's task that succeeded after it had failed."""
    error = told.get("last_error") or "a failure without a recorded error"
    succeeded = sentence(f"{told['tried']} succeeded after {agent} had failed with {error}")
    return f"{succeeded} What worked: {told['worked']}"


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it has an end."""
    return ended(text.strip(), ends=".!?”:;", closing="")
