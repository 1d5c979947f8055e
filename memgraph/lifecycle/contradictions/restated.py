"""Restatements: what a user stated later, in another session, about what the user had stated before.

A rule is taken back (“you can skip make lint from now on”), a prohibition lifted (“you may push to main again”), what
is somewhere moves (“staging has moved to port 5434”). Anybody may state that something is no longer used (“we switched
from npm to pnpm”). The words must be about the same thing: what is taken back consists of words of the rule and covers
all that the rule demands, and what moves has the same name. Where a restriction or only a part is named, the two
contradict each other, and nobody knows which holds. Pure; linear in the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Literal, NamedTuple

from memgraph.index.analyser import analyse
from memgraph.lifecycle.contradictions.claims import claims_of
from memgraph.model.memory import AgentMemory
from memgraph.text import lazy_re as re
from memgraph.text.attempts import without_lead
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
_OLD, _NEW = (rf"(?:the |our |my )?(?P<{name}>\S+(?: \S+){{0,3}}?)" for name in ("old", "new"))
_STOP = r"(?=$|[,;:(]|\s(?:for|to|in|on|with|when|as|and|not|because|since|at|last|this|now|any ?more|everywhere)\b)"
_LED_IN = (
    r"^(?:(?:as of|since|in|last|this|from|after)\b[^,]{1,40},\s)?(?:(?:(?:we|i|they|the (?:project|team|app|code(?:base)?|repo(?:sitory)?|backend|frontend)|our \w+)"
    r"(?:['’]ve)?(?: (?:have|has|had|all|just|recently|finally|now|also|fully|completely))*|fix|chore|build|ci|refactor|feat)[:\s]\s?)?"
)
"""Who gives something up: the project, or a commit's subject. What others do says nothing of it."""
_GIVEN_UP = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_LED_IN}(?:migrate|move|switch|change|convert|port|upgrade|downgrade|transition|go|went)(?:d|ed)?(?: \S+){{0,4}}? from {_OLD} (?:on)?to {_NEW}{_STOP}",
        rf"{_LED_IN}replaced? {_OLD} (?:with|by) {_NEW}{_STOP}",
        rf"^{_OLD} (?:is|are|was|were|has been|have been|got) (?:now )?replaced (?:with|by) {_NEW}{_STOP}",
        rf"{_LED_IN}(?:uses?|using|runs?|adopt(?:ed)?|chose|switched to|moved to|prefers?) {_NEW}(?: now)?,? (?:instead of|rather than|in place of) {_OLD}{_STOP}",
        rf"{_LED_IN}(?:drop(?:ped)?|abandon(?:ed)?|retired?|ditch(?:ed)?|removed?|gave up|got rid of|phased out) {_OLD} (?:in favou?r of|for) {_NEW}{_STOP}",
        rf"{_LED_IN}(?:no longer|do not|don['’]?t|does not|doesn['’]?t|stopped) (?:use|uses|using|run on|running on|rely on|deploy to) {_OLD}{_STOP}",
        rf"^{_OLD} (?:is|are) (?:no longer|not) (?:used|in use)(?P<new>)(?= any ?more|$|[,;])",
    )
)
"""Sentences that name what is given up, most with what takes its place."""
_UNREAL = re.compile(
    r"\b(?:if|would|could|might|may|plan(?:s|ned|ning)?|consider\w*|want(?:s|ed)?|should|will|going to|tried|propos\w*|suggest\w*|nearly|almost|until|"
    r"never|nobody|no one|hardly|barely|ever|false|(?:not|n['’]t) (?:migrated?|move[ds]?|switch(?:ed)?|changed?|replace\w*|drop(?:ped)?))\b|[\"“”]",
    re.IGNORECASE,
)
_USED_BY = frozenset(
    analyse(
        "use run write written build built base deploy host store keep kept manage test rely depend power serve format lint go log live"
    )
)
"""Verbs whose object, or the object of whose preposition, is what is used."""
_CHANGING = frozenset(
    analyse(
        "migrate move switch change convert port upgrade downgrade transition go replace use run adopt choose prefer drop abandon "
        "retire ditch remove give get phase stop longer instead over away completely everything all project team"
    )
)
_BETWEEN = frozenset("on in with through by via to under the our a an".split())
_SAYS_FOR_WHAT = re.compile(
    r"^,?\s(?:now )?(?:for|in|on|at) (?:the |our |my )?(?P<what>[^,;:(]+?)(?=$|[,;:(]|\s(?:because|since|as|last|this)\b)",
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
        if (one := (_taken_back(earlier, said) if is_rule else None) or _moved(earlier, said))
    ]
    sure = [one for one in found if one.is_sure and len(before) == 1]
    return next(iter(sure), next((one._replace(is_sure=False) for one in found), None))


def gives_up(memory: AgentMemory) -> bool:
    """Return whether a memory says that something is no longer used."""
    return any(form.search(said) for said in _sentences(memory) for form in _GIVEN_UP)


def replaced_in_words(older: AgentMemory, newer: AgentMemory) -> Restated | None:
    """Return how a memory, whoever states it, says that what an earlier one reports as used has been replaced."""
    met = product(_sentences(older), _sentences(newer))
    return next((found for one, other in met if (found := _given_up(one, other))), None)


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
    """Return how a sentence gives up what another one says is used: “we replaced Redux with Zustand”."""
    found = next(filter(None, (form.search(said) for form in _GIVEN_UP)), None)
    if found is None or _MOMENT.search(said) or _UNREAL.search(said) or not _says_it_is_used(earlier, found["old"]):
        return None
    old, new = found["old"], found.groupdict().get("new")
    if new and _place(_words(new), _words(earlier)) >= 0:
        return None  # the earlier one knows both
    narrowed = [found.group().partition(old)[0], *_SAYS_FOR_WHAT.findall(said[found.end() :])]
    is_part = not _terms(" ".join(narrowed)) - _CHANGING <= _terms(earlier) | _terms(new or "")
    is_sure = not is_part and not _RESTRICTED.search(said)
    if new:
        return Restated("value", is_sure, f"says that “{new}” has taken the place of “{old}”")
    return Restated("denial", is_sure, f"says that “{old}” was given up")


def _says_it_is_used(text: str, thing: str) -> bool:
    """Return whether a sentence says that something is used, runs, or is what one has: not merely something about it."""
    words, sought = _words(text), _words(thing)
    claims, at = claims_of(text), _place(sought, words)
    if at < 0 or (claims and claims[0].is_denied):
        return False
    before, after = [word for word in words[:at] if word not in _BETWEEN], words[at + len(sought) :]
    if not before:
        return after[:1] in (["is"], ["are"]) and after[1:2] in (["our"], ["the"], ["what"])
    if not re.search(rf"{re.escape(thing)}{_STOP}", text, re.IGNORECASE):
        return False
    if any((found := form.search(text)) and found.groupdict().get("new") == thing for form in _GIVEN_UP):
        return True
    leads = before if words[at - 1] in _BETWEEN else before[-1:]
    return leads[-1] in ("is", "are") or not _USED_BY.isdisjoint(analyse(" ".join(leads)))


def _words(text: str) -> list[str]:
    return [word.strip("`'\"“”.,;:!()").casefold() for word in text.split()]


def _place(sought: list[str], words: list[str]) -> int:
    """Return where a run of words stands among others; −1 if it does not."""
    places = range(len(words) - len(sought) + 1)
    return next((at for at in places if words[at : at + len(sought)] == sought), -1)


def _moved(earlier: str, said: str) -> Restated | None:
    """Return how a sentence gives another value to what has one."""
    if _DENIES.search(said):
        return None
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
