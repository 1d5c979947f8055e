"""A history: each commit's message, kind, and what it undoes, restores or mends; sittings as builds; and the authors as persons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from itertools import dropwhile, islice, pairwise
from typing import Literal, NamedTuple

from memgraph.extraction.components import abbreviated, is_documentation, is_test, only_dependencies
from memgraph.extraction.readers.source import SourceRecord, beginning, overall, shortened, storable_text
from memgraph.model.base import MAX_TEXT_CHARS
from memgraph.model.build import BuildEventLog, BuildTask, ChangedFile, CommitKind
from memgraph.model.ids import canonical_name
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re
from memgraph.text.words import is_bot, overlap, words_of

_MAX_SUBJECT_LINES = 3
_MAX_WRAPPED_LINES = 12
_LEAST_WRAPPED_CHARS = 60
"""A first line of this length that goes on in the next one is the beginning of a paragraph; a shorter one is a title."""
_MAX_TITLE_CHARS = 2_000
_MAX_ISSUES = 100
_CONTINUES = re.compile(r" {0,3}(?:[a-z][a-z']{0,20}[\s.,;)]|[a-z][a-z']{0,20}$|\()(?!.{0,30}#\d)(?!\s?:)")
_TRAILER = re.compile(
    r"(?:[a-z]{1,20}-){1,3}by:|cc[: ]|(?:change-id|reviewed-on|git-svn-id|pull-request-resolved|differential revision):|(?:🤖 )?generated with ",
    re.IGNORECASE,
)
_ANY_TRAILER = re.compile(r"[A-Za-z][\w-]{1,40}: \S|\(cherry[- ]picked from\b|[A-Za-z][\w-]{1,40} #\d")
_MARKUP = re.compile(
    r"^---\nupdated-dependencies:\n(?:(?!---$)[^\n]{0,400}\n){0,200}?\.\.\.$|^ {0,3}-{3,}[ \t]*$|"
    r"</?(?:a|b|br|code|details|div|em|h[1-6]|hr|i|img|kbd|li|ol|p|picture|pre|source|span|strong|su[bp]|summary|t[dhr]|table|tbody|thead|ul)(?:\s[^<>]{0,500})?/?>|"
    r"^[ ]{0,3}(?:```|~~~)[^\n]{0,80}$|^#{1,6}[ \t]+(?=\S)|(?<![\w*`/])\*\*(?P<bold>[^\s*/](?:[^*]{0,300}[^\s*(/])?)\*\*(?![\w*`/])",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""What a bot writes for a program, lines that only separate, HTML and Markdown."""
_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\([^()\s]{1,500}\)")
_GAP = re.compile(r"\n\s*\n\s*")

_ISSUE = re.compile(
    r"(?<![\w&/#.-])(?:(?P<named>[\w.-]{1,40}/[\w.-]{1,100})?#|GH-|https?://[\w.-]{1,100}/(?P<linked>[\w.~/-]{3,200}?)/(?:-/)?(?:issues|pull|merge_requests)/)"
    r"(?P<number>[1-9]\d{0,8})\b",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"<!--.{0,4000}?-->", re.DOTALL)
"""A comment of HTML: what the template of a pull request explains, with examples, nobody says of this commit."""
_CLOSES = frozenset("close closes closed fix fixes fixed resolve resolves resolved".split())
"""The keywords of GitHub before an issue, https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue."""

_PREFIX = re.compile(
    r"\s*(?:\[?(?P<type>\w[\w./ -]{0,40})\]?(?:\((?P<scope>[^()\n]{1,40})\))?!?:\s|\[(?P<tag>[^\]\n]{1,40})\]:?\s?|:\w{1,30}:\s)"
)
_WORDS: dict[CommitKind, tuple[str, str]] = {
    "fix": (
        "fix fixes bugfix hotfix bug security sec",
        "fix fixes fixed fixing correct corrects corrected prevent prevents avoid avoids handle repair resolve resolves don't",
    ),
    "feature": (
        "feat feature new add enh enhancement",
        "add adds added adding introduce introduces implement implements implemented support supports allow allows enable provide expose",
    ),
    "docs": ("doc docs documentation readme changelog website", "document documents documented"),
    "test": ("test tests testing", "test tests testing"),
    "refactor": (
        "refactor refactoring ref cleanup style fmt format",
        "refactor refactors refactored refactoring rename renames renamed move moves moved extract simplify clean cleanup split tidy reformat",
    ),
    "release": ("release", "release released releasing"),
    "dependency": ("deps dep dependencies deps-dev", ""),
}
"""The kinds of a change: the prefixes that name one, and the words with which a title without such a prefix begins."""
_OF_PREFIX, _OF_VERB = ({word: kind for kind, given in _WORDS.items() for word in given[at].split()} for at in (0, 1))
_RELEASE = re.compile(
    r"(?:chore\(release\)|(?:(?:bump|prepare|preparing|cut|tag|set|update|raise|start)\w* )?(?:for |the |next |new |\w+ )?(?:release|version)\b(?: number| to| for|:)*|bump(?: to)?)?\W{0,3}"
    r"(?:[\w-]+[ @-])?v?\d+(?:\.\d+)+[\w.+-]*(?:\s*\(#\d+\))?\W*$",
    re.IGNORECASE,
)
"""A title that names a version and says no more."""
_DEPENDENCY = re.compile(
    r"(?:\w+(?:\([^()]{1,40}\))?!?: )?(?:(?:bump|upgrade|update|pin|unpin|downgrade|require)\w{0,3}\b.{0,80}(?:[@=<>^~]=? ?v?\d|\bto (?:v\d|\d+\.\d))|"
    r"(?:bump|upgrade|downgrade)\w{0,3}\b.{0,80}\bfrom v?\d\S{0,40} to v?\d)|\S+@[\^~]?\d+(?:\.\d+){1,3}\S*$",
    re.IGNORECASE,
)
"""A title that moves a dependency to a version that it states."""
_ADVISORY = re.compile(r"Merge (?:commit from fork$|pull request from GHSA-)")
"""The titles that GitHub gives to the fix of a security advisory, which is made in a private fork."""
_ASSETS = (".css", ".png", ".svg", ".jpg", ".jpeg", ".gif", ".ico", ".log")


def parted(message: str) -> tuple[str, str]:
    """Return the title, which is the first line with those that continue its sentence, as git shows it; and the rest."""
    first, _, rest = message.strip().partition("\n")
    line = first.rstrip()
    if imported := rest.strip() != "" and line[:1] == "[" and line.find("]") == len(line) - 1 > 1:
        first, _, rest = rest.lstrip("\n").partition("\n")  # a tool put this line before the title
    subject, after = first.strip(), rest
    is_wrapped = len(first) >= _LEAST_WRAPPED_CHARS
    for _ in range(_MAX_WRAPPED_LINES if is_wrapped else 0 if imported else _MAX_SUBJECT_LINES):
        line, _, later = after.partition("\n")
        if subject.endswith((".", ":", ";", "!")) or not _CONTINUES.match(line) or _is_trailer(line):
            return subject, after
        subject, after = f"{subject} {line.strip()}", later
    return (subject, after) if is_wrapped else (first.strip(), rest)


def _is_trailer(line: str) -> bool:
    """Return whether a line names people and tools instead of what happened."""
    return _TRAILER.match(line.strip()) is not None


def without_trailers(text: str) -> str:
    """Return a body without the trailers that name people and tools instead of what happened."""
    lines = (line.rstrip() for line in text.splitlines() if not _is_trailer(line))
    return "\n".join(lines).strip("\n").rstrip()


def plain_text(subject: str, body: str) -> str:
    """Return a message as plain text: without a line that repeats its title, a last paragraph of trailers, and HTML and Markdown except lists and `code`."""
    body = without_markup(body.partition("--HG--")[0]).strip()
    first, _, after = body.partition("\n")
    body = after.strip() if first and bare(first) == bare(subject) else body
    rest, gap, last = body.rpartition("\n\n")
    if all(_ANY_TRAILER.match(line.strip()) for line in last.splitlines()):
        body = rest if gap else ""
    return f"{subject}\n\n{_GAP.sub(chr(10) * 2, body.strip())}".strip()


def without_markup(text: str) -> str:
    """Return a text without HTML, and without Markdown except lists and `code`."""
    return _LINK.sub(r"\1", _MARKUP.sub(r"\g<bold>", _COMMENT.sub("", text)))


def issues_in(text: str, repositories: Collection[str] = ()) -> tuple[list[int], list[int]]:
    """Return the numbers of the issues and pull requests that a text mentions, and of those that it closes, each once.

    What names or links another repository than one of these (``owner/name``, in lower case) does not count.
    """
    mentions: dict[int, None] = {}
    closes: dict[int, None] = {}
    text = _COMMENT.sub("", text)
    for found in _ISSUE.finditer(text):
        elsewhere = found["named"] or found["linked"]
        if elsewhere and elsewhere.casefold() not in repositories:
            continue
        mentions[number := int(found["number"])] = None
        before = text[max(0, found.start() - 12) : found.start()].casefold()
        word = before.rstrip().removesuffix(":")
        if before[-1:].isspace() and not _CLOSES.isdisjoint(_WORD.findall(word)[-1:]) and word[-1:].isalnum():
            closes[number] = None
        if len(mentions) == _MAX_ISSUES:
            break
    return list(mentions), list(closes)


_SPELLING = frozenset("typo typos spelling misspelling misspellings grammar".split())


def kind_of(title: str, files: Sequence[str], *, undoes: bool, closes: bool, merges: bool = False) -> CommitKind:
    """Return what kind of change a commit is, which may be known to undo another one, to close an issue, and to be a merge.

    In this order: it undoes another; it is a merge; its title is a version, or raises one of a dependency; it changes nothing but
    what lists dependencies, and no prefix says otherwise; nothing but documentation or tests; its title speaks of spelling; the prefix of its title; its first word; it closes an issue.
    """
    # without a picture before the words
    title = "".join(
        dropwhile(lambda sign: not (sign.isalnum() or sign.isspace() or sign.isascii()), title[:_MAX_TITLE_CHARS])
    ).strip()
    prefix = _PREFIX.match(title)
    said = " ".join(filter(None, (prefix["type"], prefix["scope"], prefix["tag"]))) if prefix else ""
    typed = [_OF_PREFIX[word] for word in re.split(r"[\s/,_]+", said.casefold()) if word in _OF_PREFIX]
    rest = title[prefix.end() :] if prefix else title
    action, what = action_of(title)
    says_reverted = action == "undo" and "revert" in title.removesuffix(what).casefold()
    if undoes or (says_reverted and what and not what.startswith(("to ", "back to "))):
        return "revert"
    if merges:
        return "merge"
    if "release" in typed or _RELEASE.match(rest) or _RELEASE.match(title):
        return "release"
    if "dependency" in typed or _DEPENDENCY.match(title) or (not typed and only_dependencies(files)):
        return "dependency"
    if files and all(map(_documents, files)):
        return "docs"
    if files and any(map(is_test, files)) and all(is_test(file) or _documents(file) for file in files):
        return "test"
    if not _SPELLING.isdisjoint(words_of(title)):
        return "docs"
    if typed:
        return typed[0]
    firsts = (text.casefold().partition(" ")[0].strip(".,:;!") for text in (rest, title))
    said_so = (_OF_VERB[first] for first in firsts if first in _OF_VERB)
    return next(said_so, "fix" if closes or _ADVISORY.match(title) else "other")


def _documents(path: str) -> bool:
    """Return whether a file is documentation, or an asset in its folder."""
    folder, _, _ = path.rpartition("/")
    return is_documentation(f"{folder}/x" if path.lower().endswith(_ASSETS) else path)


def bare(title: str) -> str:
    """Return a title for comparison: without issues, prefix, quotes, case and a final ellipsis."""
    title = _ISSUE.sub("", title[:_MAX_TITLE_CHARS])
    title = _EMPTY.sub("", title)
    prefix = _PREFIX.match(title)
    return " ".join(title[prefix.end() if prefix else 0 :].casefold().replace('"', "").rstrip(" .…,;:(").split())


def without_kind(title: str) -> str:
    """Return a title without the prefix that names its kind."""
    prefix = _PREFIX.match(title)
    is_kind = prefix is not None and (prefix["type"] or prefix["tag"] or "").casefold() in _OF_PREFIX
    return title[prefix.end() :] if prefix and is_kind else title


_EMPTY = re.compile(
    r"\(?\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?|refs?|see|pr)[\s:,]*\)|\(\s*\)|\b(?:fixe[sd]|close[sd]|refs?)[\s:,]*$",
    re.IGNORECASE,
)
"""What is left of a reference to an issue without the issue."""


RECENT_COMMITS = 5_000
_MAX_MESSAGE_CHARS = 50_000
_MAX_NAMED = 50
_LEAST_SAME = 0.8
_LEAST_WORDS = 3
_LONGEST_AGO = timedelta(days=365)

_PULL_REQUEST = re.compile(r"\((?:#|GH-)(\d{1,7})\)\s*$|^Merge pull request #(\d{1,7})\b")
_ENDINGS = ("", *"e es ed s ing ped ping ted ting y ies ied ying al".split())
_STEMS = {
    "undo": "revert undo undid undon backout rollback",
    "again": "reappl reland reinstat redo redon",
}
_ACTIONS = {stem + ending: action for action, stems in _STEMS.items() for stem in stems.split() for ending in _ENDINGS}
"""What a verb in any of its forms says that a commit does. A form that does not exist does no harm."""
_PHRASAL = re.compile(r"\b(?:back|roll)(?:s|ed|ing)?[ -]?(?:out|back)\b", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“](.{3,1000}?)(?:[\"”](?=\s*(?:$|[(\[:;,.–-]|(?:because|since|due)\b))|$)")
_NAMED = re.compile(
    r"(?:(?:,|\s+(?:and|&)|,\s*and|\s*[*-])\s+|\n(?=[0-9a-f]{7,64}\s*(?:\n|\Z)))?(?:the )?(?:changes? (?:(?:in|of|from) )?)?(?:(?:(?:commit|changeset|revision)s?:?\s+(?:[*-]\s+)?)?(?:https?://\S{1,200}/commit/)?((?=[a-f]*\d)[0-9a-f]{7,64})|"
    r"(?:PRs? |pull requests? )?(?:[\w.-]+/[\w.-]+)?(?:#|GH-|(?:https?://\S{1,200}/)?(?:pull|merge_requests)/)(\d{1,7}))\b",
    re.IGNORECASE,
)
"""A commit or a pull request, alone or as the next of several."""
_QUOTES, _ITEM = ('"', "“"), "*- "
_MAX_TURNS = 6
_LEAST_OBJECT_CHARS = 8
_REFERENCE = re.compile(r"(?:\b([0-9a-f]{7,40})|(?:#|\bGH-)(\d{1,7}))\b", re.IGNORECASE)
_CAUSES = frozenset("introduced break broken broke regressed regression caused followup oversight".split())
_MENDS = _CAUSES | frozenset("fix fixes fixed amend amends mistake bug since after leftover leftovers".split())
"""Words before the name of a commit whose mistake is mended; an issue has a number as well: only causes refer to a change."""
_OF_ANOTHER = frozenset("was were been got already".split())
"""Words before "fixed": the commit named is what mended the fault."""
_WORDS_BETWEEN = 5
_MAX_REFERENCES = 1_000
_LINKING = re.compile(r"https?://\S{1,100}/commit/$")
_FIXUP = re.compile(r'(?:(?:fixup|squash|amend)! |follow[- ]?up (?:to|of|for) ")(.{3,1000}?)"?$', re.IGNORECASE)
_SILENT = frozenset({"the", "and", "for", "with", "from", "into", "deprecated", "support", "change", "changes"})
_WORD = re.compile(r"[^\W_][\w.-]*")


def action_of(subject: str) -> tuple[str, str]:
    """Return what the first verb of a subject says that its commit does (see `_STEMS`; "" for others), and to what."""
    before = _PREFIX.match(subject)
    for text in (subject, subject[before.end() :] if before else ""):
        word, _, rest = text.partition(" ")
        if phrasal := _PHRASAL.match(text):
            word, rest = "revert", text[phrasal.end() :]
        if action := _ACTIONS.get(word.casefold().rstrip(":").replace("-", "")):
            return action, rest.removeprefix("of ").lstrip(": ")
    return "", subject


def actions_in(text: str) -> set[str]:
    """Return what the verbs of a text say."""
    words = (word.replace("-", "") for word in _WORD.findall(text.casefold()))
    return {_ACTIONS[word] for word in words if word in _ACTIONS} | ({"undo"} if _PHRASAL.search(text) else set())


def _reverting(body: str) -> Iterator[int]:
    """Yield the places of a body after which a line, or an item, names what its commit reverts: "This reverts commit …"."""
    at = 0
    for line in body.splitlines(keepends=True):
        at += len(line)
        end, told = at - len(line) + len(line.rstrip()), line.rstrip()
        item = told.lstrip(_ITEM)
        what = item.removeprefix("This ").removeprefix("this ")
        for name in ("commit ", "change ", "patch ") if what != item else ():
            what = what.removeprefix(name)
        action, what = action_of(what)
        names = what + body[end : end + 120] if told.endswith(":") else what[:120]
        if action == "undo" and (what.startswith(_QUOTES) or any(map(str.isdigit, names))):
            yield end - len(what)


def _is_squashed(body: str) -> bool:
    """Return whether a body joins the messages of several commits: a revert among them is not what all of them do."""
    lines = (line.lstrip().casefold() for line in body.splitlines())
    return any(line.startswith(("* ", "- ", "squashed commit of", 'revert "')) for line in lines)


def merged_request(title: str) -> str:
    """Return the number of the pull request that a merge names, whose body begins with the request's title; "" for other titles."""
    words = title.split()
    is_merge = words[:3] == ["Merge", "pull", "request"] and words[4:5] == ["from"] and len(words) == 6
    return words[3].removeprefix("#") if is_merge else ""


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
    """One commit: `author` is the person, however the commit spells the name, and `release` the first that contains it."""

    sha: str
    author: str
    when: datetime
    message: str
    files: tuple[FileChange, ...] = ()
    release: str = ""
    parents: tuple[str, ...] = ()

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
        """Return a number for what the commit, or its inverse, makes of which contents; None if they are not known, or are as before."""
        if not self.files or not all(any(file.blobs) for file in self.files):
            return None
        if all(file.blobs[0] == file.blobs[1] and file.was in {None, "", file.path} for file in self.files):
            return None  # modes alone: their change would be its own inverse
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
    restored: tuple[str, ...] = ()
    """Further commits that are in force again."""


def _said_in(subject: str) -> Undoing | None:
    """Return what a subject says that it undoes by quoting it; None if it quotes nothing."""
    turns, title = 0, subject[:_MAX_TITLE_CHARS]
    while turns < _MAX_TURNS:
        action, what = action_of(title)
        quoted = _QUOTED.match(what) if action in {"undo", "again"} else None
        if quoted is None:
            break
        turns, title = turns + (1 if action == "undo" else 2), quoted[1]
    return Undoing(title, turns % 2 == 0, None, None) if turns else None


class _Kept(NamedTuple):
    author: str
    parents: tuple[str, ...]
    subject: str
    bare: str
    body: int
    """Its hash."""
    change: int | None
    when: datetime
    undoing: Undoing | None
    took_back: str | None

    @property
    def keys(self) -> list[tuple[str, object]]:
        """What finds the commit."""
        named = _PULL_REQUEST.search(self.subject)
        request = (named[1] or named[2]) if named else ""
        return [("subject", self.subject), ("bare", self.bare), ("change", self.change), ("request", request)]


class RecentCommits:
    """The last `limit` commits, so that a revert or a follow-up finds the commit it refers to in an earlier build."""

    def __init__(self, limit: int = RECENT_COMMITS) -> None:
        self._limit = limit
        self._kept: dict[str, _Kept] = {}
        self._found: dict[tuple[str, object], str] = {}
        """The latest commit by each of its keys."""
        self._undone: dict[str, str] = {}
        """The commits that reverted others, by those."""

    def read(self, commit: Commit) -> _Kept:
        """Return what is kept of a commit, which follows those that are."""
        subject = commit.subject[:_MAX_TITLE_CHARS]
        undoing = self.undoing(commit)
        took_back = None if undoing else self.reversed_by(commit)
        made = commit.author, tuple(commit.parents), subject, bare(subject), hash(commit.body), commit.change()
        return _Kept(*made, commit.when, undoing, took_back)

    def add(self, sha: str, kept: _Kept) -> None:
        """Record a commit as the latest."""
        self._kept[sha] = kept
        if (undoing := kept.undoing) and undoing.origin:
            if undoing.is_again:
                self._undone.pop(undoing.origin, None)
            else:
                self._undone[undoing.origin] = sha
        self._found.update(dict.fromkeys(kept.keys, sha))
        if len(self._kept) > self._limit:
            oldest = next(iter(self._kept))
            for key in self._kept.pop(oldest).keys:
                if self._found.get(key) == oldest:
                    del self._found[key]
            self._undone = {one: by for one, by in self._undone.items() if oldest not in (one, by)}

    def _latest(self, kind: str, key: object) -> str | None:
        return self._found.get((kind, key))

    def subject_of(self, sha: str) -> str:
        """Return the subject of a commit; empty if it is not known."""
        return self._kept[sha].subject if sha in self._kept else ""

    def undone_by(self, sha: str | None) -> list[str]:
        """Return the commits that one reverted, or took back without calling it a revert; none if it is not known."""
        kept = self._kept.get(sha or "")
        undone = (kept.undoing.commit, *kept.undoing.others) if kept and kept.undoing else [kept and kept.took_back]
        return [*filter(None, undone)]

    def repeated_by(self, commit: Commit) -> str | None:
        """Return the sha of the commit whose message a merge repeats without changing a file: one of those that it merges."""
        subject, body = commit.subject, commit.body
        if commit.files or len(commit.parents) < 2:
            return None
        if request := merged_request(subject):
            subject, _, body = body.partition("\n")
            subjects = [subject.strip(), f"{subject.strip()} (#{request})"]
        else:
            subjects = [subject]
        body = body.strip("\n").rstrip()
        alike = [sha for one in subjects if (sha := self._latest("subject", one))]
        found = [sha for sha in alike if not body or self._kept[sha].body == hash(body)]
        merged = [sha for sha, _ in self._merged(commit.parents)] if found else []
        return next((sha for sha in found if sha in merged or not merged), None)  # a saved log abbreviates the parents

    def author_of(self, commit: Commit) -> str:
        """Return who made a commit; of a merge, who made most of what it merges, as far as that is kept."""
        authors = Counter(one.author for _, one in self._merged(commit.parents) if len(one.parents) < 2)
        return authors.most_common(1)[0][0] if authors else commit.author

    def _merged(self, parents: Sequence[str]) -> Iterator[tuple[str, _Kept]]:
        """Yield the kept commits that only the other parents of a merge bring in, the latest first."""
        ours, theirs = {*parents[:1]}, {*parents[1:]} & self._kept.keys()
        for sha, one in reversed(self._kept.items()) if theirs else ():  # no commit comes before its parents
            if sha in ours:
                ours.update(one.parents)
                theirs.difference_update(one.parents)
            elif sha in theirs:
                yield sha, one
                theirs.update(self._kept.keys() & {*one.parents} - ours)
                theirs.remove(sha)
            if not theirs:
                break

    def undoing(self, commit: Commit) -> Undoing | None:
        """Return what `commit` reverts or does again.

        It is what the title or a line of the body names by id or request, else the title that it quotes or has nearly
        the words of, else, if the message speaks of a revert, the commit whose contents it changes back exactly.
        What changes no file, such as a merge, undoes nothing that is undone already.
        """
        undoing = self._said_to_undo(commit)
        is_told = undoing and not commit.files and not undoing.is_again and undoing.origin in self._undone
        return None if is_told else undoing

    def _said_to_undo(self, commit: Commit) -> Undoing | None:
        said = _said_in(commit.subject)
        found = list(self._reverted_by(commit))
        known = [sha for sha in found if sha in self._kept]
        titled = self._titled(said.title) if said and not known else None
        if said and said.is_again and not known:  # its subject quotes the change, not the revert
            return said._replace(commit=self._undone.get(titled or ""), origin=titled)
        sha = next(filter(None, (*known, titled, *found)), None)
        if sha is None and actions_in(commit.message[:_MAX_TITLE_CHARS]) & {"undo", "again"}:
            sha = self._changed_back_by(commit)
        if sha is None:
            return said
        if sha not in self._kept:
            return said._replace(commit=sha) if said else Undoing("", False, sha, None)
        kept = self._kept[sha]
        action, what = action_of(commit.subject)
        if action == "again" and _NAMED.match(what):
            return Undoing(kept.subject, True, self._undone.get(sha), sha)
        brought = (one for one, _ in islice(self._merged(kept.parents), 10 * _MAX_NAMED))  # by a merge
        others = tuple(one for one in dict.fromkeys([*known, *brought]) if one != sha)
        restored = tuple(one for other in others for one in self.undone_by(other))
        if earlier := kept.undoing:
            both = (*earlier.restored, *others), (*earlier.others, *restored)
            return Undoing(earlier.title, not earlier.is_again, sha, earlier.origin, *both)
        return Undoing(kept.subject, False, sha, sha, others, restored)

    def _changed_back_by(self, commit: Commit) -> str | None:
        """Return the commit whose contents `commit` changes back exactly."""
        change = commit.change(inverse=True)
        return None if change is None else self._latest("change", change)

    def _reverted_by(self, commit: Commit) -> Iterator[str]:
        """Yield the commits that `commit` names as reverted: by id, which need not be known, by request, or by their title's words."""
        subject, body = commit.subject, commit.body[:_MAX_MESSAGE_CHARS]
        action, what = action_of(subject)
        is_turn = action in {"undo", "again"} and len(what) > 2
        # "Fix the totals by reverting …", but not "… broken by reverting …"
        parts = pairwise(["", *subject.split(" by ")])
        by = "\n".join(after for before, after in parts if _CAUSES.isdisjoint(before.split()[-1:]))
        places = [(what, 0)] if is_turn else [(by, at) for at in _reverting(by)]
        if places or not _is_squashed(body):
            places += [(body, at) for at in _reverting(body)]
        is_named = False
        for text, at in places[:_MAX_NAMED]:
            quoted = _QUOTED.match(text[at:].partition("\n")[0].rstrip()) if text is not what else None
            found = [self._titled(quoted[1])] if quoted else self._named(text, at)
            for known in filter(None, found):
                is_named = True
                if text is not by or known not in self._undone:  # else it mends what an earlier revert broke
                    yield known
        if not is_named and action == "undo" and len(what) > _LEAST_OBJECT_CHARS and not what.startswith(_QUOTES):
            sha = self._latest("subject", what) or self._resembling(bare(what[:300]), commit)
            if sha:
                yield sha

    def _named(self, text: str, at: int) -> Iterator[str | None]:
        """Yield the commits that are named one after the other from a place of a text: by id, which need not be known, or by request."""
        while named := _NAMED.match(text, at):
            yield self._resolved(named[1].lower(), guess=True) if named[1] else self._latest("request", named[2])
            at = named.end()

    def _titled(self, title: str) -> str | None:
        """Return the latest commit of a title, which may be without its issues, or cut off after some words."""
        if sha := self._latest("subject", title):
            return sha
        begins = bare(title)
        if sha := self._latest("bare", begins):
            return sha
        if len(begins.split()) < _LEAST_WORDS:
            return None
        return next((sha for sha in reversed(self._kept) if self._kept[sha].bare.startswith(begins)), None)

    def reversed_by(self, commit: Commit) -> str | None:
        """Return the commit that `commit` takes back without calling it a revert.

        It is the revert of a change that it makes again, under the same title; or it changes the contents back exactly.
        """
        revert = self._undone.get(self._latest("subject", commit.subject) or "")
        if revert and len(_words(commit.subject)) >= _LEAST_WORDS and self._kept[revert].when < commit.when:
            return revert
        return self._changed_back_by(commit)

    def mended_by(self, commit: Commit) -> str | None:
        """Return the sha of the commit whose mistake `commit` corrects by its own words."""
        if match := _FIXUP.match(commit.subject):
            return self._latest("subject", match[1])
        message = commit.message[:_MAX_MESSAGE_CHARS]
        for match in islice(_REFERENCE.finditer(message), _MAX_REFERENCES):
            word = _mending(message[max(0, match.start() - 120) : match.start()])
            if match[1]:
                sha = self._resolved(match[1].lower()) if word else None
            else:
                sha = self._latest("request", match[2]) if word in _CAUSES else None
            if sha:
                return sha
        return None

    def _resolved(self, named: str, *, guess: bool = False) -> str | None:
        if named in self._kept or (guess and len(named) >= 40):
            return named
        found = next((sha for sha in reversed(self._kept) if sha.startswith(named)), None)
        return found or (named if guess and not named.isdigit() else None)

    def _resembling(self, text: str, commit: Commit) -> str | None:
        """Return the latest commit of the last year whose subject has nearly the same words."""
        words = _words(text)
        for sha in reversed(self._kept) if len(words) >= _LEAST_WORDS else ():
            others = _words(self._kept[sha].bare)
            if (
                commit.when - self._kept[sha].when <= _LONGEST_AGO
                and min(len(words), len(others)) * 2 >= max(len(words), len(others))
                and overlap(words, others) >= _LEAST_SAME
            ):
                return sha
        return None


def _mending(before: str) -> str:
    """Return the word before the name of a commit that says that its mistake is mended, with few others between them; "" for none."""
    line = _LINKING.sub("", before.rpartition("\n")[2]).casefold()
    words = line.replace("follow-up", "followup").replace("follow up", "followup").split()
    for place in reversed(range(len(words))[-_WORDS_BETWEEN - 1 :]):
        word = words[place].strip("(:") if place == len(words) - 1 else words[place].lstrip("(")
        if word in _MENDS:
            return "" if word in {"fixed", "amended"} and words[max(place - 1, 0)] in _OF_ANOTHER else word
        if word and not word.isalnum():
            break
    return ""


@lru_cache(maxsize=4 * RECENT_COMMITS)
def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(text[:300].casefold()) if len(word) > 2 and word not in _SILENT)


MAX_GAP = timedelta(hours=3)
MAX_COMMITS = 20
_MAX_SUBJECT_CHARS = 2_000
_MAX_BODY_CHARS = 50_000
_MAX_PATH_CHARS = 4_096
_MAX_FILES = 10_000

_PARTIAL = ("wip", "draft", "partial", "incomplete", "work in progress")

_KIND_OF_STATUS: dict[str, Literal["A", "M", "D", "R"]] = {"A": "A", "C": "A", "D": "D", "R": "R"}
_MANY = frozenset({"__init__.py", "conftest.py", "index.js", "index.ts", "mod.rs", "package.json", "Makefile"})
"""Names that many folders have a file of."""


def grouped(
    commits: Iterable[tuple[Commit | str, str]],
    *,
    project_id: str,
    cursor: str,
    recent: RecentCommits,
    repositories: Collection[str] = (),
) -> Iterator[SourceRecord]:
    """Yield a record per build of these commits, in order.

    They are the oldest first, each with the cursor that means "done up to and including this one"; a string is the reason why
    a commit could not be read. `cursor` is before the first of them, `recent` holds the preceding commits and is extended, and
    `repositories` are the names of this one; see `issues_in`.
    """
    group: list[Commit] = []
    settled = reached = cursor
    for commit, at in commits:
        if isinstance(commit, str):
            yield SourceRecord(None, settled, 1, commit)
            continue
        # rebased commits keep their authors' times, which may run backwards
        is_near = group and commit.author == group[-1].author and abs(commit.when - group[-1].when) <= MAX_GAP
        if group and not (is_near and len(group) < MAX_COMMITS):
            yield _record(group, reached, project_id, recent, repositories)
            settled, group = reached, []
        group.append(commit)
        reached = at
    if group:
        # the last group may still grow: only a full one is final
        yield _record(group, reached if len(group) == MAX_COMMITS else settled, project_id, recent, repositories)


def _record(
    group: list[Commit], cursor: str, project_id: str, recent: RecentCommits, repositories: Collection[str]
) -> SourceRecord:
    tasks = []
    times = sorted(commit.when for commit in group)
    try:
        for commit in group:
            kept = recent.read(commit)
            tasks.append(_task(commit, kept, recent, repositories))
            recent.add(commit.sha, kept)
        build = BuildEventLog(
            build_id=f"git-{group[0].sha[:12]}",
            project_id=project_id,
            tasks=tasks,
            build_outcome=overall(tasks),
            started_at=to_iso(times[0]),
            completed_at=to_iso(times[-1]),
            source="git",
        )
    except ValueError as error:  # an invalid value costs its own build, not the run
        return SourceRecord(None, cursor, len(group), f"commit {abbreviated(group[0].sha)}: {error}")
    return SourceRecord(build, cursor, len(group))


def _task(commit: Commit, kept: _Kept, recent: RecentCommits, repositories: Collection[str]) -> BuildTask:
    undoing, taken_back, restored = kept.undoing, kept.took_back, None
    again = undoing is not None and undoing.is_again
    mended = None if undoing else recent.mended_by(commit)
    if undoing:  # a change that itself took back another
        by_it = next(iter(recent.undone_by(undoing.origin)), None)
        taken_back = by_it if again else undoing.origin if undoing.origin != undoing.commit else None
        restored = undoing.origin if again else by_it
    files = commit.files[:_MAX_FILES]
    paths = [file.path for file in files]
    removed, renamed = _moved(files)
    # the issues in a quoted title are closed by that change
    closing = commit.body if undoing and action_of(commit.subject)[0] else commit.message
    closes = issues_in(closing[:_MAX_BODY_CHARS], repositories)[1]
    title = undoing.title if undoing and again and undoing.title else commit.subject
    is_partial = commit.subject.casefold().lstrip("[(").startswith(_PARTIAL)
    return BuildTask(
        task_id=commit.sha,
        agent_name=storable_text(recent.author_of(commit)).strip()[:400] or "unknown",
        description=_title(commit.subject),
        output=storable_text(shortened(commit.body, _MAX_BODY_CHARS)),
        outcome="partial" if is_partial else "success",
        files_changed=_paths(paths),
        files_removed=_paths(removed),
        files_renamed=dict(zip(_paths(renamed), _paths(renamed.values()), strict=False)),
        occurred_at=to_iso(commit.when),
        reverts=undoing.commit if undoing else None,
        restores=restored,
        restores_too=list(undoing.restored) if undoing else [],
        undone_subject=_title(undoing.title) if undoing else "",
        takes_back=taken_back,
        repeats=recent.repeated_by(commit),
        release=commit.release or None,
        mends=mended,
        mends_subject=_title(recent.subject_of(mended)) if mended else "",
        kind=kind_of(
            title, paths, undoes=bool(undoing) and not again, closes=bool(closes), merges=len(commit.parents) > 1
        ),
        text=beginning(storable_text(plain_text(commit.subject, commit.body)), MAX_TEXT_CHARS),
        changes=[_changed(file) for file in files if storable_text(file.path)],
        mentions=issues_in(commit.message[:_MAX_BODY_CHARS], repositories)[0],
        closes=closes,
        undoes=[undoing.commit, *undoing.others] if undoing and undoing.commit and undoing.others else [],
    )


def _title(subject: str) -> str:
    return beginning(storable_text(subject), _MAX_SUBJECT_CHARS)


def _changed(file: FileChange) -> ChangedFile:
    return ChangedFile.model_construct(  # what git says is valid, and there are many
        path=storable_text(file.path)[:_MAX_PATH_CHARS],
        kind=_KIND_OF_STATUS.get(file.status, "M"),
        added=file.added,
        removed=file.removed,
        was=storable_text(file.was)[:_MAX_PATH_CHARS] if file.status == "R" else None,
    )


def _moved(files: Sequence[FileChange]) -> tuple[list[str], dict[str, str]]:
    """Return the files that are gone, and the new paths of those that were renamed.

    Git takes a file that was split, joined, converted, or moved and rewritten for one that was deleted. It moved if a new file has
    its name or is in a folder of its name, or if new ones beside it with another ending gain more than half as many lines as it had;
    otherwise it is gone, unless files of its kind gain as many: these may be its own.
    """
    renamed = {file.was: file.path for file in files if file.status == "R"}
    places: dict[str, str] = {}
    brought: Counter[str] = Counter()
    for file in files:
        folder, _, name = file.path.rpartition("/")
        stem, _, suffix = file.path.rpartition(".")
        brought[suffix] += file.added or 0
        if file.status in "ACR":
            for key in (name, f"{folder}.{suffix}", f"{stem}/.{suffix}", f"{stem}."):
                places.setdefault(key, file.path)
            for key in (suffix, f"{stem}."):  # where lines are not counted, every new file may hold them
                brought[key] += file.added is None
            brought[f"{stem}."] += file.added or 0
    removed = []
    for file in files:
        folder, _, name = file.path.rpartition("/")
        stem, _, suffix = file.path.rpartition(".")
        half = (file.removed or 0) / 2
        place = places.get(file.path) or places.get(f"{folder}/.{suffix}") or (name not in _MANY and places.get(name))
        place = place or (stem and brought[f"{stem}."] > half and places.get(f"{stem}."))
        if file.status == "D" and place:
            renamed[file.path] = place
        elif file.status == "D" and brought[suffix] <= half:
            removed.append(file.path)
    return removed, renamed


def _paths(files: Iterable[str]) -> list[str]:
    return [path for file in files if (path := storable_text(file)[:_MAX_PATH_CHARS])]


_GITLAB_BOT = re.compile(r"(?:project|group)_\d+_bot(?:_\w+)?@noreply\.")
_MOST_NAMES = 4
"""An address that more names use is that of a team or a machine."""
_NOBODYS = re.compile(
    r"(?:^|[.+_-])no-?reply@|^[^@]*$|@[^.]*$|@(?:.*\.)?(?:example|invalid|local|localhost|localdomain|test)(?:\.(?:com|net|org))?$",
    re.IGNORECASE,
)
"""Addresses of nobody: without a domain, reserved (RFC 2606 and 6761), or that nobody reads."""
Spelling = tuple[str, str]
"""A name and an address, as a commit has them."""


def persons(authors: Iterable[Spelling]) -> dict[Spelling, str]:
    """Return the name of the person that each spelling means, of the authors of commits, the oldest first.

    Two spellings are one person if they have the same address, or the same name of two words or more, and are called by that of the
    most commits, of two words or more if there is one; of several by the latest. Linear: a union–find with path halving.
    """
    last, many = dict[Spelling, int](), Counter[Spelling]()
    for place, author in enumerate(authors):
        last[author] = place
        many[author] += 1
    # the addresses that GitHub gives apps, and GitLab access tokens
    of_bots = (one for one in last if "[bot]@" in one[1] or _GITLAB_BOT.match(one[1]))
    bots = {one: one[0] if is_bot(one[0]) else f"{one[0]}[bot]" for one in of_bots}
    known = [one for one in last if one not in bots]
    names_of: dict[str, set[str]] = defaultdict(set)
    for name, address in known:
        names_of[_address(address)].add(canonical_name(name))
    parent = list(range(len(known)))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    first: dict[str, int] = {}
    for place, (name, address) in enumerate(known):
        mail, called = _address(address), canonical_name(name)
        keys = [f"@{mail}"] if mail and len(names_of[mail]) <= _MOST_NAMES else []
        for key in (*keys, *([called] if " " in called else [])):
            one, other = sorted((root(first.setdefault(key, place)), root(place)))
            parent[other] = one
    names: dict[int, dict[str, tuple[bool, int, int]]] = defaultdict(dict)
    for place, spelling in enumerate(known):
        of, name = names[root(place)], spelling[0]
        _, commits, latest = of.get(name, (False, 0, -1))
        of[name] = " " in name.strip(), commits + many[spelling], max(latest, last[spelling])
    best = {person: max(of, key=of.__getitem__) for person, of in names.items()}
    return {**{spelling: best[root(place)] for place, spelling in enumerate(known)}, **bots}


def respelled(people: Mapping[Spelling, str]) -> dict[str, str]:
    """Return, for each name that is no longer shown and means one person, that person: memories made earlier may still have it."""
    meant = dict.fromkeys((name, person) for (name, _), person in people.items())
    known = Counter([*(name for name, _ in meant), *people.values()])
    return {name: person for name, person in meant if known[name] == 1}


def _address(address: str) -> str:
    """Return an address in the form in which it identifies a person; "" if it does not."""
    if _NOBODYS.search(address):
        return ""
    number, _, name = address.strip().casefold().partition("+")
    return name if number.isdecimal() and "@users.noreply." in name else address.strip().casefold()
