"""Commits, and which earlier commit each one undoes, restores or mends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from memgraph.extraction.components import code_among
from memgraph.extraction.readers.history.messages import bare, parted, without_trailers
from memgraph.text import lazy_re as re
from memgraph.text.words import overlap

RECENT_COMMITS = 5_000
_MAX_SUBJECT_CHARS = 2_000
_MAX_MESSAGE_CHARS = 50_000
_MAX_NAMED = 50
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
    r"(?:(?:,|\s+(?:and|&)|,\s*and)\s+)?(?:the )?(?:changes? (?:(?:in|of|from) )?)?(?:(?:(?:commit|changeset|revision)s? )?(?:https?://\S{1,200}/commit/)?((?=[a-f]*\d)[0-9a-f]{7,64})|"
    r"(?:PRs? |pull requests? )?(?:[\w.-]+/[\w.-]+)?(?:#|GH-|(?:https?://\S{1,200}/)?(?:pull|merge_requests)/)(\d{1,7}))\b",
    re.IGNORECASE,
)
"""A commit or a pull request, alone or as the next of several."""
_THIS_REVERTS = re.compile(
    r"^(?:This (?:commit |change |patch )?)?(?:reverts?|undoes|backs? out|rolls? back) (?=\S.{0,120}\d)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line of a body that names what its commit reverts."""
_SAYS_SO = re.compile(
    r"\b(?:revert\w*|un-?d(?:o|oes|oing|id|one)|(?:back|roll)(?:s|ed|ing)?[ -]?(?:out|back)|re-?(?:appl(?:y|ied|ies)|land|instat)\w*)\b",
    re.IGNORECASE,
)
_SQUASHED = re.compile(r"^\s{0,3}[*-] |^\W{0,3}(?:squashed commit of|revert \")", re.IGNORECASE | re.MULTILINE)
"""A line of a body that joins the messages of several commits: a revert among them is not what all of them do."""
_OBJECT = re.compile(r"(?:the\s+)?(?:changes? (?:to|of|in)\s+)?(.{10,300})", re.IGNORECASE)
_MAX_TURNS = 6
_REMOVAL = re.compile(r"(?:[\w./ -]{1,40}: )?(?:remov|drop|delet)(?:e|es|ed|s|ped|ing)?\s+(.{8,300})", re.IGNORECASE)
_ADDITION = re.compile(
    r"(?:[\w./ -]{1,40}: )?(?:add|introduc|deprecat|implement|support)(?:e|es|ed|s|ing)?\s+", re.IGNORECASE
)
_SWEEPS = re.compile(
    r"(?:remov|drop|delet)(?:e|es|ed|s|ped|ing)?\s+(?:all |the )?(?:previously |old |long )?deprecat(?:ed|ions?)"
    r"(?: (?:code|functions?|features?|things|stuff|api|apis|methods?|names?|aliases|functionality)){0,2}(?:\s*\(#\d{1,7}\))?\W*$",
    re.IGNORECASE,
)
"""A commit that removes what was deprecated, without naming it."""
_DEPRECATES = re.compile(rf"{_PREFIX}deprecat", re.IGNORECASE)
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
_SILENT = frozenset({"the", "and", "for", "with", "from", "into", "deprecated", "support"})
_WORD = re.compile(r"[^\W_][\w.-]*")


class FileChange(NamedTuple):
    """A changed file: git's status letter, its path, its earlier path if it was renamed or copied, lines, and blobs where they are known."""

    status: str
    path: str
    was: str = ""
    added: int | None = None
    removed: int | None = None
    blobs: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Commit:
    """One commit from either source.

    Attributes
    ----------
    author, signed_as : str
        The person, and the commit's spelling of the author.
    when : datetime
        Its author's time.
    message : str
        All of it.
    release : str
        The first one that contains it.
    """

    sha: str
    author: str
    when: datetime
    message: str
    files: tuple[FileChange, ...] = ()
    release: str = ""
    is_merge: bool = False
    signed_as: str = ""

    @property
    def subject(self) -> str:
        """The message's title; see `parted`."""
        return self._parted[0]

    @cached_property
    def body(self) -> str:
        """The text after the title, without trailers."""
        return without_trailers(self._parted[1])

    @cached_property
    def _parted(self) -> tuple[str, str]:
        return parted(self.message)

    def change(self, *, inverse: bool = False) -> int | None:
        """Return a number for what the commit, or its inverse, makes of which contents; None if they are not known."""
        if not self.files or not all(any(file.blobs) for file in self.files):
            return None
        step = -1 if inverse else 1
        return hash(frozenset(((file.was or file.path, file.path)[::step], file.blobs[::step]) for file in self.files))


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
    others: tuple[str, ...] = ()
    """Further commits that are reverted."""


def _said_in(subject: str) -> Undoing | None:
    """Return what a subject says that it undoes by quoting it; None if it quotes nothing."""
    turns, title = 0, subject[:_MAX_SUBJECT_CHARS]
    while turns < _MAX_TURNS and (match := _TURN.match(title)) and (quoted := _QUOTED.match(match["what"])):
        turns, title = turns + (1 if match["undo"] else 2), quoted[1]
    return Undoing(title, turns % 2 == 0, None, None) if turns else None


def _named_in(text: str, at: int) -> Iterator[re.Match[str]]:
    """Yield the commits and requests that are named one after the other from a place of a text."""
    while named := _NAMED.match(text, at):
        yield named
        at = named.end()


class _Kept(NamedTuple):
    subject: str
    bare: str
    body: int
    """Its hash."""
    change: int | None
    when: datetime
    undoing: Undoing | None
    deprecates: frozenset[str]
    """The code whose change deprecates something."""


class RecentCommits:
    """The last `limit` commits, so that a revert or a follow-up finds the commit it refers to in an earlier build."""

    def __init__(self, limit: int = RECENT_COMMITS) -> None:
        self._limit = limit
        self._kept: dict[str, _Kept] = {}
        self._by_subject: dict[str, str] = {}
        self._by_bare: dict[str, str] = {}
        self._by_change: dict[int, str] = {}
        self._by_request: dict[str, str] = {}
        self._undone: dict[str, str] = {}
        """The commits that reverted others, by those."""

    def add(self, commit: Commit) -> None:
        """Record a commit as the latest."""
        subject = commit.subject[:_MAX_SUBJECT_CHARS]
        undoing = self.undoing(commit)
        code = code_among([file.path for file in commit.files]) if _DEPRECATES.match(subject) else ()
        kept = _Kept(subject, bare(subject), hash(commit.body), commit.change(), commit.when, undoing, frozenset(code))
        self._kept[commit.sha] = kept
        if undoing and undoing.origin:
            if undoing.is_again:
                self._undone.pop(undoing.origin, None)
            else:
                self._undone[undoing.origin] = commit.sha
        for known, key in self._keys(kept):
            known[key] = commit.sha
        if len(self._kept) > self._limit:
            oldest = next(iter(self._kept))
            forgotten = self._kept.pop(oldest)
            self._undone = {one: by for one, by in self._undone.items() if oldest not in (one, by)}
            for known, key in self._keys(forgotten):
                if known.get(key) == oldest:
                    del known[key]

    def _keys(self, kept: _Kept) -> Iterator[tuple[dict[Any, str], str | int]]:
        """Yield the ways to find a commit."""
        yield self._by_subject, kept.subject
        yield self._by_bare, kept.bare
        if kept.change is not None:
            yield self._by_change, kept.change
        if request := _request(kept.subject):
            yield self._by_request, request

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
        """Return what `commit` reverts or does again.

        It is what the title or a line of the body names by id or request, else the title that it quotes or has nearly
        the words of, else, if the message speaks of a revert, the commit whose contents it changes back exactly.
        """
        said = _said_in(commit.subject)
        found = list(self._reverted_by(commit))
        known = [sha for sha in found if sha in self._kept]
        titled = self._titled(said.title) if said and not known else None
        if said and said.is_again and not known:  # its subject quotes the change, not the revert
            return said._replace(commit=self._undone.get(titled or ""), origin=titled)
        sha = next(filter(None, (*known, titled, *found)), None)
        if sha is None and _SAYS_SO.search(commit.message[:_MAX_SUBJECT_CHARS]):
            sha = self._changed_back_by(commit)
        if sha is None:
            return said
        if sha not in self._kept:
            return said._replace(commit=sha) if said else Undoing("", False, sha, None)
        kept = self._kept[sha]
        if (turn := _TURN.match(commit.subject)) and not turn["undo"] and _NAMED.match(turn["what"]):
            return Undoing(kept.subject, True, self._undone.get(sha), sha)
        if earlier := kept.undoing:
            return earlier._replace(is_again=not earlier.is_again, commit=sha, others=())
        return Undoing(kept.subject, False, sha, sha, tuple(one for one in dict.fromkeys(known) if one != sha))

    def _changed_back_by(self, commit: Commit) -> str | None:
        """Return the commit whose contents `commit` changes back exactly."""
        change = commit.change(inverse=True)
        return None if change is None else self._by_change.get(change)

    def _reverted_by(self, commit: Commit) -> Iterator[str]:
        """Yield the commits that `commit` names as reverted: by id, which need not be known, by request, or by their title's words."""
        subject, body = commit.subject, commit.body[:_MAX_MESSAGE_CHARS]
        turn = _TURN.match(subject)
        what = turn["what"] if turn else ""
        places = [(what, 0)]
        if turn or not _SQUASHED.search(body):
            places += [(body, line.end()) for line in _THIS_REVERTS.finditer(body)]
        is_named = False
        for named in chain.from_iterable(_named_in(text, at) for text, at in places[:_MAX_NAMED]):
            is_id = named[1] is not None
            sha = self._resolved(named[1].lower(), guess=True) if is_id else self._by_request.get(named[2])
            if sha:
                is_named = True
                yield sha
        if not is_named and turn and turn["undo"] and not what.startswith(('"', "“")):
            words = _OBJECT.match(what)
            if sha := words and (self._by_subject.get(what) or self._resembling(bare(words[1]), commit)):
                yield sha

    def _titled(self, title: str) -> str | None:
        """Return the latest commit of a title, which may be without its issues, or cut off after some words."""
        if sha := self._by_subject.get(title):
            return sha
        begins = bare(title)
        if sha := self._by_bare.get(begins):
            return sha
        if len(begins.split()) < _LEAST_WORDS:
            return None
        return next((sha for sha in reversed(self._kept) if self._kept[sha].bare.startswith(begins)), None)

    def reversed_by(self, commit: Commit) -> str | None:
        """Return the commit that `commit` takes back without calling it a revert.

        It is the revert of a change that it makes again, under the same title; or it changes the contents back exactly.
        """
        revert = self._undone.get(self._by_subject.get(commit.subject) or "")
        if revert and len(_words(commit.subject)) >= _LEAST_WORDS and self._kept[revert].when < commit.when:
            return revert
        is_removal = all(file.status == "D" for file in commit.files)
        return None if is_removal else self._changed_back_by(commit)

    def removed_by(self, commit: Commit) -> str | None:
        """Return the sha of the commit that added or deprecated what `commit` removes, by its subject's words."""
        match = _REMOVAL.match(commit.subject)
        if match and (named := _IDENTIFIER.match(match[1])):
            return self._naming(named[1])
        return self._resembling(match[1], commit, within=None, verb=_ADDITION) if match else None

    def swept_by(self, commit: Commit) -> list[str]:
        """Return the commits that deprecated what `commit` removes without naming it: it changes all the code that they did."""
        if not _SWEEPS.match(commit.subject):
            return []
        changed = {file.path for file in commit.files}
        return [sha for sha, kept in self._kept.items() if kept.deprecates and changed.issuperset(kept.deprecates)]

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
            others = _words(kept.subject[begins.end() :] if begins else kept.bare)
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


@lru_cache(maxsize=4 * RECENT_COMMITS)
def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text[:300].casefold()) if len(word) > 2 and word not in _SILENT)
