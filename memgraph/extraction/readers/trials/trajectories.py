"""Reader of SWE-agent trajectories (``.traj``): a file is a build, a step a task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memgraph.errors import InvalidInputError, SourceError
from memgraph.extraction.readers.documents import JsonSource, Part, parts_of
from memgraph.extraction.readers.source import (
    MAX_OUTPUT_CHARS,
    MAX_SAID_CHARS,
    FileReader,
    SourceRecord,
    changed_at,
    cleaned,
    named,
    one_line,
)
from memgraph.model.build import BuildTask, TaskOutcome
from memgraph.text import lazy_re as re

_INSTANCE = re.compile(r"[\w.-]{1,100}?__([\w.-]{1,100}?)-\d{1,9}\b")
_SHOWS = re.compile(
    r"\s*(?:cat|head|tail|open|goto|scroll_\w+|search_\w+|find_file|find|ls|grep|rg|sed -n|decompile|disassemble|"
    r"strings|file|str_replace_editor view|git (?:log|show|diff))\b"
)
"""Actions that display a file: an error in it did not happen."""
_REFUSED = re.compile(
    r"command not found|No such file or directory|: No such file$|^(?:File \S+ not found|Usage: |"
    r"usage: |Invalid |Permission denied|Error: )|EXECUTION TIMED OUT|EXIT_?CODE\W{1,3}[1-9]",
    re.MULTILINE,
)
_WENT_WRONG = re.compile(
    r"^Traceback \(most recent call last\):|^(?:\w+\.)*\w*(?:Error|Exception)\b(?::|$)|^\s*SyntaxError: |"
    r"introduced new syntax error|No replacement was performed|did not appear verbatim|multiple occurrences of|"
    r"PROCESS-DONE:[1-9]|^FAILED \S|^=+ .*\b[1-9]\d* (?:failed|errors?)\b|Segmentation fault|^fatal: |^Wrong \w+!|"
    r"^npm ERR!|^make(?:\[\d+\])?: \*\*\*|\berror\[E\d{4}\]|^\S+:\d+:(?:\d+:)? (?:fatal )?error: ",
    re.MULTILINE,
)
_CHANGES = re.compile(
    r"\s*(?:create|str_replace_editor (?:create|str_replace|insert|undo_edit)|rm(?: -\w+)?)\s+(\S{1,400})"
)
_EDITS_OPEN_FILE = re.compile(r"\s*(?:edit|insert|append|str_replace|replace)\b")
_OPEN_FILE = re.compile(r"""['"]open_file['"]:\s*['"]([^'"]{1,1000})['"]""")
_ISSUE = re.compile(r"^.{0,200}\n(?:ISSUE|TASK):\s*\n|^We're currently solving [^.\n]{0,100}\.\s+", re.DOTALL)
_FOLDER = re.compile(r"""['"]working_dir['"]:\s*['"]([^'"]{1,1000})['"]""")


class TrajectoryReader(FileReader):
    """Reads an SWE-agent trajectory.

    A step's outcome is derived from its observation. The build succeeded if something was submitted and nothing else
    ended it: the file does not say whether the submission is right. It is dated by the file. Its id ends in a digest of
    the content, since an instance can be tried again under the same name.

    Parameters
    ----------
    path : path-like
        A JSON document with a ``trajectory``, optionally gzipped.
    project_id : str, optional
        Default: the repository that the instance names (``owner__repository-123``), else the file's name.
    """

    kind = "trajectories"

    def __init__(self, path: str | Path, *, project_id: str | None = None) -> None:
        by_name = _INSTANCE.search(Path(path).name)
        self._named = project_id is not None or by_name is not None
        super().__init__(path, project_id=by_name[1] if by_name and project_id is None else project_id)

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record; see `Reader.records`."""
        return JsonSource(self._path).documents(cursor, self._parts)

    def _parts(self, document: Any, mark: str) -> Iterator[Part]:
        steps = document.get("trajectory") if isinstance(document, dict) else None
        if not isinstance(steps, list):
            raise SourceError("contains no trajectory (a JSON object with a list named trajectory)", path=self._path)
        info = document.get("info")
        root = next((_found(_FOLDER, step.get("state")) for step in steps if isinstance(step, dict)), "")
        tasks: list[BuildTask] = []
        for number, step in enumerate(steps):
            try:
                tasks.append(_task(number, step, root))
            except (InvalidInputError, ValueError) as error:
                yield Part(None, 1, f"step {number}: {error}")
        if steps and not tasks:
            return
        info = info if isinstance(info, dict) else {}
        stem = self._path.name.removesuffix(".gz").removesuffix(".traj")
        fields = {
            "build_id": f"{named(stem, 'run')}@{mark[:8]}",
            "project_id": self.project_id if self._named else _repository(document, info) or self.project_id,
            "build_summary": _asked(document.get("history")),
            "build_outcome": _ended(info, tasks),
            "started_at": changed_at(self._path),
            "completed_at": changed_at(self._path),
            "source": "trajectory",
        }
        yield from parts_of("trajectory", fields, tasks)


def _task(number: int, step: object, root: str) -> BuildTask:
    if not isinstance(step, dict):
        raise ValueError("not an object")
    action = cleaned(step.get("action"), MAX_OUTPUT_CHARS)
    observation = cleaned(step.get("observation"), MAX_OUTPUT_CHARS)
    thought = cleaned(step.get("thought") or step.get("response"), MAX_SAID_CHARS)
    if not (action or observation or thought):
        raise ValueError("has no action, observation or thought")
    return BuildTask(
        task_id=f"step-{number}",
        agent_name="swe-agent",
        description=one_line(action.partition("\n")[0]) or "no action",
        command=action,
        reasoning=thought,
        output=observation,
        outcome="failure" if went_wrong(action, observation) else "success",
        files_changed=_files_changed(action, step.get("state"), root),
    )


def went_wrong(action: str, observation: str) -> bool:
    """Return whether an action failed, judged by its observation; a displayed file that shows an error did not."""
    if not action:
        return True
    if _SHOWS.match(action):
        return _REFUSED.search(observation[:400]) is not None
    return bool(_WENT_WRONG.search(observation) or _REFUSED.search(observation))


def _files_changed(action: str, state: object, root: str) -> list[str]:
    file = ""
    if match := _CHANGES.match(action):
        file = match[1].strip("'\"")
    elif _EDITS_OPEN_FILE.match(action):
        file = _found(_OPEN_FILE, state)
    file = cleaned(file, 1_000)
    if root and file.startswith(root.rstrip("/") + "/"):
        file = file[len(root.rstrip("/")) + 1 :]
    return [file] if file and file != "n/a" else []


def _asked(history: object) -> str:
    """Return the agent's task: the issue's text, else the user's first message that is not a demonstration."""
    for message in history[:20] if isinstance(history, list) else ():
        if isinstance(message, dict) and message.get("role") == "user" and not message.get("is_demo"):
            text = cleaned(message.get("content"), MAX_SAID_CHARS)
            return "\n".join(_ISSUE.sub("", text, count=1).strip().splitlines()[:20])
    return ""


def _found(pattern: re.Pattern[str], state: object) -> str:
    """Return a field of the state: JSON in old files, a Python literal or an object in newer ones."""
    text = state if isinstance(state, str) else repr(state) if isinstance(state, dict) else ""
    match = pattern.search(text[:8_000])
    return match[1] if match else ""


def _repository(document: dict[str, Any], info: dict[str, Any]) -> str:
    for value in (info.get("instance_id"), document.get("instance_id"), document.get("environment")):
        if isinstance(value, str) and (match := _INSTANCE.search(value[:1_000])):
            return match[1]
    return ""


def _ended(info: dict[str, Any], tasks: list[BuildTask]) -> TaskOutcome:
    status = info.get("exit_status")
    if isinstance(status, str) and status:
        if not status.startswith("submitted") or not info.get("submission"):
            return "failure"
        return "success" if status == "submitted" else "partial"
    was_submitted = bool(tasks) and tasks[-1].command.split(None, 1)[:1] == ["submit"]
    return "success" if was_submitted and tasks[-1].outcome == "success" else "partial"
