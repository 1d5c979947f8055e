"""Repeated errors: met in at least three builds, their class, and what ended them (seed 3).

Each becomes an anti-pattern: what to avoid and what to do instead. Only errors with a message count here; trials of a task, and failures
without a message, are generalised by compression.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memgraph.extraction.error_text import NUMBER, QUOTED, failure_fingerprint
from memgraph.extraction.statements import sentences
from memgraph.lifecycle.episodes import (
    LEAST_BUILDS,
    LESSON_TYPES,
    Deletions,
    IncrementalRun,
    Scope,
    confidence_of,
    counted,
    dated,
    ended_at,
    evidence_in,
    evidence_of,
    in_order,
    is_trial,
    is_true,
    one_build_a_run,
    read_scope,
    when,
)
from memgraph.lifecycle.reconcile import Known, Lesson, deleted_of, fields_of, known_of, reconcile, shared_tags
from memgraph.lifecycle.run import Plan, TimeIsUp, View, commits_of, never
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.records import ERROR_ANALYSIS, ErrorsAnalysed
from memgraph.model.results.learning import ErrorAnalysis, ErrorKind, RepeatedError
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.text import lazy_re as re
from memgraph.text.attempts import stated
from memgraph.text.calendar import in_words
from memgraph.text.cutting import cut, whole_sentences
from memgraph.text.sentences import ended

SOURCE = "error analysis"
"""The `source` of these anti-patterns."""
RETIRED_TEXT = "An error that came up again and again: too few of the builds that it was seen in are left to tell it."
_MOST_TOLD = 20
_SAID_CHARS = 320
_FAULT: dict[ErrorKind, str] = {
    "internal": "",
    "external": " The fault is not one's own: network, rate limit or service.",
    "configuration": " A matter of the surroundings: a file, setting, permission or version.",
}


@dataclass(slots=True)
class Trouble:
    """An error, wherever it was met."""

    fingerprint: str
    error: str
    """As it was reported first."""
    varies: bool = False
    """Whether it was reported in other words, too: these differ in numbers, names and places."""
    failed: list[Row] = field(default_factory=list)
    """Episodes in which the error stayed."""
    mended: list[Row] = field(default_factory=list)
    """Episodes that say what helped."""
    ends: Mapping[str, str] = field(default_factory=dict)
    """When builds were completed: a merged episode has the time of one of its builds only."""

    @property
    def met_at(self) -> list[str]:
        """When it was met, ascending."""
        return self._times(self._met)

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
    def name(self) -> str:
        """The error in one short line, without what differs from time to time."""
        said = NUMBER.sub("…", QUOTED.sub("…", self.error)) if self.varies else self.error
        return cut(" ".join(said.split()), 200)

    @property
    def kind(self) -> ErrorKind:
        """Whose fault it is."""
        return kind_of(error_text([*self.mended, *self.failed][-1]))

    @property
    def helped(self) -> tuple[str | None, Row | None]:
        """What helped last, and the episode that says so."""
        return next(((one, row) for row in reversed(self.mended) if (one := remedy_of(row))), (None, None))

    @property
    def builds(self) -> frozenset[str]:
        """Those in which it was met."""
        return evidence_in(self._met)

    @property
    def stayed(self) -> frozenset[str]:
        """Those of them in which nothing helped."""
        return evidence_in(self.failed) - evidence_in(self.mended)


def troubles(rows: Sequence[Row]) -> list[Trouble]:
    """Return the errors that episodes met, in the order in which they were first met."""
    found: dict[str, Trouble] = {}
    for row in rows:
        for error in row.get("errors_encountered", ())[:1]:  # what follows is what the tool added to it
            message = error["message"]
            trouble = found.setdefault(failure_fingerprint(message), Trouble(failure_fingerprint(message), message))
            trouble.varies |= message != trouble.error
            (trouble.failed if row.get("outcome") == "negative" else trouble.mended).append(row)
    return list(found.values())


def error_text(row: Row) -> str:
    """Return what an episode says of the errors that it met; what a trial was about, or what a change mended, is none."""
    if met := row.get("errors_encountered"):
        return " / ".join(str(one["message"]) for one in met)
    if is_trial(row):
        return str(row.get("last_error", ""))
    return "" if row.get("git_commit") else str(row["content"])


def remedy_of(row: Row) -> str | None:
    """Return what an episode says that helped: what was edited, run or decided."""
    how, worked = row.get("worked_how"), row.get("worked")
    if worked and how:
        return _said(f"edit {worked}" if how == "edit" else worked)
    stated = (error["resolution"] for error in row.get("errors_encountered", ()) if error.get("resolution"))
    said = worked or next(stated, None)
    return _said(next(iter(sentences(said)), said).removesuffix(".")) if said else None


def tried_in(row: Row) -> str | None:
    """Return what an episode says was done that went wrong; of a trial nobody says which of its calls was."""
    if is_trial(row):
        return None
    failed = [step["action"] for step in row.get("action_log", ()) if step.get("error")]
    done = row.get("tried") or next(reversed(failed), None) or row.get("action") or row.get("decision")
    return _said(done or next(iter(sentences(stated(row["content"]))), stated(row["content"])))


def _said(text: str) -> str:
    return whole_sentences(" ".join(text.split()), _SAID_CHARS)


def analyse_errors(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> ErrorAnalysis:
    """Classify failures, and turn repeated ones into anti-patterns. Deterministic, without a model; idempotent and safe to interrupt."""
    result = _RUN.run(store, is_time_up)
    repeated = sorted(result.repeated, key=lambda error: (-error.builds, error.error))
    return result.model_copy(update={"repeated": repeated[:_MOST_TOLD]})


def _concluded(result: ErrorAnalysis, now: str, up_to_seq: int) -> ErrorsAnalysed:
    names = ("internal", "external", "configuration", "created", "updated")
    counts = {name: getattr(result, name) for name in names}
    return ErrorsAnalysed(applied_at=now, up_to_seq=up_to_seq, episodes=result.failures, superseded=0, **counts)


def _planned(view: View, scope: Scope, deletions: Deletions) -> Plan[ErrorAnalysis]:
    rows = one_build_a_run(view.reader, read_scope(view.reader, scope, LESSON_TYPES))
    episodes = in_order([row for row in rows if row["type"] == "episodic" and is_true(row, view.now)])
    own = [row for row in rows if row.get("source") == SOURCE and "failure_fingerprint" in row]
    known = {one.row["failure_fingerprint"]: one for one in known_of(own, {row["id"] for row in episodes})}
    repeated = [trouble for trouble in troubles(episodes) if len(trouble.builds) >= LEAST_BUILDS]
    for trouble in repeated:
        builds = evidence_in([*trouble.failed, *trouble.mended])
        trouble.ends = {one: ended_at(view.reader, one, scope[0]) for one in builds}
    repeated = [trouble for trouble in repeated if is_lesson(trouble)]
    if any(trouble.fingerprint not in known for trouble in repeated):
        gone = reversed(deleted_of(deletions, scope, SOURCE))  # deletions by somebody take precedence
        known = {one.row["failure_fingerprint"]: one for one in gone} | known
    wanted = [_lesson(trouble, scope, known.get(trouble.fingerprint)) for trouble in repeated]
    left = [one for what, one in known.items() if what not in {trouble.fingerprint for trouble in repeated}]
    found = reconcile(view, wanted, left, lapsed_text=RETIRED_TEXT, tags=["anti-pattern"])
    kinds: Counter[str] = Counter(kind_of(error_text(row)) for row in episodes if row.get("outcome") == "negative")
    told = [
        RepeatedError(
            error=trouble.name,
            remedy=lesson.fields["correct_approach"],
            memory_id=found.ids.get(lesson.key),
            kind=trouble.kind,
            builds=len(trouble.builds),
        )
        for trouble, lesson in zip(repeated, wanted, strict=True)
    ]
    result = ErrorAnalysis(
        failures=kinds.total(),
        **kinds,
        created=len(found.made),
        updated=len(found.grown) + len(found.lapsed),
        repeated=told,
        new_memory_ids=found.made,
    )
    return Plan(result, commits_of(scope[1], found.units), found.texts)


def _lesson(trouble: Trouble, scope: Scope, of: Known | None) -> Lesson:
    rows = in_order([*trouble.failed, *trouble.mended])
    last_first = [*reversed(trouble.failed), *reversed(trouble.mended)]
    tried, last = next(((one, row) for row in last_first if (one := tried_in(row))), (None, None))
    helped, helper = trouble.helped
    fields: dict[str, Any] = {
        **fields_of(rows, scope, SOURCE),
        "content": _content(trouble, tried),
        "pattern": trouble.name,
        "outcome": "negative",
        "confidence": confidence_of(len(trouble.builds)),
        "category": f"{trouble.kind} error",
        "incorrect_approach": tried,
        "correct_approach": helped,
        "is_solved": True if trouble.is_mended and helped else None,
        "tags": shared_tags(rows, "anti-pattern"),
        "failure_fingerprint": trouble.fingerprint,
        "occurred_at": max(trouble.met_at, default=None),
        "reason": "the same error came up again and again",
    }
    key = "\x1f".join(["anti-pattern", scope[0] or "", scope[1] or "", trouble.fingerprint])
    quoted = [row["id"] for row in (last, helper) if row]
    return Lesson(key, fields, list(dict.fromkeys(row["id"] for row in rows)), trouble.builds, of, besides=quoted)


def is_lesson(trouble: Trouble) -> bool:
    """Return whether anything can be learned from an error: it is not over with nobody knowing why.

    A service that was down for a while works again, whatever is done meanwhile.
    """
    is_over = not trouble.stayed or (trouble.is_mended and not trouble.came_back_at)
    return trouble.helped[0] is not None or not is_over


def _content(trouble: Trouble, tried: str | None) -> str:
    helped, helper = trouble.helped
    stayed = len(trouble.stayed)
    if stayed == len(trouble.builds) and (trouble.came_back_at or trouble.is_mended):
        then = ""
    elif stayed == len(trouble.builds):
        then = ", and stayed each time"
    else:
        then = f", and stayed in {stayed:,} of them" if stayed else ", and was mended each time"
    where = f"{counted(trouble.builds, [*trouble.failed, *trouble.mended])}{when(trouble.met_at)}"
    text = f"“{trouble.name}” came up {where}{then}."
    day = dated({"occurred_at": trouble.came_back_at or ""})
    if day and not (trouble.is_mended and helped is not None):
        text += f" It came back after {'runs that had passed' if helped is None else 'it had been mended'}{day}."
    if trouble.is_mended and helped is None:
        text += f" The run of {in_words(trouble.mended_at)} passed."
    text += _FAULT[trouble.kind]
    if trouble.is_mended and helped:
        text = f"{ended(helped)} That mended it{dated({'occurred_at': trouble.mended_at})}: {text}"
        return whole_sentences(text, MAX_CONTENT_CHARS)
    for label, part in ((f"What helped{dated(helper) if helper else ''}", helped), ("Seen when", tried)):
        known = f" {label}: {ended(part)}" if part and part.strip("“”` .") not in text else ""
        if len(text) + len(known) <= MAX_CONTENT_CHARS:
            text += known
    return whole_sentences(text, MAX_CONTENT_CHARS)


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
    r"^(?:[\w./-]{1,40}: ){1,3}(?:\d{1,4}: )?[\w.-]{1,40}: not found$",
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
    return "configuration" if _CONFIGURATION.search(said) or _SETTING.search(said) else "internal"


_RUN = IncrementalRun(ERROR_ANALYSIS, LESSON_TYPES, _planned, ErrorAnalysis(), _concluded)
