"""Readers of agents' trials: Reflexion (ALFWorld, MBPP, HotPotQA), tau-bench, and trajectories of SWE-agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any

from memgraph.errors import SourceError
from memgraph.extraction.error_text import VERDICT
from memgraph.extraction.readers.source import (
    MAX_BUILD_TASKS,
    MAX_OUTPUT_CHARS,
    MAX_SAID_CHARS,
    Document,
    FileReader,
    Part,
    as_dict,
    as_list,
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
_DOCSTRING = re.compile(r'("""|\'\'\')\s*(.{1,2000}?)\s*\1', re.DOTALL)
_STEP = re.compile(r"(Thought|Action|Observation) (\d{1,4}):\s*(.*)")
_BOILERPLATE = "You have attempted to answer following question before and failed."
_SECTIONS = ("CORRECT", "INCORRECT", "HALTED")

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
    r"^Traceback \(most recent call last\):|^(?:\w+\.)*\w*(?:Error|Exception)\b(?::|$)|^[ \t]*SyntaxError: |"
    r"introduced new syntax error|No replacement was performed|did not appear verbatim|multiple occurrences of|"
    r"PROCESS-DONE:[1-9]|^FAILED \S|Segmentation fault|^fatal: |^Wrong \w+!|"
    r"^npm ERR!|\berror\[E\d{4}\]|^\S+:\d+:(?:\d+:)? (?:fatal )?error: ",
    re.MULTILINE,
)
_CHANGES = re.compile(
    r"\s*(?:create|str_replace_editor (?:create|str_replace|insert|undo_edit)|rm(?: -\w+)?)\s+(\S{1,400})"
)
_ISSUE = re.compile(r"^.{0,200}\n(?:ISSUE|TASK):\s*\n|^We're currently solving [^.\n]{0,100}\.\s+", re.DOTALL)
_READS = tuple("get search list find calculate think lookup look_up read check transfer_to_human".split())


def changes_nothing(call: str) -> bool:
    """Return whether a call of a tool only reads, by the tool's name."""
    return call.lower().startswith(_READS)


def _ended(*, well: bool) -> TaskOutcome:
    return "success" if well else "failure"


def _tried(name: str, number: int, description: str, outcome: TaskOutcome, **told: Any) -> BuildTask:
    """Return a trial as a task, dated by its number."""
    given = {"agent_name": _AGENT, "occurred_at": undated(number), "attempt": number} | told
    return BuildTask(task_id=name, description=description, outcome=outcome, **given)


def _trial(build_id: str, tasks: list[BuildTask], project: str, *, problem: str | None = None, **more: Any) -> Part:
    """Return the build of the trials that some tasks are, dated by their numbers."""
    numbers = [task.attempt or 0 for task in tasks]
    dates = {"started_at": undated(numbers[0]), "completed_at": undated(max(numbers))}
    fields = {"build_id": build_id, "project_id": project, "tasks": tasks, "build_outcome": overall(tasks)}
    return Part({**fields, **dates, "source": "trial", **more}, 1, problem)


def _listed(data: dict[str, Any], *names: str) -> tuple[list[list[Any]], str | None]:
    """Return some fields as lists, and which of them are something else."""
    wrong = [name for name in names if data.get(name) is not None and not isinstance(data[name], list)]
    return [as_list(data.get(name)) for name in names], f"{', '.join(wrong)}: not a list" if wrong else None


def reflexion_reader(path: str | Path, *, project_id: str | None = None) -> FileReader:
    """Return the reader for a Reflexion file: ALFWorld (an array), MBPP (objects), HotPotQA (text)."""
    with opened(Path(path).absolute()) as (stream, _):
        first = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    reader = AlfworldReader if first == b"[" else MbppReader if first == b"{" else HotpotqaReader
    return reader(path, project_id=project_id)


class AlfworldReader(FileReader):
    """Reads Reflexion on ALFWorld (``env_results_trial_<n>.json``): a trial of an environment is a build.

    An environment has a name, its reflections so far, and whether it was solved. A failure's lesson is its last reflection;
    earlier ones belong to earlier trials, and the last of those is what this trial acted on (its reasoning). The file's name
    gives the trial's number; otherwise it is trial 0.
    """

    kind = project = "alfworld"

    def parts(self, document: Document) -> Iterator[Part]:
        """Yield a build per environment."""
        match = re.search(r"trial_(\d{1,6})", self.path.name)
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
        outcome = _ended(well=is_solved)
        task = _tried(name, trial, f"ALFWorld {name}", outcome, reasoning=acted_on, lesson=lesson)
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
        data = as_dict(value)
        name, is_solved = named(data.get("name") or data.get("task_id"), ""), data.get("is_solved")
        if not name or not isinstance(is_solved, bool):
            raise ValueError("not a problem with a name and is_solved")
        (given, made, feedback), problem = _listed(data, "reflections", "implementations", "test_feedback")
        lessons = dict(enumerate(cleaned(text, MAX_SAID_CHARS) for text in given[:_MAX_ATTEMPTS]))
        codes, said = (
            dict(enumerate(cleaned(text, MAX_OUTPUT_CHARS) for text in texts[:_MAX_ATTEMPTS]))
            for texts in (made, feedback)
        )
        last = min(max(len(lessons), len(codes) - 1), _MAX_ATTEMPTS)
        codes[last] = codes.get(last) or cleaned(data.get("solution"), MAX_OUTPUT_CHARS)
        prompt = cleaned(data.get("prompt"), MAX_SAID_CHARS)
        stated = _DOCSTRING.search(prompt)
        asked = one_line(stated[2] if stated else prompt)
        tasks = [
            _tried(
                f"{name}:attempt-{number}",
                number,
                f"{name}: {asked}" if asked else name,
                _ended(well=is_solved and number == last),
                output=codes[last] if is_solved and number == last else said.get(number) or codes.get(number, ""),
                reasoning=lessons.get(number - 1, ""),
                lesson="" if is_solved and number == last else lessons.get(number, ""),
                attempts=last + 1,
            )
            for number in range(last + 1)
        ]
        build_id = run_id(name if name.startswith("mbpp") else f"mbpp-{name}", value)
        return _trial(build_id, tasks, self.project_id, problem=problem, build_outcome=tasks[-1].outcome)


class HotpotqaReader(FileReader):
    """Reads Reflexion on HotPotQA, as text: a trial of a question is a build.

    The questions are in sections of correct, incorrect and halted ones; a halted agent failed. A question has the same number
    in all trials: that of its first appearance. The reflection on a failure is the last one given in the next trial: it is
    the failure's lesson, and what the next trial acted on (its reasoning).
    """

    kind = project = "hotpotqa"

    def parts(self, document: Document) -> Iterator[Part]:
        """Yield a build per question and trial; later trials repeat the questions that an earlier one solved."""
        index: dict[str, int] = {}
        solved: set[str] = set()
        trial, is_told = None, False
        for trial, after in pairwise(chain(_trials(document.stream), [_Trial(0)])):
            later = {question.text: question for question in after.questions}
            is_told = is_told or bool(trial.questions or trial.unplaced)
            for question in trial.questions:
                number = index.setdefault(question.text, len(index))
                said = [
                    question.text,
                    question.section,
                    *(text.strip() for one in question.told.values() for text in one),
                ]
                if question.text in solved:
                    question.told["Reflection"] = []
                task = _answered(question, number, later.get(question.text), trial.number)
                build_id = run_id(f"hotpotqa-{task.task_id}-trial-{trial.number}", said)
                yield _trial(build_id, [task], self.project_id)._replace(place=f"trial {trial.number}")
            solved.update(question.text for question in trial.questions if question.section == "CORRECT")
            problem = "a question outside of the sections that say how it ended"
            yield from [Part(None, 1, problem, f"trial {trial.number}")] * trial.unplaced
        if trial is None:
            raise SourceError(
                "is in none of Reflexion's formats: a JSON array (ALFWorld), JSON objects (MBPP), or text with lines "
                "'BEGIN TRIAL <n>' (HotPotQA)",
                path=self.path,
            )
        if not is_told:
            raise SourceError("its trials contain no question ('Question: …')", path=self.path)


@dataclass
class _Question:
    """A question in one trial, with its reflections and steps."""

    text: str
    section: str
    told: dict[str, list[str]] = field(
        default_factory=lambda: {"Reflection": [], "Thought": [], "Action": [], "Observation": []}
    )
    correct: str = ""
    last: str = ""

    def add(self, line: str) -> None:
        step = _STEP.match(line)
        if step or (self.last == "Reflection" and line.startswith("- ")):
            self.last, text = (step[1], step[3]) if step else ("Reflection", line[2:])
            if len(self.told[self.last]) < _MAX_LINES:
                self.told[self.last].append(text)
        elif line.startswith("Reflections:"):
            self.last = "Reflection"
        elif line.startswith("Correct answer:"):
            self.correct, self.last = one_line(line.partition(":")[2]), ""
        elif self.last and (texts := self.told[self.last]) and len(texts[-1]) < MAX_SAID_CHARS:
            texts[-1] += f"\n{line}" if line.strip() or self.last != "Reflection" else ""


@dataclass
class _Trial:
    """A trial and its header; `unplaced` questions are outside of any section, so how they ended is unknown."""

    number: int
    questions: list[_Question] = field(default_factory=list)
    unplaced: int = 0


def _trials(stream: IO[bytes]) -> Iterator[_Trial]:
    trial: _Trial | None = None
    section = ""
    for line in text_lines(stream):
        number = line.removeprefix("BEGIN TRIAL ").strip()
        if line.startswith("BEGIN TRIAL ") and number.isdecimal() and len(number) < 7:
            if trial is not None:
                yield trial
            trial, section = _Trial(int(number)), ""
        elif trial is None:
            continue
        elif "-----" in line[:8] or (
            "AGENTS" in line[:46] and "---" in line
        ):  # perhaps a damaged beginning of a section
            name = line.strip("- ").removeprefix("BEGIN ").removesuffix(" AGENTS")
            section = name if name in _SECTIONS else ""
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
    reflections, thoughts, actions, observations = question.told.values()
    is_correct = question.section == "CORRECT"
    is_denied = observations[-1:] and "INCORRECT" in observations[-1]
    given = (action.partition("Finish[")[2].rpartition("]")[0] for action in reversed(actions))
    answer = next(filter(None, given), "")
    texts = [f"Answered: {answer}" if answer else f"Gave no answer in {len(actions)} steps", *thoughts[-1:]]
    texts += observations[-1:] if answer else []
    texts += [f"Correct answer: {question.correct}"] if question.correct else []
    reflected = later.told["Reflection"] if later and not is_correct else []
    return _tried(
        f"question-{number}",
        trial,
        one_line(question.text),
        "failure" if not is_correct else "success" if answer and not is_denied else "partial",
        reasoning=cleaned(reflections[-1], MAX_SAID_CHARS) if reflections else "",
        output=cleaned("\n".join(texts), MAX_SAID_CHARS),
        lesson=cleaned(reflected[-1], MAX_SAID_CHARS) if len(reflected) > len(reflections) else "",
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
        data = as_dict(value)
        messages, reward, number = data.get("traj"), data.get("reward"), data.get("trial")
        task = named(data.get("task_id"), "")
        if not task or not isinstance(messages, list) or not isinstance(reward, int | float):
            raise ValueError("not a trial with task_id, reward and traj")
        number = number if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 10**6 else 0
        messages = messages[:_MAX_MESSAGES]
        heard = [message for message in messages if isinstance(message, dict)]
        outcome = _ended(well=reward >= 1)
        calls = list(_calls(heard, number))
        users, agents = ([_text(one) for one in heard if one.get("role") == role] for role in ("user", "assistant"))
        last = next(filter(None, reversed(agents)), "")
        whole = _tried(
            f"task-{task}",
            number,
            one_line(next(iter(users), "")) or f"Task {task}",
            outcome,
            agent_name="assistant",
            output=f"Reward {float(reward):g}. {last}".strip(),
            lesson=_missed(_expected(as_dict(data.get("info"))), calls) if outcome == "failure" else "",
        )
        return _trial(
            run_id(f"tau-task-{task}-trial-{number}", value),
            [whole, *calls][:MAX_BUILD_TASKS],
            self.project_id,
            problem=_unread(messages, heard),
            build_outcome=outcome,
            user_interventions=list(_said(heard, undated(number))),
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
    return as_list(message.get("tool_calls")) if message.get("role") == "assistant" else []


def _expected(info: dict[str, Any]) -> list[str] | None:
    """Return the right actions as calls; None if the results do not name them."""
    for part in (info.get("task"), info.get("reward_info")):
        actions = as_dict(part).get("actions")
        if isinstance(actions, list) and all(isinstance(action, dict) for action in actions):
            return [cleaned(_call(one, one.get("kwargs", one.get("arguments"))), MAX_SAID_CHARS) for one in actions]
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


def _calls(messages: list[dict[str, Any]], trial: int) -> Iterator[BuildTask]:
    """Yield a task per tool call, with the first answer that follows."""
    answers: dict[str, list[tuple[int, str]]] = {}
    for place, message in enumerate(messages):
        if message.get("role") == "tool" and (call_id := named(message.get("tool_call_id"), "")):
            answers.setdefault(call_id, []).append((place, cleaned(message.get("content"), MAX_OUTPUT_CHARS)))
    calls = [(place, message, as_dict(call)) for place, message in enumerate(messages) for call in _called(message)]
    calls = [one for one in calls if isinstance(one[2].get("function"), dict)]
    for number, (place, message, call) in enumerate(calls):
        output = next((text for at, text in answers.get(named(call.get("id"), ""), ()) if at > place), "")
        command = _call(call["function"], call["function"].get("arguments"))
        yield _tried(
            f"call-{number}",
            trial,
            one_line(command),
            _ended(well=not output.startswith("Error")),
            agent_name="assistant",
            attempt=None,
            command=cleaned(command, MAX_SAID_CHARS),
            reasoning=_text(message),
            output=output,
        )


def _call(function: dict[str, Any], given: object) -> str:
    return f"{named(function.get('name'), 'tool')}({_arguments(given)})"


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
        info = as_dict(data.get("info"))
        places = (info.get("instance_id"), data.get("instance_id"), data.get("environment"))
        fields = {
            "build_id": f"{named(self.path.name.removesuffix('.gz').removesuffix('.traj'), 'run')}@{document.mark[:8]}",
            "project_id": self._named or next(filter(None, map(_repository, places)), self.project_id),
            "tasks": tasks,
            "build_summary": _asked(data.get("history")),
            "build_outcome": _outcome_of(info, tasks),
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
    return any(pattern.search(observation) for pattern in (_WENT_WRONG, _REFUSED, VERDICT))


def _asked(history: object) -> str:
    """Return the agent's task: the issue's text, else the user's first message that is not a demonstration."""
    for message in as_list(history)[:20]:
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


def _outcome_of(info: dict[str, Any], tasks: list[BuildTask]) -> TaskOutcome:
    status = info.get("exit_status")
    if isinstance(status, str) and status:
        if not status.startswith("submitted") or not info.get("submission"):
            return "failure"
        return "success" if status == "submitted" else "partial"
    was_submitted = bool(tasks) and tasks[-1].command.split(None, 1)[:1] == ["submit"]
    return "success" if was_submitted and tasks[-1].outcome == "success" else "partial"
