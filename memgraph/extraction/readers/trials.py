"""Readers of agents' trials: Reflexion (ALFWorld, MBPP, HotPotQA), tau-bench, and trajectories of SWE-agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from memgraph.errors import SourceError
from memgraph.extraction.readers.source import (
    MAX_BUILD_TASKS,
    MAX_OUTPUT_CHARS,
    MAX_SAID_CHARS,
    Document,
    FileReader,
    Part,
    changed_at,
    cleaned,
    end,
    named,
    one_line,
    opened,
    overall,
    project_of,
    run_id,
    text_lines,
    undated,
)
from memgraph.model.build import BuildTask, TaskOutcome
from memgraph.text import lazy_re as re

_AGENT = "reflexion"
_MAX_ATTEMPTS = 1_000
_MAX_LINES = 400
_MAX_QUESTIONS = 100_000
_MAX_MESSAGES = 50_000
_MAX_MISSED = 3
_CONTEXT_CHARS = 600
_TRIAL_NAME = re.compile(r"trial_(\d{1,6})")
_DOCSTRING = re.compile(r'("""|\'\'\')\s*(.{1,2000}?)\s*\1', re.DOTALL)

_TRIAL = re.compile(r"BEGIN TRIAL (\d{1,6})\s*")
_SECTION = re.compile(r"-{3,}\s*BEGIN (CORRECT|INCORRECT|HALTED) AGENTS\s*-{3,}\s*")
_LIKE_A_SECTION = re.compile(r".{0,3}-{5}|.{0,40}\bAGENTS\b.{0,3}-{3}")
"""A damaged beginning of a section: how its questions ended is not known."""
_STEP = re.compile(r"(Thought|Action|Observation) (\d{1,4}):\s*(.*)")
_BOILERPLATE = "You have attempted to answer following question before and failed."
_ANSWER = re.compile(r"Finish\[(.*)\]")

_INSTANCE = re.compile(r"[\w.-]{1,100}?__([\w.-]{1,100}?)-\d{1,9}\b")
_SHOWS = frozenset("cat head tail open goto find_file find ls grep rg decompile disassemble strings file".split()) | {
    "sed -n",
    "str_replace_editor view",
    "git log",
    "git show",
    "git diff",
}
"""Actions that display a file, besides ``scroll_…`` and ``search_…``: an error in it did not happen."""
_EDITS = frozenset("edit insert append str_replace replace".split())
"""Actions that change the open file."""
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
_ISSUE = re.compile(r"^.{0,200}\n(?:ISSUE|TASK):\s*\n|^We're currently solving [^.\n]{0,100}\.\s+", re.DOTALL)

_READS = (
    "get",
    "search",
    "list",
    "find",
    "calculate",
    "think",
    "lookup",
    "look_up",
    "read",
    "check",
    "transfer_to_human",
)


def changes_nothing(call: str) -> bool:
    """Return whether a call of a tool only reads, by the tool's name."""
    return call.lower().startswith(_READS)


def _trial(build_id: str, tasks: list[BuildTask], project: str, *, problem: str | None = None, **more: Any) -> Part:
    """Return the build of the trials that some tasks are, dated by their numbers."""
    numbers = [task.attempt or 0 for task in tasks]
    fields = {
        "build_id": build_id,
        "project_id": project,
        "tasks": tasks,
        "build_outcome": overall(tasks),
        "started_at": undated(numbers[0]),
        "completed_at": undated(max(numbers)),
        "source": "trial",
    }
    return Part(fields | more, 1, problem)


def _listed(data: dict[str, Any], *names: str) -> tuple[list[list[Any]], str | None]:
    """Return some fields as lists, and which of them are something else."""
    wrong = [name for name in names if data.get(name) is not None and not isinstance(data[name], list)]
    lists = [one if isinstance(one := data.get(name), list) else [] for name in names]
    return lists, f"{', '.join(wrong)}: not a list" if wrong else None


def reflexion_reader(path: str | Path, *, project_id: str | None = None) -> FileReader:
    """Return the reader for a Reflexion file: ALFWorld (an array), MBPP (objects), HotPotQA (text).

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    with opened(Path(path).absolute()) as (stream, _):
        first = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first == b"[":
        return AlfworldReader(path, project_id=project_id)
    return (MbppReader if first == b"{" else HotpotqaReader)(path, project_id=project_id)


class AlfworldReader(FileReader):
    """Reads Reflexion on ALFWorld (``env_results_trial_<n>.json``): a trial of an environment is a build.

    An environment has a name, its reflections so far, and whether it was solved. A failure's lesson is its last reflection;
    earlier ones belong to earlier trials, and the last of those is what this trial acted on (its reasoning). The file's name
    gives the trial's number; otherwise it is trial 0.
    """

    kind = project = "alfworld"

    def parts(self, document: Document) -> Iterator[Part]:
        """Yield a build per environment."""
        match = _TRIAL_NAME.search(self.path.name)
        trial = int(match[1]) if match else 0
        environments = document.value()
        if not isinstance(environments, list):
            raise SourceError("contains no array of environments", path=self.path)
        for index, environment in enumerate(environments):
            yield self._part((trial, index, environment), f"environment {index}")

    def entry(self, value: tuple[int, int, Any]) -> Part:
        """Return the trial of an environment: the trial's number, the environment's, and what is said of it."""
        trial, index, told = value
        if not isinstance(told, dict) or not isinstance(told.get("is_success"), bool):
            raise ValueError("not an object with is_success")
        name = named(told.get("name"), f"env_{index}")
        is_solved = told["is_success"]
        (given,), problem = _listed(told, "memory")
        reflections = [cleaned(text, MAX_SAID_CHARS) for text in given[-2:]]
        lesson = reflections.pop() if reflections and not is_solved else ""
        # solved environments are not repeated: fewer reflections than trials before mean that an earlier trial solved it
        acted_on = reflections[-1] if reflections and (not is_solved or len(given) >= trial) else ""
        task = BuildTask(
            task_id=name,
            agent_name=_AGENT,
            description=f"ALFWorld {name}",
            outcome="success" if is_solved else "failure",
            reasoning=acted_on,
            lesson=lesson,
            occurred_at=undated(trial),
            attempt=trial,
        )
        return _trial(run_id(f"alfworld-{name}-trial-{trial}", told), [task], self.project_id, problem=problem)


class MbppReader(FileReader):
    """Reads Reflexion on MBPP (JSON lines, or an array): a problem is a build, each attempt a task.

    There is one more attempt than reflections: each reflection is the lesson of the attempt before it and the reasoning
    of the one after it, and ``is_solved`` is the outcome of the last attempt. Attempt `k` counts as day `k`.
    """

    kind = project = "mbpp"
    noun = "problem"

    def entry(self, value: Any) -> Part:
        """Return a problem."""
        name = named(value.get("name") or value.get("task_id"), "") if isinstance(value, dict) else ""
        if not name or not isinstance(value.get("is_solved"), bool):
            raise ValueError("not a problem with a name and is_solved")
        lists, problem = _listed(value, "reflections", "implementations", "test_feedback")
        tasks = list(_attempts(name, value, lists))
        build_id = run_id(name if name.startswith("mbpp") else f"mbpp-{name}", value)
        return _trial(build_id, tasks, self.project_id, problem=problem, build_outcome=tasks[-1].outcome)


def _attempts(name: str, data: dict[str, Any], lists: list[list[Any]]) -> Iterator[BuildTask]:
    limits = (MAX_SAID_CHARS, MAX_OUTPUT_CHARS, MAX_OUTPUT_CHARS)
    reflections, implementations, feedback = (
        dict(enumerate(cleaned(text, limit) for text in texts[:_MAX_ATTEMPTS]))
        for texts, limit in zip(lists, limits, strict=True)
    )
    last = min(max(len(reflections), len(implementations) - 1), _MAX_ATTEMPTS)
    prompt = cleaned(data.get("prompt"), MAX_SAID_CHARS)
    stated = _DOCSTRING.search(prompt)
    asked = one_line(stated[2] if stated else prompt)
    for number in range(last + 1):
        is_solved = number == last and data["is_solved"]
        solution = cleaned(data.get("solution"), MAX_OUTPUT_CHARS) if number == last else ""
        code = implementations.get(number) or solution
        yield BuildTask(
            task_id=f"{name}:attempt-{number}",
            agent_name=_AGENT,
            description=f"{name}: {asked}" if asked else name,
            output=code if is_solved else feedback.get(number) or code,
            outcome="success" if is_solved else "failure",
            reasoning=reflections.get(number - 1, ""),
            lesson="" if is_solved else reflections.get(number, ""),
            occurred_at=undated(number),
            attempt=number,
            attempts=last + 1,
        )


class HotpotqaReader(FileReader):
    """Reads Reflexion on HotPotQA, as text: a trial of a question is a build.

    The questions are in sections of correct, incorrect and halted ones; a halted agent failed. A question has the same number
    in all trials: that of its first appearance. The reflection on a failure is the last one given in the next trial: it is
    the failure's lesson, and what the next trial acted on (its reasoning).
    """

    kind = project = "hotpotqa"

    def parts(self, document: Document) -> Iterator[Part]:
        """Yield a build per question and trial."""
        index: dict[str, int] = {}
        solved: set[str] = set()
        before: _Trial | None = None
        is_told = False
        for trial in _trials(document.stream):
            for question in trial.questions:
                index.setdefault(question.text, len(index))
            if before is not None:
                yield from self._of_trial(before, index, solved, {one.text: one for one in trial.questions})
            before = trial
            is_told = is_told or bool(trial.questions or trial.unplaced)
        if before is None:
            raise SourceError(
                "is in none of Reflexion's formats: a JSON array (ALFWorld), JSON objects (MBPP), or text with lines "
                "'BEGIN TRIAL <n>' (HotPotQA)",
                path=self.path,
            )
        if not is_told:
            raise SourceError("its trials contain no question ('Question: …')", path=self.path)
        yield from self._of_trial(before, index, solved, {})

    def _of_trial(
        self, trial: _Trial, index: dict[str, int], solved: set[str], following: dict[str, _Question]
    ) -> Iterator[Part]:
        """Yield a build per question, and record in `solved` what the trial solved, since later trials repeat it."""
        place = f"trial {trial.number}"
        for question in trial.questions:
            said = question.said()
            if question.text in solved:
                question.reflections = []
            task = _answered(question, index[question.text], following.get(question.text), trial.number)
            build_id = run_id(f"hotpotqa-{task.task_id}-trial-{trial.number}", said)
            yield _trial(build_id, [task], self.project_id)._replace(place=place)
        solved.update(question.text for question in trial.questions if question.section == "CORRECT")
        for _ in range(trial.unplaced):
            yield Part(None, 1, "a question outside of the sections that say how it ended", place)


@dataclass
class _Question:
    """A question in one trial."""

    text: str
    section: str
    reflections: list[str] = field(default_factory=list)
    steps: dict[str, list[str]] = field(default_factory=lambda: {"Thought": [], "Action": [], "Observation": []})
    correct: str = ""
    is_reflecting: bool = False
    last: list[str] | None = None

    def add(self, line: str) -> None:
        if match := _STEP.match(line):
            self.is_reflecting = False
            self.last = self.steps[match[1]]
            if len(self.last) < _MAX_LINES:
                self.last.append(match[3])
        elif line.startswith("Reflections:"):
            self.is_reflecting = True
        elif line.startswith("Correct answer:"):
            self.correct, self.last = one_line(line.partition(":")[2]), None
        elif self.is_reflecting and line.startswith("- "):
            self.reflections.append(line[2:])
        elif self.is_reflecting and self.reflections and line.strip():
            self.reflections[-1] += f"\n{line}"
        elif self.last and len(self.last[-1]) < MAX_SAID_CHARS:
            self.last[-1] += f"\n{line}"

    def said(self) -> list[str]:
        """Return the texts that distinguish it from the same question in another run."""
        texts = (text for one in (self.reflections, *self.steps.values()) for text in one)
        return [self.text, self.section, *(text.strip() for text in texts)]


@dataclass
class _Trial:
    """A trial and its header."""

    number: int
    questions: list[_Question] = field(default_factory=list)
    unplaced: int = 0
    """Questions outside of any section, whose outcome is unknown."""


def _trials(stream: IO[bytes]) -> Iterator[_Trial]:
    trial: _Trial | None = None
    section = ""
    for line in text_lines(stream):
        if match := _TRIAL.fullmatch(line):
            if trial is not None:
                yield trial
            trial, section = _Trial(int(match[1])), ""
        elif trial is None:
            continue
        elif match := _SECTION.fullmatch(line):
            section = match[1]
        elif _LIKE_A_SECTION.match(line):
            section = ""
        elif line.startswith("Question:") and not section:
            trial.unplaced += 1
        elif line.startswith("Question:"):
            text = one_line(line[len("Question:") :].partition(_BOILERPLATE)[0], 2_000)
            if text and len(trial.questions) < _MAX_QUESTIONS:
                trial.questions.append(_Question(text, section))
        elif trial.questions and section and not line.startswith("####"):
            trial.questions[-1].add(line)
    if trial is not None:
        yield trial


def _answered(question: _Question, number: int, later: _Question | None, trial: int) -> BuildTask:
    thoughts, actions, observations = question.steps.values()
    is_correct = question.section == "CORRECT"
    is_denied = observations[-1:] and "INCORRECT" in observations[-1]
    answer = next((match[1] for action in reversed(actions) if (match := _ANSWER.search(action))), "")
    texts = [f"Answered: {answer}" if answer else f"Gave no answer in {len(actions)} steps", *thoughts[-1:]]
    texts += observations[-1:] if answer else []
    texts += [f"Correct answer: {question.correct}"] if question.correct else []
    is_new = later is not None and not is_correct and len(later.reflections) > len(question.reflections)
    return BuildTask(
        task_id=f"question-{number}",
        agent_name=_AGENT,
        description=one_line(question.text),
        reasoning=cleaned(question.reflections[-1], MAX_SAID_CHARS) if question.reflections else "",
        output=cleaned("\n".join(texts), MAX_SAID_CHARS),
        outcome="failure" if not is_correct else "success" if answer and not is_denied else "partial",
        lesson=cleaned(later.reflections[-1], MAX_SAID_CHARS) if is_new and later is not None else "",
        occurred_at=undated(trial),
        attempt=trial,
    )


class TauBenchReader(FileReader):
    """Reads tau-bench results (JSON lines, or an array): a trial of a task is a build, each tool call a task of it.

    The agent talks to a simulated user. The first task of a build stands for the whole trial; its outcome follows the reward:
    1 is a success, less a failure. Where the results name the right actions (``info``), a failure's lesson is how the agent's
    differ from them.
    """

    kind = "tau-bench"
    noun = "trial"

    def entry(self, value: Any) -> Part:
        """Return a trial of a task."""
        data = value if isinstance(value, dict) else {}
        messages, reward, trial = data.get("traj"), data.get("reward"), data.get("trial")
        task = named(data.get("task_id"), "")
        if not task or not isinstance(messages, list) or not isinstance(reward, int | float):
            raise ValueError("not a trial with task_id, reward and traj")
        number = trial if isinstance(trial, int) and not isinstance(trial, bool) and 0 <= trial < 10**6 else 0
        messages = messages[:_MAX_MESSAGES]
        heard = [message for message in messages if isinstance(message, dict)]
        outcome: TaskOutcome = "success" if reward >= 1 else "failure"
        when = undated(number)
        calls = list(_calls(heard, when))
        users, agents = ([_text(one) for one in heard if one.get("role") == role] for role in ("user", "assistant"))
        last = next(filter(None, reversed(agents)), "")
        whole = BuildTask(
            task_id=f"task-{task}",
            agent_name="assistant",
            description=one_line(next(iter(users), "")) or f"Task {task}",
            output=f"Reward {float(reward):g}. {last}".strip(),
            outcome=outcome,
            lesson=_missed(_expected(data.get("info")), calls) if outcome == "failure" else "",
            occurred_at=when,
            attempt=number,
        )
        return _trial(
            run_id(f"tau-task-{task}-trial-{number}", value),
            [whole, *calls][:MAX_BUILD_TASKS],
            self.project_id,
            problem=_unread(messages, heard),
            build_outcome=outcome,
            user_interventions=list(_said(heard, when)),
        )


def _unread(messages: list[Any], heard: list[dict[str, Any]]) -> str | None:
    """Return a description of the messages and calls with an unknown form."""
    calls = [call for message in heard for call in _called(message)]
    strange = sum(not isinstance(call, dict) or not isinstance(call.get("function"), dict) for call in calls)
    counts = {"message": len(messages) - len(heard), "tool call": strange}
    counted = [f"{number} {noun}{'s' if number > 1 else ''}" for noun, number in counts.items() if number]
    return f"{' and '.join(counted)} of another form" if counted else None


def _called(message: dict[str, Any]) -> list[Any]:
    """Return the tool calls of an assistant's message."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return calls if isinstance(calls, list) else []


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
    made = [call.command for call in calls if call.outcome == "success" and not changes_nothing(call.command)]
    right = [call for call in expected if not changes_nothing(call)]
    missing = [call for call in right if call not in made]
    wrong = [call for call in made if call not in right]
    parts = [f"The right calls were never made: {'; '.join(missing[:_MAX_MISSED])}."] if missing else []
    parts += ["Nothing should have been changed."] if wrong and not right else []
    parts += [f"It was wrong to call {'; '.join(wrong[:_MAX_MISSED])}."] if wrong else []
    return cleaned(" ".join(parts), MAX_SAID_CHARS)


def _calls(messages: list[dict[str, Any]], when: str) -> Iterator[BuildTask]:
    """Yield a task per tool call, with the first answer that follows."""
    answers: dict[str, list[tuple[int, str]]] = {}
    for place, message in enumerate(messages):
        call_id = named(message.get("tool_call_id"), "")
        if message.get("role") == "tool" and call_id:
            answers.setdefault(call_id, []).append((place, cleaned(message.get("content"), MAX_OUTPUT_CHARS)))
    number = 0
    for place, message in enumerate(messages):
        for call in _called(message):
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            output = next((text for at, text in answers.get(named(call.get("id"), ""), ()) if at > place), "")
            command = f"{named(function.get('name'), 'tool')}({_arguments(function.get('arguments'))})"
            yield BuildTask(
                task_id=f"call-{number}",
                agent_name="assistant",
                description=one_line(command),
                command=cleaned(command, MAX_SAID_CHARS),
                reasoning=_text(message),
                output=output,
                outcome="failure" if output.startswith("Error") else "success",
                occurred_at=when,
            )
            number += 1


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
        text = _text(message)
        if message.get("role") == "assistant":
            answered = text or answered
        elif message.get("role") == "user" and text and text != "###STOP###":
            yield {"timestamp": when, "action": text, "context": end(answered, _CONTEXT_CHARS)}


def _text(message: dict[str, Any]) -> str:
    return cleaned(message.get("content"), MAX_SAID_CHARS)


class TrajectoryReader(FileReader):
    """Reads an SWE-agent trajectory (``.traj``): a file is a build, a step a task.

    A step's outcome is derived from its observation. The build succeeded if something was submitted and nothing else
    ended it: the file does not say whether the submission is right. It is dated by the file. Its id ends in a digest of
    the content, since an instance can be tried again under the same name. Its default project is the repository that the
    instance names (``owner__repository-123``).
    """

    kind = "trajectories"

    @cached_property
    def _named(self) -> str:
        """The project that was given, or that the file's name names; "" otherwise."""
        return self.given or _repository(self.path.name)

    @cached_property
    def project_id(self) -> str:
        """The project that was given, else that which the file's name names, else the file's name."""
        return self._named or project_of(self.path, None)

    def parts(self, document: Document) -> Iterator[Part]:
        """Yield the steps that cannot be read, then the build."""
        data = document.value()
        steps = data.get("trajectory") if isinstance(data, dict) else None
        if not isinstance(steps, list):
            raise SourceError("contains no trajectory (a JSON object with a list named trajectory)", path=self.path)
        root = next((_found("working_dir", step.get("state")) for step in steps if isinstance(step, dict)), "")
        tasks: list[BuildTask] = []
        for number, step in enumerate(steps):
            try:
                tasks.append(_step(number, step, root))
            except ValueError as error:
                yield Part(None, 1, str(error), f"step {number}")
        if steps and not tasks:
            return
        info = info if isinstance(info := data.get("info"), dict) else {}
        places = (info.get("instance_id"), data.get("instance_id"), data.get("environment"))
        fields = {
            "build_id": f"{named(self.path.name.removesuffix('.gz').removesuffix('.traj'), 'run')}@{document.mark[:8]}",
            "project_id": self._named or next(filter(None, map(_repository, places)), self.project_id),
            "tasks": tasks,
            "build_summary": _asked(data.get("history")),
            "build_outcome": _ended(info, tasks),
            "started_at": changed_at(self.path),
            "completed_at": changed_at(self.path),
            "source": "trajectory",
        }
        yield Part(fields, place="trajectory")


def _step(number: int, step: object, root: str) -> BuildTask:
    if not isinstance(step, dict):
        raise ValueError("not an object")
    action = cleaned(step.get("action"), MAX_OUTPUT_CHARS)
    observation = cleaned(step.get("observation"), MAX_OUTPUT_CHARS)
    thought = cleaned(step.get("thought") or step.get("response"), MAX_SAID_CHARS)
    if not (action or observation or thought):
        raise ValueError("has no action, observation or thought")
    file = ""
    if match := _CHANGES.match(action):
        file = match[1].strip("'\"")
    elif not _EDITS.isdisjoint(_verbs(action)):
        file = _found("open_file", step.get("state"))
    file = cleaned(file, 1_000).removeprefix(f"{root.rstrip('/')}/" if root else "")
    return BuildTask(
        task_id=f"step-{number}",
        agent_name="swe-agent",
        description=one_line(action.partition("\n")[0]) or "no action",
        command=action,
        reasoning=thought,
        output=observation,
        outcome="failure" if went_wrong(action, observation) else "success",
        files_changed=[file] if file and file != "n/a" else [],
    )


def went_wrong(action: str, observation: str) -> bool:
    """Return whether an action failed, judged by its observation; a displayed file that shows an error did not."""
    if not action:
        return True
    verbs = _verbs(action)
    if not _SHOWS.isdisjoint(verbs) or verbs[0].startswith(("scroll_", "search_")):
        return _REFUSED.search(observation[:400]) is not None
    return bool(_WENT_WRONG.search(observation) or _REFUSED.search(observation))


def _asked(history: object) -> str:
    """Return the agent's task: the issue's text, else the user's first message that is not a demonstration."""
    for message in history[:20] if isinstance(history, list) else ():
        if isinstance(message, dict) and message.get("role") == "user" and not message.get("is_demo"):
            text = _ISSUE.sub("", _text(message), count=1)
            return "\n".join(text.strip().splitlines()[:20])
    return ""


def _verbs(action: str) -> tuple[str, str]:
    """Return the first word of an action, and the first two."""
    words = [*action.split(None, 2)[:2], "", ""]
    return words[0], f"{words[0]} {words[1]}"


def _found(name: str, state: object) -> str:
    """Return a field of the state: JSON in old files, a Python literal or an object in newer ones."""
    text = state if isinstance(state, str) else repr(state) if isinstance(state, dict) else ""
    match = re.search(rf"""['"]{name}['"]:\s*['"]([^'"]{{1,1000}})['"]""", text[:8_000])
    return match[1] if match else ""


def _repository(name: object) -> str:
    """Return the repository that an instance's name names."""
    match = _INSTANCE.search(name[:1_000]) if isinstance(name, str) else None
    return match[1] if match else ""


def _ended(info: dict[str, Any], tasks: list[BuildTask]) -> TaskOutcome:
    status = info.get("exit_status")
    if isinstance(status, str) and status:
        if not status.startswith("submitted") or not info.get("submission"):
            return "failure"
        return "success" if status == "submitted" else "partial"
    was_submitted = bool(tasks) and tasks[-1].command.split(None, 1)[:1] == ["submit"]
    return "success" if was_submitted and tasks[-1].outcome == "success" else "partial"
