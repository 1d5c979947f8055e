"""Conflict: what words alone show of two statements that exclude each other (design §3, §5).

Precision comes before recall: unrelated memories must never retire each other. So words decide only what is exact: two sentences that are
the same but for one **value** (``The port is 8080.``, ``port = 9090``) or a **denial**, and a sentence that says of what another one
reports as used that it was **replaced** (“we moved from Jest to Vitest”, “no longer use”). Of every other pair that is near by its
meaning, a `Judge` or whoever answers work orders judges.

Past events stay true: a failed trial and a later success at the same task are a *recovery*, and retiring the failure would unlearn
it. An episode conflicts only if it reports another value, or if the same action in the same situation succeeded
first and failed later: a reader of the success should also see the failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product, takewhile
from typing import Literal, NamedTuple

from memgraph.index.analyser import analyse
from memgraph.index.columns import QUESTION_MARKS
from memgraph.lifecycle.dedup.same import (
    RESTRICTS,
    difference,
    fact_word,
    folded,
    is_denial,
    is_equal,
    may_be_about_the_same,
    names_of,
    pieces,
    states_the_same,
)
from memgraph.model.memory import AgentMemory, EpisodicMemory
from memgraph.text import lazy_re as re
from memgraph.text.attempts import stated
from memgraph.text.sentences import split_sentences
from memgraph.text.words import expanded

Kind = Literal["value", "denial", "outcome", "judged"]
NOTED: dict[Kind, str] = {
    "value": "another value",
    "denial": "one denies it",
    "outcome": "another outcome",
    "judged": "a model judged so",
}
"""Description stored in the link. The link outlasts the visibility of its ends, so it quotes neither of them."""
_MAX_SENTENCES, _MAX_WORDS = 6, 48
_SHOWN_CHARS = 80
_LEAST_SHARED = 2
"""Terms that two sentences must share besides those that differ."""
_LONGEST_VALUE = 3
_STEM = 4
"""Letters by which two forms of a verb are recognised."""
_SAID = frozenset({"instruction", "statement"})


class Conflict(NamedTuple):
    """How two memories conflict: the share of common words, in (0, 1], and a reason that may quote both, for readers who may see both.

    If `is_sure` is false, the newer one may concern only a part of the older one, so that the conflict is left open. If `is_stated` is true,
    the newer one says itself that it replaces what the older one reports.
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
    """Return how two memories of one project conflict, None if their words do not show it; `newer` is the later statement."""
    if not may_be_about_the_same(older, newer):
        return None
    events = [isinstance(memory, EpisodicMemory) for memory in (older, newer)]
    if is_equal(older.content, newer.content):
        if not any(events) and {older.outcome, newer.outcome} == {"positive", "negative"}:
            return Conflict("outcome", 1.0, f"the same is said to be {newer.outcome}, and to be {older.outcome}")
        return None
    if all(events) and _did_the_same(older, newer) and (older.outcome, newer.outcome) == ("positive", "negative"):
        return Conflict("outcome", 1.0, "what worked before failed later")
    mine, theirs = claims_of(older.content), claims_of(newer.content)
    if _states(older):
        replaced = (_given_up(one, other) for one, other in product(mine, theirs))
        if found := next(filter(None, replaced), None):
            return found
    # later sentences refer to the subject of the first: they are compared only if it is the same
    shown = None if [one.forms for one in mine[:1]] == [other.forms for other in theirs[:1]] else 1
    is_state = _states(older) and _states(newer)
    conflicts = (_between(one, other, is_state=is_state) for one, other in product(mine[:shown], theirs[:shown]))
    return max(filter(None, conflicts), key=lambda conflict: conflict.score, default=None)


def is_users(memory: AgentMemory) -> bool:
    """Return whether a memory is a statement of the user in a session."""
    return memory.source == "transcript" and "user" in memory.tags and not _SAID.isdisjoint(memory.tags)


def may_conflict(memory: AgentMemory) -> bool:
    """Return whether a memory can exclude another one: it states how things are, or reports a change or an action."""
    if _states(memory) or getattr(memory, "action", None):
        return True
    return _TO_A_NUMBER.search(memory.content) is not None or bool(ended_by(memory.content))


def is_question(older: AgentMemory, newer: AgentMemory) -> bool:
    """Return whether words leave it open if one of two near statements no longer holds: they do not decide it, and not only one says more."""
    if not (_states(older) and _states(newer) and may_be_about_the_same(older, newer)):
        return False
    texts = stated(older.content), stated(newer.content)
    found = difference(*texts)
    is_open = found.is_denied or bool(found.own) == bool(found.its)
    return is_open and not states_the_same(*texts) and conflict_of(older, newer) is None


def _states(memory: AgentMemory) -> bool:
    """Return whether a memory states how things are; an episode does if it is what a user stated."""
    return not isinstance(memory, EpisodicMemory) or is_users(memory)


def _did_the_same(older: AgentMemory, newer: AgentMemory) -> bool:
    met = [[getattr(one, name, None) or "" for name in ("situation", "action")] for one in (older, newer)]
    return all(met[0]) and all(map(is_equal, *met))


# --- another value in an equal frame, or a denial ---

_LABEL = re.compile(
    r"(?:Fix|Decision|Change|Removal|Safeguard|Note|Rule|Preference|Fact|Instruction by the user|The user said):\s+"
)
_SIGN = re.compile(r"(?<=\w):(?=\s)|(?<=\w)={1,2}(?=[\w\"'])")
_IS = "="
_FROM = re.compile(r"\s+from\s+\S{1,60}(?=\s+to\s+\S)", re.IGNORECASE)
_TO_A_NUMBER = re.compile(r"\bto\s+\S*\d", re.IGNORECASE)
_SILENT = frozenset("a an the currently already still just always please do does did must should will".split())
_NOW = re.compile(r"\b(?:now|(?P<denial>no longer)|any ?more)\b", re.IGNORECASE)
"""What says that it was otherwise before."""
_AND_NOW = re.compile(r"(\b(?:no longer|any ?more)\b.*?)(?:,|,? and)(?: \S+){0,2} now\b.*", re.IGNORECASE)
"""What ended, and the clause after it that says what is so instead."""
_SETTINGS = frozenset("true false on off enabled disabled".split())


class Claim(NamedTuple):
    """What a sentence says: its words in their normal form, each as it is written, too, without articles, auxiliaries and negations.

    `is_denied` if an odd number of negations was left out.
    """

    text: str
    words: tuple[tuple[str, str], ...]
    is_denied: bool

    @property
    def forms(self) -> tuple[str, ...]:
        """The words in their normal form."""
        return tuple(form for form, _ in self.words)


@lru_cache(maxsize=1 << 12)
def claims_of(text: str) -> tuple[Claim, ...]:
    """Return the claims of a text's first sentences; questions claim nothing. Linear in the text."""
    found = (_LABEL.sub("", part.strip(), count=1) for part in split_sentences(stated(text), "claim")[:_MAX_SENTENCES])
    claims = (_claim(sentence) for sentence in found if not sentence.rstrip().endswith(QUESTION_MARKS))
    return tuple(claim for claim in claims if claim.words)


def _claim(sentence: str) -> Claim:
    ended = _AND_NOW.sub(r"\1", _FROM.sub("", sentence))
    plain = _NOW.sub(lambda match: "not" if match["denial"] else "", ended)
    read = pieces(expanded(_SIGN.sub(f" {_IS} ", plain, count=1)))[:_MAX_WORDS]
    kept = [word for word in read if folded(word) not in _SILENT and not is_denial(word)]
    words = [(_IS if folded(word) == "is" else fact_word(folded(word)), word) for word in kept]
    return Claim(sentence.rstrip(".! "), tuple(words), sum(map(is_denial, read)) % 2 == 1)


def _between(one: Claim, other: Claim, *, is_state: bool) -> Conflict | None:
    """Return the conflict of two claims that are the same but for a denial or a value; two reports of changes differ in a number."""
    mine, theirs = one.forms, other.forms
    if mine == theirs:
        said = "is not so" if other.is_denied else "is so after all"
        is_other = is_state and one.is_denied != other.is_denied and _says(mine) >= _LEAST_SHARED
        is_stated = _NOW.search(other.text) is not None
        return Conflict("denial", 1.0, f"the newer one says that it {said}", is_stated=is_stated) if is_other else None
    begins, ends = _begin_alike(mine, theirs), _begin_alike(mine[::-1], theirs[::-1])
    if one.is_denied or other.is_denied or not 0 < begins < min(len(mine), len(theirs)) - ends:
        return None  # two negated statements do not exclude each other
    values = [[word for _, word in claim.words[begins : len(claim.words) - ends]] for claim in (one, other)]
    kinds = {_kind(words, claim.text) for words, claim in zip(values, (one, other), strict=True)}
    is_default = is_state and kinds == {"setting"} and mine[begins - 2 : begins - 1] == ("default",)
    is_set = mine[begins - 1] == "to" and (is_default or kinds == {"number"})
    if not is_set and (mine[begins - 1] != _IS or not is_state or len(kinds) > 1 or "" in kinds):
        return None
    if _says([*mine[:begins], *mine[len(mine) - ends :]]) < _LEAST_SHARED:
        return None
    old, new = (" ".join(words)[:_SHOWN_CHARS] for words in values)
    score = round(2 * (begins + ends) / (len(mine) + len(theirs)), 2)
    return Conflict("value", score, f"says “{new}” where the older one says “{old}”")


def _begin_alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two claims have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _says(forms: Sequence[str]) -> int:
    """Return how many search terms a claim's words have: the name of a setting has several."""
    return len(analyse(" ".join(forms)))


def _kind(value: Sequence[str], text: str) -> str:
    """Return what a value is: a number, a setting, or a name; "" for any other words."""
    words = [folded(word) for word in value]
    if len(words) == 1 and (words[0] in _SETTINGS or any(map(str.isdigit, words[0]))):
        return "setting" if words[0] in _SETTINGS else "number"
    is_name = 0 < len(words) <= _LONGEST_VALUE and len(names_of(words, text)) == len(words)
    return "name" if is_name and not any(map(str.isdigit, "".join(words))) else ""


# --- a stated replacement ---

_WORD = r"[^\s,;(]*[^\s,;:(]"
_OLD, _NEW = (rf"(?:the |our |my )?(?P<{name}>{_WORD}(?: {_WORD}){{0,3}}?)" for name in ("old", "new"))
_STOP = r"(?=$|[,;:(]|\s(?:for|in|on|with|as|and|because|since|at|last|now|any ?more)\b)"
_BY = "(?:with|through|via|on|in|by)"
_WE = r"^(?:(?:we|i|the (?:project|team))(?:['’]ve| have| has)? )?(?:(?:now|also|just|recently|finally) )?"
_GIVEN_UP = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_WE}(?:migrated|moved|switched|changed)(?P<part>(?: \S+){{0,4}}?) from {_OLD} to {_NEW}{_STOP}",
        rf"{_WE}(?:replaced|dropped) {_OLD} (?:with|by|in favou?r of|for) {_NEW}{_STOP}",
        rf"^(?:the |our )?{_OLD} (?:is|was|has been) (?:now )?replaced (?:with|by) {_NEW}{_STOP}",
        rf"{_WE}(?:uses? {_NEW} (?:instead of|rather than)|no longer uses?) {_OLD}{_STOP}",
        rf"^(?P<part>\S.{{0,80}}?)(?: no longer|(?: not|n['’]t)(?=.* any ?more\b)) (?P<verb>uses?|\S+ {_BY}) {_OLD}{_STOP}",
    )
)
"""Sentences that say what was given up, and mostly what took its place."""
_USED = (
    r"(?:^.*\bfrom .{{1,80}} to|\b(?:use|uses|using|with|through|via|on|(?:is|are) \w+(?:ed|en|lt) (?:in|by|to))) (?:the |our )?{}"
    + _STOP
)
_PAST = re.compile(r"\b(?:was|were|had|did|got|saw|found|broke|(?<!is )(?<!are )\w{3,}ed)\b", re.IGNORECASE)
"""What happened with a thing is no use of it."""
_LONGER_NAME = r"(?: (?-i:[A-Z])\w*)?"
"""“GitLab CI” is GitLab's."""
_OURS = r"^(?:the |our )?{} (?:is|are) (?:our|the)\b"
_REASON = re.compile(r"[,;:(]|\b(?:because|since|as)\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)
_USES = frozenset(analyse("use run go now any more anymore project team"))


def ended_by(text: str) -> list[list[str]]:
    """Return the terms of what a text says was given up: its name is enough to find what reports it."""
    found = (next(filter(None, (form.search(claim.text) for form in _GIVEN_UP)), None) for claim in claims_of(text))
    return [terms for match in found if match and (terms := analyse(match["old"]))]


def _given_up(earlier: Claim, later: Claim) -> Conflict | None:
    """Return how a sentence gives up what an earlier one says is used: “we replaced Redux with Zustand”.

    Where the later one speaks of a part that the earlier one does not name, it decides nothing; it is only not sure if the earlier one
    speaks of all.
    """
    ended = _AND_NOW.sub(r"\1", later.text)
    said = next(filter(None, (form.search(ended) for form in _GIVEN_UP)), None)
    if said is None:
        return None
    named, old, text, known = said.groupdict(""), said["old"], earlier.text, set(analyse(earlier.text))
    part, verb, new = (named.get(name, "") for name in ("part", "verb", "new"))
    name = re.escape(old) + (_LONGER_NAME if verb else "")
    is_ours = re.search(_OURS.format(name), text, re.IGNORECASE)
    use = is_ours or re.search(_USED.format(name), text, re.IGNORECASE)
    if use is None or _PAST.search(text[: use.start()]) or any(map(is_denial, pieces(expanded(text[: use.end()])))):
        return None
    if new and re.search(rf"(?<!\w){re.escape(new)}(?!\w)", text, re.IGNORECASE):
        return None  # the earlier one knows both
    rest = _REASON.split(ended[said.end() :], maxsplit=1)[0]
    about = set(analyse(f"{part} {rest}")) - _USES
    is_part, is_more = not about <= known, bool(known - set(analyse(old)) - _USES)
    if RESTRICTS.search(_NOW.sub("", later.text[said.end() :] if verb else rest)) or (
        is_part and is_more and not is_ours
    ):
        return None
    if verb and (is_part or not _does_the_same(verb.split()[0], about, text[: use.start()])):
        return None
    how = f"“{new}” has taken the place of “{old}”" if new else f"“{old}” was given up"
    kind: Kind = "value" if new else "denial"
    is_sure = not is_part and not (verb and _SEVERAL.search(text))
    return Conflict(kind, 0.5 if is_part else 1.0, f"says that {how}", is_sure=is_sure, is_stated=True)


def _does_the_same(verb: str, about: set[str], text: str) -> bool:
    """Return whether the words before what is used are about what ended: “we publish the docs” is about publishing."""
    terms, does = analyse(text), set(analyse(verb)) - _USES
    same = {term for term in terms if any(term[:_STEM] == other[:_STEM] for other in does)}  # build, built
    is_ours = text[:3].casefold() == "we " and not about.union(same).isdisjoint(terms[:1])
    return bool(same or not does) and (is_ours or about | same | _USES >= set(terms))
