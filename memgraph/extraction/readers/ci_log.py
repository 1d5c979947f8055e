"""Reader of CI logs as text: a file is a build, each command run and each recognised failure a task."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from memgraph.errors import SourceError
from memgraph.extraction.readers.files import (
    MAX_OUTPUT_CHARS,
    MAX_SAID_CHARS,
    beginning,
    changed_at,
    cleaned,
    named,
    one_line,
    text_lines,
    time_of,
    without_ansi,
)
from memgraph.extraction.readers.source import MAX_BUILD_TASKS, Document, FileReader, Part
from memgraph.model.build import BuildTask, TaskOutcome
from memgraph.text import lazy_re as re

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
_COLUMNS = re.compile(r"[^\t]{1,200}\t[^\t]{1,200}\t(?=\ufeff?\d{4}-)")
"""Job and step, which ``gh run view --log`` puts before each line."""
_STAMP = re.compile(
    r"\ufeff?\[?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d))\]? ?(?:\d\d[OE][ +])?"
)
_CLOCK = re.compile(r"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\]? {1,2}")
"""The time of day, which Jenkins puts before each line."""
_LAYER = re.compile(r"#\d{1,4} \d{1,6}\.\d{1,3} ")
"""Step and time, which ``docker build`` puts before each line."""
_GROUP = re.compile(r"##\[group\]Run (.+)")
_ACTION = re.compile(r"[\w.-]+/[\w./-]+@\S+|\./\S+$")
_SETTINGS = re.compile(r"(?:shell|with|env): ?")
_PROMPT = re.compile(r"(?:\$|\++) ([\w./~\"'-][^\n]*)")
_SCRIPT = re.compile(r"> (?:@[\w.-]+/)?[\w.-]+@\S+ (\S.*)")
_EXIT = re.compile(
    r"(?:##\[error\])?(?:Error: |ERROR: |error: )?(?:Process completed with exit code|Job failed: exit (?:code|status)|"
    r"Process exited with (?:code|status)|The command \".{1,2000}\" exited with|exit (?:status|code):?|"
    r"Command failed with exit code|script returned exit code) (\d{1,5})\.?"
)
_SUMMARY = re.compile(
    r"=+ .*\b[1-9]\d* (?:failed|errors?)\b.* =+|[1-9]\d* (?:failed|errors?)(?:, \d+ \w+)* in [\d.]+s.*|"
    r"test result: FAILED\..*|FAIL\s+\S+\s+(?:[\d.]+s|\[.+\])|Tests:\s+(?:\d+ \w+, )*[1-9]\d* failed, .*|\s*Tests\s+[1-9]\d* failed \|.*|"
    r"Found [1-9]\d* errors?(?: in .*)?\.?|(?:\[\w+\] )?BUILD FAIL(?:ED|URE).*|make(?:\[\d+\])?: \*\*\* .*"
)
_FAILED = re.compile(
    r"##\[error\].*|ERROR: (?:Job failed|failed to solve: ).*|Finished: FAILURE|=+ (?:FAILURES|ERRORS) =+", re.DOTALL
)
_INCOMPLETE = re.compile(
    r"(?:##\[error\])?(?:The (?:operation|job|run) was cancell?ed|The runner has received a shutdown signal|"
    r"ERROR: Job failed: cancell?ed|Job (?:was )?cancell?ed|Done: Job Cancelled|Finished: (?:ABORTED|NOT_BUILT|UNSTABLE)).*"
)
_ENDED = re.compile(
    r"Cleaning up orphan processes|##\[section\]Finishing: Job|Job succeeded|Finished: SUCCESS|Done\. Your build exited with 0\."
)
_PASSED = re.compile(
    r"(?:=+ )?\d+ passed(?:, \d+ (?:skipped|deselected|xfailed|xpassed|warnings?))* in [\d.]+s.*|(?:#|ℹ) fail 0|"
    r"Tests:\s+(?:\d+ (?:skipped|todo), )*\d+ passed, \d+ total|(?:\[INFO\] )?BUILD SUCCESS(?:FUL)?.*"
)
"""Final lines of tools: proof of success, unless a runner's own final line is to come."""
_RUNNER = re.compile(r"##\[(?:group|section)\]|section_start:\d|\[Pipeline\]|Running with gitlab-runner|Started by ")
_PASSED_TEST = re.compile(
    r"(?:\[gw\d+\] \[ *\d+%\] PASSED (?P<one>\S+\.py::.+)|(?P<other>\S+\.py::\S.*?) PASSED(?: +\[ *\d+%\])?|"
    r"test (?P<cargo>\S+)(?: - .{1,200})? \.\.\. ok|\s*--- PASS: (?P<go>\S+)(?: \([\d.]+s\))?)"
)
"""The lines of ``pytest -v``, ``cargo test`` and ``go test -v`` about a test that passed."""
_COMMIT = re.compile(r"'?([0-9a-f]{40})'?|(?:HEAD is now at|Checking out(?: Revision)?) ([0-9a-f]{7,40})\b.*")
"""What GitHub, GitLab and Jenkins print of the commit that they check out."""
_NODE_FAILED = re.compile(r"(?:#|ℹ) fail [1-9]\d*")
"""The final lines of ``node --test``: they show that a command failed, but alone do not make a file a log."""
_NOISE = re.compile(r"##\[(?:group|endgroup|debug)\]|section_(?:start|end):\d+:")


@dataclass
class _Command:
    """A command and its output: line by line while it is read, then as one text."""

    text: str
    title: str
    when: str | None
    head: list[str] = field(default_factory=list)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))
    code: int | None = None
    went_wrong: bool = False
    is_explained: bool = False
    output: str = ""

    def add(self, line: str) -> None:
        if len(self.head) < _HEAD_LINES:
            self.head.append(line)
        else:
            self.tail.append(line)

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
        self._preamble = _Command("", "", None)
        self._failures: dict[str, tuple[Failure, str | None, _Command]] = {}
        self._passed: dict[str, tuple[str, str | None]] = {}
        self.commit = ""
        self._tools = [tool() for tool in _TOOLS]
        self._group: list[str] | None = None
        self._is_script = self._is_settings = self._went_wrong = False
        self._has_runner = self._is_incomplete = self._has_ended = self._has_passed = False
        self._code: int | None = None

    def add(self, raw: str) -> None:
        """Add a line as it is in the file."""
        self.lines += 1
        line = self._plain(raw)
        self._has_runner = self._has_runner or _RUNNER.match(line) is not None
        if self._group is not None:
            self._in_group(line)
        elif not self._begins(line):
            self._output(line)

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
        found: list[BuildTask] = []
        self._close()
        # npm reports every failed script, redundantly if the script's own failure was recognised
        failures = {key: told for key, told in self._failures.items() if not (_is_npms(key) and told[2].is_explained)}
        told_by = {id(command) for _, _, command in failures.values()}
        for number, command in enumerate(self._commands):
            if command.outcome == "failure" and (command.is_explained or id(command) in told_by):
                continue  # the failures that it ended with are more informative
            if command is self._commands[-1] and command.outcome == "success" and not self._is_whole:
                continue  # the log may be cut: nothing says that it succeeded
            found.append(
                BuildTask(
                    task_id=f"command-{number}",
                    agent_name=_AGENT,
                    description=command.title,
                    command=command.text,
                    output=command.output,
                    outcome=command.outcome,
                    occurred_at=command.when,
                )
            )
        for key, (failure, when, command) in failures.items():
            found.append(
                BuildTask(
                    task_id=key,
                    agent_name=_AGENT,
                    description=one_line(failure.title) or key,
                    command=command.text,
                    output=cleaned("\n".join(failure.lines), MAX_OUTPUT_CHARS),
                    outcome="failure",
                    occurred_at=when,
                    test=named(failure.test, "") or None,
                )
            )
        for test, (name, when) in self._passed.items():
            told = {"agent_name": _AGENT, "description": one_line(f"Test {name}"), "outcome": "success"}
            found.append(BuildTask(task_id=test, test=test, occurred_at=when, **told))
        return found

    def _plain(self, raw: str) -> str:
        line = _COLUMNS.sub("", raw, count=1) if "\t" in raw[:400] else raw
        if match := _STAMP.match(line):
            self.now = time_of(match[1][:19] + "Z" if match[1].endswith("Z") else match[1]) or self.now
            self.started = self.started or self.now
            line = line[match.end() :]
        line = _CLOCK.sub("", line, count=1)
        # a terminal shows what follows the last carriage return
        line = without_ansi(line).rstrip().rpartition("\r")[2].removeprefix("[command]")
        return beginning(_LAYER.sub("", line, count=1), _MAX_LINE_CHARS)

    def _in_group(self, line: str) -> None:
        group = self._group or []
        is_end = line.startswith("##[endgroup]")
        if not is_end and not _SETTINGS.match(line) and len(group) < _HEAD_LINES * 5:
            group.append(line)
            self._group = group
            return
        title, *script = group
        is_action = _ACTION.match(title)
        self._run("" if is_action else "\n".join(script) or title, f"Run {title}")
        self._group = None
        self._is_settings = not is_end

    def _begins(self, line: str) -> bool:
        """Return whether a line shows the start of a command."""
        if self._is_settings:
            self._is_settings = not line.startswith("##[endgroup]")
            return True
        if match := _GROUP.fullmatch(line):
            self._group = [match[1]]
        elif match := _SCRIPT.fullmatch(line):
            last = self._commands[-1] if self._commands else None
            if last is None or last.head or last.code is not None:  # otherwise it is what that command runs
                self._run("", f"npm script {match[1]}")
            self._is_script = True
            return True
        elif self._is_script and line.startswith("> ") and self._commands:
            self._commands[-1].text = self._commands[-1].text or line[2:]
        elif match := _PROMPT.fullmatch(line):
            self._run(match[1], match[1])
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

    def _output(self, line: str) -> None:
        if _NOISE.match(line):
            return
        current = self._commands[-1] if self._commands else self._preamble
        if line.strip():
            current.add(line.removeprefix("##[error]"))
        wrong = False
        if match := _EXIT.fullmatch(line.strip()):
            self._code = int(match[1])
            wrong, self._has_passed = bool(self._code), not self._code
            current.code = self._code
        elif _INCOMPLETE.fullmatch(line):
            self._is_incomplete = True
        elif _ENDED.fullmatch(line):
            self._has_ended = True
        elif _PASSED.fullmatch(line):
            self._has_passed = True
        elif len(line) <= _MAX_SUMMARY_CHARS and _SUMMARY.fullmatch(line):
            self.summary = one_line(line.strip("= "))
            wrong = True
        elif _FAILED.match(line) or (self._commands and _NODE_FAILED.fullmatch(line)):
            wrong = True
        if match := _PASSED_TEST.fullmatch(beginning(line, _MAX_TOLD_CHARS)):
            name = match[match.lastgroup or 0]
            test = _test_of_pytest(name) if match["one"] or match["other"] else name
            if len(self._passed) < _MAX_FAILURES and (test := named(test, "")):
                self._passed.setdefault(test, (name, self.now or None))
        elif (match := _COMMIT.fullmatch(line.strip())) and len(match[match.lastindex or 0]) > len(self.commit):
            self.commit = match[match.lastindex or 0]
        for tool in self._tools:
            if failure := tool.feed(beginning(line, _MAX_TOLD_CHARS)):
                wrong = True
                key = named(failure.key, "failure")
                if len(self._failures) < _MAX_FAILURES:
                    self._failures.setdefault(key, (failure, self.now or None, current))
                current.is_explained = current.is_explained or (key in self._failures and not _is_npms(key))
        self._went_wrong = self._went_wrong or wrong
        current.went_wrong = current.went_wrong or wrong


def _is_npms(key: str) -> bool:
    return key.startswith("npm ")


_MAX_LINES = 60
_MAX_FAILURE_CHARS = 16_000
_MAX_HELD_TESTS = 5_000


@dataclass
class Failure:
    """A failure, while its lines are being read: its key is equal for the same failure in another run; `test` is the name of a test."""

    key: str
    title: str
    lines: list[str] = field(default_factory=list)
    test: str = ""

    def add(self, line: str) -> None:
        """Add a line."""
        if len(self.lines) < _MAX_LINES and sum(map(len, self.lines)) < _MAX_FAILURE_CHARS:
            self.lines.append(line)


class _Tool:
    """The failures in the output of a tool, recognised line by line, and what it prints about a test before or after it fails."""

    def __init__(self) -> None:
        self.open: Failure | None = None
        self._notes: dict[str, Failure] = {}
        self._left = _MAX_HELD_CHARS

    def note(self, test: str) -> None:
        """Keep the lines to come for a test, unless too many are held."""
        self.open = self._notes.setdefault(test, Failure("", "")) if len(self._notes) < _MAX_HELD_TESTS else None

    def add(self, line: str) -> None:
        """Add a line to the open failure or test, if there is one."""
        if self.open is not None and len(line) <= self._left:
            self._left -= len(line)
            self.open.add(line)

    def taken(self, test: str) -> list[str]:
        """Return and forget what was kept for a test."""
        self.open = None
        return self._notes.pop(test, Failure("", "")).lines

    def feed(self, line: str) -> Failure | None:
        """Return the failure named by a line, if any."""
        raise NotImplementedError


class _Pytest(_Tool):
    """The short summary names the failures; the sections before it contain the details (``E`` lines)."""

    _HEADER = re.compile(r"_{3,} (?:ERROR at (?:setup|teardown) of )?(\S.{0,300}?) _{3,}")
    _SUMMARY = re.compile(
        r"(FAILED|ERROR) ([^\s:]+\.py|[^:]{1,300}\.\w{1,10}(?=::))((?:::[^\[]+?(?:\[.*?\])?)?)(?: - (.*))?"
    )
    _EVIDENCE = re.compile(r"(?:E {3,}|>\s{2,})\S|\S+\.py:\d+: ")

    def feed(self, line: str) -> Failure | None:
        if match := self._HEADER.fullmatch(line):
            self.note(match[1])
        elif match := self._SUMMARY.fullmatch(line):
            name = f"{match[2]}{match[3]}"
            said = self.taken(match[3].removeprefix("::").replace("::", "."))
            title = f"{'Test' if match[1] == 'FAILED' else 'Test set-up'} {name} failed"
            return Failure(f"pytest {name}", title, [*said, match[4]] if match[4] else said, _test_of_pytest(name))
        elif line.startswith("==="):
            self.open = None
        elif self._EVIDENCE.match(line):
            self.add(line)
        return None


def _test_of_pytest(name: str) -> str:
    """Return the name that pytest gives a test in its reports; "" of what is no test, such as a module that cannot be imported."""
    path, bracket, parameters = name.partition("[")
    file, *parts = path.split("::")
    of = ".".join([file.removesuffix(".py").replace("/", "."), *parts[:-1]])
    return f"{of}::{parts[-1]}{bracket}{parameters}" if parts else ""


class _Tsc(_Tool):
    """One line per error, plain or pretty."""

    _ERROR = re.compile(r"([^\s(:][^(:]{0,400})(?:\((\d+),\d+\):|:(\d+):\d+ -) error (TS\d{1,5}): (.*)")

    def feed(self, line: str) -> Failure | None:
        if not (match := self._ERROR.fullmatch(line)):
            return None
        place = f"{match[1].strip()}:{match[2] or match[3]}"
        return Failure(f"tsc {place} {match[4]}", f"{place}: {match[4]}: {match[5]}", [line])


class _Cargo(_Tool):
    """rustc errors, followed by their place; failed tests, whose output follows the list of them."""

    _ERROR = re.compile(
        r"error(?:\[(E\d{4})\])?: (?!could not compile|aborting due to|test failed|\d+ targets? failed).+"
    )
    _PLACE = re.compile(r"\s*--> (.+?):(\d+):\d+")
    _TEST = re.compile(r"test (\S+)(?: - .{1,200})? \.\.\. FAILED")
    _OUTPUT = re.compile(r"---- (\S+) stdout ----")

    def __init__(self) -> None:
        super().__init__()
        self._pending: Failure | None = None
        self._tests: dict[str, Failure] = {}

    def feed(self, line: str) -> Failure | None:
        if match := self._TEST.fullmatch(line):
            failure = self._tests[match[1]] = Failure(
                f"cargo test {match[1]}", f"Test {match[1]} failed", test=match[1]
            )
            return failure
        if match := self._OUTPUT.fullmatch(line):
            self.open = self._tests.get(match[1])
        elif match := self._ERROR.fullmatch(line):
            self.open = self._pending = Failure(f"rustc {match[1] or 'error'}", line, [line])
        elif (match := self._PLACE.fullmatch(line)) and self._pending:
            failure, self._pending = self._pending, None
            failure.key += f" {match[1]}:{match[2]}"
            failure.title = f"{match[1]}:{match[2]}: {failure.title}"
            failure.add(line)
            return failure
        elif line.strip() and line != "failures:":
            self.add(line)
        elif self.open and self.open.lines:
            self.open = self._pending = None
        return None


class _GoTest(_Tool):
    """``--- FAIL:`` with indented lines after it, or before it with ``-v``; build errors."""

    _FAIL = re.compile(r"\s*--- FAIL: (\S+)(?: \([\d.]+s\))?")
    _RUN = re.compile(r"=== (?:RUN|CONT)\s+(\S+)")
    _PACKAGE = re.compile(r"# (\S+(?: \[.*\])?)")
    _BUILD = re.compile(r"(?:vet: )?(\S+\.go):(\d+)(?::\d+)?: (.+)")
    _is_building = False

    def feed(self, line: str) -> Failure | None:
        if match := self._FAIL.fullmatch(line):
            self.open = Failure(f"go test {match[1]}", f"Test {match[1]} failed", self.taken(match[1]), match[1])
            return self.open
        if match := self._RUN.fullmatch(line):
            self.note(match[1])
        elif self._PACKAGE.fullmatch(line):
            self._is_building, self.open = True, None
        elif self._is_building and (match := self._BUILD.fullmatch(line)):
            place = f"{match[1]}:{match[2]}"
            return Failure(f"go build {place}", f"{place}: {match[3]}", [line])
        elif line.startswith((" ", "\t")) and not line.lstrip().startswith("---"):
            self.add(line.strip())
        else:
            self.open, self._is_building = None, False
        return None


class _Jest(_Tool):
    """``FAIL`` and a file, then a block for each failed test, which begins with a bullet."""

    _FILE = re.compile(r"\s*FAIL\s+(?:\S+ )?(\S+\.\w+)(?: \([\d.]+ m?s\))?")
    _TEST = re.compile(r"\s{0,4}● (.{1,400})")
    _file = ""

    def feed(self, line: str) -> Failure | None:
        if match := self._FILE.fullmatch(line):
            self._file, self.open = match[1], None
        elif (match := self._TEST.fullmatch(line)) and self._file:
            is_test = match[1] != "Console"
            name = f"{self._file} {match[1]}"
            self.open = Failure(f"jest {name}", f"{self._file}: {match[1]}", test=name) if is_test else None
            return self.open
        elif line[:1].strip():
            self.open = None
        elif line.strip():
            self.add(line.strip())
        return None


class _Npm(_Tool):
    """A block of ``npm ERR!`` lines (``npm error`` in later versions) that starts with a code."""

    _LINE = re.compile(r"npm (?:ERR!|error)\s?(.*)")
    _CODE = re.compile(r"code (\w{1,40})")
    _NOISE = re.compile(r"A complete log of this run|\s*\S*[/\\]_logs[/\\]|errno |\s*$")

    def feed(self, line: str) -> Failure | None:
        match = self._LINE.fullmatch(line)
        if not match:
            self.open = None
            return None
        said = match[1]
        code = self._CODE.fullmatch(said)
        if self.open is not None and not code:
            if not self._NOISE.match(said):
                self.add(said)
            return None
        named_by = code[1] if code else said
        self.open = Failure(f"npm {named_by[:80]}", f"npm failed: {named_by}", [said])
        return self.open


_TOOLS = (_Pytest, _Tsc, _Cargo, _GoTest, _Jest, _Npm)
