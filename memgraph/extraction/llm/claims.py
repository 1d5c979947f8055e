"""Claims: what a language model, an agent or a person states about a source with its evidence, and whether the source says that.

One form and one verification serve the extractor that asks a model and the answers to work orders. What is quoted must stand in the
source. Exact items (numbers, names, versions, paths, quoted text) must stand in the records that are quoted, plain numbers in the
sentences; the project, and a name that the source has three times, may be added. What is stated must not be denied there, nor what is
denied stated. Half of a sentence's other words must be those of the records, and half of a cause's those of the quoted sentences. What a
person typed is read with its slips and short forms. Words are compared, not meanings. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field
from snowballstemmer.english_stemmer import EnglishStemmer

from memgraph.extraction.statements import steps_in
from memgraph.model.base import MAX_CONTENT_CHARS, Model, Prose, Text, Unit
from memgraph.model.ids import canonical_name
from memgraph.model.memory import (
    MAX_CUE_CHARS,
    MAX_CUES,
    AgentMemory,
    Cues,
    EpisodicMemory,
    MemoryType,
    Outcome,
    ProceduralMemory,
    SemanticMemory,
)
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re
from memgraph.text.calendar import in_words
from memgraph.text.cutting import cut
from memgraph.text.safe import visible_line
from memgraph.text.words import expanded

_ROLES = frozenset(
    "user agent assistant reviewer developer maintainer author team customer operator admin tester bot ci".split()
)
_INTRODUCE = frozenset("by agent user author reviewer assistant name ask asks asked tell tells told".split())
"""Words before a name."""
MAX_EVIDENCE_CHARS = 1_000
MAX_EVIDENCE_SPANS = 5
MAX_TAGS = 6
MAX_TAG_CHARS = 40
_MAX_LISTED = 50
_QUOTED_CHARS = 160

Span = Annotated[Text, Field(max_length=MAX_EVIDENCE_CHARS)]
Detail = Annotated[Text, Field(max_length=MAX_CONTENT_CHARS)]
Listed = Annotated[list[Detail], Field(max_length=_MAX_LISTED)]

FIELDS = f"""\
- "type": "episodic" (what happened), "semantic" (what is so in general) or "procedural" (how to do something)
- "content": one to three sentences that stand on their own, naming files, errors and reasons; at most {MAX_CONTENT_CHARS} characters
- "outcome": "positive", "negative", "neutral" or "unknown"
- "tags": up to five short words of the text
- "confidence": from 0 to 1
- "evidence": one to five passages that support all of it, copied word for word, each at most 1,000 characters
- "event_date": the day on which it happened, as YYYY-MM-DD, only if a date is given; otherwise ""
- "location": where it happened or applies: a file, component, machine or place; otherwise ""
- "decision": what was decided; otherwise ""
- "alternatives": what was rejected in its favour
- "trigger": of a procedure: when it applies; otherwise ""
- "steps": of a procedure: the actions, in order
- "agents": the names of the agents or people involved
- "cues": up to {MAX_CUES} phrases of at most {MAX_CUE_CHARS} characters, in the words of a later task for which this matters; they need no evidence

You may say it in other words, but what the record does not support is refused:
- Quote whole sentences, and the line with every number. Numbers, names, paths, options and quoted text must be the same there; a slip or \
short form that a person typed may be written out.
- More than half of the words of each sentence should be those of the record.
- Keep what is denied, what is only allowed or asked, and every condition ("only if", "unless").
- Say "the user" only of what is quoted from a turn of the user, and "decided" only of what was decided. State a cause only if the record does.
- Days and names of agents must be given there. Leave a field empty if the record gives nothing for it."""
"""The fields of a claim, for prompts that ask for some of them."""


class Claim(Model):
    """A statement with its fields, and the passages of the source that support it."""

    type: MemoryType
    content: Prose
    outcome: Outcome
    tags: Annotated[list[Text], Field(max_length=_MAX_LISTED)] = Field(default_factory=list)
    confidence: Unit
    evidence: Annotated[list[Span], Field(min_length=1, max_length=MAX_EVIDENCE_SPANS)]
    event_date: Text = ""
    location: Detail = ""
    decision: Detail = ""
    alternatives: Listed = Field(default_factory=list)
    trigger: Detail = ""
    steps: Listed = Field(default_factory=list)
    agents: Listed = Field(default_factory=list)
    cues: Cues = Field(default_factory=list)

    def problems(self, source: str, *, metadata: str = "") -> list[str]:
        """Return what the whole text that was shown does not support, in the order of the fields; empty if the claim holds.

        Days and names of agents may also be from the metadata, which is what else is known about the source.
        """
        return [problem for found in self.problems_by_field(source, metadata=metadata).values() for problem in found]

    def problems_by_field(self, source: str, *, metadata: str = "") -> dict[str, list[str]]:
        """Return the same by field."""
        return {name: found for name, found in self._checked(source, f"{metadata}\n{source}") if found}

    def _checked(self, source: str, known: str) -> Iterator[tuple[str, list[str]]]:
        evidence, missing = evidence_in(source, self.evidence, known=known.removesuffix(source))
        yield "evidence", [f"evidence: the source has no passage “{cut(one, _QUOTED_CHARS)}”" for one in missing]
        if self.is_too_long:
            yield "content", [f"content: is longer than {MAX_CONTENT_CHARS} characters"]
        else:
            yield "content", _described("content", unsupported(self.content, evidence))
        if place := self.location.strip():  # it names a place, whatever the content says of it
            yield "location", _described("location", unsupported(place, evidence, names_only=True))
        for name in ("decision", "trigger"):
            if text := getattr(self, name).strip():
                yield name, _described(name, _of_field(text, evidence))
        for name in ("alternatives", "steps"):
            texts = [text for text in getattr(self, name) if text.strip()]
            wrong = [said for text in texts for said in _of_field(text, evidence, names_only=name == "alternatives")]
            yield name, _described(name, wrong)
        if self.event_date and not is_dated(self.event_date, known):
            said = cut(self.event_date, _QUOTED_CHARS)
            yield "event_date", [f"event_date: the source does not state “{said}” as a day"]
        strangers = [name for name in self.agents if name.strip() and not is_named(name, known)]
        yield "agents", [f"agents: the source does not name “{cut(name, _QUOTED_CHARS)}”" for name in strangers]

    def unsupported_tags(self, source: str) -> list[str]:
        """Return the tags with words that the source does not have."""
        known = word_stems(source)
        return [tag for tag in self.tags if not word_stems(tag) <= known]

    def without_tags(self, tags: Collection[str]) -> Self:
        """Return the claim without these tags."""
        return self.model_copy(update={"tags": [tag for tag in self.tags if tag not in tags]})

    def without(self, fields: set[str]) -> Claim:
        """Return the claim with these optional fields emptied."""
        empty = {name: type(self).model_fields[name].get_default(call_default_factory=True) for name in fields}
        return self.model_copy(update=empty)

    @property
    def text(self) -> str:
        """The content in one line."""
        return " ".join(self.content.split())

    @property
    def is_too_long(self) -> bool:
        """Whether the content exceeds that of a memory."""
        return len(self.text) > MAX_CONTENT_CHARS

    @property
    def clean_tags(self) -> list[str]:
        """The tags as memories have them."""
        given = (canonical_name(tag)[:MAX_TAG_CHARS].strip() for tag in self.tags)
        return [tag for tag in dict.fromkeys(given) if tag][:MAX_TAGS]

    @property
    def quoted(self) -> str:
        """The evidence in one line."""
        return cut(" … ".join(" ".join(one.split()) for one in self.evidence), _QUOTED_CHARS)

    def memory(self, **fields: Any) -> AgentMemory:
        """Return the claim as a memory with further fields, such as its source, scope and tags.

        `occurred_at` is when the source was recorded, which counts if the claim states no earlier day.
        """
        recorded_at = fields["occurred_at"]
        day = to_iso(self.event_date) if self.event_date else recorded_at
        happened = day if day[:10] < recorded_at[:10] else recorded_at  # the day of a plan may be in the future
        agents = [*fields.get("agents_involved", ()), *(name.strip()[:400] for name in self.agents if name.strip())]
        given = {"content": self.text, "outcome": self.outcome, "confidence": self.confidence} | fields
        cues = list(dict.fromkeys(filter(None, map(visible_line, self.cues))))
        given |= {"occurred_at": happened, "agents_involved": agents, "cues": cues}
        if self.type == "semantic":
            applies = [one for one in (self.location, self.trigger) if one.strip()]
            rejected = cut("; ".join(one for one in self.alternatives if one.strip()), 8_000) or None
            return SemanticMemory(
                **given, conditions=applies, correct_approach=self.decision or None, incorrect_approach=rejected
            )
        if self.type == "procedural":
            steps = [" ".join(step.split()) for step in self.steps if step.strip()] or list(steps_in(self.text))
            return ProceduralMemory(**given, trigger_pattern=self.trigger or None, steps=steps)
        return EpisodicMemory(
            **given,
            event_date=day,
            location=self.location or None,
            decision=self.decision or None,
            alternatives_considered=[one for one in self.alternatives if one.strip()],
        )


def _of_field(text: str, evidence: Evidence, *, names_only: bool = False) -> list[str]:
    """Return what is unsupported in a field; one of function words alone, such as “do both”, need only be in the records."""
    found = unsupported(text, evidence, names_only=names_only)
    return [] if found == [SAYS_NOTHING] and f" {canonical_name(text)} " in f" {evidence.records} " else found


def _described(name: str, problems: list[str]) -> list[str]:
    return [f"{name}: {problem}" for problem in dict.fromkeys(problems)]


REQUIRED = tuple(name for name, field in Claim.model_fields.items() if field.is_required())
"""The fields that an answer must have."""


def claim_schema(*, required: Sequence[str] | None = None, **more: Any) -> dict[str, Any]:
    """Return the JSON schema of a claim with further properties: flat, without references and lengths, which servers of small models fail on.

    By default all properties are required, which makes a model consider each of them.
    """
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    special = {
        "type": {"type": "string", "enum": ["episodic", "semantic", "procedural"]},
        "outcome": {"type": "string", "enum": ["positive", "negative", "neutral", "unknown"]},
        "confidence": {"type": "number"},
    }
    lists = {"tags", "evidence", "alternatives", "steps", "agents", "cues"}
    properties = {name: special.get(name, texts if name in lists else text) for name in Claim.model_fields} | more
    names = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def is_named(name: str, source: str) -> bool:
    """Return whether a source names an agent or person: a verb of the source is nobody's name.

    It does if the name stands there by itself, and is a role (“the user”), is capitalised or has a digit or sign there, or follows a
    word that introduces one (“by anna”).
    """
    wanted = re.escape(" ".join(name.replace("’", "'").split())).replace(r"\ ", r"\s+")
    text = source.replace("’", "'")
    for found in re.finditer(rf"(?<!\w){wanted}(?!\w)", text, re.IGNORECASE) if wanted else ():
        is_marked = any(not char.islower() and not char.isspace() for char in found[0])
        before = text[max(found.start() - 20, 0) : found.start()].casefold()
        is_introduced = before.endswith("@") or not _INTRODUCE.isdisjoint(_WORD.findall(before)[-1:])
        if is_marked or is_introduced or canonical_name(found[0]).removeprefix("the ") in _ROLES:
            return True
    return False


def is_dated(date: str, source: str) -> bool:
    """Return whether a source states an ISO day: 2026-01-05, 5 January 2026, January 5, 2026, Jan 5 2026.

    Of a time other than midnight, it must also state the hour and minute.
    """
    try:
        day = to_iso(date)[:10]
    except ValueError:
        return False
    time = date[11:16] if date[10:11] in {"T", "t", " "} else ""
    if time.strip("0:") and not re.search(rf"(?<!\d){re.escape(time)}(?!\d)", source):
        return False
    number, month, year = in_words(day).split()
    text = canonical_name(source).replace(",", "")
    months = (month, month[:3])
    forms = [f"{first} {second} {year}" for name in months for first, second in ((number, name), (name, number))]
    return any(re.search(rf"(?<!\d){form.casefold()}(?!\d)", text) for form in (day, *forms))


SAYS_NOTHING = "it says nothing that evidence could support"
_FREE = frozenset(
    "a an the this that these those it its itself he she they them their we us our you your i me my one ones who whom whose which what "
    "where is are was were be been being am do does did done has have had having will would shall should can could may might must need "
    "needs needed of to in on at by for from with into onto over under out up off as than about via per between during through within "
    "against and or nor but so if then else when while because since although though whether both also too just very still again there "
    "here how given rather why more most some such same other another each every all any only always own way yes please thus hence due "
    "general even unable etc say says said state states stated told report reports reported ask asks asked request requests requested "
    "want wants wanted like expect expects expected require requires required prefer prefers preferred decide decided decision choose "
    "chose chosen choice explained confirmed agreed suggested before after first last next finally earlier later now once until already "
    "instead longer get gets got gave goes went became become took takes put comes came make makes made keep keeps kept use used uses "
    "using not no never none nobody nothing neither without".split()
)
"""Words that need no evidence: of grammar, telling, order and time, and light verbs."""
_NUMBERS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}  # fmt: skip
_PERSONS = frozenset({"user", "users", "agent", "agents", "assistant"})
_CURRENCY = (
    r"$\u00a2-\u00a5\u058f\u060b\u07fe\u07ff\u09f2\u09f3\u09fb\u0af1\u0bf9\u0e3f\u17db\u20a0-\u20c0\ua838\ufdfc\ufe69\uff04\uffe0\uffe1\uffe5"
    r"\uffe6\U00011fdd-\U00011fe0\U0001e2ff\U0001ecb0"
)
_AMOUNT = re.compile(
    rf"(?<![\w.,])(\d(?:[\d.,]*\d)?[^\W\d_]{{0,4}})[ \u00a0\u202f]?([{_CURRENCY}])(?!\w)|([{_CURRENCY}]) (?=\d)"
)
_ITEM = re.compile(
    rf"[-+]?[{_CURRENCY}]?\d[\d.,:]*\d%?[^\W\d_]*(?![^\s,;)])|(?:[-+]?[{_CURRENCY}])?[\w!#$%&'+\-./:=?@\\^~’–—]+"
)
_EDGES = ".:!?'’=&\\-–—/"
_SIGNS = re.compile(r"[\d_./\\:=@#+~$%]|[a-z][A-Z]|^--|^[A-Z]{2,}s?$")
_QUANTITY = re.compile(rf"[-+]?([{_CURRENCY}]|v?)(\d[\d.,:]*)(%?)([a-z]{{0,4}})")
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_PERCENT = re.compile(r"(?<=\d)\s?(?:%|per ?cent\b)", re.IGNORECASE)
_PLAIN = str.maketrans(
    {"*": " ", "`": " ", "’": "'", "−": "-"}
    | {"。": ". ", "，": ", ", "、": ", ", "：": ": ", "；": "; ", "！": "! ", "？": "? ", "（": " (", "）": ") "}
)
_WIDE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_WIDE}]|\d+(?:[.,:]\d+)*%?|[^\W_{_WIDE}]+")
_BOUND = re.compile(
    rf"(?<=[{_WIDE}])(?=[^\s{_WIDE}])|(?<=[^\s{_WIDE}])(?=[{_WIDE}])|(?<=[a-z])(?=:[A-Z])|(?<![\w-])(\d+)-(?=[a-z]+\b)"
)
_FRAME = re.compile(r"^\[\d{1,4}\]$", re.MULTILINE)  # of a record; without any, the paragraphs are records
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_SENTENCE = re.compile(r"(?!(?:(?<=\betc)|(?<=\be\.g)|(?<=\bi\.e))\.\)?\s+[a-z])[.!?;]+[\"”'’)]*\s+|\n+")
_BEGINS = re.compile(r"(?:^|[.!?:;]\s+|\n)[^\w\n]{0,4}(\w+)")
_CAUSE = re.compile(r"\b(?:because|since|due to|owing to|caused by)\b([^.;:]*)", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?i)[.!?;]+(?=\s|$)|:(?=\s)(?!\s+(?:not|no|never)\b)|,(?=\s)|\n|\s[-–—]+\s|[()]|"
    r"\s(?=(?:but|because|so|if|when|unless|while|although|though|since|until|without|please|instead of|rather than|"
    r"(?:that|which|who)\s(?:\w+\s)?(?:not|never|no))\s)|\sand\s(?=(?:never|not|no|nobody|do|does|did|is|are|was|were|"
    r"has|have|can|must|should|will|it|there|they|we|you|i)\s)",
)
_CONDITION = re.compile(r"(?i)(?:^|(?<=[.:;] ))without\b")
_DENIAL = re.compile(
    r"(?i)(?<![\w-])(?:(?<!\bor )not|no|never|(?-i:none)|none of|nobody|nothing|neither|nor|without|instead of|rather than|(?:fail(?:s|ed)?|unable|refuse[sd]?|forg[eo]ts?)"
    r"(?= to\b)|(?:stop|avoid|quit)s?(?= \w+ing\b))(?![\w-])",
)
_NEGATIVE = re.compile(
    r"(?i)\b((?:fail|refus|reject|block|prevent|avoid|lack|miss|disabl|forbid|prohibit|skip|stop|drop|remov|delet|ban)"
    r"(?:e?s|e?d|ing|ure|ped|ping)?|wrong|broken?|breaks?|errors?|over|unless|except|hardly|barely|too|"
    r"un\w{4,}|dis\w{4,}|non\w{4,}|out of|off|hidden|impossible|invalid|absent|denied)\b",
)
"""Words that deny without a denial: with one, a text may say what another one denies."""
_SCRIPT = re.compile(rf"[{_WIDE}]|[^\W\d_\u0000-\u024f{_WIDE}]{{2,}}")
"""Wide characters, and words of other scripts."""
_FOREIGN_DENIALS = frozenset(
    "nicht kein keine keinen keinem keiner jamais aucun aucune nunca tampoco não niet geen ikke ingen".split()
)
_FOREIGN = _FOREIGN_DENIALS | frozenset(
    "ohne nie pas sans sem non inte der die das den und ist sind wir für mit auf bei beim ein eine von le la les des est une dans pour "
    "avec il je ne nous vous el los las en es con sin para que uma com di che het een de voor van wij och det som jag jeg jest się na".split()
)
_SHARED = frozenset("a also am an as do he i in is me no of on or over per so to was we will".split())
"""English words that other languages have too."""


class _Clause(NamedTuple):
    """The words of a clause as stems, those that it denies, what it denies them of (“in French, not the readme”), and negative words."""

    words: frozenset[str]
    denied: frozenset[str]
    of: frozenset[str]
    negative: frozenset[str]


@dataclass(frozen=True)
class Evidence:
    """What is quoted of a source: the records and whole sentences that have it, their words and stems, and what may be named anyhow.

    The clauses are those of its English sentences; of the others it has the stems.
    """

    records: str
    told: str
    written: frozenset[str]
    near: frozenset[str]
    quoted: frozenset[str]
    sentences: tuple[tuple[_Clause, ...], ...]
    foreign: frozenset[str]
    common: str
    by_user: bool

    def has(self, item: str) -> bool:
        """Return whether an exact item stands there or may be named anyhow; a name also by a short form that a user typed."""
        wanted = comparable(item)
        forms = [wanted, *(one for pair in _NUMBERS.items() if wanted in pair for one in pair)]
        is_number = len(forms) > 1 or _QUANTITY.fullmatch(wanted) is not None
        text = self.told if is_number else f"{self.records}\n{self.common}"
        if any(item_pattern(form).search(text) for form in forms):
            return True
        if item.isalpha():
            return self.by_user and any(may_stand_for(one, wanted) for one in self.written)
        joined = "".join(_WORD.findall(wanted))  # “GL-iNet” is “GL.iNet”
        return len(joined) > 4 and joined.isalpha() and joined in "".join(_WORD.findall(self.records))

    def meant(self, word: str) -> str:
        """Return the stem of the word of the records that a word stands for; its own if there is none."""
        if (own := stem(word)) in self.near:
            return own
        others = ((one, stem(one)) for one in self.written if one[0] == word[0])
        near = (to for one, to in others if may_stand_for(one, word) or (len(to) > 3 and own.startswith(to)))
        return min(near, default=own)


def evidence_in(source: str, parts: Iterable[str], *, known: str = "") -> tuple[Evidence, list[str]]:
    """Return what parts of a source say there, and those that are not in it; `known` may be named without a quotation.

    Case, white space, markup and punctuation do not count, nor does a slip in six words; “…” may leave something out.
    """
    text = _prepared(source)
    words = list(_WORD.finditer(_FRAME.sub(lambda frame: " " * len(frame[0]), text)))
    told = [found[0].casefold() for found in words]
    missing, spans = list[str](), list[tuple[int, int]]()
    for part in parts:
        pieces = re.split(r"\s*\[?(?:…|\.{3})\]?\s*", _FRAME.sub("", _prepared(part)))
        places = [_places(told, [one.casefold() for one in _WORD.findall(piece)]) for piece in pieces if piece]
        if not places or [] in places:
            missing.append(part)
        spans += [(words[start].start(), words[end - 1].end()) for some in places for start, end in some]
    around = "\n".join(_parts(_FRAME if _FRAME.search(text) else _PARAGRAPH, text, spans))
    sentences = _parts(_SENTENCE, text, spans)
    said = "\n".join(sentences)
    named = (name for name, count in Counter(re.findall(r"\b[A-Z]\w*[a-z]\w*", text)).items() if count > 2)
    evidence = Evidence(
        records=comparable(around),
        told=comparable(said),
        written=frozenset(map(str.casefold, _WORD.findall(around))),
        near=word_stems(around),
        quoted=word_stems(said),
        sentences=tuple(filter(None, (tuple(_clauses(one, stem)) for one in sentences if not _is_foreign(one)))),
        foreign=frozenset().union(*(_stems(one, stem) for one in sentences if _is_foreign(one))),
        common=comparable(" ".join([known, *named])),
        by_user=re.search(r"(?im)^\W{0,3}(?:the )?user\w*[ \t]*:", around) is not None,
    )
    return evidence, missing


def unsupported(claim: str, evidence: Evidence, *, names_only: bool = False) -> list[str]:
    """Return what a claim says that its evidence does not, at least something; with `names_only`, it states and denies nothing."""
    text = _prepared(claim)
    if not any(_content(text)):
        return [SAYS_NOTHING]
    found = [*_unsaid(text, evidence), *_unquoted(text, evidence)]
    return list(dict.fromkeys(found or ([] if names_only else _denials(text, evidence))))


def _unsaid(text: str, known: Evidence) -> Iterator[str]:
    """Yield the exact items that the evidence does not have, and the other words of a sentence if it does not have half of them."""
    compared = 0
    for sentence in _SENTENCE.split(text):
        new: list[str] = []
        items = list(_content(sentence))
        pairs = pairwise(item.casefold() for item, _ in items)
        parts = {word for pair in pairs if "".join(pair) in known.written for word in pair}  # “VS Code” of “vscode”
        for item, is_exact in items:
            word = item.casefold()
            if word in parts:
                continue
            if is_exact and not known.has(item):
                yield f"“{item}” is not in the quoted evidence: quote the passage that has it"
            elif word in {"user", "users"} and not known.by_user and stem(word) not in known.near:
                yield f"“{item}” is not in the quoted evidence: quote the turn of the user, or say who said it"
            elif not is_exact and word not in _PERSONS and not word_stems(word) <= known.near:
                compared += 1
                may_be_said = known.meant(word) in known.near or item_pattern(word).search(known.common)
                if compared > 40 or not may_be_said:
                    new.append(f"“{item}”")
        total = len(items) - sum(item.casefold() in _PERSONS for item, _ in items)
        if new and 2 * len(new) > total - (total < 3 and not _may_be_new(sentence, known)):
            yield f"{', '.join(new)} {'is' if len(new) == 1 else 'are'} not in the source: say it in its words"


def _may_be_new(sentence: str, known: Evidence) -> bool:
    """Return whether one of two words may be new: what has the other one is in another language, or denies something as this does."""
    words = _stems(sentence, known.meant)
    denying = [one for one in known.sentences if any(clause.denied or clause.negative for clause in one)]
    if words & known.foreign or _DENIAL.search(sentence):
        return bool(words & known.foreign) or any(words & clause.words for clause in chain(*denying))
    return _NEGATIVE.search(sentence) is not None and any(words & clause.denied for clause in chain(*denying))


def _unquoted(text: str, known: Evidence) -> Iterator[str]:
    """Yield the causes of which the quoted sentences do not have half, and quotations that the records do not have word for word."""
    for cause in _CAUSE.findall(text):
        items = [item for item, _ in _content(cause)]
        exact = [item_pattern(comparable(item)).search(known.told) is not None for item in items]
        said = [
            is_there or known.meant(item.casefold()) in known.quoted
            for item, is_there in zip(items, exact, strict=True)
        ]
        if 2 * sum(said) < len(said):
            yield f"the quoted evidence states no cause “{cause.strip()}”: quote the passage that does, or leave it out"
    for one, other in re.findall(r"(?<![\w-])([a-z]+)-([a-z]+)(?![\w-])", text):
        is_like_a_name = f"{one}-" in known.records or f"-{other}" in known.records
        if is_like_a_name and f"{one}-{other}" not in known.records and not {stem(one), stem(other)} <= known.near:
            yield f"“{one}-{other}” is not in the quoted evidence: quote the passage that has it"
    told = f" {' '.join(_WORD.findall(known.records))} "
    for quotation in re.findall(r"[“\"]([^“”\"\n]{1,400})[”\"]", text):
        if " " in quotation and f" {' '.join(_WORD.findall(comparable(quotation)))} " not in told:
            yield f"“{quotation}” is not in the quoted evidence word for word: quote it as it is"


def _denials(text: str, known: Evidence) -> Iterator[str]:
    """Yield what is stated and denied in the quoted sentences, or denied and stated there, clause by clause, as far as those are English."""
    if known.foreign and not known.sentences:
        return
    for sentence in _SENTENCE.split(" ".join(text.split())):
        clauses = list(_clauses(sentence, known.meant))
        is_only = "only" in sentence.casefold().split()
        for claim in clauses:
            told = _nearest(claim, known.sentences)
            rest = [one for one in clauses if one is not claim]
            others, denied = (
                frozenset[str]().union(*words) for words in ((one.words for one in rest), (one.denied for one in rest))
            )
            if not claim.denied and _is_denied(claim, told, others, denied, is_only=is_only):
                items = " ".join(sorted(claim.words & told.denied))
                yield f"the quoted evidence denies “{items}”: quote the passage that does not"
            elif claim.denied and _is_stated(claim, told, others, known):
                yield f"the quoted evidence does not deny “{' '.join(sorted(claim.denied))}”: quote the passage that does"


def _is_denied(claim: _Clause, told: _Clause, others: frozenset[str], denied: frozenset[str], *, is_only: bool) -> bool:
    """Return whether a clause states what the nearest one denies: most of it, or all if its sentence also denies some of that."""
    words, common = claim.words | others, claim.words & told.denied
    most = len(told.denied) - 1 if denied & told.denied else len(told.denied) // 2
    is_same = len(claim.words & told.words) > 1 and len(common) > most
    is_other = bool(told.of) and not words & told.of and not words <= told.denied  # “in French, not the readme”
    is_wrong = is_same or bool(common and not denied and not is_only)
    return is_wrong and not is_other and claim.negative <= told.negative


def _is_stated(claim: _Clause, told: _Clause, others: frozenset[str], known: Evidence) -> bool:
    """Return whether half of what a clause denies is stated, and nothing in the quoted sentences denies that or something related."""
    if not told.words:
        return not (claim.words & known.foreign or _DENIAL.search(known.records) or _NEGATIVE.search(known.records))
    if 2 * len(claim.denied & told.words - told.denied) < len(claim.denied):
        return False
    if claim.denied & told.denied or told.negative - claim.negative:
        return False
    about, words = claim.words - claim.denied, claim.words | others
    denying = (one for one in chain(*known.sentences) if one.denied and not one.denied & others)
    return not any(about & one.words - one.denied or 2 * len(one.denied & words) > len(one.denied) for one in denying)


def _nearest(claim: _Clause, sentences: Sequence[Sequence[_Clause]]) -> _Clause:
    """Return the clause with most of a claim's words, or its sentence if that has more; an empty one if none is near."""
    best: tuple[float, ...] = (0.0,)
    nearest = _Clause(*[frozenset[str]()] * 4)
    for sentence in sentences:
        whole = _Clause(*(frozenset[str]().union(*parts) for parts in zip(*sentence, strict=True)))
        if sum(bool(one.denied) for one in sentence) == 2:  # “never commit without signing”
            whole = whole._replace(denied=frozenset())
        said = len(claim.words & whole.words)
        for one in sentence if 2 * said >= len(claim.words) else ():
            common = len(claim.words & one.words)
            rank = (common, bool(one.denied) == bool(claim.denied), common / len(one.words))
            if rank > best:
                best, nearest = rank, one if common == said else whole
    return nearest


def _clauses(text: str, stem_of: Callable[[str], str]) -> Iterator[_Clause]:
    """Yield the clauses of a text that say something. A denial alone, except “no,”, belongs to the next one; two cancel each other."""
    carried, words, of = "", frozenset[str](), frozenset[str]()
    for part in _CLAUSE.split(_CONDITION.sub("unless", text)):
        clause = f"{carried} {part}"
        denials = list(_DENIAL.finditer(clause))
        of, words = words or of, _stems(clause, stem_of)
        if not words:
            carried = "not" if len(denials) % 2 and clause.rsplit(maxsplit=1)[-1].casefold() != "no" else ""
            continue
        carried, denied = "", frozenset[str]()
        if len(denials) % 2:
            denied = _stems(clause[denials[0].end() :], stem_of) or words
        negative = frozenset(map(stem, _NEGATIVE.findall(_DENIAL.sub(" ", clause).casefold())))
        yield _Clause(words, denied, of if words == denied and len(of) > 1 else frozenset(), negative)


def _is_foreign(sentence: str) -> bool:
    """Return whether a sentence has more words of another language than it has English ones of grammar, which weigh three times."""
    words = _WORD.findall(sentence.casefold().removeprefix("user_did:"))
    english = {word for word in words if word in _FREE}
    denials = sum(word in _FOREIGN_DENIALS for word in words)  # these count twice
    letters, others = len(_SCRIPT.findall(sentence)), denials + sum(word in _FOREIGN for word in words)
    return letters > max(1, 3 * len(english)) or others > max(1, 3 * len(english - _SHARED - _FOREIGN))


def _stems(text: str, stem_of: Callable[[str], str]) -> frozenset[str]:
    items = (item for item, _ in _content(text) if item.casefold() not in _PERSONS)
    return frozenset(stem_of(item.casefold()) if item.isalpha() else comparable(item) for item in items)


def _content(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the items of a text that say something, and whether each is exact; of a compound of one or two plain words, its words."""
    initial = set(_BEGINS.findall(text))
    for raw in _ITEM.findall(text):
        item = raw.rstrip(_EDGES)
        has_sign = re.match(rf"--|[-+][{_CURRENCY}]?\d", item) is not None
        item = (item if has_sign else item.lstrip(f"{_EDGES}@")).removesuffix("'s")
        words = item.split("-")
        is_name = len(words) > 2 and not _FREE.intersection(words[1:-1])
        if item.casefold() in _NUMBERS or _SIGNS.search(item) or (is_name and item):
            yield item, True
            continue
        for word in words if item.casefold() not in _FREE else ():
            if word.casefold() not in _FREE and _WORD.search(word):
                yield word, word[0].isupper() and (word not in initial or _SIGNS.search(word) is not None)


def _places(told: Sequence[str], wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Return where a run of words stands: as it is, else with one slip in six words; at most eight places."""
    whole, run, length = f" {' '.join(told)} ", f" {' '.join(wanted)} ", len(wanted)
    found, at = list[tuple[int, int]](), whole.find(run)
    while wanted and at >= 0 and len(found) < 8:
        found.append((whole.count(" ", 0, at), whole.count(" ", 0, at) + length))
        at = whole.find(run, at + 1)
    for first in range(len(told) - length + 1 if length > 2 and not found else 0):
        if told[first] == wanted[0] or told[first + length - 1] == wanted[-1]:
            slips = [pair for pair in zip(told[first:], wanted, strict=False) if pair[0] != pair[1]]
            if len(slips) <= length // 6 + 1 and all(may_stand_for(*pair) for pair in slips):
                return [(first, first + length)]
    return found


def _parts(limits: re.Pattern[str], text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    """Return the parts of a text that passages stand in, each once."""
    bounds = [0, *(found.end() for found in limits.finditer(text)), len(text)]
    found = (range(bisect_right(bounds, first) - 1, bisect_right(bounds, last - 1)) for first, last in spans)
    return [text[bounds[at] : bounds[at + 1]] for at in dict.fromkeys(at for some in found for at in some)]


def _prepared(text: str) -> str:
    """Return a text without markup, its denials, percentages and amounts written in one way, and scripts and units (“90-day”) apart."""
    return _AMOUNT.sub(r"\2\3\1", _BOUND.sub(r"\1 ", _PERCENT.sub("%", expanded(text.translate(_PLAIN)))))


def comparable(text: str) -> str:
    """Return a text folded, with paths and numbers written in one way."""
    return _THOUSANDS.sub(lambda number: number[0].replace(",", ""), canonical_name(text).replace("\\", "/"))


@lru_cache(maxsize=4_096)
def item_pattern(item: str) -> re.Pattern[str]:
    """Return the pattern of an item, or of a longer one that it is part of: “ada/kiln” in “git.org/ada/kiln”, but not 3.3 in 3.3.5."""
    if (number := _QUANTITY.fullmatch(item)) is not None:
        sign = re.escape(item[0]) if item[0] in "+-" else r"(?<![\s(=:,/][-+])(?<!^[-+])(?<!-\d\d-)(?<!\d{4}-)"
        before = "v?" if number[1] == "" or (number[1] == "v" and "." in item) else re.escape(number[1])
        unit = rf" ?{number[4]}(?!\w)" if number[4] else "" if number[3] else r"(?![\d%_]|[.,:]\d)"
        return re.compile(rf"(?<![\w.])(?<!\d[.,:]){sign}{before}{re.escape(number[2])}{number[3]}{unit}")
    start = r"(?<![\w-])" if item.startswith("-") else rf"(?:(?<!\w)|(?=[{_WIDE}]))" if re.match(r"\w", item) else ""
    return re.compile(rf"{start}{re.escape(item)}(?:(?!\w)|(?<=[{_WIDE}]))")  # wide characters are words by themselves


def may_stand_for(written: str, word: str) -> bool:
    """Return whether a typed word may stand for another one: “auth”, “brew” of “homebrew”, “ps” of “powershell”; or with one slip."""
    short, long = sorted((written, word), key=len)
    if written == word or written in _FREE or not (written.isalpha() and word.isalpha()):
        return False
    if len(short) > 3 and written[0] == word[0] and len(long) - len(short) < 2:
        is_longer = short[-1] == long[-1] and any(long[:at] + long[at + 1 :] == short for at in range(1, len(long) - 1))
        is_other = len(short) > 6 and sum(one != other for one, other in zip(short, long, strict=False)) == 1
        return is_longer if len(short) < len(long) else is_other or sorted(short) == sorted(long)
    if len(written) > 2 and (word.startswith(written) or (len(written) > 3 and word.endswith(written))):
        return True
    rest, most = iter(word), min(4, len(word) // 2)
    return 1 < len(written) <= most and written[0] == word[0] and all(char in rest for char in written)


def word_stems(text: str) -> frozenset[str]:
    """Return the words of a text by their stems."""
    return frozenset(stem(word.casefold()) for word in _WORD.findall(text))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return what the forms of a word in lower case have in common."""
    stemmer: Any = EnglishStemmer()  # type: ignore[no-untyped-call]  # one for each: it holds the word as state
    return str(stemmer.stemWord(word))
