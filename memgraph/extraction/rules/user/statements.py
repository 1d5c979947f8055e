"""What a user states beyond the request at hand: rules, preferences, decisions, facts. No model.

A request asks for one thing now; a question asks; a report describes what is seen. None of them holds tomorrow. A statement does: it quantifies
("always", "every commit"), forbids a kind of thing ("no emojis"), contrasts ("X, not Y"), reports a decision, or says in what state something is or
where it lives. A sentence that points elsewhere ("it", "that one") is kept only with the sentence it points to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from memgraph.extraction.rules.causes import NAMES
from memgraph.extraction.rules.subjects import content_words
from memgraph.extraction.rules.user import patterns
from memgraph.extraction.rules.user.spoken import spoken
from memgraph.extraction.statements import sentences

StatementKind = Literal["instruction", "statement"]

_MAX_CHARS = 500
_MAX_STATEMENTS = 6
_MOST_WORDS = 60
_MOST_GENERAL_WORDS = 35
"""Longer sentences tell a story, in which "always" and "never" are about something else."""
_LEAST_WORDS = 2
_TELLING_WORDS = 3
_LEAST_ASSERTED_WORDS = 4
_RETRACTED_OVERLAP = 0.5
_MOST_COMPARED = 1 << 13
_MOST_LIFTED = 3
"""An earlier statement of more words, for each of those that lift it, is about something else too."""
_OF_LIFTING = frozenset(
    str.split("you may can fine ok okay allowed feel free we there no not never always longer need run any more please")
)
_MAX_BEFORE_CHARS = 300
"""Of what a sentence points to."""


@dataclass(frozen=True, slots=True)
class UserStatement:
    """What a user's message states.

    Attributes
    ----------
    kind : str
        ``instruction``: how to work; ``statement``: a decision or a fact.
    text : str
        One sentence or more, understandable by itself.
    """

    kind: StatementKind
    text: str

    @property
    def is_certain(self) -> bool:
        """Whether it says by itself that it holds from now on; if not, it may concern only what was being done."""
        return any(pattern.search(self.text) for pattern in patterns.CERTAIN)


def statements_in(message: str) -> list[UserStatement]:
    """Return what a message states beyond its request; linear in its length."""
    found: list[UserStatement] = []
    before, was_kept = "", False
    for part in spoken(message):
        if not part or any(_kind(quoted[0].strip("\"“”„«»‹›'‘’ ")) for quoted in patterns.QUOTED.finditer(part)):
            before, was_kept = "", False
            continue
        if patterns.is_question(part):  # "I want X on Y -- is that what you did?"
            first = patterns.QUESTION_TAIL.split(part, maxsplit=1)[0]
            part = first if first != part and _kind(first) else part  # noqa: PLW2901
        if _points_elsewhere(part):  # "It works like this: …", "this is odd - …"
            halves = patterns.HALVES.split(part, maxsplit=1)
            part = max(halves, key=lambda half: (_kind(half) is not None, not _points_elsewhere(half)))  # noqa: PLW2901
        kind, points = _kind(part), _points_elsewhere(part)
        text = _bare(part)
        starts = patterns.POINTING.match(text) is not None
        if kind and points and not (before and starts):
            kind = None
        is_passing = patterns.is_question(part) or patterns.ONCE.search(part)
        is_reason = was_kept and starts and not kind and not is_passing
        if (
            (kind or is_reason)
            and was_kept
            and (is_reason or kind == found[-1].kind)
            and len(found[-1].text) + len(text) < _MAX_CHARS
        ):
            if is_reason or points:
                found[-1] = UserStatement(found[-1].kind, f"{_ended(found[-1].text)} {text}")
            elif kind:
                found.append(UserStatement(kind, text))
        elif kind:
            found = found[:-1] if points and was_kept else found
            found.append(UserStatement(kind, f"{_ended(before)} {text}" if points else text))
        was_kept = kind is not None
        request = patterns.POLITE.match(text)
        said = text[request.end() :].rstrip(" ?") if request else text
        is_asked = patterns.is_question(part) and not request
        chain = f"{_ended(before)} {said}" if points and before else said
        before = "" if is_asked else chain if len(chain) <= _MAX_BEFORE_CHARS else said
    return found[:_MAX_STATEMENTS]


def takes_back(message: str, earlier: UserStatement, *, is_latest: bool) -> bool:
    """Return whether a message withdraws an earlier statement: the latest one, or one about the same thing, or by stating its opposite."""
    now, then = _gist_of(message[:_MAX_CHARS]), _gist_of(earlier.text)
    its = then.words
    shared = len(now.words & its)
    if now.takes_back:
        return (shared > 0 and shared >= _RETRACTED_OVERLAP * min(len(its), 2)) or (
            is_latest and patterns.ONLY_TAKES_BACK.match(message) is not None
        )
    for lifted in now.lifts:
        if len(lifted & its) > _RETRACTED_OVERLAP * len(lifted) and len(its - _OF_LIFTING) <= _MOST_LIFTED * len(
            lifted
        ):
            return True
    if not then.denies and any(name in earlier.text for name in now.bans):
        return True
    return shared >= max(2, 0.8 * len(its)) and now.denies != then.denies and bool(statements_in(message))


class _Gist(NamedTuple):
    """What comparing a text needs: its words, whether it denies and takes back, the words of what it allows again, and the names it bans."""

    words: frozenset[str]
    denies: bool
    takes_back: bool
    lifts: tuple[frozenset[str], ...]
    bans: tuple[str, ...]


@lru_cache(maxsize=_MOST_COMPARED)
def _gist_of(text: str) -> _Gist:
    """Return a text's gist. Cached, because each message is compared with all statements before it."""
    denies, takes_back = (pattern.search(text) is not None for pattern in (patterns.NEGATION, patterns.TAKES_BACK))
    lifting = (part for part in sentences(text) if patterns.ALLOWS.match(part))
    return _Gist(
        frozenset(content_words(text)),
        denies,
        takes_back,
        tuple(frozenset(content_words(part)) - _OF_LIFTING for part in lifting),
        tuple(match[1].strip("`.") for match in patterns.BANS.finditer(text) if NAMES.search(match[1])),
    )


def _kind(sentence: str) -> StatementKind | None:
    """Return the kind of statement that a sentence makes, if it makes one."""
    text = patterns.QUOTED.sub('"…"', patterns.OPENER.sub("", sentence).strip())
    marked = patterns.MARKED.match(text)
    text = text[marked.end() :].strip() if marked else text
    polite = patterns.POLITE.match(text)
    if polite and (patterns.GENERAL.search(text) or patterns.FORBIDS.match(text[polite.end() :])):
        text = text[polite.end() :].rstrip(" ?")
    words = text.split()
    if not _LEAST_WORDS <= len(words) <= _MOST_WORDS or patterns.is_question(text):
        return None
    if patterns.INCOMPLETE.search(text) or text.count('"') % 2:
        return None
    is_general = (
        len(words) <= _MOST_GENERAL_WORDS
        and patterns.GENERAL.search(text) is not None
        and not patterns.NOT_GENERAL.search(text)
    )
    if patterns.HEDGED.search(text) or (patterns.ONCE.search(text) and not is_general):
        return None
    clauses = [
        text,
        *(
            part
            for raw in patterns.CLAUSE.split(text)
            if len((part := patterns.OPENER.sub("", raw).strip()).split()) > 1
        ),
    ]
    tells = _tells(text)
    if patterns.TROUBLE.search(text) and not is_general and not tells:
        clauses = [clause for clause in clauses if any(pattern.search(clause) for pattern in patterns.HARD)]
    if not clauses:
        return None
    clauses = [clause for clause in clauses if not patterns.is_question(clause)]
    if any(pattern.search(clause) for clause in clauses for pattern in patterns.STATES):
        return "statement"
    if is_general or any(pattern.search(clause) for clause in clauses for pattern in patterns.INSTRUCTS):
        return "instruction"
    is_pointing = patterns.POINTING.match(text) is not None
    if len(content_words(text)) < _TELLING_WORDS or (is_pointing and (not tells or patterns.TROUBLE.search(text))):
        return None
    asserting = [part for part in clauses if patterns.NAMED_SUBJECT.match(part) or part == text]
    return "statement" if marked or tells or any(map(_asserts, asserting)) else None


def _asserts(clause: str) -> bool:
    """Return whether a clause asserts something in the present that is not about the moment."""
    return _LEAST_ASSERTED_WORDS <= len(clause.split()) <= _MOST_GENERAL_WORDS and bool(
        patterns.ASSERTS.match(clause) and not patterns.OF_THE_MOMENT.search(clause)
    )


def _tells(text: str) -> bool:
    """Return whether a sentence gives a reason, and names what can be looked up."""
    return NAMES.search(text) is not None and patterns.EXPLAINS.search(text) is not None


def _points_elsewhere(sentence: str) -> bool:
    """Return whether a sentence cannot be understood without another one."""
    text = patterns.OPENER.sub("", sentence).strip()
    return patterns.POINTING.match(text) is not None or bool(
        (patterns.POINTS_AT_END.search(text) or patterns.POINTS_AS_OBJECT.match(text)) and len(content_words(text)) < 3
    )


def _bare(sentence: str) -> str:
    """Return a sentence without greeting or assent before it."""
    text = patterns.OPENER.sub("", sentence).strip() or sentence
    return text[:1].upper() + text[1:] if text.split(maxsplit=1)[0].isalpha() else text


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."
