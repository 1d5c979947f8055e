"""Conflict: whether and how two memories exclude each other (design §3, §5).

Precision comes before recall: unrelated memories must never retire each other. Two memories conflict only if, word by
word, they make the same statement about the same thing except for

- the **value**: one number, version, date, name or place where only one can be (``port = 8080``, ``port = 9090``);
- the **denial**: one negates the other;
- the **outcome**: what worked no longer works, in equal words.

Past events stay true: two events do not conflict because their outcomes differ. A failed trial and a later success at
the same task are a *recovery*: both are true, the failure is the lesson, and retiring it would unlearn it. An episode
therefore conflicts only if it claims what another one claims otherwise, or if the same action in the same situation
succeeded first and failed later: a reader of the success should also see the failure. Which commit undoes or removes
what another one did, the reader of the history knows (`BuildTask`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product, takewhile
from typing import Literal, NamedTuple

from memgraph.index.analyser import analyse
from memgraph.index.columns import ITEM_SOURCE
from memgraph.lifecycle.contradictions.claims import IS, Claim, Word, claims_of, says_something
from memgraph.lifecycle.contradictions.restated import is_users, replaced_in_words, restated
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory, EpisodicMemory
from memgraph.text import lazy_re as re

Kind = Literal["value", "denial", "outcome"]
NOTED: dict[Kind, str] = {
    "value": "another value",
    "denial": "one denies it",
    "outcome": "another outcome",
}
"""Description stored in the link. The link outlasts the visibility of its ends, so it quotes neither of them."""

_LEAST_SHARED = 2
"""Content words that two claims must share besides those that differ."""
_LONGEST_VALUE = 4
_LEAST_ALIKE = 0.6
"""Minimum share of common words of two claims with different values."""
_SHOWN_CHARS = 80


def _stems(words: str) -> frozenset[str]:
    return frozenset(analyse(words))


def _opposites(pairs: str) -> dict[str, str]:
    """Return both directions of the comma-separated pairs of words, by their stems."""
    both = (pair.split() for pair in pairs.split(", "))
    stems = [[(analyse(word) or [word])[0] for word in pair] for pair in both]
    return {one: other for pair in stems for one, other in (pair, pair[::-1])}


_OPPOSITE_ACTS = _opposites(
    "enables disables, allows forbids, works fails, includes excludes, likes dislikes, loves hates, accepts rejects, opens closes"
)
_OPPOSITE_STATES = _opposites(
    "on off, true false, enabled disabled, allowed forbidden, synchronous asynchronous, required optional, public private, safe unsafe, "
    "open closed, tabs spaces, up down, fast slow, possible impossible, supported unsupported, ascending descending, short long, "
    "high low, light dark, early late, available unavailable"
)  # fmt: skip
_OPPOSITE_WAYS = _opposites("with without, before after")
_QUANTITY = re.compile(
    r"[~<>≤≥$€£v]?\d[\d.,:/_x-]*\d*(?:%|ms|s|min|h|d|k|m|g|kb|mb|gb|tb|px|am|pm|x)?$|\d{1,2}(?:st|nd|rd|th)$",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)$", re.IGNORECASE)
_DAYS = _stems(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays january february "
    "march april june july august september october november december noon midnight"
)  # fmt: skip
_HOW_OFTEN = _stems("hourly daily nightly weekly biweekly monthly quarterly yearly annually")
_TAKES_A_QUANTITY = frozenset({IS, "every", "port", "version", "python"}) | _stems(
    "timeout limit budget maximum minimum max min size threshold retries rate interval delay batch temperature quota ttl"
)  # fmt: skip
_HELD_TO = frozenset(
    "is are starts start ends end begins begin expires expire closes close opens open launches happens runs listens waits lasts".split()
)  # fmt: skip
"""Word forms as written: things that started, ran or were closed are events, which may recur with another result."""
_SINGLE = _stems(
    "owner maintainer lead leader manager author host hostname port url address endpoint path location default model branch database "
    "language version region zone timezone name email phone format encoding color colour deadline date day time schedule password key "
    "provider registry theme editor favourite favorite budget limit timeout size threshold capital headquarters contact reviewer "
    "approver formatter linter license licence framework interpreter shell backend currency locale unit separator indentation mode level "
    "bucket queue topic cluster server domain"
)  # fmt: skip
"""Nouns for attributes with a single value."""
_HAS_ONE = _stems("owns maintains leads manages runs hosts reviews approves")
_PLACED = frozenset(
    "lives live located stored hosted deployed based listens happens scheduled owned maintained managed led written kept sent goes go named "
    "called".split()
)  # fmt: skip
_PLACING = frozenset({"in", "at", "on", "by", "to", "for", "under"})
_TIMES = frozenset({"on", "at", "after", "within", "until", "for", "in"})
_HAS_MANY = _stems(
    "supports works compatible includes adds offers visited failed fails handles fixes passed ships reads accepts"
)
"""Verbs whose objects do not exclude each other: supporting one version does not rule out another."""
_CHOOSES = _stems("use uses using prefer prefers choose chooses like likes want wants pick favour write")
_IDENTIFIER = re.compile(r"\w_\w|[a-z][A-Z]|\w\.\w|\w/\w")


class Conflict(NamedTuple):
    """How two memories conflict.

    Attributes
    ----------
    score : float
        Share of common words, in (0, 1].
    reason : str
        Explanation that may quote both memories, for readers who may see both.
    is_sure : bool
        False if the newer one may concern only a part of the older one: such a conflict is left open.
    is_stated : bool
        Whether the newer one itself says that it replaces what the older one reports.
    """

    kind: Kind
    score: float
    reason: str
    is_sure: bool = True
    is_stated: bool = False

    @property
    def noted(self) -> str:
        """Return the stored description: the kind alone."""
        return NOTED[self.kind]


def conflict_of(older: AgentMemory, newer: AgentMemory) -> Conflict | None:
    """Return how two memories of one project conflict, None if they do not; `newer` is the later statement.

    Deterministic; costs at most a few dozen comparisons of short sentences.
    """
    if not may_be_about_the_same(older, newer):
        return None
    if _is_equal(older.content, newer.content):
        return _of_outcome(older, newer)
    if is_users(older) and is_users(newer) and (found := restated(older, newer)):
        return Conflict(found.kind, 1.0 if found.is_sure else 0.5, found.reason, found.is_sure)
    if (is_users(older) or not isinstance(older, EpisodicMemory)) and (found := replaced_in_words(older, newer)):
        return Conflict(found.kind, 1.0 if found.is_sure else 0.5, found.reason, found.is_sure, is_stated=True)
    episodes = [isinstance(memory, EpisodicMemory) for memory in (older, newer)]
    if all(episodes):
        return _of_action(older, newer) or _of_claims(older, newer)
    return _of_claims(older, newer)


def may_be_about_the_same(one: AgentMemory, other: AgentMemory) -> bool:
    """Return whether their subjects are the same, where both name one. Values under two keys are about two things."""
    if one.source == other.source == ITEM_SOURCE:
        return False
    about, others = (
        {(entity.kind, canonical_name(entity.name)) for entity in memory.entities if entity.about}
        for memory in (one, other)
    )
    return not about or not others or bool(about & others)


def _of_outcome(older: AgentMemory, newer: AgentMemory) -> Conflict | None:
    is_claim = not isinstance(older, EpisodicMemory) and not isinstance(newer, EpisodicMemory)
    if is_claim and {older.outcome, newer.outcome} == {"positive", "negative"}:
        return Conflict("outcome", 1.0, f"the same is said to be {newer.outcome}, and to be {older.outcome}")
    return None


def _of_action(older: AgentMemory, newer: AgentMemory) -> Conflict | None:
    """Detect the same action in the same situation that succeeded first and failed later; the reverse is a recovery."""
    if (older.outcome, newer.outcome) != ("positive", "negative"):
        return None
    before, after = (
        [getattr(memory, name, None) or "" for name in ("situation", "action")] for memory in (older, newer)
    )
    if all(before) and all(map(_is_equal, before, after)):
        return Conflict("outcome", 1.0, "what worked before failed later")
    return None


def _is_equal(one: str, other: str) -> bool:
    return canonical_name(one) == canonical_name(other)


def _of_claims(older: AgentMemory, newer: AgentMemory) -> Conflict | None:
    """Return the surest conflict between a claim of one memory and a claim of the other."""
    is_said = all(memory.trust_class == "user" or is_users(memory) for memory in (older, newer))
    mine, theirs = claims_of(older.content), claims_of(newer.content)
    if not mine or not theirs:
        return None
    first, other = mine[0], theirs[0]
    if (first.norms, first.condition, first.rest) != (other.norms, other.condition, other.rest):
        # later sentences refer to the subject of the first: they are compared only if it is the same
        mine, theirs = mine[:1], theirs[:1]
    met = product((one for one in mine if _counts(older, one)), (one for one in theirs if _counts(newer, one)))
    found = [conflict for one, other in met if (conflict := _between(one, other, is_users=is_said))]
    return max(found, key=lambda conflict: conflict.score, default=None)


def _counts(memory: AgentMemory, claim: Claim) -> bool:
    """Return whether a claim states how things are: an episode's does if it reports a change or is what a user stated."""
    return claim.is_change or not isinstance(memory, EpisodicMemory) or is_users(memory)


def _between(one: Claim, other: Claim, *, is_users: bool) -> Conflict | None:
    if one.condition != other.condition:
        return None
    mine, theirs = one.norms, other.norms
    if mine == theirs:
        return _denial(one, other)
    if one.is_denied or other.is_denied:
        return None  # two negated statements do not exclude each other
    begins, ends = _begin_alike(mine, theirs), _begin_alike(mine[::-1], theirs[::-1])
    score = round(2 * (begins + ends) / (len(mine) + len(theirs)), 2)
    if score < _LEAST_ALIKE or begins + ends >= min(len(mine), len(theirs)):
        return None
    span, its_span = one.words[begins : len(mine) - ends], other.words[begins : len(theirs) - ends]
    left, right = one.words[:begins], one.words[len(mine) - ends :]
    if max(len(span), len(its_span)) > _LONGEST_VALUE:
        return None
    # of a rule, or of the change of one, there is only one value
    is_settled = all(claim.is_rule or claim.is_change for claim in (one, other))
    if sum(map(_weight, (*left, *right))) < (1 if is_settled else _LEAST_SHARED):
        return None
    is_choice = is_users or one.is_rule or other.is_rule
    replaced = _text(its_span, stemmed=True) == one.rejected or _text(span, stemmed=True) == other.rejected
    if replaced or _excludes(left, span, its_span, right, is_choice=is_choice):
        reason = f"says “{_text(its_span)}” where the older one says “{_text(span)}”"
        return Conflict("value", score, reason)
    return None


def _begin_alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two claims have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _weight(word: Word) -> int:
    """Return how much a shared word identifies the subject: the name of a setting counts as two words."""
    return says_something(word.norm) * (_LEAST_SHARED if _IDENTIFIER.search(word.text) else 1)


def _denial(one: Claim, other: Claim) -> Conflict | None:
    if one.is_denied == other.is_denied or sum(map(_weight, one.words)) < _LEAST_SHARED:
        return None
    reason = "the newer one says that it is not so" if other.is_denied else "the newer one says that it is so after all"
    return Conflict("denial", 1.0, reason)


def _excludes(
    left: Sequence[Word], span: Sequence[Word], other: Sequence[Word], right: Sequence[Word], *, is_choice: bool
) -> bool:
    """Return whether two values in this position exclude each other."""
    before = left[-1].norm if left else ""
    frame = {word.norm for word in (*left, *right)}
    if len(span) == len(other) == 1 and _are_opposite(left, span[0].norm, other[0].norm, right, is_choice=is_choice):
        return True
    if frame & _HAS_MANY:
        return False
    if _is_quantity(span) and _is_quantity(other):
        return _takes_a_quantity(left, span, right, is_rule=is_choice)
    if any(_is_quantity([word]) for word in (*span, *other)):
        return False
    ends = not right or not says_something(right[0].norm)
    if before == IS:
        is_setting = any(_IDENTIFIER.search(word.text) for word in left)
        return ends and (is_setting or bool(frame & _SINGLE))
    if _is_placed(left) or _is_placed(left[:-1]):  # owned by Anna, owned by team Orca
        return ends
    if not left:
        return bool(right) and _is_name(span) and _is_name(other) and _gives_one(right)
    return is_choice and before in _CHOOSES and any(says_something(word.norm) for word in right)


def _are_opposite(left: Sequence[Word], one: str, other: str, right: Sequence[Word], *, is_choice: bool) -> bool:
    """Return whether two words in this position are opposites; the public and the private API are two things."""
    if not left or any(word.norm == IS for word in right):
        return False
    if _OPPOSITE_ACTS.get(one) == other or (is_choice and _OPPOSITE_WAYS.get(one) == other):
        return True
    ends = not any(says_something(word.norm) for word in right)
    is_state = _OPPOSITE_STATES.get(one) == other or _HOW_OFTEN.issuperset((one, other))
    return is_state and (ends or left[-1].norm == IS or left[-1].norm in _CHOOSES)


def _is_placed(left: Sequence[Word]) -> bool:
    """Return whether the next words say where, when or by whom something is done."""
    return len(left) > 1 and left[-1].norm in _PLACING and left[-2].text.casefold() in _PLACED


def _takes_a_quantity(left: Sequence[Word], span: Sequence[Word], right: Sequence[Word], *, is_rule: bool) -> bool:
    """Return whether a number or date here is a value: not part of a name (the 1992 Olympics), not one of several (on a 429).

    A time is a value where it is a deadline, a begin or an end: a mere event may recur.
    """
    before = left[-1].norm if left else ""
    if right and (right[0].text.istitle() or _ORDINAL.match(span[0].norm)):
        return False
    if before in _TIMES:
        is_held = any(word.text.casefold() in _HELD_TO for word in left)
        return is_rule or is_held or _is_placed(left) or (span[0].norm in _DAYS and span[0].text.endswith("s"))
    return before in _TAKES_A_QUANTITY or before.startswith("-")


def _gives_one(right: Sequence[Word]) -> bool:
    """Return whether the words after a name make it an owner, or the value of an attribute with a single value."""
    if right[0].norm == IS:
        return len(right) > 1 and right[1].norm in _SINGLE
    return right[0].norm in _HAS_ONE


def _is_quantity(span: Sequence[Word]) -> bool:
    first = span[0].norm
    return _QUANTITY.match(first) is not None or first in _DAYS


def _is_name(span: Sequence[Word]) -> bool:
    return all(word.text[:1].isupper() for word in span)


def _text(span: Sequence[Word], *, stemmed: bool = False) -> str:
    text = " ".join(word.norm if stemmed else word.text for word in span)
    return text if stemmed else text[:_SHOWN_CHARS]
