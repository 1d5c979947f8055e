"""Restatements: what a user stated later, in another session, about what the user had stated before.

A rule is taken back (“you can skip make lint from now on”), a prohibition lifted (“you may push to main again”), what
is somewhere moves (“staging has moved to port 5434”), and what was used is given up (“we switched from npm to pnpm”). The words must be about the same thing: what is taken back consists
of words of the rule and covers all that the rule demands, and what moves has the same name. Where a restriction or only
a part is named, the two contradict each other, and nobody knows which holds. Pure; linear in the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from memgraph.index.analyser import analyse
from memgraph.lifecycle.contradictions.claims import claims_of
from memgraph.model.memory import AgentMemory
from memgraph.text import lazy_re as re
from memgraph.text.leads import without_lead
from memgraph.text.sentences import split_sentences

_KINDS = frozenset({"instruction", "statement"})
_MAX_CHARS = 300
_MOST_SENTENCES = 4
_WE = r"(?:you|we|i)"
_TAKEN_BACK = re.compile(
    rf"^(?:{_WE} (?:can|may|could|should|do)\s(?:now |also |just |safely )?(?:skip|drop|omit|ignore|leave out|stop|forget about|do without) |"
    rf"(?:skip|drop|omit|leave out|stop|quit) |(?:{_WE} )?(?:no longer|(?:do not|don['’]?t) (?:need|have) to|needn['’]?t|(?:do not|don['’]?t)) (?:need to |have to |must )?|"
    r"(?:there(?:['’]s| is) )?no (?:longer (?:any )?|more )?need (?:to|for) |(?:forget|ignore|disregard) (?:the|that|my) (?:\w+ )?(?:rule|instruction|convention)s? (?:about|that|on|of|to) )"
    r"(?P<what>.+)$|^(?P<which>.+?) (?:is|are) (?:no longer|not) (?:needed|required|necessary|mandatory)\b",
    re.IGNORECASE,
)
_ALLOWED = re.compile(
    rf"^{_WE} (?:can|may|are allowed to|should|must) (?:now |again )?(?P<what>.+)$|^it(?:['’]s| is) (?:now )?(?:fine|ok|okay|allowed) (?:now )?to (?P<that>.+)$|"
    r"^(?P<which>.+?) (?:is|are) (?:now |again )?(?:fine|ok|okay|allowed)\b",
    re.IGNORECASE,
)
_MOMENT = re.compile(
    r"\b(?:for now|for the moment|today|tonight|this (?:time|once)|just once|right now|yet)\b", re.IGNORECASE
)
_RESTRICTED = re.compile(
    r"\b(?:if|when|unless|until|while|except|only|but|whenever|where|during|outside)\b", re.IGNORECASE
)
_END = re.compile(
    r"[,;:(]|\s[–—-]\s|\s(?:because|since|as|so|now that|instead|rather|not|but|if|when(?:ever)?|unless|until|while|except|only|where|during|outside)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(
    r"\b(?:from (?:now|today|here) on|going forward|any ?more|again|now|after all|at all|altogether|please)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^(?:before|after|when(?:ever)?|on|for|in|at)\b[^,]{1,80},\s+", re.IGNORECASE)
_OCCASION = re.compile(
    r"\s(?:before|after|prior to|when(?:ever)?|each time|every time|(?:on|for|in|at|with) (?:every|each|all|any)|because|since|so that)\b|[,;:(]",
    re.IGNORECASE,
)
"""What follows says when a rule applies, and no longer what it demands."""
_DENIES = re.compile(r"\b(?:do not|don['’]?t|not|never|cannot|can['’]?t|mustn['’]?t|no)\b", re.IGNORECASE)
_SAYS_LITTLE = frozenset(
    analyse("run running use using execute always never every each must should please sure need have we you i")
)
_IS = re.compile(
    r"^(?:the |our |my )?(?P<what>\S+(?: \S+){0,6}?) (?:is|are|lives?|runs?|listens?|sits?|stays?)(?: (?P<now>now))?(?: (?:still|currently|only))?"
    r"(?: (?:stored|located|hosted|kept|deployed|reachable|available|set))?(?: (?:on|at|in|under|to|via))? (?P<value>.+)$",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"^(?:the |our |my )?(?P<what>\S+(?: \S+){0,6}?)(?: (?:has|have|was|were|is|are))?(?: (?:now|been|just|recently)){0,2} "
    r"(?:moved|migrated|switched|changed|renamed|relocated)(?: over| back)?(?: from (?P<old>\S+(?: \S+){0,4}?))? (?:to|onto|into) (?P<value>.+)$",
    re.IGNORECASE,
)
_GIVEN_UP = re.compile(
    rf"^(?:{_WE}|the team)(?:['’]ve| have| had)? (?:now |just |recently )?(?:(?:switched|moved|migrated|changed)(?: over| away)? from (?P<old>\S+(?: \S+){{0,3}}?) to \S.*|"
    r"(?:no longer|(?:do not|don['’]?t|stopped)) us(?:e|ing) (?P<left>\S+(?: \S+){0,3}?)(?: (?:any ?more|at all|now))?)$",
    re.IGNORECASE,
)
_USED = re.compile(
    rf"^(?:(?:always|please|here|in general),? )?(?:{_WE} )?(?:always |only )?use (?P<what>\S+(?: \S+){{0,3}}?)(?=$|[,;:(]|\s(?:for|to|in|on|with|when|as|and|not|instead|rather|because|since)\b)",
    re.IGNORECASE,
)
_VALUE_END = re.compile(
    r"[,;(]|\s(?:because|since|as|so|and|not|instead of|rather than|from|now|for|with)\b|\s[–—-]\s", re.IGNORECASE
)
_MOST_VALUE_WORDS = 4
_NUMBER = re.compile(r"\d[\d.,:_-]*")
_PATH = re.compile(r"[\w~.-]*/[\w./-]*|\b\w[\w-]*\.[a-z]\w{1,12}\b")
_NAME = re.compile(r"(?:^|\s)(?:the )?[A-Z]")


class Restated(NamedTuple):
    """How a later statement of a user conflicts with an earlier one; not `is_sure` if it may be a part or an exception."""

    kind: Literal["value", "denial"]
    is_sure: bool
    reason: str


def is_users(memory: AgentMemory) -> bool:
    """Return whether a memory is a statement of the user in a session."""
    return memory.source == "transcript" and "user" in memory.tags and not _KINDS.isdisjoint(memory.tags)


def restated(older: AgentMemory, newer: AgentMemory) -> Restated | None:
    """Return how a user's later statement takes back or replaces an earlier one; None if it is about something else."""
    before, after = list(_sentences(older)), list(_sentences(newer))
    is_rule = "instruction" in older.tags
    found = [
        one
        for said in after
        for earlier in before
        if (
            one := (_taken_back(earlier, said) if is_rule else None)
            or _moved(earlier, said)
            or _given_up(earlier, said)
        )
    ]
    sure = [one for one in found if one.is_sure and len(before) == 1]
    return next(iter(sure), next((one._replace(is_sure=False) for one in found), None))


def _sentences(memory: AgentMemory) -> Iterator[str]:
    text = without_lead(memory.content, _KINDS)
    for sentence in split_sentences(text, "claim")[:_MOST_SENTENCES]:
        if not sentence.rstrip().endswith("?"):
            yield sentence.strip()[:_MAX_CHARS].rstrip(".!")


def _taken_back(rule: str, said: str) -> Restated | None:
    """Return how a sentence takes back a rule."""
    claims = claims_of(rule)
    if not claims or _MOMENT.search(said):
        return None
    bare = _LASTING.sub("", said)
    found = (_ALLOWED if claims[0].is_denied else _TAKEN_BACK).match(" ".join(bare.split()))
    if not found or (claims[0].is_denied and _DENIES.search(found.group())):
        return None
    what = _terms(_END.split(next(filter(None, found.groupdict().values())), maxsplit=1)[0])
    demanded = _terms(_OCCASION.split(_DENIES.sub("", _LEAD.sub("", rule)), maxsplit=1)[0])
    if not what or not demanded or not what <= _terms(rule) or len(what & demanded) * 2 <= len(demanded):
        return None
    is_sure = demanded <= what and not _RESTRICTED.search(said)
    return Restated("denial", is_sure, "the user took it back later")


def _given_up(earlier: str, said: str) -> Restated | None:
    """Return how a sentence gives up what another one says is used."""
    used, given_up = _USED.match(earlier), _GIVEN_UP.match(said)
    if not used or not given_up or _MOMENT.search(said):
        return None
    what = analyse(used["what"])
    if not what or what != analyse(given_up["old"] or given_up["left"]):
        return None
    return Restated("denial", not _RESTRICTED.search(said), "the user gave it up later")


def _moved(earlier: str, said: str) -> Restated | None:
    """Return how a sentence gives another value to what has one."""
    was, moved = _IS.match(earlier) or _MOVED.match(earlier), _MOVED.match(said)
    now = moved or _IS.match(said)
    if not was or not now or not (moved or now.group("now")):
        return None
    what = set(analyse(was.group("what")))
    if not what or what != set(analyse(now.group("what"))):
        return None
    values = [_VALUE_END.split(found.group("value"), maxsplit=1)[0].strip(" `.") for found in (was, now)]
    if _MOMENT.search(said) or _RESTRICTED.search(said) or analyse(values[0]) == analyse(values[1]):
        return None
    if any(len(value.split()) > _MOST_VALUE_WORDS for value in values):
        return None
    left = set(analyse((moved.group("old") if moved else None) or ""))
    kinds = [_kind(value) for value in values]
    if not all(kinds):
        return None
    is_sure = kinds[0] == kinds[1] or bool(left and left <= set(analyse(values[0])))
    return Restated("value", is_sure, f"says “{values[1]}” where the older one says “{values[0]}”")


def _kind(value: str) -> str:
    """Return the kind of a value: the words around a number, a path, or a name; empty if it is none of these."""
    if _PATH.search(value):
        return "path"
    if _NUMBER.search(value):
        return " ".join(["number", *analyse(_NUMBER.sub(" ", value))])
    return "name" if _NAME.search(value) else ""


def _terms(text: str) -> set[str]:
    return {term for term in analyse(text) if term not in _SAYS_LITTLE}
