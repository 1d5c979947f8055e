"""Reports of builds. CI logs as text: a build with its commands and recognised failures; JUnit XML: a build with its test cases."""

from __future__ import annotations

import codecs
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING, Literal, NamedTuple

from memgraph.errors import SourceError
from memgraph.extraction.components import is_sha
from memgraph.extraction.error_text import VERDICT
from memgraph.extraction.readers.source import (
    MAX_BUILD_TASKS,
    MAX_OUTPUT_CHARS,
    MAX_SAID_CHARS,
    MAX_WHOLE_BYTES,
    Document,
    FileReader,
    Part,
    beginning,
    changed_at,
    cleaned,
    end,
    named,
    one_line,
    text_lines,
    time_of,
    without_ansi,
)
from memgraph.model.build import FIRST_RUN, BuildTask, TaskOutcome
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.text import lazy_re as re

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_AGENT = "ci"
_HEAD_LINES, _TAIL_LINES = 20, 100
_MAX_COMMANDS = 5 * MAX_BUILD_TASKS
_MAX_FAILURES = 10_000
_MAX_LINE_CHARS = 4_000
_MAX_TOLD_CHARS = 1_000
"""Characters of a line that are searched for a failure."""
_MAX_SUMMARY_CHARS = 400
_MAX_HELD_CHARS = 50_000_000
"""Total characters kept of all commands' output; later commands are shortened."""
_SHORT_CHARS = 400
_PREFIX = re.compile(
    r"(?:[^\t]{1,200}\t[^\t]{1,200}\t(?=\ufeff?\d{4}-))?"
    r"(?:\ufeff?\[?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d))\]? ?(?:\d\d[OE][ +])?)?"
    r"(?:\[?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\]? {1,2})?(?:#\d{1,4} \d{1,6}\.\d{1,3} )?"
)
"""What runners put before each line: job and step (``gh run view --log``), the time (GitHub, GitLab), that of the day (Jenkins), the layer (docker)."""
_SETTINGS = ("shell:", "with:", "env:")
_EXITS = frozenset(
    {"Process completed with exit code", "Job failed: exit code", "Job failed: exit status", "Process exited with code", "Process exited with status",
     "exit status", "exit code", "exit status:", "exit code:", "Command failed with exit code", "script returned exit code"}
)  # fmt: skip
_FAILED = ("##[error]", "ERROR: Job failed", "ERROR: failed to solve: ", "Finished: FAILURE")
_INCOMPLETE = tuple(
    f"{mark}{said}"
    for mark in ("", "##[error]")
    for said in ("The operation was cancel", "The job was cancel", "The run was cancel", "The runner has received a shutdown signal", "ERROR: Job failed: cancel",
                 "Job cancel", "Job was cancel", "Done: Job Cancelled", "Finished: ABORTED", "Finished: NOT_BUILT", "Finished: UNSTABLE")
)  # fmt: skip
_ENDED = frozenset(
    {"Cleaning up orphan processes", "##[section]Finishing: Job", "Job succeeded", "Finished: SUCCESS", "Done. Your build exited with 0."}
)  # fmt: skip
_PASSED = re.compile(
    r"(?:=+ )?\d+ passed(?:, \d+ (?:skipped|deselected|xfailed|xpassed|warnings?))* in [\d.]+s.*|(?:#|ℹ) fail 0|"
    r"Tests:\s+(?:\d+ (?:skipped|todo), )*\d+ passed, \d+ total|(?:\[INFO\] )?BUILD SUCCESS(?:FUL)?.*"
)
"""Final lines of tools: proof of success, unless a runner's own final line is to come."""
_PASSED_TEST = re.compile(
    r"(?:\[gw\d+\] \[ *\d+%\] PASSED (?P<one>\S+\.py::.+)|(?P<other>\S+\.py::\S.*?) PASSED(?: +\[ *\d+%\])?|"
    r"test (?P<cargo>\S+)(?: - .{1,200})? \.\.\. ok|\s*--- PASS: (?P<go>\S+)(?: \([\d.]+s\))?)"
)
"""The lines of ``pytest -v``, ``cargo test`` and ``go test -v`` about a test that passed."""
_CHECKED_OUT = re.compile(r"(?:HEAD is now at|Checking out(?: Revision)?) ([0-9a-f]{7,40})\b.*")
"""What GitHub, GitLab and Jenkins print of the commit that they check out."""
_SHOWS_COMMIT = re.compile(r"\bgit (?:log -1\b|rev-parse HEAD(?![~^@]))|^(?:HEAD is now at|Checking out) ")
"""A line after which a bare hash is that of the commit."""
_RUNNER = ("##[group]", "##[section]", "section_start:", "[Pipeline]", "Running with gitlab-runner", "Started by ")
_NODE_FAILED = ("# fail ", "ℹ fail ")
"""The final line of ``node --test``: it shows that a command failed, but alone does not make a file a log."""
_NOISE = ("##[group]", "##[endgroup]", "##[debug]", "section_start:", "section_end:")


@dataclass
class _Command:
    """A command and its output: line by line while it is read, then as one text."""

    text: str = ""
    title: str = ""
    when: str | None = None
    head: list[str] = field(default_factory=list)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))
    code: int | None = None
    went_wrong: bool = False
    is_explained: bool = False
    output: str = ""

    def close(self, limit: int) -> int:
        """Reduce the command to the fields of a task, in texts of `limit` characters; return how many are kept."""
        self.output = cleaned("\n".join([*self.head, *self.tail]), min(limit, MAX_OUTPUT_CHARS))
        self.text = cleaned(self.text, min(limit, MAX_SAID_CHARS))
        self.title = one_line(self.title) or "command"
        self.head.clear()
        self.tail.clear()
        return len(self.output) + len(self.text) + len(self.title)

    @property
    def outcome(self) -> TaskOutcome:
        return "failure" if self.code or (self.code is None and self.went_wrong) else "success"


class CiLogReader(FileReader):
    """Reads the text log of a CI run.

    Commands are recognised by how the log shows them (a step's group in GitHub Actions, ``$ …``, ``+ …``, ``>
    package@version script``); a command failed if a non-zero exit or a failure appears before the next one. Failures of
    pytest, tsc, cargo, go test, jest and npm become tasks of their own, in place of the command that ended with them;
    npm's message about a script is dropped if the script's own failure is recognised. A log is a success only if its end
    says so (the runner's last line or, where no runner is seen, an exit code of 0 or a tool's summary): one without such
    an end may be cut, and one of a cancelled run stopped early; both are partial. Colours and time stamps are removed. A log without a time is dated by
    its file.
    """

    kind = "ci-log"

    def parts(self, document: Document) -> Iterator[Part]:
        """Yield the build."""
        log = _Log()
        for line in text_lines(document.stream):
            log.add(line)
        if not log.is_one:
            raise SourceError("contains no command or failure that is recognised: not a CI log", path=self.path)
        fields = {
            "build_id": f"ci-{named(self.stem, 'log')}-{document.mark[:12]}"[:380],
            "project_id": self.project_id,
            "tasks": log.tasks(),
            "build_summary": log.summary,
            "build_outcome": log.outcome,
            "started_at": log.started or changed_at(self.path),
            "completed_at": max(log.now or changed_at(self.path), log.started or ""),
            "source": "ci log",
            "git_commit": log.commit or None,
            "trust_class": "tool",
        }
        yield Part(fields, log.lines, place="log")


class _Log:
    """A log, while it is read line by line."""

    def __init__(self) -> None:
        self.lines = 0
        self.started = self.now = self.summary = ""
        self._commands: list[_Command] = []
        self._held = 0
        self._preamble = _Command()
        self._failures: dict[str, tuple[_Failure, str | None, _Command]] = {}
        self._passed: dict[str, tuple[str, str | None]] = {}
        self.commit = ""
        self._tools = [_Seen(tool) for tool in _TOOLS]
        self._group: list[str] | None = None
        self._is_script = self._is_settings = self._went_wrong = False
        self._has_runner = self._is_incomplete = self._has_ended = self._has_passed = False
        self._code: int | None = None
        self._before = ""

    def add(self, raw: str) -> None:
        """Add a line as it is in the file."""
        self.lines += 1
        line = self._plain(raw)
        self._has_runner = self._has_runner or line.startswith(_RUNNER)
        if self._group is not None:
            self._in_group(self._group, line)
        elif not self._begins(line):
            self._output(line)
        self._before = line

    @property
    def is_one(self) -> bool:
        """Return whether anything identifies the text as a log."""
        return bool(self._commands or self._went_wrong or self._code is not None)

    @property
    def outcome(self) -> TaskOutcome:
        """The outcome of the run: by its last exit code, otherwise by whether anything failed, or by how it ended."""
        if self._code or (self._went_wrong and self._code is None):
            return "failure"
        return "success" if self._is_whole and not self._went_wrong else "partial"

    @property
    def _is_whole(self) -> bool:
        return not self._is_incomplete and (self._has_ended or (self._has_passed and not self._has_runner))

    def tasks(self) -> list[BuildTask]:
        """Return the commands, then the failures."""
        self._close()
        # npm reports every failed script, redundantly if the script's own failure was recognised
        failures = {key: told for key, told in self._failures.items() if not (_is_npms(key) and told[2].is_explained)}
        told_by = {id(command) for _, _, command in failures.values()}
        found = []
        for number, command in enumerate(self._commands):
            if command.outcome == "failure" and (command.is_explained or id(command) in told_by):
                continue  # the failures that it ended with are more informative
            if command is self._commands[-1] and command.outcome == "success" and not self._is_whole:
                continue  # the log may be cut: nothing says that it succeeded
            key, told = f"command-{number}", command.output
            found.append(_task(key, command.title, command, told, command.outcome, command.when))
        for key, (failure, when, command) in failures.items():
            told = cleaned("\n".join(failure.lines), MAX_OUTPUT_CHARS)
            test = named(failure.test, "") or None
            found.append(_task(key, one_line(failure.title) or key, command, told, "failure", when, test))
        for test, (name, when) in self._passed.items():
            fields = {"agent_name": _AGENT, "description": one_line(f"Test {name}"), "outcome": "success"}
            found.append(BuildTask(task_id=test, test=test, occurred_at=when, **fields))
        return found

    def _plain(self, raw: str) -> str:
        prefix = _PREFIX.match(raw)
        line = raw[prefix.end() :] if prefix else raw
        if prefix and (time := prefix[1]):
            self.now = time_of(time[:19] + "Z" if time.endswith("Z") else time) or self.now
            self.started = self.started or self.now
        # a terminal shows what follows the last carriage return
        line = without_ansi(line).rstrip().rpartition("\r")[2].removeprefix("[command]")
        return beginning(line, _MAX_LINE_CHARS)

    def _in_group(self, group: list[str], line: str) -> None:
        is_end = line.startswith("##[endgroup]")
        if not is_end and not line.startswith(_SETTINGS) and len(group) < _HEAD_LINES * 5:
            group.append(line)
            return
        title, *script = group
        word = title.partition(" ")[0]
        is_action = "/" in word.partition("@")[0] and ("@" in word or (word == title and word.startswith("./")))
        self._run("" if is_action else "\n".join(script) or title, f"Run {title}")
        self._group = None
        self._is_settings = not is_end

    def _begins(self, line: str) -> bool:
        """Return whether a line shows the start of a command."""
        if self._is_settings:
            self._is_settings = not line.startswith("##[endgroup]")
            return True
        mark, _, rest = line.partition(" ")
        package, _, script = rest.partition(" ")
        if line.startswith("##[group]Run ") and (title := line.removeprefix("##[group]Run ")):
            self._group = [title]
        elif mark == ">" and "@" in package[1:] and script.strip():
            last = self._commands[-1] if self._commands else None
            if last is None or last.head or last.code is not None:  # otherwise it is what that command runs
                self._run("", f"npm script {script}")
            self._is_script = True
            return True
        elif self._is_script and mark == ">" and self._commands:
            self._commands[-1].text = self._commands[-1].text or rest
        elif mark and mark.strip("+") in {"", "$"} and (rest[:1].isalnum() or rest.startswith(_BEGINS_COMMAND)):
            self._run(rest, rest)
        else:
            self._is_script = self._is_script and not line.strip()
            return False
        self._is_script = False
        return True

    def _run(self, text: str, title: str) -> None:
        if len(self._commands) < _MAX_COMMANDS:
            self._close()
            self._has_passed = False
            self._commands.append(_Command(text, title, self.now or None))

    def _close(self) -> None:
        """Release the lines of the finished command."""
        if self._commands:
            limit = MAX_OUTPUT_CHARS if self._held < _MAX_HELD_CHARS else _SHORT_CHARS
            self._held += self._commands[-1].close(limit)

    def _commit_in(self, line: str) -> str:
        """Return the hash that a line states of the commit; a later command may print a bare hash of anything."""
        if match := _CHECKED_OUT.fullmatch(line):
            return match[1]
        is_its = len(self._commands) < 2 or _SHOWS_COMMIT.search(self._before)
        sha = line.strip("'")
        return sha if len(sha) == 40 and is_sha(sha) and is_its else ""

    def _output(self, line: str) -> None:
        if line.startswith(_NOISE):
            return
        current = self._commands[-1] if self._commands else self._preamble
        if line.strip():
            (current.head if len(current.head) < _HEAD_LINES else current.tail).append(line.removeprefix("##[error]"))
        wrong = False
        if (code := _exit_code(line.strip())) is not None:
            self._code = current.code = code
            wrong, self._has_passed = bool(code), not code
        elif line.startswith(_INCOMPLETE):
            self._is_incomplete = True
        elif line in _ENDED:
            self._has_ended = True
        elif _PASSED.fullmatch(line):
            self._has_passed = True
        elif len(line) <= _MAX_SUMMARY_CHARS and VERDICT.fullmatch(line):
            self.summary = (line == "FAIL" and self.summary) or one_line(line.strip("= "))
            wrong = True
        elif line.startswith(_FAILED) or (line[:1] == "=" and line.strip("=") in {" FAILURES ", " ERRORS "}):
            wrong = True
        elif self._commands and line.startswith(_NODE_FAILED):
            wrong = line[7:].isdecimal() and int(line[7:]) > 0
        if match := _PASSED_TEST.fullmatch(beginning(line, _MAX_TOLD_CHARS)):
            name = match[match.lastgroup or 0]
            test = _test_of_pytest(name) if match["one"] or match["other"] else name
            if len(self._passed) < _MAX_FAILURES and (test := named(test, "")):
                self._passed.setdefault(test, (name, self.now or None))
        elif len(sha := self._commit_in(line.strip())) > len(self.commit):
            self.commit = sha
        told = beginning(line, _MAX_TOLD_CHARS)
        tells = _TELLS.match(told)
        for tool in self._tools:
            if (tells or tool.is_open) and (failure := tool.feed(told)):
                wrong = True
                key = named(failure.key, "failure")
                if len(self._failures) < _MAX_FAILURES:
                    self._failures.setdefault(key, (failure, self.now or None, current))
                current.is_explained = current.is_explained or (key in self._failures and not _is_npms(key))
        self._went_wrong = self._went_wrong or wrong
        current.went_wrong = current.went_wrong or wrong


_BEGINS_COMMAND = ("_", ".", "/", "~", '"', "'", "-")


def _exit_code(line: str) -> int | None:
    """Return the exit code that a line states and nothing else."""
    said, _, code = line.removesuffix(".").rpartition(" ")
    said = said.removeprefix("##[error]")
    for mark in ("Error: ", "ERROR: ", "error: "):
        said = said.removeprefix(mark)
    is_said = said in _EXITS or (said.startswith('The command "') and said.endswith('" exited with'))
    return int(code) if is_said and code.isdecimal() and len(code) < 6 else None


def _task(
    key: str,
    title: str,
    command: _Command,
    output: str,
    outcome: TaskOutcome,
    when: str | None,
    test: str | None = None,
) -> BuildTask:
    return BuildTask(
        task_id=key,
        test=test,
        agent_name=_AGENT,
        description=title,
        command=command.text,
        output=output,
        outcome=outcome,
        occurred_at=when,
    )


def _is_npms(key: str) -> bool:
    return key.startswith("npm ")


_MAX_LINES = 60
_MAX_FAILURE_CHARS = 16_000
_MAX_HELD_TESTS = 5_000


@dataclass
class _Failure:
    """A failure, while its lines are being read: its key is equal for the same failure in another run; `test` is the name of a test."""

    key: str
    title: str
    lines: list[str] = field(default_factory=list)
    test: str = ""


class _Tool(NamedTuple):
    """How a tool prints failures, as patterns of lines. What follows a failure, or a line `about` a test, and is a `detail` is kept until a line `ends` it."""

    failure: Callable[[re.Match[str], re.Match[str] | None], _Failure]
    """Makes a failure of its line, and of the line of its context."""
    fails: str
    within: str = ""
    """The context without which a line names no failure: it lasts for one failure, until it `ends`, or until the next one."""
    lasts: Literal["once", "block", "file"] = "file"
    about: str = ""
    """Names the `test` whose output follows, before or after it is said to have failed."""
    detail: str = "(?!)"
    ends: str = ""


_PYTEST = (
    r"(?P<how>FAILED|ERROR) (?P<name>(?P<file>[^\s:]+\.py|[^:]{1,300}\.\w{1,10}(?=::))(?:::(?P<test>[^\[]+?(?:\[.*?\])?))?)"
    r"(?: - (?P<said>.*))?$"
)
_TSC = r"(?P<file>[^\s(:][^(:]{0,400})(?:\((?P<line>\d+),\d+\):|:(?P<row>\d+):\d+ -) error (?P<code>TS\d{1,5}): (?P<said>.*)$"
_CARGO_SUMS_UP = r"(?!error: (?:could not compile|aborting due to|test failed|\d+ targets? failed))"
_NPM = r"npm (?:ERR!|error)"
_NPM_SAYS = r" (?P<kept>(?!errno |A complete log of this run|.*[/\\]_logs[/\\]).*\S)"


def _of_pytest(line: re.Match[str], _: re.Match[str] | None) -> _Failure:
    title = f"{'Test' if line['how'] == 'FAILED' else 'Test set-up'} {line['name']} failed"
    said = [line["said"]] if line["said"] else []
    return _Failure(f"pytest {line['name']}", title, said, _test_of_pytest(line["name"]))


def _of_tsc(line: re.Match[str], _: re.Match[str] | None) -> _Failure:
    place = f"{line['file'].strip()}:{line['line'] or line['row']}"
    return _Failure(f"tsc {place} {line['code']}", f"{place}: {line['code']}: {line['said']}", [line.string])


def _of_rustc(line: re.Match[str], error: re.Match[str] | None) -> _Failure:
    said, code = (error.string, error["code"] or "error") if error else ("", "")
    return _Failure(f"rustc {code} {line['place']}", f"{line['place']}: {said}", [said, line.string])


def _of_go_build(line: re.Match[str], _: re.Match[str] | None) -> _Failure:
    return _Failure(f"go build {line['place']}", f"{line['place']}: {line['said']}", [line.string])


def _of_jest(line: re.Match[str], file: re.Match[str] | None) -> _Failure:
    name = f"{file['file'] if file else ''} {line['test']}"
    return _Failure(f"jest {name}", name.replace(" ", ": ", 1), test=name)


def _of_npm(line: re.Match[str], _: re.Match[str] | None) -> _Failure:
    code = line["kept"].removeprefix("code ")
    return _Failure(f"npm {code[:80]}", f"npm failed: {code}", [line["kept"]])


def _of_a_test(tool: str) -> Callable[[re.Match[str], re.Match[str] | None], _Failure]:
    return lambda line, _: _Failure(f"{tool} {line['test']}", f"Test {line['test']} failed", test=line["test"])


_TOOLS = (
    _Tool(_of_pytest, _PYTEST, about=r"_{3,} (?:ERROR at (?:setup|teardown) of )?(?P<test>.+) _{3,}$", detail=r"E   |>  |(?!FAILED |ERROR ).+\.py:\d+(?::\d+)?(?:: |$)", ends="==="),
    _Tool(_of_tsc, _TSC),
    _Tool(_of_a_test("cargo test"), r"test (?P<test>(?:(?! - ).)+)(?: - .*)? \.\.\. FAILED$", about=r"---- (?P<test>.+) stdout ----$", detail=r"(?!test |---- |failures:$).", ends="$"),
    _Tool(_of_rustc, r"\s*--> (?P<place>.+?:\d+)(?::\d+)?$", _CARGO_SUMS_UP + r"error(?:\[(?P<code>E\d+)\])?: .", "once", detail=".", ends="$"),
    _Tool(_of_a_test("go test"), r"\s*--- FAIL: (?P<test>\S+)", about=r"=== (?:RUN|CONT) +(?P<test>\S+)$", detail=r"(?!\s*---)\s+(?P<kept>\S.*)"),
    _Tool(_of_go_build, r"(?:vet: )?(?P<place>.+\.go:\d+)(?::\d+)?: (?P<said>.+)", r"# (?:\S+$|.*\[)", "block", ends=r"\S"),
    _Tool(_of_jest, r"\s{0,4}● (?!Console$)(?P<test>.+)", r"\s*FAIL\s+(?:\S+ )?(?P<file>\S+\.\w+)(?: \([\d.]+ m?s\))?$", detail=r"(?!\s{0,4}● )\s+(?P<kept>\S.*)", ends=r"\S|\s{0,4}● "),
    _Tool(_of_npm, _NPM + _NPM_SAYS, detail=rf"{_NPM}(?! code )(?:{_NPM_SAYS})?"),
)  # fmt: skip


_TELLS = re.compile(
    "|".join(
        re.sub(r"\?P<\w+>", "?:", form)
        for tool in _TOOLS
        for form in (tool.lasts != "block" and tool.fails, tool.within, tool.about)
        if form
    )
)
"""A line that may name something of a tool of which nothing is open."""


def _test_of_pytest(name: str) -> str:
    """Return the name that pytest gives a test in its reports; "" of what is no test, such as a module that cannot be imported."""
    path, bracket, parameters = name.partition("[")
    file, *parts = path.split("::")
    of = ".".join([file.removesuffix(".py").replace("/", "."), *parts[:-1]])
    return f"{of}::{parts[-1]}{bracket}{parameters}" if parts else ""


class _Seen:
    """What was printed of a tool so far."""

    def __init__(self, tool: _Tool) -> None:
        self._tool = tool
        self._fails, self._within, self._about, self._detail, self._ends = (
            re.compile(form) for form in (tool.fails, tool.within, tool.about or "(?!)", tool.detail, tool.ends)
        )
        self._open: list[str] | None = None
        self._notes: dict[str, list[str]] = {}
        self._context: re.Match[str] | None = None
        self._left = _MAX_HELD_CHARS

    @property
    def is_open(self) -> bool:
        """Whether any line may belong to what was printed before."""
        return self._open is not None or (self._context is not None and self._tool.lasts == "block")

    def feed(self, line: str) -> _Failure | None:
        """Return the failure named by a line, if any."""
        tool = self._tool
        if tool.within and (context := self._within.match(line)):
            self._context, self._open = context, None
        elif about := self._about.match(line):
            is_full = about["test"] not in self._notes and len(self._notes) >= _MAX_HELD_TESTS
            self._open = None if is_full else self._notes.setdefault(about["test"], [])
        elif self._open is not None and (detail := self._detail.match(line)):
            self._keep(detail.groupdict().get("kept", line))
        elif (self._context or not tool.within) and (named := self._fails.match(line)):
            failure, known = tool.failure(named, self._context), named.groupdict().get("test") or ""
            failure.lines[:0] = self._notes.pop(known.replace("::", ".") if tool.failure is _of_pytest else known, [])
            self._context = None if tool.lasts == "once" else self._context
            self._open = failure.lines
            if tool.about and failure.test:
                self._notes[known] = failure.lines
            return failure
        elif self._ends.match(line) and (line or self._open):
            self._open = None
            self._context = None if tool.lasts == "block" else self._context
        return None

    def _keep(self, line: str | None) -> None:
        """Keep a line of the open failure or test, up to a limit."""
        held = self._open
        if (
            held is not None
            and line
            and len(line) <= self._left
            and len(held) < _MAX_LINES
            and sum(map(len, held)) < _MAX_FAILURE_CHARS
        ):
            self._left -= len(line)
            held.append(line)


_PRINTED_TAIL_CHARS = 2_000
_MAX_DEPTH = 100
_MAX_TESTS = 1_000_000
_SUITES = frozenset({"testsuite", "testsuites"})
_WRONG = frozenset({"failure", "error"})
_WRONG_ONCE = frozenset({"flakyFailure", "flakyError"})
"""Elements of a test that passed when it was run again."""
_WRONG_STATUS = frozenset({"fail", "failed", "failure", "error"})
_COMMIT = re.compile(r"(?:commit|sha|revision)(?:[._-]?id)?$")
"""How the name of a property ends whose value is the hash of the commit: ``git.commit.id``, ``CI_COMMIT_SHA``."""
_ENCODING = re.compile(rb"""<\?xml[^>]{0,100}?encoding=["']([A-Za-z][\w.-]{0,40})""")
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,10}));")
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class _InLargeParts(StringIO):
    """A text that is read in parts of a million characters: the parser begins a long token again with each part."""

    def read(self, size: int | None = -1) -> str:  # noqa: ARG002 (the parser asks for 16 kB)
        """Return the next part."""
        return super().read(1_000_000)


class JunitReader(FileReader):
    """Reads a JUnit XML test report, as written by most test runners.

    Skipped tests are counted in the build's summary but are not tasks, since they have no outcome. A report without a
    time is dated by its file. Characters that XML does not allow are left out, a document type is ignored, and entities are
    rejected. A report that cannot be read whole, or that counts failures which it does not contain, is not a success.
    """

    kind = "junit"

    def parts(self, document: Document) -> Iterator[Part]:
        """Yield what could not be read, then the build."""
        from xml.etree.ElementTree import ParseError  # the parsing itself is defusedxml's

        from defusedxml import DefusedXmlException

        report = _Report()
        problem = ""
        try:
            report.read(_legal(document.stream.read(MAX_WHOLE_BYTES)))
        except DefusedXmlException:
            problem = "declares entities, which is not allowed"
        except (ParseError, LookupError) as error:  # LookupError: an unknown encoding
            problem = f"not well-formed XML: {error}"
        except ValueError as error:
            problem = str(error)
        if not report.is_one:
            raise SourceError(problem or "contains no <testsuite>: not a JUnit report", path=self.path)
        if problem:
            yield Part(None, 1, f"{problem}; what was read before it is kept as a partial build")
        name = f"junit-{report.name or 'tests'}-{report.started or document.mark}"
        fields = {
            "build_id": name[:380],
            "project_id": self.project_id,
            "tasks": report.tasks,
            "build_summary": report.summary(is_whole=not problem),
            "build_outcome": report.outcome(),
            "started_at": report.started or changed_at(self.path),
            "completed_at": report.completed() or changed_at(self.path),
            "source": "test report",
            "git_commit": report.commit or None,
            "trust_class": "tool",
        }
        yield Part(fields, len(report.tasks) or 1, place="report")


def _legal(data: bytes) -> str:
    """Return the characters of a document that XML allows."""
    declared = _ENCODING.match(data.removeprefix(codecs.BOM_UTF8).lstrip())
    encoding = declared[1].decode().lower() if declared else "utf-8"
    if encoding.startswith(("utf", "ucs")):  # a declaration that can be read byte by byte is not in UTF-16
        encoding = "utf-8-sig"
    text = _REFERENCE.sub(_allowed, data.decode(encoding, "replace").lstrip())
    return _ILLEGAL.sub("", without_ansi(text))


def _allowed(reference: re.Match[str]) -> str:
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    if code == ord("\x1b"):
        return "\x1b"
    return reference[0] if code < 0x110000 and not _ILLEGAL.match(chr(code)) else ""


class _Report:
    """The content of a report, extended while it is read."""

    def __init__(self) -> None:
        self.is_one = False
        self.name = self.started = self.commit = ""
        self.seconds = 0.0
        self.declared = 0
        self.tasks: list[BuildTask] = []
        self.counts: Counter[str] = Counter()

    def read(self, text: str) -> None:
        """Read a document, releasing each test once it is read."""
        from defusedxml.ElementTree import iterparse

        open_elements: list[Element] = []
        for event, element in iterparse(_InLargeParts(text), events=("start", "end")):
            tag = _tag(element)
            if event == "start":
                open_elements.append(element)
                if len(open_elements) > _MAX_DEPTH:
                    raise ValueError(f"nested deeper than {_MAX_DEPTH}")
                if tag in _SUITES:
                    self._suite(element)
                continue
            open_elements.pop()
            if tag == "testcase" and self.is_one:
                self._case(element, open_elements)
            elif tag == "property" and _COMMIT.search((element.get("name") or "").lower()):
                value = (element.get("value") or "").strip().lower()
                self.commit = self.commit or (value if is_sha(value) else "")
            elif tag in _WRONG and open_elements and _tag(open_elements[-1]) in _SUITES:  # it did not start
                self.counts["failed"] += 1
                self._add(one_line(open_elements[-1].get("name"), 180), open_elements, [element])
            if open_elements and not any(_tag(parent) == "testcase" for parent in open_elements):
                open_elements[-1].remove(element)

    def _suite(self, element: Element) -> None:
        self.is_one = True
        self.name = self.name or one_line(element.get("name"), 120)
        self.started = self.started or time_of(element.get("timestamp")) or ""
        self.declared = max(self.declared, *(int(_number(element.get(key))) for key in ("failures", "errors")))
        if _tag(element) == "testsuite":
            self.seconds += _number(element.get("time"))

    def _case(self, element: Element, parents: list[Element]) -> None:
        kinds = {_tag(child) for child in element}
        name = "::".join(filter(None, (one_line(element.get(key), 180) for key in ("classname", "name"))))
        is_wrong = bool(kinds & _WRONG) or not _WRONG_STATUS.isdisjoint(
            (element.get(key) or "").lower() for key in ("status", "result")
        )
        if "skipped" in kinds and not is_wrong:
            self.counts["skipped"] += 1
            return
        wrong = [child for child in element if _tag(child) in (_WRONG if is_wrong else _WRONG_ONCE)]
        self.counts["failed" if is_wrong else "passed"] += 1
        if wrong and not is_wrong:
            self._add(name, [*parents, element], wrong, run=FIRST_RUN)
        self._add(name, [*parents, element], wrong, is_wrong=is_wrong)

    def _add(
        self, name: str, places: Sequence[Element], wrong: Sequence[Element], *, is_wrong: bool = True, run: str = ""
    ) -> None:
        if self.counts.total() > _MAX_TESTS:
            raise ValueError(f"more than {_MAX_TESTS:,} tests")
        test = name or f"test {self.counts.total()}"
        suites = [place for place in reversed(places) if _tag(place) != "testsuites"]
        when = (time_of(one.get("timestamp")) for one in suites)
        self.tasks.append(
            BuildTask(
                task_id=f"{test}{run}",
                test=(name if _tag(places[-1]) == "testcase" else "") or None,
                agent_name=named(next((one.get("hostname") for one in suites if one.get("hostname")), ""), "tests"),
                description=one_line(f"Test {test}"),
                output=_output(wrong, places[-1]) if is_wrong else "",
                outcome="failure" if is_wrong else "success",
                occurred_at=next(filter(None, when), None),
            )
        )

    def outcome(self) -> TaskOutcome:
        """Failure if any test failed, or if the report counts one that it does not contain."""
        return "failure" if self.counts["failed"] or self.declared else "success"

    def summary(self, *, is_whole: bool) -> str:
        """Return the counts in words."""
        counts = ", ".join(f"{self.counts[state]} {state}" for state in ("passed", "failed", "skipped"))
        missing = f"; the report counts {self.declared} failed" if self.declared > self.counts["failed"] else ""
        return f"{self.counts.total()} tests: {counts}{missing}{'' if is_whole else '; the rest could not be read'}"

    def completed(self) -> str:
        """Return when the tests ended: start time plus duration; "" if unknown."""
        if not self.started:
            return ""
        try:
            return to_iso(from_iso(self.started) + timedelta(seconds=min(self.seconds, 1e7)))
        except (OverflowError, ValueError):
            return self.started


def _tag(element: Element) -> str:
    return element.tag.rsplit("}", 1)[-1] if isinstance(element.tag, str) else ""


def _number(text: str | None) -> float:
    try:
        number = float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0


def _output(wrong: Sequence[Element], test: Element) -> str:
    """Return what failures say: their messages and texts, else what the test printed, else their types; and the end of its errors."""
    printed = {_tag(child): end(_said(child), _PRINTED_TAIL_CHARS) for child in test}
    texts: list[str] = []
    for one in wrong:
        message, text = (one.get("message") or "").strip(), _said(one)
        texts += [message] if message and message not in text else []
        texts += [text] if text else []
    texts = list(dict.fromkeys(texts)) or [
        printed.get("system-out") or " ".join(one.get("type") or "" for one in wrong)
    ]
    texts += [f"stderr: {printed['system-err']}"] if printed.get("system-err") else []
    return cleaned("\n".join(texts), MAX_OUTPUT_CHARS)


def _said(element: Element) -> str:
    """Return an element's text, also if it lies in elements below it."""
    parts = (text.strip("\n") for text in element.itertext() if text.strip())
    return cleaned("\n".join(parts), MAX_OUTPUT_CHARS)
