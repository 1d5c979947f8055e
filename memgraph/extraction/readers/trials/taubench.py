"""Reader of tau-bench results: a trial of a task is a build, each tool call a task of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.extraction.readers.documents import MAX_BUILD_TASKS, JsonSource, Part, part_of, reason, run_id
from memgraph.extraction.readers.source import (
    MAX_OUTPUT_CHARS,
    MAX_SAID_CHARS,
    FileReader,
    SourceRecord,
    cleaned,
    end,
    named,
    one_line,
    undated,
)
from memgraph.extraction.readers.trials.trial_reader import trial_fields
from memgraph.model.build import BuildTask, TaskOutcome
from memgraph.text import lazy_re as re

_STOP = "###STOP###"
_CONTEXT_CHARS = 600
_MAX_MESSAGES = 50_000
_MAX_NAMED = 3
READS = re.compile(
    r"(?:get|search|list|find|calculate|think|lookup|look_up|read|check|transfer_to_human)\w*\(", re.IGNORECASE
)
"""Calls that change nothing."""


class TauBenchReader(FileReader):
    """Reads conversations between an agent and a simulated user, with the reward of each.

    The first task of a build stands for the whole trial; its outcome follows the reward: 1 is a success, less a
    failure. Where the results name the right actions (``info``), a failure's lesson is how the agent's differ from them.

    Parameters
    ----------
    path : path-like
        JSON lines or an array, optionally gzipped.
    project_id : str, optional
        Default: the file's name without its suffixes.
    """

    kind = "tau-bench"

    def count(self) -> int | None:
        """Return the number of trials, if the file consists of lines."""
        return JsonSource(self._path).count()

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per trial of a task; see `Reader.records`."""
        return JsonSource(self._path).entries(cursor, self._built, noun="trial")

    def _built(self, data: Any, place: str) -> Part:
        messages = data.get("traj") if isinstance(data, dict) else None
        task = named(data.get("task_id"), "") if isinstance(data, dict) else ""
        reward = data.get("reward") if isinstance(data, dict) else None
        if not task or not isinstance(messages, list) or not isinstance(reward, int | float):
            return Part(None, 1, f"{place}: not a trial with task_id, reward and traj")
        trial = data.get("trial")
        number = trial if isinstance(trial, int) and not isinstance(trial, bool) and 0 <= trial < 10**6 else 0
        heard = [message for message in messages[:_MAX_MESSAGES] if isinstance(message, dict)]
        outcome: TaskOutcome = "success" if reward >= 1 else "failure"
        when = undated(number)
        try:
            calls = list(_calls(heard, when))
            whole = _whole(task, heard, float(reward), outcome, number)
            if outcome == "failure":
                whole = whole.model_copy(update={"lesson": _missed(_expected(data.get("info")), calls)})
            tasks = [whole, *calls][:MAX_BUILD_TASKS]
            build_id = run_id(f"tau-task-{task}-trial-{number}", data)
        except (InvalidInputError, OverflowError, RecursionError) as error:
            return Part(None, 1, f"{place}: {reason(error)}")
        fields = trial_fields(build_id, self.project_id, tasks, first=number)
        part = part_of(place, {**fields, "build_outcome": outcome, "user_interventions": list(_said(heard, when))})
        return part if part.problem else part._replace(problem=_unread(place, messages[:_MAX_MESSAGES]))


def _unread(place: str, messages: list[Any]) -> str | None:
    """Return a description of the messages and calls with an unknown form."""
    heard = [message for message in messages if isinstance(message, dict)]
    calls = [call for message in heard for call in _called(message)]
    strange = sum(not isinstance(call, dict) or not isinstance(call.get("function"), dict) for call in calls)
    counts = {"message": len(messages) - len(heard), "tool call": strange}
    counted = [f"{number} {noun}{'s' if number > 1 else ''}" for noun, number in counts.items() if number]
    return f"{place}: {' and '.join(counted)} of another form" if counted else None


def _called(message: dict[str, Any]) -> list[Any]:
    """Return the tool calls of an assistant's message."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return calls if isinstance(calls, list) else []


def _whole(task: str, messages: list[dict[str, Any]], reward: float, outcome: TaskOutcome, trial: int) -> BuildTask:
    asked = next((_text(message) for message in messages if message.get("role") == "user"), "")
    answers = (_text(message) for message in reversed(messages) if message.get("role") == "assistant")
    last = next(filter(None, answers), "")
    return BuildTask(
        task_id=f"task-{task}",
        agent_name="assistant",
        description=one_line(asked) or f"Task {task}",
        output=f"Reward {reward:g}. {last}".strip(),
        outcome=outcome,
        occurred_at=undated(trial),
        attempt=trial,
    )


def _expected(info: object) -> list[str] | None:
    """Return the right actions as calls; None if the results do not name them."""
    info = info if isinstance(info, dict) else {}
    for part in (info.get("task"), info.get("reward_info")):
        actions = part.get("actions") if isinstance(part, dict) else None
        if isinstance(actions, list) and all(isinstance(action, dict) for action in actions):
            given = [(action.get("name"), action.get("kwargs", action.get("arguments"))) for action in actions]
            return [cleaned(f"{named(name, 'tool')}({_arguments(told)})", MAX_SAID_CHARS) for name, told in given]
    return None


def _missed(expected: list[str] | None, calls: list[BuildTask]) -> str:
    """Return how the calls that change something differ from the right ones; nothing if those are unknown or all were made."""
    if expected is None:
        return ""
    made = [call.command for call in calls if call.outcome == "success" and not READS.match(call.command)]
    right = [call for call in expected if not READS.match(call)]
    missing = [call for call in right if call not in made]
    wrong = [call for call in made if call not in right]
    parts = [f"The right calls were never made: {'; '.join(missing[:_MAX_NAMED])}."] if missing else []
    parts += ["Nothing should have been changed." if not right else ""] if wrong else []
    parts += [f"It was wrong to call {'; '.join(wrong[:_MAX_NAMED])}."] if wrong else []
    return cleaned(" ".join(filter(None, parts)), MAX_SAID_CHARS)


def _calls(messages: list[dict[str, Any]], when: str) -> Iterator[BuildTask]:
    """Yield a task per tool call, with the first answer that follows."""
    answers = _answers(messages)
    number = 0
    for place, message in enumerate(messages):
        for call in _called(message):
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            output = next((text for at, text in answers.get(named(call.get("id"), ""), ()) if at > place), "")
            arguments = _arguments(function.get("arguments"))
            name = named(function.get("name"), "tool")
            yield BuildTask(
                task_id=f"call-{number}",
                agent_name="assistant",
                description=one_line(f"{name}({arguments})"),
                command=cleaned(f"{name}({arguments})", MAX_SAID_CHARS),
                reasoning=_text(message),
                output=output,
                outcome="failure" if output.startswith("Error") else "success",
                occurred_at=when,
            )
            number += 1


def _answers(messages: list[dict[str, Any]]) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for place, message in enumerate(messages):
        call = named(message.get("tool_call_id"), "")
        if message.get("role") == "tool" and call:
            found.setdefault(call, []).append((place, cleaned(message.get("content"), MAX_OUTPUT_CHARS)))
    return found


def _arguments(given: object) -> str:
    """Return a call's arguments in short form: ``origin="JFK", date="2024-05-20"``."""
    text = cleaned(given, MAX_OUTPUT_CHARS)
    try:
        fields = given if isinstance(given, dict) else json.loads(text or "{}")
        if isinstance(fields, dict):
            return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    except (ValueError, RecursionError):
        pass
    return text


def _said(messages: list[dict[str, Any]], when: str) -> Iterator[dict[str, str]]:
    answered = ""
    for message in messages:
        if message.get("role") == "assistant":
            answered = _text(message) or answered
        elif message.get("role") == "user" and (text := _text(message)) and text != _STOP:
            yield {"timestamp": when, "action": text, "context": end(answered, _CONTEXT_CHARS)}


def _text(message: dict[str, Any]) -> str:
    return cleaned(message.get("content"), MAX_SAID_CHARS)
