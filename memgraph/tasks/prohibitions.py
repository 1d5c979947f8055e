"""Whether a message asks for what a rule forbids. Precision comes before recall: a wrong alarm trains people to ignore it.

A rule forbids an act (“Never deploy on Fridays”) or a thing (“No cookies”, “Cookies are not allowed”). A message asks for it if one of its
clauses is a request that begins with the act, or takes the thing up (“Use cookies”, “Do it with cookies”, not “Fix the bug with cookies”), and has
all other words of the rule. Questions, reports, denials, and mentions of the same words in other roles are no requests. What contradicts a rule
word by word is found as contradictions between memories are. Recognised in English, like contradictions. Pure; linear in the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from memgraph.index.analyser import analyse
from memgraph.lifecycle.contradictions.conflict import conflict_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.memory import SemanticMemory
from memgraph.text import lazy_re as re
from memgraph.text.attempts import stated
from memgraph.text.sentences import split_sentences
from memgraph.text.words import expanded

_MAX_RULES, _MAX_REQUESTS = 6, 24
_WHO = r"(?:(?:we|you|i|they|agents?|nobody|no one|everyone) )?"
_MODAL = r"(?:(?:must|should|shall|may|can|will|do|does|are|is|ought to) )?"
_DENIED_ACT = re.compile(
    rf"^(?:please |always )?{_WHO}{_MODAL}(?:not|never) (?:ever |again )?(?:allowed to |permitted to |to )?(?P<act>(?!be )\S.*)$|"
    rf"^(?:please )?(?:nobody|no one) (?:may|can|should|must|shall) (?:ever )?(?P<nobody>\S.*)$|"
    rf"^(?:please )?(?:always )?avoid (?P<avoid>\S.*)$|"
    rf"^it is (?:forbidden|prohibited|not allowed|not permitted) to (?P<forbidden>\S.*)$|"
    rf"^(?P<gerund>\w+ing\b.*?) (?:is|are) (?:strictly )?(?:forbidden|prohibited|banned|not allowed|not permitted)\b",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    r"^(?P<what>\S.*?) (?:must|should|may|shall|can) (?:not|never) (?:ever )?be (?P<act>\w+ed|\w+t|\w+n)\b(?P<rest>.*)$",
    re.IGNORECASE,
)
_DENIED_THING = re.compile(
    r"^(?:please )?no (?:more )?(?P<no>\S.*)$|"
    r"^(?P<what>\S.*?) (?:is|are) (?:strictly )?(?:forbidden|prohibited|banned|off limits|not allowed|not permitted)\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"[,;:(]|\s[–—-]\s|\s(?:because|since|so that|as it|as they|which|instead|but)\b", re.IGNORECASE)
_EXCEPTION = re.compile(r"\s(?:unless|except(?: for| when| if)?|apart from|other than)\s", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:()]|\s[–—-]\s|\b(?:and then|and|then|but)\b", re.IGNORECASE)
_POLITE = re.compile(
    r"^(?:please|now|ok(?:ay)?|so|just|then|also|next|finally|well|hey|hi|(?:can|could|would|will) you|let'?s|let us|let me|"
    r"(?:i|we)(?:'d| would) like (?:you )?to|(?:i|we) (?:want|need)(?: you)? to|(?:i|we|you) (?:should|must|have to|will|shall|can)|"
    r"(?:i|we)'ll|(?:i am|i'm|we are|we're) going to|go ahead and|try to|make sure (?:to|you)|be sure to|remember to|have to|need to|go|quickly)\b[\s,]*",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:is|are|was|were|did|failed|fails|broke|went|has|had|happened|worked|works|took|takes)\b", re.IGNORECASE
)
_DENIES = re.compile(r"\b(?:not|never|no|nobody|avoid|stop|cancel|skip)\b", re.IGNORECASE)
_ELSE = re.compile(
    r"\b(?:instead of|rather than|other than|apart from|unless|except|without|before|after|until|by|if|when|once|from)\b.*",
    re.IGNORECASE,
)
_NARROWS = re.compile(r"\b(?:before|after|until|by|if|when|once|from|without)\b", re.IGNORECASE)
_INFLECTED = ("s", "ed", "ing")
_TAKES_UP = frozenset(analyse("use add introduce adopt install include switch move migrate pick choose enable"))
_HAS = (
    _TAKES_UP
    | frozenset(
        analyse("allow accept create make put keep schedule plan cause take write insert set have do start begin run")
    )
    | {"have", "do", "make"}
)
_WITH = re.compile(r"^(?!(?:help|deal|cope)\b)\w+ (?:(?:it|this|that|them|everything) )?with\b", re.IGNORECASE)
_GO_ON = 3


class _Prohibition(NamedTuple):
    verb: str
    surface: str
    required: frozenset[str]
    exceptions: frozenset[str]
    is_narrow: bool


class _Request(NamedTuple):
    word: str
    verb: str
    terms: frozenset[str]
    core: frozenset[str]
    with_terms: frozenset[str]
    message_terms: frozenset[str]


def asks_for_forbidden(message: str, rule: str) -> bool:
    """Return whether a message asks for what a rule forbids."""
    wanted, forbidden = _requests(message), _prohibitions(rule)
    if any(_is_asked(one, request) for one in forbidden for request in wanted):
        return True
    return not any(one.exceptions for one in forbidden) and _contradicts(message, rule)


def _is_asked(forbidden: _Prohibition, request: _Request) -> bool:
    terms = request.terms if forbidden.is_narrow else request.core
    if not forbidden.required <= terms or forbidden.exceptions & request.message_terms:
        return False
    if not forbidden.verb:
        return request.verb in _HAS or not forbidden.required.isdisjoint(request.with_terms)
    if forbidden.verb in _TAKES_UP and forbidden.required:
        return request.verb in _TAKES_UP
    is_base = request.word == forbidden.surface or not request.word.endswith(_INFLECTED)
    return request.verb == forbidden.verb and is_base


@lru_cache(maxsize=1 << 10)
def _prohibitions(rule: str) -> tuple[_Prohibition, ...]:
    sentences = split_sentences(expanded(stated(rule).replace("’", "'")), "claim")[:_MAX_RULES]
    return tuple(found for sentence in sentences if (found := _prohibition(" ".join(sentence.split()).rstrip(".!"))))


def _prohibition(sentence: str) -> _Prohibition | None:
    """Return what a sentence forbids; None if that is not plain."""
    head, *rest = _EXCEPTION.split(sentence, maxsplit=1)
    exceptions = frozenset(term for text in rest for term in analyse(text))
    if passive := _PASSIVE.match(head):
        act, what = passive["act"], f"{passive['what']} {_REASON.split(passive['rest'], maxsplit=1)[0]}"
        verb = (analyse(act) or [""])[0]
        return _Prohibition(verb, act, frozenset(analyse(what)), exceptions, _NARROWS.search(what) is not None)
    if act_found := _DENIED_ACT.match(head):
        text = _REASON.split(next(filter(None, act_found.groupdict().values())), maxsplit=1)[0]
        word, _, rest_of_it = text.partition(" ")
        terms = frozenset(analyse(rest_of_it))
        verb = (analyse(word) or [""])[0]
        if not verb or not (terms or not rest_of_it):
            return None
        return _Prohibition(verb, word.casefold(), terms, exceptions, _NARROWS.search(rest_of_it) is not None)
    if thing := _DENIED_THING.match(head):
        text = _REASON.split(next(filter(None, thing.groupdict().values())), maxsplit=1)[0]
        terms = frozenset(analyse(text))
        return _Prohibition("", "", terms, exceptions, _NARROWS.search(text) is not None) if terms else None
    return None


@lru_cache(maxsize=16)
def _requests(message: str) -> tuple[_Request, ...]:
    return tuple(_read_requests(message))


def _read_requests(message: str) -> Iterator[_Request]:
    count, message_terms = 0, frozenset(analyse(message))
    for sentence in _ends_of(split_sentences(expanded(message.replace("’", "'")), "claim")):
        for clause in _CLAUSE.split(sentence[:MAX_CONTENT_CHARS]):
            text = _without_politeness(clause.strip().rstrip(".!?"))
            if not text or (clause.rstrip().endswith("?") and text == clause.strip().rstrip(".!?")):
                continue  # a question that asks nobody to do anything
            if _DENIES.search(_ELSE.sub("", text)) or _REPORTS.search(text):
                continue
            word = text.partition(" ")[0].casefold()
            stems = analyse(word) or [word]
            terms, core = frozenset(analyse(text)), frozenset(analyse(_ELSE.sub("", text)))
            with_terms = frozenset(analyse(text[how.end() :])[:1] if (how := _WITH.match(text)) else ())
            yield _Request(word, stems[0], terms, core, with_terms, message_terms)
            count += 1
            if count == _MAX_REQUESTS:
                return


def _ends_of(sentences: list[str]) -> list[str]:
    """Return the first and the last sentences: what is asked for stands before or after what is pasted."""
    half = _MAX_REQUESTS // 2
    return sentences if len(sentences) <= _MAX_REQUESTS else [*sentences[:half], *sentences[-half:]]


def _without_politeness(clause: str) -> str:
    text = clause
    for _ in range(_GO_ON):
        text = _POLITE.sub("", text, count=1)
    return text


def _contradicts(message: str, rule: str) -> bool:
    """Return whether a sentence of the message and the rule contradict each other, as two statements of the user would."""
    if not rule.strip():
        return False
    older = SemanticMemory(content=rule[:MAX_CONTENT_CHARS], trust_class="user")
    for sentence in _ends_of(split_sentences(message, "claim")):
        text = _without_politeness(sentence.strip()[:MAX_CONTENT_CHARS])
        if text.strip(" .!?") and not text.rstrip().endswith("?"):
            conflict = conflict_of(older, SemanticMemory(content=text, trust_class="user"))
            if conflict is not None and conflict.is_sure and conflict.kind in ("value", "denial"):
                return True
    return False
