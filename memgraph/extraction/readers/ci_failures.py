"""Recognition of failures in the output of pytest, tsc, cargo, go test, jest and npm, line by line."""

from __future__ import annotations

from dataclasses import dataclass, field

from memgraph.text import lazy_re as re

_MAX_LINES = 60
_MAX_FAILURE_CHARS = 16_000
_MAX_HELD = 5_000
_MAX_HELD_CHARS = 20_000_000


@dataclass
class Failure:
    """A failure, while its lines are being read.

    Attributes
    ----------
    key : str
        Tool, and the test's name or place and code: equal for the same failure in another run.
    title : str
        One line.
    lines : list of str
        The messages that belong to it.
    file : str
        Its file, if stated.
    """

    key: str
    title: str
    lines: list[str] = field(default_factory=list)
    file: str = ""

    def add(self, line: str) -> None:
        """Add a line."""
        if len(self.lines) < _MAX_LINES and sum(map(len, self.lines)) < _MAX_FAILURE_CHARS:
            self.lines.append(line)


class _Notes:
    """Output of each test before its failure is named, with a common size limit."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._current: list[str] | None = None
        self._left = _MAX_HELD_CHARS

    def begin(self, test: str) -> None:
        """Assign the lines to come to a test, unless too many are held."""
        self._current = self._lines.setdefault(test, []) if len(self._lines) < _MAX_HELD else None

    def add(self, line: str) -> None:
        """Add a line to the output of the current test, if there is one."""
        if self._current is not None and len(self._current) < _MAX_LINES and len(line) <= self._left:
            self._left -= len(line)
            self._current.append(line)

    def end(self) -> None:
        """Assign the lines to come to no test."""
        self._current = None

    def take(self, test: str) -> list[str]:
        """Return and remove a test's output."""
        self.end()
        return self._lines.pop(test, [])


class Pytest:
    """The short summary names the failures; the sections before it contain the details (``E`` lines)."""

    _HEADER = re.compile(r"_{3,} (?:ERROR at (?:setup|teardown) of )?(\S.{0,300}?) _{3,}")
    _SUMMARY = re.compile(
        r"(FAILED|ERROR) ([^\s:]+\.py|[^:]{1,300}\.\w{1,10}(?=::))((?:::[^\[]+?(?:\[.*?\])?)?)(?: - (.*))?"
    )
    _EVIDENCE = re.compile(r"(?:E {3,}|>\s{2,})\S|\S+\.py:\d+: ")

    def __init__(self) -> None:
        self._evidence = _Notes()

    def feed(self, line: str) -> Failure | None:
        """Return the failure named by a line, if any."""
        if match := self._HEADER.fullmatch(line):
            self._evidence.begin(match[1])
        elif match := self._SUMMARY.fullmatch(line):
            test = match[3].removeprefix("::")
            said = self._evidence.take(test.replace("::", "."))
            title = f"{'Test' if match[1] == 'FAILED' else 'Test set-up'} {match[2]}{match[3]} failed"
            told = [match[4]] if match[4] else []
            return Failure(f"pytest {match[2]}{match[3]}", title, [*said, *told], match[2])
        elif line.startswith("==="):
            self._evidence.end()
        elif self._EVIDENCE.match(line):
            self._evidence.add(line)
        return None


class Tsc:
    """One line per error, plain or pretty."""

    _ERROR = re.compile(r"([^\s(:][^(:]{0,400})(?:\((\d+),\d+\):|:(\d+):\d+ -) error (TS\d{1,5}): (.*)")

    def feed(self, line: str) -> Failure | None:
        """Return the failure named by a line, if any."""
        if not (match := self._ERROR.fullmatch(line)):
            return None
        file = match[1].strip()
        at = match[2] or match[3]
        return Failure(f"tsc {file}:{at} {match[4]}", f"{file}:{at}: {match[4]}: {match[5]}", [line], file)


class Cargo:
    """rustc errors, followed by their place; failed tests, whose output follows the list of them."""

    _ERROR = re.compile(r"error(?:\[(E\d{4})\])?: (.+)")
    _NO_ERROR = re.compile(r"error: (?:could not compile|aborting due to|test failed|\d+ targets? failed)")
    _PLACE = re.compile(r"\s*--> (.+?):(\d+):\d+")
    _TEST = re.compile(r"test (\S+)(?: - .{1,200})? \.\.\. FAILED")
    _OUTPUT = re.compile(r"---- (\S+) stdout ----")

    def __init__(self) -> None:
        self._pending: Failure | None = None
        self._open: Failure | None = None
        self._tests: dict[str, Failure] = {}

    def feed(self, line: str) -> Failure | None:
        """Return the failure completed by a line, if any."""
        if match := self._TEST.fullmatch(line):
            failure = Failure(f"cargo test {match[1]}", f"Test {match[1]} failed")
            self._tests[match[1]] = failure
            return failure
        if match := self._OUTPUT.fullmatch(line):
            self._open = self._tests.get(match[1])
        elif (match := self._ERROR.fullmatch(line)) and not self._NO_ERROR.match(line):
            self._open = self._pending = Failure(f"rustc {match[1] or 'error'}", line, [line])
        elif (match := self._PLACE.fullmatch(line)) and self._pending:
            failure, self._pending = self._pending, None
            failure.file = match[1]
            failure.key += f" {match[1]}:{match[2]}"
            failure.title = f"{match[1]}:{match[2]}: {failure.title}"
            failure.add(line)
            return failure
        elif self._open is not None:
            if line.strip() and line != "failures:":
                self._open.add(line)
            elif self._open.lines:
                self._open = self._pending = None
        return None


class GoTest:
    """``--- FAIL:`` with indented lines after it, or before it with ``-v``; build errors."""

    _FAIL = re.compile(r"\s*--- FAIL: (\S+)(?: \([\d.]+s\))?")
    _RUN = re.compile(r"=== (?:RUN|CONT)\s+(\S+)")
    _PACKAGE = re.compile(r"# (\S+(?: \[.*\])?)")
    _BUILD = re.compile(r"(?:vet: )?(\S+\.go):(\d+)(?::\d+)?: (.+)")

    def __init__(self) -> None:
        self._before = _Notes()
        self._open: Failure | None = None
        self._is_building = False

    def feed(self, line: str) -> Failure | None:
        """Return the failure named by a line, if any."""
        if match := self._FAIL.fullmatch(line):
            self._open = Failure(f"go test {match[1]}", f"Test {match[1]} failed", self._before.take(match[1]))
            return self._open
        if match := self._RUN.fullmatch(line):
            self._open = None
            self._before.begin(match[1])
        elif self._PACKAGE.fullmatch(line):
            self._is_building, self._open = True, None
        elif self._is_building and (match := self._BUILD.fullmatch(line)):
            key = f"go build {match[1]}:{match[2]}"
            return Failure(key, f"{match[1]}:{match[2]}: {match[3]}", [line], match[1])
        elif line.startswith((" ", "\t")) and not line.lstrip().startswith("---"):
            (self._open or self._before).add(line.strip())
        else:
            self._open, self._is_building = None, False
            self._before.end()
        return None


class Jest:
    """``FAIL`` and a file, then a block for each failed test, which begins with a bullet."""

    _FILE = re.compile(r"\s*FAIL\s+(?:\S+ )?(\S+\.\w+)(?: \([\d.]+ m?s\))?")
    _TEST = re.compile(r"\s{0,4}● (.{1,400})")

    def __init__(self) -> None:
        self._file = ""
        self._open: Failure | None = None

    def feed(self, line: str) -> Failure | None:
        """Return the failure begun by a line, if any."""
        if match := self._FILE.fullmatch(line):
            self._file, self._open = match[1], None
        elif (match := self._TEST.fullmatch(line)) and self._file:
            self._open = None
            if match[1] != "Console":
                self._open = Failure(f"jest {self._file} {match[1]}", f"{self._file}: {match[1]}", [], self._file)
                return self._open
        elif line[:1].strip():
            self._open = None
        elif self._open is not None and line.strip():
            self._open.add(line.strip())
        return None


class Npm:
    """A block of ``npm ERR!`` lines (``npm error`` in later versions) that starts with a code."""

    _LINE = re.compile(r"npm (?:ERR!|error)\s?(.*)")
    _CODE = re.compile(r"code (\w{1,40})")
    _NOISE = re.compile(r"A complete log of this run|\s*\S*[/\\]_logs[/\\]|errno |\s*$")

    def __init__(self) -> None:
        self._open: Failure | None = None

    def feed(self, line: str) -> Failure | None:
        """Return the failure begun by a line, if any."""
        match = self._LINE.fullmatch(line)
        if not match:
            self._open = None
            return None
        said = match[1]
        code = self._CODE.fullmatch(said)
        if self._open is not None and not code:
            if not self._NOISE.match(said):
                self._open.add(said)
            return None
        title = f"npm failed: {code[1] if code else said}"
        self._open = Failure(f"npm {code[1] if code else said[:80]}", title, [said])
        return self._open


def recognisers() -> tuple[Pytest, Tsc, Cargo, GoTest, Jest, Npm]:
    """Return one recogniser of each kind, for one log."""
    return Pytest(), Tsc(), Cargo(), GoTest(), Jest(), Npm()
