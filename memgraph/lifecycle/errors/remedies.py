"""What went wrong, whose fault it was, and what helped: read from what episodes say. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memgraph.extraction.error_text import failure_fingerprint
from memgraph.extraction.statements import sentences
from memgraph.lifecycle.evidence.evidence import evidence_of
from memgraph.lifecycle.evidence.sentences import concrete
from memgraph.lifecycle.evidence.trials import is_trial
from memgraph.model.results.learning import ErrorKind
from memgraph.ports import Row
from memgraph.text import lazy_re as re
from memgraph.text.cutting import cut, whole_sentences

_SAID_CHARS = 320
_LESSON_CHARS = 500
_MOST_MESSAGES = 50
_VARIES = re.compile(r"\d+|\"[^\"]{0,200}\"|'[^']{0,200}'|`[^`]{0,200}`|“[^”]{0,200}”")

_IS_PART = re.compile(r"`?(?:…|[\[{\"']|\w+=[\"'\[{])")
"""Opening of a part of a command, or of the arguments of a call: they help nobody in another case."""
_OPENS, _CLOSES = re.compile(r"^[^\w\s]*"), re.compile(r"[^\w\s]*$")
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
    messages : list of str
        How it was reported, each once, at most 50; they differ in numbers, names and places.
    failed, mended : list of Row
        Episodes in which it stayed; those that tell what helped.
    faded : frozenset of str
        Builds in which it was met, of episodes that are gone because they had faded.
    ends : mapping of str to str
        When builds were completed: a merged episode has the time of one of its builds only.
    """

    fingerprint: str
    error: str
    messages: list[str] = field(default_factory=list)
    failed: list[Row] = field(default_factory=list)
    mended: list[Row] = field(default_factory=list)
    faded: frozenset[str] = frozenset()
    ends: Mapping[str, str] = field(default_factory=dict)

    @property
    def met_at(self) -> list[str]:
        """When it was met, ascending."""
        return sorted([*self._times(self._met), *(self.ends.get(one, "") for one in self.faded)])

    @property
    def _met(self) -> list[Row]:
        """The episodes in which it was met: a task that went well later, in another build, did not meet it."""
        return [*self.failed, *(row for row in self.mended if row.get("worked_how") or not row.get("tried"))]

    def _times(self, rows: Iterable[Row]) -> list[str]:
        found = (self.ends.get(key) or row.get("occurred_at", "") for row in rows for key in evidence_of(row))
        return sorted(filter(None, found))

    @property
    def came_back_at(self) -> str | None:
        """When it was met last after it had been mended; None if it was not, or nobody says."""
        over = min(self._times(self.mended), default="9999")
        return max((at for at in self._times(self.failed) if at > over), default=None)

    @property
    def is_mended(self) -> bool:
        """Whether its task went well after it was met last."""
        return self.mended_at > (self.met_at or ["9999"])[-1]

    @property
    def mended_at(self) -> str:
        """When its task went well last in a build in which it was not met; empty if that did not happen."""
        return max(self._times(row for row in self.mended if row not in self._met), default="")

    @property
    def is_of_a_task(self) -> bool:
        """Whether no error was reported: what is the same is what was to be done."""
        return bool(self.failed) and self.failed[0]["content"] == self.error

    @property
    def lesson(self) -> str | None:
        """The last lesson that was drawn, where no error was reported: it did not help."""
        lesson = lesson_of(self.failed[-1]) if self.is_of_a_task else None
        return whole_sentences(" ".join(lesson.split()), _LESSON_CHARS) if lesson else None

    @property
    def lessons(self) -> int:
        """How many episodes tell a lesson: what says much the same has been merged into one."""
        return sum(lesson_of(row) is not None for row in self.failed)

    @property
    def name(self) -> str:
        """The error in one short line, without what differs from time to time; else what was to be done, or learned."""
        if not self.is_of_a_task:
            return named_error(_in_common(self.messages))
        return named_error(self.lesson or what_of(self.failed[-1]) or (sentences(self.error) or [self.error])[0])

    @property
    def kind(self) -> ErrorKind:
        """Whose fault it is."""
        return kind_of(error_text([*self.mended, *self.failed][-1]))

    @property
    def builds(self) -> frozenset[str]:
        """Those in which it was met."""
        return self.faded.union(*map(evidence_of, self._met))

    @property
    def stayed(self) -> frozenset[str]:
        """Those of them in which nothing helped."""
        return frozenset[str]().union(*map(evidence_of, self.failed)).difference(*map(evidence_of, self.mended))


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
            if message not in trouble.messages and len(trouble.messages) < _MOST_MESSAGES:
                trouble.messages.append(message)
            of = trouble.failed if row.get("outcome") == "negative" else trouble.mended
            if all(one["id"] != row["id"] for one in of[-1:]):
                of.append(row)
    return list(found.values())


def error_text(row: Row) -> str:
    """Return what an episode says of the errors that it met; what a trial was about, or what a change mended, is none."""
    if met := row.get("errors_encountered"):
        return " / ".join(str(one["message"]) for one in met)
    if is_trial(row):
        return str(row.get("last_error", ""))
    return "" if row.get("git_commit") else str(row["content"])


def lesson_of(row: Row) -> str | None:
    """Return the lesson that a trial led to, else the one that it acted on."""
    return row.get("lesson") or row.get("acted_on")


def remedy_of(row: Row) -> str | None:
    """Return what an episode says that helped, in its own words."""
    if lesson := lesson_of(row):
        return advice_in(lesson) if row.get("outcome") == "positive" else None
    how, worked = row.get("worked_how"), row.get("worked")
    if how == "again":
        return advice_in(row.get("explained", ""))
    if worked and how == "edit":
        return _said(f"edit {worked}")
    if worked and how:
        return None if _IS_PART.match(worked) else _said(worked)
    if worked:
        return _said(next(iter(sentences(worked)), worked).removesuffix("."))
    stated = next((error["resolution"] for error in row.get("errors_encountered", ()) if error.get("resolution")), None)
    return _said(stated) if stated else None


def advice_in(lesson: str) -> str | None:
    """Return the sentences of a lesson that say what is to be done, the last ones."""
    return _joined(concrete([one for one in sentences(lesson) if _TO_DO.search(one)])[-2:])


def tried_in(row: Row) -> str | None:
    """Return what an episode says was done that went wrong; None for a lesson that only says what is to be done."""
    if lesson := lesson_of(row):
        wrong = [one for one in sentences(lesson) if _WENT_WRONG.search(one) and not _TO_DO.search(one)]
        return _joined(concrete(wrong)[:2])
    if is_trial(row):
        return None  # which of its calls was wrong nobody says
    if tried := row.get("tried"):
        return _said(tried)
    failed = [step["action"] for step in row.get("action_log", ()) if step.get("error")]
    if failed:
        return _said(failed[-1])
    return _said(row.get("action") or row.get("decision") or (sentences(row["content"]) or [row["content"]])[0])


def what_of(row: Row) -> str | None:
    """Return what a trial was at, to recognise it by in another trial."""
    asked: str | None = row.get("asked")
    return asked.rstrip(".") if asked else None


def named_error(error: str) -> str:
    """Return an error in one short line."""
    return cut(" ".join(error.split()), 200)


def _in_common(messages: Sequence[str]) -> str:
    """Return what all the messages of an error say, with … for what differs."""
    words = [message.split() for message in messages]
    if len({len(one) for one in words}) > 1:
        return " ".join(_VARIES.sub("…", messages[0]).split())
    return " ".join(_shared_word(set(places)) for places in zip(*words, strict=True))


def _shared_word(forms: set[str]) -> str:
    """Return a word that all say, or what stands around it where it differs."""
    if len(forms) == 1:
        return next(iter(forms))
    around = [{found[0] for form in forms if (found := edge.search(form))} for edge in (_OPENS, _CLOSES)]
    return "…".join(edge.pop() if len(edge) == 1 else "" for edge in around)


def _joined(parts: Sequence[str]) -> str | None:
    """Return sentences as one text: the last ones that fit, whole."""
    while len(parts) > 1 and len(" ".join(parts)) > _SAID_CHARS:
        parts = parts[1:]
    said = " ".join(part if part.endswith((".", "!", "?")) else f"{part}." for part in parts)
    return _said(said) if said else None


def _said(text: str) -> str:
    return whole_sentences(" ".join(text.split()), _SAID_CHARS)


_READ_CHARS = 2_000


def _any_of(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)", re.IGNORECASE)


_EXTERNAL = _any_of(
    # the network
    r"E(?:CONN(?:REFUSED|RESET|ABORTED)|NOTFOUND|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN|PIPE)",
    r"connection (?:was |has been )?(?:refused|reset|aborted|closed|timed out|error)",
    r"(?:server|peer|host|end) (?:has )?(?:unexpectedly )?(?:closed|hung up|dropped|disconnected)",
    r"socket hang up|broken pipe|rpc failed|lost (?:connection|communication)|server ?disconnected",
    r"failed to (?:connect to|download)|unable to (?:fetch|resolve host)|max retries exceeded",
    r"no such host|no route to host|unknown ?host\w*|name or service not known|network (?:error|request)",
    r"network is (?:unreachable|down)|(?:temporary failure in|could not resolve|cannot resolve) (?:name|host)\w*",
    r"tls handshake|unexpected.eof.while.reading",
    r"(?:read|request|operation|handshake|i/o|gateway|connect|connection) ?time(?:d )?-?out|time(?:d )?-?out was reached|deadline exceeded",
    r"\w{0,20}(?:Connect(?:ion(?:Reset|Refused|Aborted)?)?Error|Disconnected(?:Error)?|(?:Connect|Read)Timeout\w*)",
    # the service
    r"(?:api|pull|request)s? rate.?limit\w*|rate.?limit\w*.{0,20} (?:exceeded|reached|hit)|rate.?limited (?:by|for)|rate.?limit error",
    r"too ?many ?requests|quota (?:was |has been )?exceeded|exceeded your (?:current )?quota|Throttl\w+",
    r"(?:http|status|code|error)\W{0,3}(?:429|50[0234])|50[234]\s+(?:service|bad|gateway)",
    r"service (?:is )?(?:temporarily )?unavailable|bad gateway|internal server error",
    r"(?:is|was|currently|error:?) overloaded|overloaded_error|overloaded(?=: )|UNAVAILABLE(?=: )",
    r"\w{0,20}(?:RateLimitError|ServiceUnavailable\w*)",
)
_CONFIGURATION = _any_of(
    # files, programs, packages and their versions
    r"no such file or directory|file ?not ?found\w*|ENOENT|could not find (?:the )?file|could not find `[^`]{1,80}\.\w{2,4}`",
    r"command not found|not recognized as an internal or external command|executable not found|linker \S{1,40} not found",
    r"no module named|module ?not ?found\w*|cannot (?:find (?:module|package|-l\w+)|import name)|can't find crate|in the pkg-config search path",
    r"version (?:mismatch|conflict)|unsupported version|UnsupportedClassVersion\w*|(?:is|are) incompatible with|incompatible versions?",
    r"no matching (?:distribution|version)|could not find a version|which is incompatible|dependency conflict",
    r"requires? (?:a )?(?:different )?(?:python|node|version)\b[^.]{0,30}\d|requires \S{1,20} [><=~^]{1,2} ?\d[\d.]*",
    r"\S{1,40} or (?:greater|later|newer|higher) is required|(?:could not|unable to) resolve depend\w+|externally-managed-environment",
    # permissions and credentials
    r"permission (?:to \S{1,100} )?denied|PermissionError|EACCES|operation not permitted|access ?denied|403 forbidden",
    r"unauthori[sz]ed|(?:authentication|login) failed|unable to locate credentials|NoCredentials\w*|certificate (?:has )?expired",
    r"(?:http|code|error)\W{0,3}40[13]|status\W{0,3}40[13](?!.{0,20}\bgot\b)",
    r"(?:invalid|missing|expired|bad) (?:api.?key|credentials?|access token)|(?:invalid|expired) token(?! [^\w\s])|no (?:api.?key|credentials)",
    r"(?:role|database|user) \"[^\"]{1,60}\" does not exist",
    # settings and the machine
    r"environment variables?|EnvironmentError|(?:is|was) not (?:set|configured|installed)|input required and not supplied",
    r"missing (?:required )?(?:config\w*|setting|token|environment|key file|dependency)|Improperly\w*Configured",
    r"(?:invalid|bad|broken) config\w*|config\w* (?:error|file)|invalid workflow|unknown (?:compiler |command.line )?option",
    r"EADDRINUSE|address already in use|no space left on device|disk (?:is )?full|cannot connect to the docker daemon",
)
_MISSING_PROGRAM = re.compile(r"^(?:[\w./-]{1,40}: ){1,3}(?:\d{1,4}: )?[\w.-]{1,40}: not found$")
_SETTING = re.compile(
    r"KeyError: '[A-Z][A-Z0-9]*_[A-Z0-9_]+'|"
    r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\W{1,3}(?:is |was )?(?:missing|undefined|not (?:set|found|defined))\b|"
    r"in \"[^\"\n]{0,140}\.(?:ya?ml|toml|ini|cfg)\""
)
_EXPECTATION = re.compile(r"^(?:E\s+)?(?:AssertionError|expect(?:ed|ation)?)\b", re.IGNORECASE)
"""What a test expected is a mistake of one's own, whatever it names."""


def kind_of(error: str) -> ErrorKind:
    """Return the class of an error (seed 3): network, rate limit or service; setting, file, permission or version; else one's own mistake.

    An unrecognised message counts as a mistake of one's own: that is what one can act on.
    """
    said = error[:_READ_CHARS]
    if _EXPECTATION.search(said):
        return "internal"
    if _EXTERNAL.search(said):
        return "external"
    patterns = (_CONFIGURATION, _MISSING_PROGRAM, _SETTING)
    return "configuration" if any(pattern.search(said) for pattern in patterns) else "internal"
