"""The message of a commit: title, body and plain text, the issues that it mentions, and the kind of its change."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memgraph.extraction.components import is_documentation, is_test
from memgraph.model.build import CommitKind
from memgraph.text import lazy_re as re

_MAX_SUBJECT_LINES = 3
_MAX_WRAPPED_LINES = 12
_LEAST_WRAPPED_CHARS = 60
"""A first line of this length that goes on in the next one is the beginning of a paragraph; a shorter one is a title."""
_MAX_TITLE_CHARS = 2_000
_MAX_ISSUES = 100
_CONTINUES = re.compile(r" {0,3}(?:[a-z][a-z']{0,20}[\s.,;)]|[a-z][a-z']{0,20}$|\()(?!.{0,30}#\d)(?!\s?:)")
_IMPORTED = re.compile(r"\A\[[^\]\n]{1,200}\][ \t]*\n+")
"""A line that a tool put before a message, whose next line is its title."""
_TRAILER = re.compile(
    r"(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|reported-by|suggested-by|approved-by|assisted-by|cc|change-id|"
    r"reviewed-on|git-svn-id|pull-request-resolved|differential revision|generated with|🤖 generated)\b.{0,3}:?\s",
    re.IGNORECASE,
)
_ANY_TRAILER = re.compile(r"[A-Za-z][\w-]{1,40}: \S|\(cherry[- ]picked from\b|[A-Za-z][\w-]{1,40} #\d")
_MARKUP = re.compile(
    r"<!--[^<>]{0,4000}-->|</?(?:a|b|br|code|details|div|em|h[1-6]|hr|i|img|kbd|li|ol|p|picture|pre|source|span|strong|su[bp]|summary|t[dhr]|table|tbody|thead|ul)(?:\s[^<>]{0,500})?/?>|"
    r"^[ ]{0,3}(?:```|~~~)[^\n]{0,80}$|^#{1,6}[ \t]+(?=\S)|(?<!\*)\*\*(?=\S)|(?<=\S)\*\*(?!\*)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\([^()\s]{1,500}\)")
_GAP = re.compile(r"\n\s*\n\s*")

_ISSUE = re.compile(
    r"(?<![\w&/#.-])(?:(?P<named>[\w.-]{1,40}/[\w.-]{1,100})?#|GH-|https?://[\w.-]{1,100}/(?P<linked>[\w.~/-]{3,200}?)/(?:-/)?(?:issues|pull|merge_requests)/)"
    r"(?P<number>[1-9]\d{0,8})\b",
    re.IGNORECASE,
)
_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+$", re.IGNORECASE)
"""The keywords of GitHub before an issue, https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/linking-a-pull-request-to-an-issue."""

_PREFIX = re.compile(
    r"\s*(?:\[?(?P<type>\w[\w /-]{0,40})\]?(?:\((?P<scope>[^()\n]{1,40})\))?!?:\s|\[(?P<tag>[^\]\n]{1,40})\]:?\s?)"
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
    r"(?:\w+(?:\([^()]{1,40}\))?!?: )?(?:bump|upgrade|update|pin|unpin|downgrade|deps\b|require)\w{0,3}\b.{0,80}(?:\bto\b|[@=<>^~]|\bv?\d+\.\d+)|(?:build\()?deps(?:-dev)?\)?!?: |\S+@[\^~]?\d+(?:\.\d+){1,3}\S*$",
    re.IGNORECASE,
)
_REVERT = re.compile(r"(?:\w+: |\[\w+\] )?revert(?:s|ed|ing)?\b:?\s+(?!to\b|back to\b)\S", re.IGNORECASE)
_ASSETS = (".css", ".png", ".svg", ".jpg", ".jpeg", ".gif", ".ico", ".log")


def parted(message: str) -> tuple[str, str]:
    """Return the title, which is the first line with those that continue its sentence, as git shows it; and the rest."""
    message = message.strip()
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


def without_trailers(text: str) -> str:
    """Return a body without the trailers that name people and tools instead of what happened."""
    lines = (line.rstrip() for line in text.splitlines() if not _TRAILER.match(line.strip()))
    return "\n".join(lines).strip("\n").rstrip()


def plain_text(subject: str, body: str) -> str:
    """Return a message as plain text: without its last paragraph if it has only trailers, and without HTML and Markdown except lists and `code`."""
    body = _LINK.sub(r"\1", _MARKUP.sub("", body.partition("--HG--")[0])).rstrip()
    rest, gap, last = body.rpartition("\n\n")
    if all(_ANY_TRAILER.match(line.strip()) for line in last.splitlines()):
        body = rest if gap else ""
    return f"{subject}\n\n{_GAP.sub(chr(10) * 2, body.strip())}".strip()


def issues_in(text: str, repositories: Collection[str] = ()) -> tuple[list[int], list[int]]:
    """Return the numbers of the issues and pull requests that a text mentions, and of those that it closes, each once.

    Parameters
    ----------
    repositories : collection of str
        Names (``owner/name``, in lower case) of this repository: what names or links another one does not count.
    """
    mentions: dict[int, None] = {}
    closes: dict[int, None] = {}
    for found in _ISSUE.finditer(text):
        elsewhere = found["named"] or found["linked"]
        if elsewhere and elsewhere.casefold() not in repositories:
            continue
        mentions[number := int(found["number"])] = None
        if _CLOSES.search(text, max(0, found.start() - 12), found.start()):
            closes[number] = None
        if len(mentions) == _MAX_ISSUES:
            break
    return list(mentions), list(closes)


def kind_of(title: str, files: Sequence[str], *, undoes: bool, closes: bool) -> CommitKind:
    """Return what kind of change a commit is.

    In this order: it undoes another; its title is a version, or raises one of a dependency; it changes nothing but
    documentation or tests; the prefix of its title; its first word; it closes an issue.

    Parameters
    ----------
    undoes, closes : bool
        Whether it is known to undo another commit, and says that it closes an issue.
    """
    title = title[:_MAX_TITLE_CHARS].strip()
    prefix = _PREFIX.match(title)
    said = " ".join(filter(None, (prefix["type"], prefix["scope"], prefix["tag"]))) if prefix else ""
    typed = [_OF_PREFIX[word] for word in re.split(r"[\s/,_]+", said.casefold()) if word in _OF_PREFIX]
    rest = title[prefix.end() :] if prefix else title
    if undoes or _REVERT.match(title):
        return "revert"
    if "release" in typed or _RELEASE.match(rest) or _RELEASE.match(title):
        return "release"
    if "dependency" in typed or is_bump(title):
        return "dependency"
    if files and all(map(_documents, files)):
        return "docs"
    if files and any(map(is_test, files)) and all(is_test(file) or _documents(file) for file in files):
        return "test"
    if typed:
        return typed[0]
    first, _, _ = rest.casefold().partition(" ")
    return _OF_VERB.get(first.strip(".,:;!"), "fix" if closes else "other")


def is_bump(title: str) -> bool:
    """Return whether a change only raises the version of something it uses."""
    return _DEPENDENCY.match(title[:_MAX_TITLE_CHARS].strip()) is not None


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


_EMPTY = re.compile(
    r"\(?\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?|refs?|see|pr)[\s:,]*\)|\(\s*\)|\b(?:fixe[sd]|close[sd]|refs?)[\s:,]*$",
    re.IGNORECASE,
)
"""What is left of a reference to an issue without the issue."""
