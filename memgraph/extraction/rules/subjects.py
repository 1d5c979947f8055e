"""Subject line of a change: its kind, its scope, and whether it is routine.

Subjects are truncated to `MAX_SUBJECT_CHARS` before any pattern is applied.
"""

from __future__ import annotations

from dataclasses import dataclass

from memgraph.text import lazy_re as re
from memgraph.text.cutting import cut

MAX_SUBJECT_CHARS = 300

_KIND_OF_WORD = {
    **dict.fromkeys(("fix", "fixes", "fixed", "bugfix", "hotfix", "bug", "security", "sec"), "fix"),
    **dict.fromkeys(("feat", "feature", "new", "add", "added"), "feature"),
    **dict.fromkeys(("enh", "enhancement", "improve", "improvement", "perf", "ux", "ui"), "improvement"),
    **dict.fromkeys(
        ("change", "changed", "rename", "move", "remove", "update", "config", "deps", "dep", "dependencies"), "change"
    ),
    **dict.fromkeys(("breaking", "break"), "breaking"),
    **dict.fromkeys(("ref", "refactor", "refactoring", "cleanup", "rfc"), "refactoring"),
    **dict.fromkeys(("doc", "docs", "documentation", "readme", "changelog", "website"), "docs"),
    **dict.fromkeys(("ci", "cd", "test", "tests", "testing", "build", "gha", "lint", "typing"), "ci"),
    **dict.fromkeys(("chore", "style", "fmt", "format", "typo", "misc", "minor", "nit", "cosmetic"), "chore"),
    **dict.fromkeys(("wip", "draft", "fixup!", "squash!", "amend!"), "wip"),
    **dict.fromkeys(("release", "bump", "version"), "release"),
}
_ADJECTIVES = frozenset({"important", "critical", "major", "urgent", "quick", "small", "further", "final", "more"})
_PREFIX = re.compile(r"([A-Za-z_][\w !/,&+.-]{0,40}?)\s?(?:\(([^()]{1,60})\))?(!)?:\s+(?=\S)")
_UNDOES = re.compile(r"revert|un-?do|roll ?back|back ?out", re.IGNORECASE)
"""A prefix without which a subject would say the contrary."""
_BRACKETED = re.compile(r"\[([\w /.-]{1,30})\]:?\s+(?=\S)")
_ISSUE = re.compile(r"\s*\((?:#|GH-)\d+\)|\s+#\d+$|\s*https?://\S+")
_DANGLING = re.compile(
    r"[\s.,;(-]+(?:(?:this|it|which) )?(?:fixe?[sd]?|close[sd]?|resolve[sd]?|refs?|see|issue)\s*$", re.IGNORECASE
)
_ORIGIN = re.compile(
    r"(?:\[(?:svn r\d+|project @ [^\]]{1,200})\]|\[\w{0,8}\d+(?:\.[\dx]+)+\w{0,4}\]|:[a-z_]{2,30}:|[^\w\s\[\]()`'\"#@$<>&.-]{1,4}|[*-])\s+|(?:fix(?:e[sd])?|closes?|resolves?|refs?|issue|bug) ?:?(?:issues? ?)?#?\d+(?:[,&\s]{1,3}#\d+){0,5}\s?[-:;,.]\s?(?=[A-Za-z`])|#\d+\s?[-:,]?\s(?=\S)",
    re.IGNORECASE,
)
"""What tools and habits put before a subject: revisions, branches, pictograms, issues."""
_MERGE = re.compile(
    r"merge\b|merging\b|merged\b|sync(?:ing)? (?:with|fork)\b|pull request\b|initial commit\b", re.IGNORECASE
)
_BUMP = re.compile(
    r"(?:start (?:version|work on|maint\w*)\b|release (?:version\b|v?\d)|cut v?\d|(?:bump|upgrade|update)\b.{0,120}\bfrom\b.{0,60}\bto\b|(?:bump|update) (?:deps|dependencies|pre-commit|version|changelog))",
    re.IGNORECASE,
)
_PROGRESS = re.compile(
    r"(?:(?:down to|only) \d+ |\d+ (?:\w+ )?(?:tests?|failures?|errors?|warnings?) (?:left|remaining|to go|failing)|(?:part|step|phase) \d|(?:first|second|last|other|another) (?:half|part|step|cut|pass|draft|stab)\b|.{3,60}:? plumbing\W*$)",
    re.IGNORECASE,
)
_TRIVIAL = re.compile(
    r"\b(?:typos?|spelling|grammar|misspell\w*|readmes?|changelog|whitespace|indentation|reformat\w*|formatting|lint(?:er|ing)?|"
    r"flake8 (?:fix|warning|finding|complain)\w{0,5}|isort|prettier|favicon|logos?|badges?|emojis?|dead links?|broken links?|docstrings?|javadocs?|jsdocs?|"
    r"copyright|license header|citation|wording|rephrase\w*|cosmetic\w*|nits?|pre-?commit|unit ?tests?|failing tests?|"
    r"fix(?:e[sd])? tests?|documentation|docs?|type hints?|typing fix\w*|code ?style|cleanup|clean up|merge conflicts?|"
    r"review comments?|mkdocs|codecov|github actions?|gha|pylint|mypy|ruff|"
    r"(?:go )?vet|golint|go(?:fmt|imports)|import order|clippy|rustfmt|rubocop|eslint|pychecker|pyflakes|licen[cs]\w{1,4}|"
    r"indents?|dev(?:elopment)? (?:dependenc|requirement)\w{1,3}|guides?|tutorials?|type.?ignored?|annotations?|typing|type coverage|verifytypes|(?:unused|redundant) imports?|"
    r"(?:add|adds|added|adding|more|improve|improved|update|updated|new|extend|fix|fixed) (?:\S{1,30} ){0,3}tests?|"
    r"fixes after refactor\w*|print statements?|debug (?:prints?|logs?|statements?))\b",
    re.IGNORECASE,
)
_EMPTY_WORDS = frozenset(
    str.split(
        "a an the of to in on at by for with and or as is are be it its this that from into some any all more most other "
        "fix fixes fixed fixing bug bugs bugfix issue issues problem problems error errors update updates updated updating change "
        "changes changed add adds added adding remove removes removed make made do does not small minor major multiple several "
        "various few many lots bunch stuff things thing misc code file files work works working again now new old better "
        "improve improved improvement improvements improving refactor refactored cleanup clean up tweak tweaks tweaked "
        "adjust test tests wip first last final hopefully really actually proper properly correctly correct use using "
        "address addressing addressed resolve resolved handle py js ts still also support missing wrong broken after before "
        "left right back get set setting pr prs related show info display script scripts command commands check checking time "
        "functionality"
    )
)
_CONTENT_WORD = re.compile(r"[^\W_][\w.-]*")


@dataclass(frozen=True, slots=True)
class Subject:
    """A parsed subject.

    Attributes
    ----------
    text : str
        The description, without prefix and issue references.
    kind : str or None
        ``fix, feature, improvement, change, breaking, refactoring, docs, ci, chore, wip, release``, if its
        prefix says so.
    scopes : tuple of str
        The scopes in its prefix.
    is_breaking : bool
        Whether it is marked by ``!`` or the prefix.
    """

    text: str
    kind: str | None = None
    scopes: tuple[str, ...] = ()
    is_breaking: bool = False


def parse_subject(line: str) -> Subject:
    """Parse ``Fix(parser)!: text``, ``Doc/CI: text``, ``[parser] text``, ``parser: text`` and plain text."""
    line = cut(" ".join(line.split()), MAX_SUBJECT_CHARS)
    is_issue_fix = False
    for _ in range(3):
        if not (origin := _ORIGIN.match(line)):
            break
        is_issue_fix = is_issue_fix or origin.group().casefold().startswith("fix")
        line = line[origin.end() :]
    kinds: list[str] = []
    scopes: list[str] = []
    breaking = False
    prefix = _PREFIX.match(line)
    match = prefix or _BRACKETED.match(line)
    if match and _UNDOES.match(match[1]):
        return Subject(_without_issues(line))
    if match and len(line) - match.end() >= 3:
        words = [word for word in re.split(r"[ /,&+]+", match[1]) if word]
        kinds = [_KIND_OF_WORD[word.casefold()] for word in words if word.casefold() in _KIND_OF_WORD]
        rest = [word for word in words if word.casefold() not in _KIND_OF_WORD.keys() | _ADJECTIVES]
        if rest and "/" in match[1]:
            kinds = []  # a path, such as testing/runner
        if not (kinds or len(rest) == 1 or "/" in match[1]):
            return Subject(_without_issues(line))  # a sentence that contains a colon, not a prefix
        scopes = rest[:2]
        if prefix:
            scopes += [part.strip() for part in re.split(r"[,/]", prefix[2] or "") if part.strip()]
            breaking = bool(prefix[3])
        line = line[match.end() :]
    elif match := re.match(r"((?:\w+ )?)fix: ", line, re.IGNORECASE):
        kinds, line = ["fix"], line[match.end() :]
    text = _without_issues(line)
    if is_issue_fix and not kinds:
        kinds = ["fix"]
    return Subject(text, kinds[0] if kinds else None, tuple(scopes[:3]), breaking or "breaking" in kinds)


def _without_issues(line: str) -> str:
    """Remove issue references, together with a preceding "fixes"."""
    without = _ISSUE.sub("", line)
    return (without if without == line else _DANGLING.sub("", without)).strip()


def is_noise(line: str) -> bool:
    """Return whether a change is a merge, a version bump or a bot's: not a person's decision."""
    line = line[:MAX_SUBJECT_CHARS].strip()
    return not line or _MERGE.match(line) is not None or _BUMP.search(line) is not None


def reports_progress(line: str) -> bool:
    """Return whether a change only says how far its author has come with a larger one."""
    return _PROGRESS.match(line[:MAX_SUBJECT_CHARS].strip()) is not None


def is_trivial(text: str) -> bool:
    """Return whether a change concerns wording, formatting, tests or docs."""
    return _TRIVIAL.search(text[:MAX_SUBJECT_CHARS]) is not None


def content_words(text: str) -> list[str]:
    """Return the content words of a text, folded and in order."""
    words = (word.casefold().strip(".-") for word in _CONTENT_WORD.findall(text[:2_000]))
    return [word for word in words if len(word) > 1 and word not in _EMPTY_WORDS and not word.isdigit()]
