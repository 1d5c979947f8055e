"""Conflict: what words alone show of two statements that exclude each other (design §3, §5).

Precision comes before recall: unrelated memories must never retire each other. So words decide only where two sentences are the
same but for one **value** (``port = 8080``, ``port = 9090``) or a **denial**, and where one says that it **replaces** what the other
reports (“we moved from Jest to Vitest”, “no longer”). Of every other pair that is near by its meaning, a `Judge` or whoever answers
work orders judges. Sentences are compared in a normal form, as claims: `The port is now 8080.` and `Set the port to 8080` are one.

Past events stay true: a failed trial and a later success at the same task are a *recovery*, and retiring the failure would unlearn
it. An episode conflicts only if it claims what another one claims otherwise, or if the same action in the same situation succeeded
first and failed later: a reader of the success should also see the failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product, takewhile
from typing import Literal, NamedTuple

from memgraph.index.analyser import STOPWORDS, analyse
from memgraph.index.columns import ITEM_SOURCE, QUESTION_MARKS
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory, EpisodicMemory
from memgraph.text import lazy_re as re
from memgraph.text.sentences import split_sentences

Kind = Literal["value", "denial", "outcome", "judged"]
NOTED: dict[Kind, str] = {
    "value": "another value",
    "denial": "one denies it",
    "outcome": "another outcome",
    "judged": "a model judged so",
}
"""Description stored in the link. The link outlasts the visibility of its ends, so it quotes neither of them."""
IS = "="
"""Stands for every phrase that gives something a value, or says where it is or runs."""
_MAX_SENTENCES, _MAX_WORDS = 6, 48
_SHOWN_CHARS = 80
_SAID = frozenset({"instruction", "statement"})
_OF_CHANGE = re.compile(
    r"\b(?:now|no longer|any ?more|instead|rather than|since|again|moved|migrated|switched|changed|replaced|dropped|upgraded|raised|lowered|"
    r"renamed|re(?:written|placed)|gone|removed|took over)\b",
    re.IGNORECASE,
)


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
    """Return how two memories of one project conflict, None if their words do not show it; `newer` is the later statement.

    Deterministic; costs at most a few dozen comparisons of short sentences.
    """
    if not may_be_about_the_same(older, newer):
        return None
    events = [isinstance(memory, EpisodicMemory) for memory in (older, newer)]
    if _is_equal(older.content, newer.content):
        if not any(events) and {older.outcome, newer.outcome} == {"positive", "negative"}:
            return Conflict("outcome", 1.0, f"the same is said to be {newer.outcome}, and to be {older.outcome}")
        return None
    if _states(older) and (found := _replaced(older.content, newer.content)):
        return found
    if all(events) and _did_the_same(older, newer) and (older.outcome, newer.outcome) == ("positive", "negative"):
        return Conflict("outcome", 1.0, "what worked before failed later")
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


def is_users(memory: AgentMemory) -> bool:
    """Return whether a memory is a statement of the user in a session."""
    return memory.source == "transcript" and "user" in memory.tags and not _SAID.isdisjoint(memory.tags)


def may_conflict(memory: AgentMemory) -> bool:
    """Return whether a memory can exclude another one: it states how things are, or reports a change or an action."""
    if _states(memory) or getattr(memory, "action", None):
        return True
    return any(claim.is_change for claim in claims_of(memory.content)) or bool(ended_by(memory.content))


def likelihood(older: AgentMemory, newer: AgentMemory) -> float:
    """Return how likely it is that one of two statements that are near each other no longer holds, by their words, in [0, 1].

    0 for events, where a statement only adds words to the other, and where the words decide.
    """
    if not (_states(older) and _states(newer) and may_be_about_the_same(older, newer)):
        return 0.0
    mine, theirs = claims_of(older.content), claims_of(newer.content)
    terms, others = ({norm for claim in claims for norm in claim.norms} for claims in (mine, theirs))
    denies = [sum(claim.is_denied for claim in claims) % 2 for claims in (mine, theirs)]
    if (denies[0] == denies[1] and (terms <= others or others <= terms)) or conflict_of(older, newer):
        return 0.0
    numbers = [{term for term in found if _NUMBER.match(term) or term in _COUNTED} for found in (terms, others)]
    signs = (
        denies[0] != denies[1] or any(claim.is_end for claim in theirs),
        bool(numbers[0] ^ numbers[1]),
        _OF_CHANGE.search(newer.content) is not None,
    )
    return 0.4 + 0.2 * sum(signs)


def _states(memory: AgentMemory) -> bool:
    """Return whether a memory states how things are; an episode does if it is what a user stated."""
    return not isinstance(memory, EpisodicMemory) or is_users(memory)


def _did_the_same(older: AgentMemory, newer: AgentMemory) -> bool:
    met = [[getattr(one, name, None) or "" for name in ("situation", "action")] for one in (older, newer)]
    return all(met[0]) and all(map(_is_equal, *met))


def _is_equal(one: str, other: str) -> bool:
    return canonical_name(one) == canonical_name(other)


def _of_claims(older: AgentMemory, newer: AgentMemory) -> Conflict | None:
    """Return the surest conflict between a claim of one memory and a claim of the other."""
    is_said = all(memory.trust_class == "user" or is_users(memory) for memory in (older, newer))
    mine, theirs = claims_of(older.content), claims_of(newer.content)
    if not mine or not theirs:
        return None
    if mine[0]._replace(is_denied=False) != theirs[0]._replace(is_denied=False):
        # later sentences refer to the subject of the first: they are compared only if it is the same
        mine, theirs = mine[:1], theirs[:1]
    met = product((one for one in mine if _counts(older, one)), (one for one in theirs if _counts(newer, one)))
    found = [conflict for one, other in met if (conflict := _denial(one, other) or _value(one, other, is_said=is_said))]
    return max(found, key=lambda conflict: conflict.score, default=None)


def _counts(memory: AgentMemory, claim: Claim) -> bool:
    return claim.is_change or _states(memory)


# --- claims: sentences in a normal form ---


def _stems(words: str) -> frozenset[str]:
    return frozenset(analyse(words))


_LABEL = re.compile(
    r"(?:Fix|Decision|Change|Removal|Safeguard|Note|Rule|Preference|Fact|Instruction by the user|The user said):\s+"
)
_CONDITION = (
    r"when|whenever|if|unless|except|until|while|during|after|before|in|on|for|at|within|only|but|where|outside"
)
_LEAD = re.compile(rf"(?:{_CONDITION})\b[^,]{{1,80}},\s+", re.IGNORECASE)
_TAIL = re.compile(r",\s|\s[–—-]\s|:\s|\s\(|\s(?:because|since|so that|as of|which|due to)\s", re.IGNORECASE)
_CONDITIONAL_TAIL = re.compile(rf"[\s,–—:-]*(?:\(|(?:{_CONDITION}|not)\b)", re.IGNORECASE)
_NOT_THAT = re.compile(
    r"\s+from\s+\S{1,60}(?=\s+to\s+\S)|(?:,?\s+(?:instead of|rather than|and not)|,\s+not)\s+(?:[^\s,.;]+\s+){0,2}?[^\s,.;]+"
    r"(?=\s+(?:for|in|when|to|as|on|at|with|because|if)\b|[,.;]|$)",
    re.IGNORECASE,
)
"""The value that a sentence says does not hold."""
_GLUED = re.compile(r"^([\w.-]{1,80})={1,2}(?=[\w\"'])")
_LASTING = re.compile(
    r"^(?:from (?:now|today|here) on|going forward),?\s+|,?\s*\b(?:any ?more|from (?:now|today|here) on|going forward|after all)\b|"
    r"\s+again(?=[.!]?$)",
    re.IGNORECASE,
)
_ENDED = re.compile(
    r"^(?:(?:you|we|i) )?(?:(?:can|may|could|should|do) )?(?:now |also |just |safely )?(?:skip|drop|omit|stop|quit|leave out|forget about|do without) "
    r"|\b(?:there(?:['’]s| is) )?no (?:longer (?:any )?|more )?need (?:to|for) |\b(?:(?:you|we|i) )?(?:do(?:es)? not|do(?:es)?n['’]t|no longer) (?:have|need) to "
    r"|\bno longer\b|\bstopped\b",
    re.IGNORECASE,
)
"""What says that something was so, or was demanded, and is so no more."""
_SAYS_NOTHING = re.compile(
    r"^(?:you|we|i) (?:can|may|are allowed to) (?:now |always )?|\b(?:needs?|ha(?:ve|s)) to\b", re.IGNORECASE
)
_PAST = re.compile(r"\b(?<!be )(?<!been )(?:\w{2,}ed|ran|took|saw|went|had|got|found|broke|was|were)\b", re.IGNORECASE)
_PRESENT = re.compile(r"\b(?:is|are|must|should)\b", re.IGNORECASE)
_RULE = re.compile(
    r"\b(?:always|never|must|only|should|shall|instead|rather than|prefers?|do not|don['’]t|not)\b", re.IGNORECASE
)
_WORD = re.compile(r"->|=>|[^\s,;“”\"`()\[\]{}]+")
_TRIMMED = ".!?:'‘’*…"
_DENIES = frozenset({"not", "never", "no", "cannot", "avoid", "avoids", "stop", "nobody", "nothing"})
_OPPOSITES = dict(
    pair.split()
    for pair in (
        "disabled enabled, disables enables, forbidden allowed, forbids allows, excludes includes, off on, false true, optional required, "
        "dislikes likes, asynchronous synchronous, async sync"
    ).split(", ")
)  # fmt: skip
"""What denies another word: “disabled” is “not enabled”."""
_ASSIGNS = frozenset("is are was were be equals becomes became remains stays -> => = ==".split())
_STANDS = frozenset("lives live located stored hosted kept deployed based listens listen runs run sits".split())
_SILENT = frozenset(
    "a an the now currently actually already please just still always generally usually do does did done has have had been being "
    "will would should must shall longer any".split()
)  # fmt: skip
_CHANGES = _stems(
    "set change raise lower bump upgrade downgrade increase decrease reduce switch move migrate update pin limit default rename assign"
)


class Word(NamedTuple):
    """A word in its normal form, and as it was written."""

    norm: str
    text: str


class Claim(NamedTuple):
    """The content of one sentence.

    Attributes
    ----------
    words : tuple of Word
        Without articles, auxiliaries and negations; every phrase that gives something a value is `IS`.
    is_denied : bool
        Whether the sentence is negated.
    condition, rest : str
        The stated condition; additional text: the reason, an aside. Claims under different conditions are not compared.
    is_change, is_rule, is_past, is_end : bool
        Whether it reports a changed value rather than a current one; a rule or a preference; an event; that something ended.
    """

    words: tuple[Word, ...]
    is_denied: bool
    condition: str
    rest: str
    is_change: bool
    is_rule: bool
    is_past: bool
    is_end: bool

    @property
    def norms(self) -> tuple[str, ...]:
        """The words in their normal form."""
        return tuple(word.norm for word in self.words)


@lru_cache(maxsize=1 << 12)
def claims_of(text: str) -> tuple[Claim, ...]:
    """Return the claims of a text's first sentences; questions claim nothing. Linear in the text."""
    return tuple(claim for sentence in _sentences(text) if (claim := _claim(sentence)).words)


def _sentences(text: str) -> list[str]:
    """Return the first sentences of a text without labels; questions are left out."""
    found = (_LABEL.sub("", part.strip(), count=1) for part in split_sentences(text, "claim")[:_MAX_SENTENCES])
    return [sentence for sentence in found if not sentence.rstrip().endswith(QUESTION_MARKS)]


def _claim(sentence: str) -> Claim:
    lasting = _LASTING.sub(" ", _GLUED.sub(r"\1 = ", sentence)).strip()
    now = _ENDED.sub("not ", lasting)
    is_rule, is_end = _RULE.search(now) is not None, now != lasting
    now = _SAYS_NOTHING.sub("", now)
    condition = rest = ""
    if lead := _LEAD.match(now):
        condition, now = lead.group(), now[lead.end() :]
    now = _NOT_THAT.sub("", now)
    if (tail := _TAIL.search(now)) and tail.start() > 0:
        if tail.group().strip() == ":":  # "port: 8080" gives a value
            now = f"{now[: tail.start()]} = {now[tail.end() :]}"
        else:
            rest, now = now[tail.start() :], now[: tail.start()]
            condition += rest if _CONDITIONAL_TAIL.match(rest) else ""
    read, is_denied = _read(_WORD.findall(now)[:_MAX_WORDS])
    words, is_change = _assigned(read)
    is_past = words is read and _PAST.search(now) is not None and _PRESENT.search(now) is None
    when, aside = (" ".join(analyse(part)) for part in (condition, rest))
    return Claim(tuple(words), is_denied, when, aside, is_change, is_rule, is_past, is_end)


def _read(tokens: list[str]) -> tuple[list[Word], bool]:
    """Return the words of a sentence, and whether an odd number of negations was removed."""
    words: list[Word] = []
    is_denied = False
    for token in (part for one in tokens for part in _parts(one.strip(_TRIMMED))):
        lowered = token.casefold()
        plain = _OPPOSITES.get(lowered, "") if words else ""
        is_denied ^= bool(plain) or lowered in _DENIES
        norm = "" if lowered in _DENIES else IS if lowered in _STANDS and words else _norm(plain or token)
        after_is = bool(words) and words[-1].norm == IS
        if norm == IS and after_is:
            words[-1] = Word(IS, token)
        elif norm and not (after_is and len(words) > 1 and norm in ("in", "on", "at", "under") and token != tokens[-1]):
            words.append(Word(norm, plain or token))
    return words, is_denied


def _parts(token: str) -> Iterator[str]:
    """Split ``isn't`` into ``is`` and ``not``; ``won't`` and ``can't`` are negations as they are."""
    if re.search(r"n['’]t$", token, re.IGNORECASE):
        yield token[:-3]
        yield "not"
    elif token:
        yield token


@lru_cache(maxsize=1 << 14)
def _norm(word: str) -> str:
    lowered = word.casefold()
    if lowered in _SILENT or lowered in _ASSIGNS:
        return IS if lowered in _ASSIGNS else ""
    return "".join(analyse(lowered)[:1]) or lowered if lowered.isalpha() else lowered


def _assigned(words: list[Word]) -> tuple[list[Word], bool]:
    """Turn ``set X to Y``, ``X is set to Y`` and ``X defaults to Y`` into ``X = Y``; return whether it was a change, too."""
    places = [at for at, word in enumerate(words) if word.norm in ("to", "at") and 0 < at < len(words) - 1]
    if not places:
        return words, False
    if words[0].norm in _CHANGES:
        to = places[-1]
        return [*words[1:to], Word(IS, words[to].text), *words[to + 1 :]], True
    for to in places:
        if words[to].norm == "to" and words[to - 1].norm in _CHANGES:
            start = to - 2 if to > 1 and words[to - 2].norm == IS else to - 1
            return [*words[:start], Word(IS, words[to].text), *words[to + 1 :]], False
    return words, False


# --- a denial, or another value in an equal frame ---

_LEAST_SHARED = 2
"""Content words that two claims must share besides those that differ."""
_LEAST_ALIKE = 0.5
"""Minimum share of common words of two claims with different values."""
_LONGEST_VALUE = 4
_LITTLE = _stems("run running use using execute before after every each") | {IS, "you", "we"}
_NUMBER = re.compile(
    r"[~<>≤≥$€£v]?\d[\d.,:/_x-]*(?P<unit>%|ms|s|min|h|d|k|m|g|kb|mb|gb|tb|px|am|pm|x)?$", re.IGNORECASE
)
_COUNTED = frozenset("one two three four five six seven eight nine ten twelve once twice".split())
_UNITS = dict.fromkeys("ms s sec min h d second minute hour day week month year".split(), "time") | dict.fromkeys(
    "k m g kb mb gb tb byte megabyte gigabyte".split(), "size"
)
_EXACT = re.compile(r"[\w~.-]*/[\w./-]*|\w[\w-]*\.[a-z]\w{0,12}|[a-z]+(?:-[a-z]+)*-\d+|[A-Z][A-Z_]{2,}")
"""A path, a file, a region, or a constant."""
_DAYS = _stems(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays january february "
    "march april june july august september october november december noon midnight"
)  # fmt: skip
_HOW_OFTEN = _stems("hourly daily nightly weekly biweekly monthly quarterly yearly annually")
_NUMBERED = _stems(
    "issue step trial ticket pr section phase chapter line error code status http release milestone round stage part rule case attempt"
)
"""Nouns that a number follows as a name: another number is another thing."""
_SINGLE = _stems(
    "owner maintainer lead leader manager author host hostname port url address endpoint path location default model branch database "
    "language version region zone timezone name email phone format encoding color colour deadline date time schedule password key "
    "provider registry theme editor favourite favorite budget limit timeout threshold capital headquarters contact reviewer approver "
    "formatter linter license licence framework interpreter shell backend currency locale separator indentation mode level bucket queue server domain"
)  # fmt: skip
"""Nouns for attributes with a single value."""
_HAS_MANY = _stems(
    "supports works compatible includes adds offers visited failed fails handles fixes passed ships reads accepts imported "
    "bug error failure problem race typo"
)
"""Words whose objects do not exclude each other: supporting one version does not rule out another."""
_PLACING = frozenset("in at on by to for under with from".split())
_PLACED = frozenset(
    "happens scheduled owned maintained managed led written built bundled signed read sent goes go named called".split()
)
_CHOOSES = _stems("use uses using prefer prefers choose chooses like likes want wants pick favour write")
_IDENTIFIER = re.compile(r"\w_\w|[a-z][A-Z]|\w\.\w|\w/\w")


def _denial(one: Claim, other: Claim) -> Conflict | None:
    """Return the conflict of two claims of which one denies the other, or says that it is no longer so."""
    if one.is_denied == other.is_denied:
        return None
    if one.norms == other.norms and one.condition == other.condition:
        said = "is not so" if other.is_denied else "is so after all"
        shared = sum(map(_weight, one.words))
        return Conflict("denial", 1.0, f"the newer one says that it {said}") if shared >= _LEAST_SHARED else None
    terms, ended = ({norm for norm in claim.norms if _says_something(norm)} - _LITTLE for claim in (one, other))
    terms |= set(one.condition.split())
    if not (other.is_end and other.is_denied and ended and ended <= terms and 2 * len(ended) >= len(terms)):
        return None
    is_sure = other.condition in ("", one.condition) and "and" not in one.norms
    return Conflict("denial", 1.0 if is_sure else 0.5, "the newer one says that it is no longer so", is_sure, True)


def _value(one: Claim, other: Claim, *, is_said: bool) -> Conflict | None:
    """Return the conflict of two claims that are the same but for one value."""
    mine, theirs = one.norms, other.norms
    begins, ends = _begin_alike(mine, theirs), _begin_alike(mine[::-1], theirs[::-1])
    score = round(2 * (begins + ends) / (len(mine) + len(theirs)), 2)
    if one.condition != other.condition or one.is_denied or other.is_denied:
        return None  # two negated statements do not exclude each other
    if score < _LEAST_ALIKE or begins + ends >= min(len(mine), len(theirs)):
        return None
    value, another = one.words[begins : len(mine) - ends], other.words[begins : len(theirs) - ends]
    left, right = one.words[:begins], one.words[len(mine) - ends :]
    is_choice = is_said or one.is_rule or other.is_rule
    shared = sum(map(_weight, (*left, *right)))
    # of a rule, or of the change of one, there is only one value
    is_settled = all(claim.is_rule or claim.is_change for claim in (one, other))
    if shared < (1 if is_settled else _LEAST_SHARED) or max(len(value), len(another)) > _LONGEST_VALUE:
        return None
    kind = _kind(value)
    if kind and kind == _kind(another):
        is_other = not (one.is_past or other.is_past) and _takes(kind, left, value[0], right, is_rule=is_choice)
    elif (
        left
        and {left[-1].text, other.words[begins - 1].text} & _STANDS
        and left[-1].text != other.words[begins - 1].text
    ):
        return None  # hosted on one thing, stored in another
    else:
        is_plain = not any(_kind([word]) or word.norm in _PLACING | {"of", "and"} for word in (*value, *another))
        is_other = is_plain and _excludes(left, value, another, right, is_choice=is_choice)
    old, new = (" ".join(word.text for word in words)[:_SHOWN_CHARS] for words in (value, another))
    return Conflict("value", score, f"says “{new}” where the older one says “{old}”") if is_other else None


def _begin_alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two claims have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _says_something(norm: str) -> bool:
    """Return whether a word is more than a sign or a function word."""
    return norm not in STOPWORDS and norm != IS and any(sign.isalnum() for sign in norm)


def _weight(word: Word) -> int:
    """Return how much a shared word identifies the subject: the name of a setting counts as two words."""
    if word.norm == IS:
        return int(word.text in _STANDS)
    return _says_something(word.norm) * (_LEAST_SHARED if _IDENTIFIER.search(word.text) else 1)


def _kind(value: Sequence[Word]) -> str:
    """Return the kind of an exact value: a number with its unit, a day, a path, a constant; "" for any other value."""
    first, rest = value[0], [word.norm for word in value[1:]]
    if first.norm in _DAYS or first.norm in _HOW_OFTEN:
        return "day" if first.norm in _DAYS else "how often"
    number = _NUMBER.match(first.norm)
    if number or first.text.casefold() in _COUNTED:
        units = [number["unit"], *rest] if number and number["unit"] else rest
        return " ".join(["number", *(_UNITS.get(unit, unit) for unit in units)])
    if len(value) == 1 and _EXACT.fullmatch(first.text):
        return "constant" if first.text.isupper() else "region" if first.text[-1].isdigit() else "path"
    return ""


def _takes(kind: str, left: Sequence[Word], value: Word, right: Sequence[Word], *, is_rule: bool) -> bool:
    """Return whether an exact value here is the only one: not part of a name (the 1992 Olympics, issue 31), nor what is spoken of (tests on
    Python 3.10 are slow), nor one of several (on a 429). A time is if it is a deadline, a begin or an end: a mere event may recur.
    """  # noqa: D205
    if not left or IS in (word.norm for word in right) or (right and right[0].text.istitle()):
        return False
    before = left[-1].norm
    if before in _NUMBERED or (_has_many((*left, *right)) and not _is_placed(left)):
        return False
    if kind == "number" and value.text.isdigit() and _is_numbered(left, right):
        return False
    if not kind.startswith(("number", "day")):
        return kind == "how often" or before == IS or before in _PLACING
    if (before == IS and kind == "day") or before in ("on", "at", "in"):
        return _is_placed(left) or (kind == "day" and (is_rule or value.text.endswith("s")))
    return True


def _is_numbered(left: Sequence[Word], right: Sequence[Word]) -> bool:
    """Return whether a number here tells one thing from another (note 3, gate 49), as after an attribute, a name or a verb with its object it does not."""
    noun = left[-1]
    is_value = not _says_something(noun.norm) or noun.norm in _SINGLE or _IDENTIFIER.search(noun.text) is not None
    return not is_value and not (len(left) > 1 and (noun.text.istitle() or len(right) < 2))


def _excludes(
    left: Sequence[Word], value: Sequence[Word], other: Sequence[Word], right: Sequence[Word], *, is_choice: bool
) -> bool:
    """Return whether two words or names in this position exclude each other."""
    before, frame = left[-1].norm if left else "", {word.norm for word in (*left, *right)}
    if _has_many((*left, *right)):
        return False
    ends = not right or not _says_something(right[0].norm)
    if before == IS:
        is_setting = any(_IDENTIFIER.search(word.text) for word in left)
        return ends and (is_setting or bool(frame & _SINGLE) or left[-1].text.casefold() in _STANDS - {"run", "listen"})
    if _is_placed(left) or _is_placed(left[:-1]):  # owned by Anna, owned by team Orca
        return ends
    if not left:  # Anna is the owner
        are_names = all(word.text[:1].isupper() for word in (*value, *other))
        return are_names and len(right) > 1 and right[0].norm == IS and right[1].norm in _SINGLE
    return is_choice and before in _CHOOSES and any(_says_something(word.norm) for word in right)


def _has_many(frame: Sequence[Word]) -> bool:
    """Return whether what a frame says may be so of several: what is tested or supported, unlike “the supported version”."""
    return any((word.norm in _HAS_MANY and not word.text.endswith("ed")) or word.text == "tested" for word in frame)


def _is_placed(left: Sequence[Word]) -> bool:
    """Return whether the next words say where, when, by whom or with what something is done."""
    return len(left) > 1 and left[-1].norm in _PLACING and left[-2].text.casefold() in _PLACED


# --- a stated replacement ---

_OLD, _NEW = (rf"(?:the |our |my )?(?P<{name}>\S+(?: \S+){{0,3}}?)" for name in ("old", "new"))
_STOP = r"(?=$|[,;:(.]|\s(?:is|are|for|to|in|on|with|when|as|and|not|because|since|at|last|this|now|any ?more|everywhere)\b)"
_WHO = (
    r"^(?:(?:as of|since|in|last|this|from|after)\b[^,]{1,40},\s)?(?:\w+(?:\(\w+\))?: )?(?P<who>(?:\S+ ){0,6}?)"
    r"(?:(?:['’]ve|have|has|had|was|were|is|are|been|all|just|recently|finally|now|also|fully|completely) )*"
)
_GIVEN_UP = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_WHO}(?:migrate|move|switch|change|convert|port|upgrade|downgrade|transition|go|went)(?:d|ed)?(?P<part>(?: \S+){{0,4}}?) from {_OLD} (?:on)?to {_NEW}{_STOP}",
        rf"{_WHO}(?:migrate|move|switch|change|went)(?:d|ed)? (?:over )?to {_NEW} from {_OLD}{_STOP}",
        rf"{_WHO}replaced? {_OLD} (?:with|by) {_NEW}{_STOP}",
        rf"^{_OLD} (?:is|are|was|were|has been|have been|got) (?:now )?replaced (?:with|by) {_NEW}{_STOP}",
        (
            rf"{_WHO}(?:uses?|using|runs?(?: on)?|adopt(?:ed)?|chose|switched to|moved to|prefers?|comes? from|lives? in|"
            rf"(?:kept|stored|written|built|deployed) (?:in|on|with|to)) {_NEW}(?: now)?,? (?:instead of|rather than|in place of) {_OLD}{_STOP}"
        ),
        rf"{_WHO}(?:drop(?:ped)?|abandon(?:ed)?|retired?|ditch(?:ed)?|removed?|gave up|got rid of|phased out) {_OLD} (?:in favou?r of|for) {_NEW}{_STOP}",
        rf"{_WHO}(?:no longer|do not|don['’]?t|does not|doesn['’]?t|stopped) (?:use|uses|using|run on|running on|rely on|deploy to) {_OLD}{_STOP}",
        rf"^{_OLD} (?:is|are) (?:no longer|not) (?:used|in use)(?P<new>)(?= any ?more|$|[,;])",
    )
)
"""Sentences that name what is given up, most with what takes its place, some with who or which part gives it up."""
_UNREAL = re.compile(
    r"\b(?:if|would|could|might|may|plan(?:s|ned|ning)?|consider\w*|want(?:s|ed)?|should|will|going to|tried|propos\w*|suggest\w*|nearly|almost|until|"
    r"never|nobody|no one|hardly|barely|ever|false|(?:not|n['’]t) (?:migrated?|move[ds]?|switch(?:ed)?|changed?|replace\w*|drop(?:ped)?)|"
    r"for now|for the moment|today|tonight|this (?:time|once)|just once|right now|yet)\b|[\"“”]",
    re.IGNORECASE,
)
_RESTRICTED = re.compile(r"\b(?:if|when|unless|while|except|only|but|whenever|where|during|outside)\b", re.IGNORECASE)
_FOR_WHAT = re.compile(
    r"^,?\s(?:now )?(?:for|in|on|at) ([^,;:(]+?)(?=$|[,;:(.]|\s(?:because|since|as|last|this)\b)", re.IGNORECASE
)
_USED_BY = _stems(
    "use run write written build built base deploy host store keep kept manage test rely depend power serve format lint go log live ship "
    "send read come publish"
)
"""Verbs whose object, or the object of whose preposition, is what is used."""
_WHOEVER = _LITTLE | _stems(
    "project team codebase repo repository everything all everyone over away completely app prefer"
)
_TO_A_USE = frozenset("on in with through by via to under from".split())
_ARTICLES = frozenset("the our my a an".split())


def ended_by(text: str) -> list[list[str]]:
    """Return the terms of what a text says has ended: its name is enough to find what reports it."""
    sentences = [said for said in _sentences(text) if not _UNREAL.search(said)]
    found = [match["old"] for said in sentences for form in _GIVEN_UP if (match := form.search(said))]
    ended = [" ".join(set(claim.norms) - _LITTLE) for claim in claims_of(text) if claim.is_end]
    return [terms for one in [*found, *ended] if (terms := analyse(one))]


def _replaced(earlier: str, later: str) -> Conflict | None:
    """Return how a text says that what an earlier one reports as used has been replaced."""
    met = product(_sentences(earlier), _sentences(later))
    return next((found for one, other in met if (found := _given_up(one.rstrip(".!"), other.rstrip(".!")))), None)


def _given_up(earlier: str, said: str) -> Conflict | None:
    """Return how a sentence gives up what another one says is used: “we replaced Redux with Zustand”.

    Who gives it up must be named in the earlier one, if it is not the project itself. If a part is named that the earlier one, which
    speaks of all, does not name, nobody knows whether the rest is still so; two parts are two things.
    """
    found = next(filter(None, (form.search(said) for form in _GIVEN_UP)), None)
    if found is None or _UNREAL.search(said) or not (use := _use_of(earlier, found["old"])):
        return None
    named, known = found.groupdict(""), set(analyse(earlier))
    old, new = named["old"], named.get("new", "")
    if new and re.search(rf"(?<!\w){re.escape(new)}(?!\w)", earlier, re.IGNORECASE):
        return None  # the earlier one knows both
    narrowed = " ".join([named.get("part", ""), *_FOR_WHAT.findall(said[found.end() :])])
    is_part = not _terms(narrowed) <= known | set(analyse(new))
    if not _terms(named.get("who", "")) <= known or (is_part and use != "general"):
        return None
    is_sure = not is_part and not _RESTRICTED.search(said)
    reason = f"says that “{new}” has taken the place of “{old}”" if new else f"says that “{old}” was given up"
    return Conflict("value" if new else "denial", 1.0 if is_sure else 0.5, reason, is_sure, is_stated=True)


def _use_of(text: str, thing: str) -> Literal["general", "named", ""]:
    """Return whether a sentence says that something is used, runs, or is what one has: by all or by something that it names."""
    met = re.search(rf"^(.*?)(?<![\w-]){re.escape(thing)}{_STOP}(.*)$", text, re.IGNORECASE)
    claims = claims_of(text)
    if met is None or (claims and claims[0].is_denied):
        return ""
    use: Literal["general", "named"] = "named" if _terms(text) - set(analyse(thing)) - _USED_BY else "general"
    before = [word for word in met[1].casefold().split() if word not in _ARTICLES]
    if not before:
        return "general" if re.match(r"\s(?:is|are) (?:our|the|what)\b", met[2], re.IGNORECASE) else ""
    if any((found := form.search(text)) and found.groupdict().get("new") == thing for form in _GIVEN_UP):
        return use
    leads = before if before[-1] in _TO_A_USE else before[-1:]
    return (
        use
        if leads[-1] in ("is", "are") or "done" in leads or not _USED_BY.isdisjoint(analyse(" ".join(leads)))
        else ""
    )


def _terms(text: str) -> set[str]:
    """Return the terms of a text that say who or what."""
    return set(analyse(text)) - _WHOEVER
