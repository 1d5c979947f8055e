"""Claims: what a language model, an agent or a person states about a source with its evidence, and what is kept of it.

One form and one verification serve the extractor that asks a model and the answers to work orders. What is quoted must stand in the
source, and the numbers, paths and identifiers of a statement in the sentences that are quoted. Whether those say what is stated cannot be
told from words: on a statement in which one word was changed, comparing words fails more often than not. So the sentences of the source are
kept, and the statement beside them as a reading that nobody verified, unless it repeats whole sentences. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field
from snowballstemmer.english_stemmer import EnglishStemmer

from memgraph.extraction.rules.findings import ITEM
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
from memgraph.text.attempts import BY_USER, NOT_VERIFIED
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
- "content": one to three sentences that stand on their own, naming files, errors and reasons; with the sentences that you quote at most {MAX_CONTENT_CHARS - 50} characters
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
- "is_rule": true if the user states it as a rule or wish for later work, in a turn of the user that you quote; otherwise false
- "cues": up to {MAX_CUES} phrases of at most {MAX_CUE_CHARS} characters, in the words of a later task for which this matters; they need no evidence

What you quote is kept as whole sentences, and beside it your content, marked as not verified unless all its words are quoted:
- Quote the sentences that say it, with every number, path and identifier of your content; one that is not in them is refused.
- Keep what is denied, what is only allowed or asked, and every condition ("only if", "unless"): a reader compares both.
- Say "the user" only of what is quoted from a turn of the user, and "decided" only of what was decided. State a cause only if the record does.
- Copy "decision", "alternatives" and "steps" from the record: they become the sentences that they stand in. One of "alternatives" must say
  that it is not done. Copy "location" and "trigger" from the sentences that you quote.
- Days and names of agents must be given in the record. Leave a field empty if it gives nothing for it."""
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
    is_rule: bool = False
    cues: Cues = Field(default_factory=list)

    def verified(self, source: str, *, metadata: str = "") -> tuple[Self | None, list[str]]:
        """Return the claim as it is kept, and what was left out of it; or None, and why it is refused.

        The metadata is what else is known about the source: its day, and names that may be given without a quotation.
        """
        evidence, missing = evidence_in(source, self.evidence)
        problems = [f"evidence: the source has no passage “{cut(one, _QUOTED_CHARS)}”" for one in missing]
        problems += [f"content: {one}" for one in _unsaid(self.text, evidence, metadata)]
        said = evidence.kept_for(self.text)
        if (excess := len(said) - MAX_CONTENT_CHARS) > 0:
            problems.append(
                f"content: is {excess} characters too long with the sentences that are quoted: quote fewer sentences or say it shorter"
            )
        if problems:
            return None, problems
        changes, left_out = self._fields(source, f"{metadata}\n{source}", evidence)
        return self.model_copy(update={**changes, "content": said}), left_out

    def _fields(self, source: str, known: str, evidence: Evidence) -> tuple[dict[str, Any], list[str]]:
        """Return the optional fields as the source has them, if they differ, and what was left out of them.

        A decision, steps and alternatives become the whole sentences that they are copied from: “use tabs” may stand in “do not use tabs”.
        """
        tags = [tag for tag in self.tags if word_stems(tag) <= word_stems(source)]
        wrong = [("tags", tag) for tag in self.tags if tag not in tags]
        changes: dict[str, Any] = {"tags": tags}
        of_source: dict[str, Callable[[str], str]] = {
            "decision": partial(copied, source),
            "steps": lambda text: re.sub(rf"^{ITEM.pattern}+", "", copied(source, text)),
            "alternatives": lambda text: (
                said if _denies(re.sub(r"(?i)\bwithout\b", "", said := copied(source, text))) else ""
            ),
            "location": evidence.run,
            "trigger": evidence.run,
        }
        for name, found_in in of_source.items():
            given = getattr(self, name)
            texts = [text for text in ([given] if isinstance(given, str) else given) if text.strip()]
            found = list(map(found_in, texts))
            changes[name] = "".join(found) if isinstance(given, str) else list(dict.fromkeys(found))
            wrong += [(name, text) for text, said in zip(texts, found, strict=True) if not said]
        wrong += [("event_date", self.event_date)] if self.event_date and not is_dated(self.event_date, known) else []
        wrong += [("agents", name) for name in self.agents if name.strip() and not is_named(name, known)]
        asks = all(one.rstrip().endswith("?") for one in evidence.sentences)
        wrong += [("is_rule", self.text)] if self.is_rule and (asks or not evidence.is_by_user) else []
        for name, _ in wrong:
            if name != "tags":
                changes[name] = type(self).model_fields[name].get_default(call_default_factory=True)
        if not changes["steps"]:
            told = "".join("… " if _denies(one) else one for one in evidence.sentences)
            changes["steps"] = [" ".join(step.split()) for step in steps_in(told.replace("… ", "\n"))]
        return changes, [
            f"{name}: the source does not say “{cut(text, _QUOTED_CHARS)}” so that it can be kept; left out"
            for name, text in wrong
        ]

    @property
    def text(self) -> str:
        """The content in one line."""
        return " ".join(self.content.split())

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
            given |= {"category": "instruction" if self.is_rule else None}
            return SemanticMemory(
                **given, conditions=applies, correct_approach=self.decision or None, incorrect_approach=rejected
            )
        if self.type == "procedural":
            return ProceduralMemory(**given, trigger_pattern=self.trigger or None, steps=self.steps)
        return EpisodicMemory(
            **given,
            event_date=day,
            location=self.location or None,
            decision=self.decision or None,
            alternatives_considered=[one for one in self.alternatives if one.strip()],
        )


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
        "is_rule": {"type": "boolean"},
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


_LEAST_COMMON = 0.25
_NUMBERS = dict(zip("two three four five six seven eight nine ten".split(), map(str, range(2, 11)), strict=True))
_WIDE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_WIDE}]|\d+(?:[.,:]\d+)*%?|[^\W\d_{_WIDE}]+(?:['’](?!s\b)[^\W\d_{_WIDE}]+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?%?")
_ARTICLES = frozenset({"a", "an", "the", "s"})
_IDENTIFIER = re.compile(r"\d|\w\w(?:[_\\=@#~:.]|->)+\w|^--\w")
_TOKENS = re.compile(r"\s+|(?<=\w)-(?=\w)")
_EDGES = ".,:;!?'’\"“”()[]{}<>`*"
_FRAME = re.compile(r"^\[\d{1,4}\]$", re.MULTILINE)  # of a record; without any, the paragraphs are records
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_LABEL = re.compile(r"(?:… )?[a-z][a-z_ ]{1,20}:\s+")
_SENTENCE = re.compile(
    r"(?!(?:(?<=\betc)|(?<=\be\.g)|(?<=\bi\.e))\.\)?\s+[a-z])[.!?]+[\"”'’)*`]*\s+|[。！？]|\n[ \t]*\n|\n(?=[ \t]*(?:[-*•#>|]|\d+[.)]\s))"
    r"|\n(?=[ \t]*[a-z][a-z_ ]{1,20}:\s)|^[a-z][a-z_ ]{1,20}:\s+|^\[\d{1,4}\]$|^\d{4}-\d\d-\d\d\b.{0,20}$",
    re.MULTILINE,
)
"""The end of a sentence, item of a list or paragraph, and the name of a record's field, its number or day."""
_FIELD = re.compile(r"^(?:\[\d{1,4}\]$|[a-z][a-z_ ]{1,20}:[ \t])", re.MULTILINE)
_OF_USER = re.compile(r"^user_did: ", re.MULTILINE)
"""The name of the field with the user's own words: at the beginning of a line, where no text of a record stands (`indented`)."""
_DENIES = re.compile(
    r"\b(?:not|dont|never|no|none|nor|neither|without|cannot|avoid\w{0,3}|forb[ia]\w{1,6}|prohibit\w{0,3}|refus\w{1,3}|reject\w{0,3}|"
    r"instead|rather|against|wrong|fail\w{0,3}|dropp\w{2,3}|discard\w{0,3}|abandon\w{0,3})\b",
    re.IGNORECASE,
)
_LIST = re.compile(r"(?P<head>[^\s.!?:][^\n.!?:]{0,200}:)[ \t]*(?:\n[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t][^\n]*)+")
"""A list with the sentence before it: if that prohibits, all is one sentence."""
_PROHIBITS = re.compile(
    r"\b(?:not|dont|never|no|avoid\w{0,3}|instead|forb[ia]\w{1,6}|prohibit\w{0,3})\b", re.IGNORECASE
)
_PLAIN_QUOTES = str.maketrans("“”", '""')
"""A quotation inside of another would end it."""


class _Word(NamedTuple):
    """A word as it is compared, and its place."""

    text: str
    start: int
    end: int


class Evidence(NamedTuple):
    """What is quoted of a source: its whole sentences in order, and the words of the records that they stand in."""

    sentences: tuple[str, ...]
    around: tuple[str, ...]
    is_of_user: bool
    """Whether one of the records has a turn of the user."""
    is_by_user: bool
    """Whether nothing is quoted but what the user said."""

    def kept_for(self, text: str) -> str:
        """Return what is kept of a statement: the quoted sentences, as the source has them, and the statement unless it stands in them."""
        known = [f" {' '.join(_texts(one))} " for one in self.sentences]
        runs = [f" {' '.join(_texts(one))} " for one in _SENTENCE.split(text) if one.strip()]
        is_copied = bool(runs) and all(any(run in words for words in known) for run in runs)
        said, by = _line(self.sentences), BY_USER if self.is_by_user else ""
        is_bare = is_copied and not by and not said.startswith(BY_USER)
        return said if is_bare else f"{by}“{said}”{'' if is_copied else f'{NOT_VERIFIED}{text}'}"

    def run(self, text: str) -> str:
        """Return a text as it stands in one of the sentences, between white space, quotation marks and punctuation; "" if it does not."""
        words = r"\s+".join(map(re.escape, text.split()))
        marks = "\"'“”‘’()[\\]<>`*"
        wanted = re.compile(rf"(?<![^\s{marks}]){words}(?=[{marks}.,:;!?]{{0,9}}(?:\s|$))", re.IGNORECASE)
        found = next(filter(None, map(wanted.search, self.sentences)), None) if words else None
        return _line([found[0]]) if found else ""


def evidence_in(source: str, parts: Iterable[str]) -> tuple[Evidence, list[str]]:
    """Return what parts of a source say there, and those that are not in it.

    Case, white space, markup, articles and punctuation do not count, nor does a slip in six words; “…” may leave something out.
    """
    words = _words(_FRAME.sub(lambda frame: " " * len(frame[0]), source))
    told = [word.text for word in words]
    missing, spans = list[str](), list[tuple[int, int]]()
    for part in parts:
        pieces = map(_texts, re.split(r"\[?(?:…|\.{3})\]?", _FRAME.sub("", part)))
        places = [_places(told, piece) for piece in pieces if piece]
        if not places or [] in places:
            missing.append(part)
        spans += [(words[found[0][0]].start, words[found[0][1] - 1].end) for found in places if found]
    of_records = _FRAME if _FRAME.search(source) else _PARAGRAPH
    records = _parts((found.end() for found in of_records.finditer(source)), source, spans)
    joined = _LIST.sub(
        lambda found: "-" * len(found[0]) if _PROHIBITS.search(_spelled(found["head"])) else found[0], source
    )
    sentences = tuple(one for one in _parts(_ends(joined), source, spans) if not _LABEL.fullmatch(one))
    labels = [found.start() for found in _FIELD.finditer(source)]
    ends = (place for first, last in spans for place in (first, last - 1))
    fields = (source[labels[at - 1] :] if (at := bisect_right(labels, place)) else "" for place in ends)
    evidence = Evidence(
        sentences=sentences,
        around=tuple(_texts("\n".join(records))),
        is_of_user=any(map(_OF_USER.search, records)),
        is_by_user=bool(spans) and all(map(_OF_USER.match, fields)),
    )
    return evidence, missing


def copied(source: str, text: str) -> str:
    """Return the sentences of a source that a text stands in, or "" if it is not there or they are too long."""
    evidence, missing = evidence_in(source, [text])
    said = "" if missing else _line(evidence.sentences)
    return said if len(said) <= MAX_CONTENT_CHARS else ""


def _line(sentences: Iterable[str]) -> str:
    return " ".join(" ".join(sentences).split()).strip("… ").translate(_PLAIN_QUOTES)


def _denies(text: str) -> bool:
    return _DENIES.search(_spelled(text)) is not None


def _spelled(text: str) -> str:
    return expanded(text.replace("’", "'"))


def _unsaid(text: str, evidence: Evidence, metadata: str) -> Iterator[str]:
    """Yield the numbers and identifiers of a statement that the evidence does not have, and whether it has too little in common with it."""
    quoted = {*_texts(" ".join(evidence.sentences)), *_texts(metadata)}
    known = {stem(word) for word in (*quoted, *evidence.around)}
    initial, outside_paths = True, set[str]()
    for token in filter(None, _TOKENS.split(text)):
        item = token.strip(_EDGES)
        words = _texts(item)
        is_exact = _IDENTIFIER.search(item) or _IDENTIFIER.search(" ".join(words))
        is_name = not (initial or evidence.is_of_user) and any(char.isupper() for char in item)
        initial = token[-1] in ".:;!?"
        is_path = ("/" in item or "\\" in item) and quoted.issuperset(words)
        outside_paths.update(() if is_path else words)
        if (is_exact and not quoted.issuperset(words)) or (is_name and not known.issuperset(map(stem, words))):
            yield f"“{item}” is not in the quoted evidence: quote the sentence that has it"
    words = _texts(text)
    if not evidence.is_of_user and not {"user", "users"}.isdisjoint(outside_paths) and "user" not in evidence.around:
        yield "“user” is not in the quoted evidence: quote the turn of the user, or say who said it"
    if sum(stem(word) in known for word in words) < max(1, _LEAST_COMMON * len(words)):
        yield "has hardly a word in common with the quoted evidence: say it in its words"


def _words(text: str) -> list[_Word]:
    """Return the words of a text but its articles: folded, without apostrophes, numbers in digits."""
    found = (_Word(_folded(one[0]), one.start(), one.end()) for one in _WORD.finditer(text))
    return [word for word in found if word.text not in _ARTICLES]


def _folded(word: str) -> str:
    word = word.casefold().replace("'", "").replace("’", "")
    return _NUMBERS.get(word) or (word.replace(",", "") if _THOUSANDS.fullmatch(word) else word)


def _texts(text: str) -> list[str]:
    return [word.text for word in _words(text)]


def _places(told: Sequence[str], wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Return where a run of words stands: as it is, else with one slip in six words; at most one place."""
    whole, run, length = f" {' '.join(told)} ", f" {' '.join(wanted)} ", len(wanted)
    if wanted and (at := whole.find(run)) >= 0:
        first = whole.count(" ", 0, at)
        return [(first, first + length)]
    for first in range(len(told) - length + 1 if length > 2 else 0):
        if told[first] == wanted[0] or told[first + length - 1] == wanted[-1]:
            slips = [pair for pair in zip(told[first:], wanted, strict=False) if pair[0] != pair[1]]
            if len(slips) <= length // 6 + 1 and all(_is_slip(*pair) for pair in slips):
                return [(first, first + length)]
    return []


def _is_slip(written: str, word: str) -> bool:
    """Return whether a word is another one with a slip; no number is."""
    return written.isalpha() and word.isalpha() and SequenceMatcher(None, written[:40], word[:40]).ratio() > 0.8


def _ends(text: str) -> Iterator[int]:
    """Yield where sentences end; what is longer than a memory may be is a log, of which each line stands for itself."""
    for first, end in pairwise([0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]):
        if end - first > MAX_CONTENT_CHARS:
            yield from (place for place in range(first + 1, end) if text[place - 1] == "\n")
        yield end


def _parts(limits: Iterable[int], text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    """Return the parts of a text that passages stand in, each once, in their order; what leaves something out before it begins with “…”."""
    bounds = [0, *limits, len(text)]
    found = {
        at for first, last in spans for at in range(bisect_right(bounds, first) - 1, bisect_right(bounds, last - 1))
    }
    return [f"{'' if at - 1 in found else '… '}{text[bounds[at] : bounds[at + 1]]}" for at in sorted(found)]


def word_stems(text: str) -> frozenset[str]:
    """Return the words of a text by their stems."""
    return frozenset(map(stem, _texts(text)))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return what the forms of a word in lower case have in common."""
    stemmer: Any = EnglishStemmer()  # type: ignore[no-untyped-call]  # one for each: it holds the word as state
    return str(stemmer.stemWord(word))
