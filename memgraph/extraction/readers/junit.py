"""Reader of JUnit XML reports: a file is a build, a test case a task."""

from __future__ import annotations

import codecs
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from io import StringIO
from typing import TYPE_CHECKING

from memgraph.errors import SourceError
from memgraph.extraction.readers.files import (
    MAX_OUTPUT_CHARS,
    changed_at,
    cleaned,
    end,
    named,
    one_line,
    time_of,
    without_ansi,
)
from memgraph.extraction.readers.sittings import is_sha
from memgraph.extraction.readers.source import MAX_WHOLE_BYTES, Document, FileReader, Part
from memgraph.model.build import BuildTask, TaskOutcome
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.text import lazy_re as re

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

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
            self._add(name, [*parents, element], wrong, run=" (first run)")
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
