"""Error text: find it in an output, and compute a failure's fingerprint that is stable across occurrences.

All patterns are applied to truncated lines, so hostile input costs linear time.
"""

from __future__ import annotations

import hashlib

from memgraph.text import lazy_re as re

_MAX_LINE_CHARS = 400
_MAX_LINES = 20_000

_NAMED = re.compile(r"\b[A-Za-z_][\w.]{0,80}(?:Error|Exception|Fault|Panic)\b")
_STRONG = re.compile(
    r"^E\s{2,}\S|^--- FAIL:|\b(?:error|fatal|panic(?:ked)?|exception|FAILED)\b\s?[:\[(]|^(?:error|fatal|FAILED|FAIL)\b|\bsegmentation fault\b",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:cannot|can't|could not|couldn't|unable to|failed|failure|failing|timed out|timeout|denied|refused|rejected|"
    r"not found|no such|no rule to make|undefined|unresolved|unexpected|invalid|missing|conflict|crash(?:ed|es)?|killed|out of memory|"
    r"exit (?:code|status) [1-9]|non-zero|assertion|overflow|deadlock|regress(?:ed|ion))\b",
    re.IGNORECASE,
)
_NOISE = re.compile(r"\b(?:0|no) (?:errors?|failed|failures)\b", re.IGNORECASE)
_ENDED = re.compile(
    r"^(?:Error: )?(?:the )?(?:process|command|script|job|step)\b.{0,80}\b(?:exit(?:ed)?|completed|failed|terminated) (?:with )?(?:exit )?(?:code|status) \d+\W*$|^error: (?:could not compile|aborting due to)\b|^FAIL(?:\s+\S+\s+\d[\d.]*m?s)?$",
    re.IGNORECASE,
)
"""A line that reports a failure without its reason."""
_CODE = re.compile(
    r"^(?:[+-]?\d{0,6}[:|]?\s{0,20})(?:raise|except|class|import|from|def|return|catch|throw|with pytest)\b"
)
"""A line of source code in a log: the errors that it names did not happen."""
VERDICT = re.compile(
    r"^(?:=+ .{0,200}\b[1-9]\d* (?:failed|errors?)\b.{0,200} =+|[1-9]\d* (?:failed|errors?)(?:, \d+ \w+)* in [\d.]+s.*|FAILED \((?:failures|errors)=.{1,40}\)|"
    r"test result: FAILED\b.*|error: could not compile\b.*|FAIL(?:[ \t]+\S+[ \t]+(?:[\d.]+s|\[.+\]))?|Tests:[ \t]+(?:\d+ \w+, )*[1-9]\d* failed\b.*|[ \t]*Tests[ \t]+[1-9]\d* failed \|.*|"
    r"Found [1-9]\d* errors?(?: in .*)?\.?|(?:\[\w+\] )?BUILD FAIL(?:ED|URE).*|make(?:\[\d+\])?: \*\*\* .*)$",
    re.MULTILINE,
)
"""The line in which a program that checks says that something failed: pytest, unittest, cargo, go, jest, vitest, mypy, Maven, Gradle, make."""
_ERROR_TYPE = re.compile(r"\b([A-Z]\w{0,80}(?:Error|Exception|Fault|Warning)|[A-Z]{2,6}\d{3,6}|E[A-Z]{4,12})\b")

QUOTED = re.compile(r"\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|`[^`\n]{0,200}`|“[^”\n]{0,200}”")
TIME = re.compile(r"(?i)\d{4}-\d\d-\d\d[t ]?(?:\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?z?)?|\b\d\d:\d\d:\d\d\b")
HEX = re.compile(r"(?i)\b(?:0x[0-9a-f]{1,40}|(?=[a-f]{0,40}\d)[0-9a-f]{7,64})\b")
_DIRECTORIES = re.compile(r"(?<![^\s\"'(=:,\[])[^\s\"'()=:,\[\]]{0,200}[/\\](?=[^\s/\\])")
NUMBER = re.compile(r"\d+")
_PUNCTUATION = re.compile(r"[^\w#.]+")


def error_lines(text: str, *, limit: int = 2) -> list[str]:
    """Return the lines of `text` that describe the failure, the most informative first, each at most 240 characters.

    A named error is preferred to a line that starts like one, and both to a complaint without a name; of equals the last wins,
    because tools summarise at the end.
    """
    lines = text[-_MAX_LINE_CHARS * _MAX_LINES :].splitlines()[-_MAX_LINES:]
    found: dict[str, tuple[float, int]] = {}
    for index, raw in enumerate(lines):
        line = raw[:_MAX_LINE_CHARS].strip()
        if not line or _NOISE.search(line) or _CODE.match(line):
            continue
        rank = _rank(line)
        if rank:
            found[" ".join(line.split())[:240]] = (rank, index)
    best = sorted(found, key=lambda line: found[line], reverse=True)
    strongest = found[best[0]][0] if best else 0
    return [line for line in best if found[line][0] >= min(strongest, 2)][:limit]


def _rank(line: str) -> float:
    """Return how well a line describes a failure; 0: not at all."""
    if _ENDED.search(line):
        return 0.5
    return 3.0 if _NAMED.search(line) else 2.0 if _STRONG.search(line) else 1.0 if _WEAK.search(line) else 0.0


def first_lines(output: str, *, limit: int = 2) -> list[str]:
    """Return all lines of a short output: a tool's output for one failure describes it in its own words."""
    lines = [line.strip()[:240] for line in output[: 4 * _MAX_LINE_CHARS].splitlines() if line.strip()]
    return lines[:limit] if len(lines) <= 2 * limit else []


def error_type(line: str) -> str | None:
    """Return the class or code that an error line names: ``KeyError``, ``TS2322``, ``ECONNREFUSED``."""
    match = _ERROR_TYPE.search(line[:_MAX_LINE_CHARS])
    return match[1] if match else None


def normalised_error(text: str) -> str:
    """Return `text` without parts that vary between occurrences: quoted text, times, hex, directories, numbers."""
    text = text[:2_000].casefold()
    for pattern, stand_in in (
        (QUOTED, " q "),
        (TIME, " t "),
        (HEX, " h "),
        (_DIRECTORIES, ""),
        (NUMBER, "0"),
        (_PUNCTUATION, " "),
    ):
        text = pattern.sub(stand_in, text)
    return " ".join(text.split())


def failure_fingerprint(text: str) -> str:
    """Return a failure's fingerprint: the first 16 hex digits of the SHA-256 of its normalised error text."""
    return hashlib.sha256(normalised_error(text).encode("utf-8", "replace")).hexdigest()[:16]


def task_fingerprint(task: str) -> str:
    """Return the fingerprint of failing at a task: the first 16 hex digits of the SHA-256 of the task's text as written.

    Two failed trials of one task are the same failure, whatever their lessons; tasks that differ in a number are
    different.
    """
    return hashlib.sha256(f"task {' '.join(task.split())}".encode("utf-8", "replace")).hexdigest()[:16]
