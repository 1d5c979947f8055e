"""Reader of JUnit XML reports: a file is a build, a test case a task."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from memgraph.errors import InvalidInputError, SourceError
from memgraph.extraction.readers.documents import MAX_WHOLE_BYTES, Part, in_parts, numbered_id, part_of, whole
from memgraph.extraction.readers.source import (
    MAX_OUTPUT_CHARS,
    SourceRecord,
    changed_at,
    cleaned,
    end,
    named,
    one_line,
    overall,
    project_of,
    shortened,
    time_of,
)
from memgraph.model.build import BuildTask
from memgraph.model.timestamps import from_iso, to_iso

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_ERR_TAIL_CHARS = 2_000
_MAX_DEPTH = 100
_MAX_TESTS = 1_000_000


class JunitReader:
    """Reads a JUnit XML test report, as written by most test runners.

    Skipped tests are counted in the build's summary but are not tasks, since they have no outcome. A report without a
    time is dated by its file. Document types and entities are rejected.

    Parameters
    ----------
    path : path-like
        XML, optionally gzipped, of at most `max_bytes`.
    project_id : str, optional
        Default: the file's name without its suffixes.
    max_bytes : int
        The rest is not read.
    """

    kind = "junit"

    def __init__(self, path: str | Path, *, project_id: str | None = None, max_bytes: int = MAX_WHOLE_BYTES) -> None:
        self._path = Path(path).absolute()
        self.project_id = project_of(self._path, project_id)
        self._max_bytes = max_bytes

    @property
    def locator(self) -> str:
        """Absolute path of the file."""
        return str(self._path)

    @property
    def source_id(self) -> str:
        """``junit:`` and the absolute path, since successive runs write the same file."""
        return f"junit:{self._path}"

    def count(self) -> int | None:
        """Return None: a report is read as a whole."""
        return None

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per report; see `Reader.records`."""
        return whole(self._path, cursor, self._parts)

    def _parts(self, stream: BinaryIO, mark: str) -> Iterator[Part]:
        from xml.etree.ElementTree import ParseError  # the parsing itself is defusedxml's

        from defusedxml import DefusedXmlException

        report = _Report()
        problem = ""
        try:
            report.read(_Limited(stream, self._max_bytes))
        except DefusedXmlException:
            problem = "declares a document type or entities, which is not allowed"
        except (ParseError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
            problem = f"not well-formed XML: {error}"
        if not report.is_one:
            raise SourceError(problem or "contains no <testsuite>: not a JUnit report", path=self._path)
        name = f"junit-{report.name or 'tests'}-{report.started or mark}"
        for number, tasks in in_parts(report.tasks):
            fields = {
                "build_id": numbered_id(name[:380], number),
                "project_id": self.project_id,
                "tasks": tasks,
                "build_summary": report.summary(),
                "build_outcome": overall(tasks) if number > 1 else report.outcome(),
                "started_at": report.started or changed_at(self._path),
                "completed_at": report.completed() or changed_at(self._path),
                "source": "test report",
                "trust_class": "tool",
            }
            yield part_of("report", fields, len(tasks) or 1)
        if problem:
            yield Part(None, 1, problem)


class _Limited:
    """A stream that ends after a number of bytes, which makes a longer document incomplete."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self._stream = stream
        self._left = limit

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size if size >= 0 else self._left, self._left))
        self._left -= len(data)
        return data


class _Report:
    """The content of a report, extended while it is read."""

    def __init__(self) -> None:
        self.is_one = False
        self.name = self.started = ""
        self.seconds = 0.0
        self.tasks: list[BuildTask] = []
        self.counts: Counter[str] = Counter()

    def read(self, stream: _Limited) -> None:
        """Read a document, releasing each test once it is read."""
        from defusedxml.ElementTree import iterparse

        open_elements: list[Element] = []
        for event, element in iterparse(stream, events=("start", "end"), forbid_dtd=True):
            tag = _tag(element)
            if event == "start":
                open_elements.append(element)
                if len(open_elements) > _MAX_DEPTH:
                    raise ValueError(f"nested deeper than {_MAX_DEPTH}")
                if tag in {"testsuite", "testsuites"}:
                    self._suite(element)
                continue
            open_elements.pop()
            if tag == "testcase" and self.is_one and self.counts.total() < _MAX_TESTS:
                self._case(element, open_elements)
            if open_elements and not any(_tag(parent) == "testcase" for parent in open_elements):
                open_elements[-1].remove(element)

    def _suite(self, element: Element) -> None:
        self.is_one = True
        self.name = self.name or one_line(element.get("name"), 120)
        self.started = self.started or time_of(element.get("timestamp")) or ""
        if _tag(element) == "testsuite":
            self.seconds += _seconds(element.get("time"))

    def _case(self, element: Element, parents: list[Element]) -> None:
        kinds = {_tag(child): child for child in reversed(list(element))}
        went_wrong = kinds.get("failure", kinds.get("error"))
        state = "skipped" if went_wrong is None and "skipped" in kinds else "passed" if went_wrong is None else "failed"
        self.counts[state] += 1
        if state == "skipped":
            return
        suites = [parent for parent in reversed(parents) if _tag(parent) == "testsuite"]
        place = [one_line(element.get(key), 180) for key in ("classname", "name")]
        test = "::".join(filter(None, place)) or f"test {self.counts.total()}"
        when = (time_of(one.get("timestamp")) for one in (element, *suites))
        try:
            self.tasks.append(
                BuildTask(
                    task_id=test,
                    agent_name=named(next((one.get("hostname") for one in suites if one.get("hostname")), ""), "tests"),
                    description=one_line(f"Test {test}"),
                    output=_output(went_wrong, kinds.get("system-err")),
                    outcome="success" if went_wrong is None else "failure",
                    occurred_at=next(filter(None, when), None),
                )
            )
        except InvalidInputError:  # cleaned texts should be valid; if not, only this test is lost
            return

    def outcome(self) -> str:
        """Failure if any test failed."""
        return "failure" if self.counts["failed"] else "success"

    def summary(self) -> str:
        """Return the counts in words."""
        return f"{self.counts.total()} tests: " + ", ".join(
            f"{self.counts[state]} {state}" for state in ("passed", "failed", "skipped")
        )

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


def _seconds(text: str | None) -> float:
    try:
        seconds = float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0


def _output(went_wrong: Element | None, system_err: Element | None) -> str:
    if went_wrong is None:
        return ""
    message, text = went_wrong.get("message") or "", went_wrong.text or ""
    texts = [went_wrong.get("type") or ""] if not (message or text.strip()) else []
    texts += [message] if message.strip() and message.strip() not in text else []
    texts += [shortened(text, MAX_OUTPUT_CHARS)] if text.strip() else []
    err = end(cleaned(system_err.text, 4 * _ERR_TAIL_CHARS), _ERR_TAIL_CHARS) if system_err is not None else ""
    texts += [f"stderr: {err}"] if err else []
    return cleaned("\n".join(texts), MAX_OUTPUT_CHARS)
