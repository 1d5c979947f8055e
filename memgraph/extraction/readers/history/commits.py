"""Commits, and which earlier commit each one undoes, restores or mends."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from memgraph.text import lazy_re as re
from memgraph.text.words import overlap

RECENT_COMMITS = 5_000
_MAX_SUBJECT_LINES = 3
_MAX_WRAPPED_LINES = 12
_LEAST_WRAPPED_CHARS = 60
"""A first line of this length that goes on in the next one is the beginning of a paragraph; a shorter one is a title."""
_MAX_SUBJECT_CHARS = 2_000
_MAX_MESSAGE_CHARS = 50_000
_LEAST_SAME = 0.8
_LEAST_WORDS = 3
_LONGEST_AGO = timedelta(days=365)

_PULL_REQUEST = re.compile(r"\((?:#|GH-)(\d{1,7})\)\s*$|^Merge pull request #(\d{1,7})\b")
_MERGED_REQUEST = re.compile(r"Merge pull request #(\d{1,7}) from \S+$")
_PREFIX = r"(?:[\w./ -]{1,40}(?:\([^()\n]{1,40}\))?!?: |\[[^\]\n]{1,40}\]:? ?|:\w{1,30}: )?"
_TURN = re.compile(
    rf"{_PREFIX}(?:(?P<undo>revert(?:s|ed|ing)?|un(?:do(?:es|ne|ing)?|did)|back(?:s|ed|ing)?[ -]?out|roll(?:s|ed|ing)?[ -]?back)|"
    r"re-?appl(?:y|ies|ied|ying)|re-?land(?:s|ed|ing)?|re-?instat(?:e|es|ed|ing)|redo(?:es|ne)?)\b(?:\s+of)?:?\s+(?P<what>\S.{2,1000})",
    re.IGNORECASE,
)
"""A subject that undoes something or does it again, and what."""
_QUOTED = re.compile(r"[\"“](.{3,1000}?)(?:[\"”](?=\s*(?:$|[(\[:;,.–-]|(?:because|since|due)\b))|$)")
_NAMED = re.compile(
    r"(?:the )?(?:changes? (?:in|of|from) )?(?:(?:(?:commit|changeset|revision)s? )?((?=[a-f]*\d)[0-9a-f]{7,64})|(?:PR |pull request )?(?:[\w.-]+/[\w.-]+)?(?:#|GH-)(\d{1,7}))\b",
    re.IGNORECASE,
)
"""A commit or a pull request."""
_THIS_REVERTS = re.compile(
    r"^(?:This (?:commit |change |patch )?)?(?:reverts?|undoes|backs? out|rolls? back) (?=\S.{0,30}\d)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line of a body that names what its commit reverts."""
_SQUASHED = re.compile(r"^\s{0,3}[*-] |^\W{0,3}(?:squashed commit of|revert \")", re.IGNORECASE | re.MULTILINE)
"""A line of a body that joins the messages of several commits: a revert among them is not what all of them do."""
_OBJECT = re.compile(r"(?:the\s+)?(?:changes? (?:to|of|in)\s+)?(.{10,300})", re.IGNORECASE)
_MAX_TURNS = 6
_REMOVAL = re.compile(r"(?:[\w./ -]{1,40}: )?(?:remov|drop|delet)(?:e|es|ed|s|ped|ing)?\s+(.{8,300})", re.IGNORECASE)
_ADDITION = re.compile(
    r"(?:[\w./ -]{1,40}: )?(?:add|introduc|deprecat|implement|support)(?:e|es|ed|s|ing)?\s+", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"`?(?=[\w.]*[_.])([\w.]{4,80})(?:\(\))?`?(?:\s*\((?:#|GH-)\d{1,7}\))?\.?$")
_MENDS = re.compile(
    r"\b(?:introduced|broken?|broke|regress(?:ed|ion)|caused|follow[- ]?up|followup|fix(?:es|ed)?|amends?|mistake|bug|since|after|oversight|leftovers?)\b"
    r"(?: (?:in|by|of|to|for|from|since|with|on|the|a|commit|change|PR|pull request|version|\w{2,12})){0,4}?:? \(?(?:commit )?(?:([0-9a-f]{7,40})\b|(?:#|GH-)(\d{1,7})\b)",
    re.IGNORECASE,
)
_OF_ANOTHER = re.compile(r"\b(?:was|were|been|got|already)\s+(?:already\s+)?(?:fixed|amended)\b", re.IGNORECASE)
"""The commit named is what mended the fault."""
_FIXUP = re.compile(r'(?:(?:fixup|squash|amend)! |follow[- ]?up (?:to|of|for) ")(.{3,1000}?)"?$', re.IGNORECASE)
_MENDS_REQUEST = re.compile(
    r"\b(?:introduced|broken?|broke|regress\w{2,4}|caused|follow[- ]?up|followup|oversight)\b", re.IGNORECASE
)
_CONTINUES = re.compile(r" {0,3}(?:[a-z][a-z']{0,20}[\s.,;)]|[a-z][a-z']{0,20}$|\()(?!.{0,30}#\d)(?!\s?:)")
_IMPORTED = re.compile(r"\A\[[^\]\n]{1,200}\][ \t]*\n+")
"""A line that a tool put before a message, whose next line is its title."""
_TRAILER = re.compile(
    r"(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|reported-by|suggested-by|approved-by|assisted-by|cc|change-id|"
    r"reviewed-on|git-svn-id|pull-request-resolved|differential revision|generated with|🤖 generated)\b.{0,3}:?\s",
    re.IGNORECASE,
)
_SILENT = frozenset({"the", "and", "for", "with", "from", "into", "deprecated", "support"})
_WORD = re.compile(r"[^\W_][\w.-]*")


class FileChange(NamedTuple):
    """A changed file: git's status letter, its path, and its earlier path if it was renamed or copied."""

    status: str
    path: str
    was: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit from either source; `message` is complete, `when` is its author's time, `release` the first one that contains it."""

    sha: str
    author: str
    when: datetime
    message: str
    files: tuple[FileChange, ...] = ()
    release: str = ""

    @property
    def subject(self) -> str:
        """The message's first line, with the lines that continue its sentence, as git shows it."""
        return self._parted()[0]

    @property
    def body(self) -> str:
        """The text after the subject, without trailers, which name people and tools instead of what happened."""
        lines = (line.rstrip() for line in self._parted()[1].splitlines() if not _TRAILER.match(line.strip()))
        return "\n".join(lines).strip("\n").rstrip()

    def _parted(self) -> tuple[str, str]:
        message = self.message.strip()
        imported = _IMPORTED.match(message)
        first, _, rest = message[imported.end() if imported else 0 :].partition("\n")
        subject, after = first.strip(), rest
        is_wrapped = len(first) >= _LEAST_WRAPPED_CHARS
        for _ in range(_MAX_WRAPPED_LINES if is_wrapped else 0 if imported else _MAX_SUBJECT_LINES):
            line, _, later = after.partition("\n")
            if subject.endswith((".", ":", ";", "!")) or not _CONTINUES.match(line) or _TRAILER.match(line.strip()):
                return subject, after
            subject, after = f"{subject} {line.strip()}", later
        return (subject, after) if is_wrapped else (first.strip(), rest)


class Undoing(NamedTuple):
    """What a commit undoes or does again."""

    title: str
    """Subject of the change concerned, without the words of earlier reverts; empty if it is not known."""
    is_again: bool
    """Whether the change is in force afterwards: a revert of its revert does it again."""
    commit: str | None
    """The commit that is reverted, which may be a revert itself."""
    origin: str | None
    """The commit that made the change first."""


def undoing_of(subject: str) -> Undoing | None:
    """Return what a subject says that it undoes by quoting it; None if it quotes nothing."""
    turns, title = 0, subject[:_MAX_SUBJECT_CHARS]
    while turns < _MAX_TURNS and (match := _TURN.match(title)) and (quoted := _QUOTED.match(match["what"])):
        turns, title = turns + (1 if match["undo"] else 2), quoted[1]
    return Undoing(title, turns % 2 == 0, None, None) if turns else None


class _Kept(NamedTuple):
    subject: str
    body: int
    """Its hash."""
    when: datetime
    undoing: Undoing | None


class RecentCommits:
    """The last `limit` commits, so that a revert or a follow-up finds the commit it refers to in an earlier build."""

    def __init__(self, limit: int = RECENT_COMMITS) -> None:
        self._limit = limit
        self._kept: dict[str, _Kept] = {}
        self._by_subject: dict[str, str] = {}
        self._by_request: dict[str, str] = {}
        self._undone: dict[str, str] = {}
        """The commits that reverted others, by those."""

    def add(self, commit: Commit) -> None:
        """Record a commit as the latest."""
        subject = commit.subject[:_MAX_SUBJECT_CHARS]
        undoing = self.undoing(commit)
        self._kept[commit.sha] = _Kept(subject, hash(commit.body), commit.when, undoing)
        if undoing and undoing.origin:
            if undoing.is_again:
                self._undone.pop(undoing.origin, None)
            else:
                self._undone[undoing.origin] = commit.sha
        self._by_subject[subject] = commit.sha
        if request := _request(subject):
            self._by_request[request] = commit.sha
        if len(self._kept) > self._limit:
            oldest = next(iter(self._kept))
            forgotten = self._kept.pop(oldest)
            self._undone = {one: by for one, by in self._undone.items() if oldest not in (one, by)}
            if self._by_subject.get(forgotten.subject) == oldest:
                del self._by_subject[forgotten.subject]
            if (request := _request(forgotten.subject)) and self._by_request.get(request) == oldest:
                del self._by_request[request]

    def subject_of(self, sha: str) -> str:
        """Return the subject of a commit; empty if it is not known."""
        return self._kept[sha].subject if sha in self._kept else ""

    def repeated_by(self, commit: Commit) -> str | None:
        """Return the sha of the commit whose message `commit` repeats without changing a file: that which it merges."""
        subject, body = commit.subject, commit.body
        if commit.files:
            return None
        if request := _MERGED_REQUEST.match(subject):  # its body begins with the request's title
            subject, _, body = body.partition("\n")
            subjects = [subject.strip(), f"{subject.strip()} (#{request[1]})"]
        else:
            subjects = [subject]
        body = body.strip("\n").rstrip()
        for sha in filter(None, map(self._by_subject.get, subjects)):
            if not body or self._kept[sha].body == hash(body):
                return sha
        return None

    def undoing(self, commit: Commit) -> Undoing | None:
        """Return what `commit` reverts or does again: by the id in its body, the subject it quotes, its request, or its words."""
        said = undoing_of(commit.subject)
        named = self._reverted_by(commit)
        if named is None:
            named = self._by_subject.get(said.title) if said else None
            if said and said.is_again:  # its subject quotes the change, not the revert
                return said._replace(commit=self._undone.get(named or ""), origin=named)
        if named is None or named not in self._kept:
            return said._replace(commit=named) if said else Undoing("", False, named, None) if named else None
        if earlier := self._kept[named].undoing:
            return earlier._replace(is_again=not earlier.is_again, commit=named)
        return Undoing(self._kept[named].subject, False, named, named)

    def _reverted_by(self, commit: Commit) -> str | None:
        """Return the sha of the commit that `commit` reverts, unless only a quoted subject says which."""
        subject, body = commit.subject, commit.body[:_MAX_MESSAGE_CHARS]
        turn = _TURN.match(subject)
        what = turn["what"] if turn else ""
        says = [_NAMED.match(what)]
        if turn or not _SQUASHED.search(body):
            says += [_NAMED.match(body, line.end()) for line in _THIS_REVERTS.finditer(body)]
        for named in filter(None, says):
            if sha := self._resolved(named[1].lower(), guess=True) if named[1] else self._by_request.get(named[2]):
                return sha
        if turn and turn["undo"] and not what.startswith(('"', "“")) and (match := _OBJECT.match(what)):
            return self._by_subject.get(what) or self._resembling(match[1], commit)
        return None

    def reversed_by(self, commit: Commit) -> str | None:
        """Return the sha of the revert that `commit` takes back: it makes the reverted change again, under the same title."""
        revert = self._undone.get(self._by_subject.get(commit.subject) or "")
        if revert and len(_words(commit.subject)) >= _LEAST_WORDS and self._kept[revert].when < commit.when:
            return revert
        return None

    def removed_by(self, commit: Commit) -> str | None:
        """Return the sha of the commit that added or deprecated what `commit` removes, by its subject's words."""
        match = _REMOVAL.match(commit.subject)
        if match and (named := _IDENTIFIER.match(match[1])):
            return self._naming(named[1])
        return self._resembling(match[1], commit, within=None, verb=_ADDITION) if match else None

    def _naming(self, identifier: str) -> str | None:
        """Return the latest commit that added or deprecated what an identifier names, and nothing else."""
        for sha in reversed(self._kept):
            subject = self._kept[sha].subject
            begins = _ADDITION.match(subject)
            if begins and (named := _IDENTIFIER.match(subject[begins.end() :])) and named[1] == identifier:
                return sha
        return None

    def mended_by(self, commit: Commit) -> str | None:
        """Return the sha of the commit whose mistake `commit` corrects by its own words."""
        if match := _FIXUP.match(commit.subject):
            return self._by_subject.get(match[1])
        for match in _MENDS.finditer(commit.message[:_MAX_MESSAGE_CHARS]):
            if _OF_ANOTHER.search(commit.message, max(0, match.start() - 20), match.end()):
                continue
            if match[1] and (sha := self._resolved(match[1].lower())):
                return sha
            # an issue has a number as well: only words that name a cause refer to a change
            if match[2] and _MENDS_REQUEST.search(match.group()) and (sha := self._by_request.get(match[2])):
                return sha
        return None

    def _resolved(self, named: str, *, guess: bool = False) -> str | None:
        if named in self._kept or (guess and len(named) >= 40):
            return named
        found = next((sha for sha in reversed(self._kept) if sha.startswith(named)), None)
        return found or (named if guess and not named.isdigit() else None)

    def _resembling(
        self,
        text: str,
        commit: Commit,
        *,
        within: timedelta | None = _LONGEST_AGO,
        verb: re.Pattern[str] | None = None,
    ) -> str | None:
        """Return the latest commit whose subject, after its verb, has nearly the same words."""
        words = _words(text)
        for sha in reversed(self._kept) if len(words) >= _LEAST_WORDS else ():
            kept = self._kept[sha]
            begins = verb.match(kept.subject) if verb else None
            if (verb and not begins) or (within and commit.when - kept.when > within):
                continue
            others = _words(kept.subject[begins.end() if begins else 0 :])
            if (
                min(len(words), len(others)) * 2 >= max(len(words), len(others))
                and overlap(words, others) >= _LEAST_SAME
            ):
                return sha
        return None


def _request(subject: str) -> str:
    """Return the number of the pull request that a subject names; empty if it names none."""
    match = _PULL_REQUEST.search(subject)
    return (match[1] or match[2]) if match else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text[:300].casefold()) if len(word) > 2 and word not in _SILENT)
