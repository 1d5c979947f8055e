"""What went wrong, of which kind that is, and what helped: read from what episodes say. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memgraph.extraction.failures import failure_fingerprint
from memgraph.extraction.statements import sentences
from memgraph.lifecycle.experience import evidence_of
from memgraph.model.procedures import ErrorKind
from memgraph.model.text import cut
from memgraph.ports import Row

_SAID_CHARS = 320

_EXTERNAL = re.compile(
    r"\b(?:E(?:CONN(?:REFUSED|RESET|ABORTED)|NOTFOUND|HOSTUNREACH|NETUNREACH|AI_AGAIN|PIPE)|connection (?:was |has been )?(?:refused|reset|aborted|"
    r"closed|timed out|error)|connect(?:ion)? ?time(?:d )?-?out|no route to host|network is (?:unreachable|down)|network error|"
    r"(?:temporary failure in|could not resolve|cannot resolve) (?:name|host)\w*|name or service not known|rate.?limit\w*|too many requests|"
    r"quota (?:was |has been )?exceeded|(?:http|status|code|error)\W{0,3}(?:429|50[0234])|service (?:is )?(?:temporarily )?unavailable|"
    r"bad gateway|gateway time-?out|internal server error|overloaded|unexpected eof while reading|tls handshake|read timed out|"
    r"remote (?:end )?(?:host )?(?:closed|hung up)|\w{0,20}(?:ConnectionError|RateLimitError|ServiceUnavailable\w*|ConnectTimeout|ReadTimeout))\b",
    re.IGNORECASE,
)
_CONFIGURATION = re.compile(
    r"\b(?:no such file or directory|file ?not ?found\w*|ENOENT|command not found|not recognized as an internal or external command|"
    r"no module named|module ?not ?found\w*|cannot find (?:module|package)|permission denied|PermissionError|EACCES|EADDRINUSE|"
    r"address already in use|no space left on device|disk (?:is )?full|environment variables?|(?:is|was) not (?:set|configured|installed)|"
    r"missing (?:required )?(?:config\w*|setting|credentials?|token|api key|environment|key file|dependency)|"
    r"(?:invalid|missing|expired|bad|no) (?:api.?key|credentials?|token)|unauthori[sz]ed|(?:http|status|code|error)\W{0,3}40[13]|"
    r"(?:version (?:mismatch|conflict)|unsupported version|incompatible versions?|no matching (?:distribution|version)|"
    r"could not find a version|requires? (?:a )?(?:python|node|version)\b[^.]{0,30}\d)|(?:invalid|bad|broken) config\w*|config\w* (?:error|file)|"
    r"certificate (?:has )?expired|dependency conflict|could not resolve dependencies)\b",
    re.IGNORECASE,
)
_WHAT_WORKED = re.compile(
    r"(?:what worked|What it acted on): (`.+?`|.+?)(?:\. [A-Z“`]|\.?$)", re.IGNORECASE | re.DOTALL
)
_WORKED_AFTER = re.compile(r"it worked after (.+? had been edited|`.+?`)")
_AGAIN = re.compile(r"it worked when it was run again\.(.*)$", re.DOTALL)
_TRIED = (
    re.compile(r"^(`.+?`) failed"),
    re.compile(r"failed at (“.+?”)"),
    re.compile(r"^(An edit(?: of \S+)?) failed"),
)
_WHAT = re.compile(
    r"^(?:Failed trial|Solved after a failed trial|Solved): (.+?) (?:Lesson|What it acted on|What was done|Last error): ",
    re.DOTALL,
)
_LESSON = re.compile(r" (?:Lesson|What it acted on): (.+)$", re.DOTALL)
_TO_DO = re.compile(
    r"\b(?:should|make sure|let's fix|next (?:trial|time|attempt)|i will|instead|needs? to|must|avoid|always|rather than)\b",
    re.IGNORECASE,
)
_WENT_WRONG = re.compile(
    r"\b(?:wrong|mistake|incorrect|fail(?:ed|s)?|forgot|missed|assum\w{1,4}|stuck|did(?: not|n't)|does(?: not|n't)|only considers?)\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Trouble:
    """An error, wherever it was met.

    Attributes
    ----------
    error : str
        As it was reported first.
    failed, mended : list of Row
        Episodes in which it stayed; those that tell what helped.
    """

    fingerprint: str
    error: str
    failed: list[Row] = field(default_factory=list)
    mended: list[Row] = field(default_factory=list)

    @property
    def lesson(self) -> str | None:
        """The lesson that was drawn each time, where no error was reported: it did not help."""
        if not self.failed or self.failed[0]["content"] != self.error:
            return None
        found = _LESSON.search(self.error)
        return cut(" ".join(found[1].split()), 500) if found else None

    @property
    def builds(self) -> frozenset[str]:
        """Those in which it was met."""
        return frozenset().union(*(evidence_of(row) for row in (*self.failed, *self.mended)))


def kind_of(error: str) -> ErrorKind:
    """Return whose fault an error is: that of network, rate limit or service; of a setting, file, permission or version; else one's own.

    What names neither is taken for a mistake of one's own: that is what one can do something about.
    """
    said = error[:2_000]
    if _EXTERNAL.search(said):
        return "external"
    return "configuration" if _CONFIGURATION.search(said) else "internal"


def errors_of(row: Row) -> Iterator[tuple[str, str]]:
    """Yield the errors that an episode met, as (fingerprint, message); of one that failed without any, what it says itself."""
    met = row.get("errors_encountered", ())
    for error in met[:1]:  # what follows is what the tool added to it
        yield failure_fingerprint(error["message"]), error["message"]
    if not met and row.get("failure_fingerprint"):
        yield row["failure_fingerprint"], row["content"]


def troubles(rows: Sequence[Row]) -> list[Trouble]:
    """Return the errors that episodes met, in the order in which they were first met."""
    found: dict[str, Trouble] = {}
    for row in rows:
        for fingerprint, message in errors_of(row):
            trouble = found.setdefault(fingerprint, Trouble(fingerprint, message))
            of = trouble.failed if row.get("outcome") == "negative" else trouble.mended
            if all(one["id"] != row["id"] for one in of[-1:]):
                of.append(row)
    return list(found.values())


def error_text(row: Row) -> str:
    """Return what an episode says of the error that it met."""
    return next((message for _, message in errors_of(row)), row["content"])


def remedy_of(row: Row) -> str | None:
    """Return what an episode says that helped, in its own words."""
    text = row["content"]
    if after := _WORKED_AFTER.search(text):
        what = after[1]
        return _said(f"edit {what.removesuffix(' had been edited')}" if what.endswith("edited") else what)
    if lesson := _LESSON.search(text):
        if row.get("outcome") == "positive":
            return advice_in(lesson[1])
        return None
    if again := _AGAIN.search(text):
        return advice_in(again[1])
    if worked := _WHAT_WORKED.search(text):
        return None if worked[1].startswith("`…") else _said(worked[1])  # a part of a command helps nobody
    stated = next((error["resolution"] for error in row.get("errors_encountered", ()) if error.get("resolution")), None)
    return _said(stated) if stated else None


def advice_in(lesson: str) -> str | None:
    """Return the sentences of a lesson that say what is to be done, the last ones."""
    return _joined([one for one in sentences(lesson) if _TO_DO.search(one)][-2:])


def tried_in(row: Row) -> str | None:
    """Return what an episode says was done that went wrong; None for a lesson that only says what is to be done."""
    text = row["content"]
    if lesson := _LESSON.search(text):
        wrong = [one for one in sentences(lesson[1]) if _WENT_WRONG.search(one) and not _TO_DO.search(one)]
        return _joined(wrong[:2])
    for pattern in _TRIED:
        if found := pattern.search(text):
            return _said(found[1])
    failed = [step["action"] for step in row.get("action_log", ()) if step.get("error")]
    if failed:
        return _said(failed[-1])
    return _said(row.get("action") or row.get("decision") or (sentences(text) or [text])[0])


def what_of(row: Row) -> str | None:
    """Return what a trial was at, to recognise it by in another trial."""
    found = _WHAT.match(row["content"])
    return found[1].rstrip(".") if found else None


def named_error(error: str) -> str:
    """Return an error in one short line."""
    return cut(" ".join(error.split()), 200)


def _joined(parts: Sequence[str]) -> str | None:
    said = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts)
    return _said(said) if said else None


def _said(text: str) -> str:
    return cut(" ".join(text.split()), _SAID_CHARS)
