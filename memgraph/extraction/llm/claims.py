"""Claims: what a language model, an agent or a person states about a source, each with its evidence.

One form and one verification serve the extractor that asks a model and the answers to work orders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, Self

from pydantic import Field

from memgraph.extraction.statements import steps_in
from memgraph.extraction.verification import SAYS_NOTHING, Evidence, evidence_in, unsupported, word_stems
from memgraph.model.base import MAX_CONTENT_CHARS, Model, Prose, Text, Unit
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory, EpisodicMemory, MemoryType, Outcome, ProceduralMemory, SemanticMemory
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re
from memgraph.text.calendar import in_words
from memgraph.text.cutting import cut

_TIME = re.compile(r"T(\d\d:\d\d)")
_MIDNIGHT = "00:00"
_ROLES = frozenset(
    "user agent assistant reviewer developer maintainer author team customer operator admin tester bot ci".split()
)
_INTRODUCED = re.compile(
    r"(?:(?<!\w)(?:by|agent|user|author|reviewer|assistant|agent_name|asks?|asked|tells?|told)\W{1,4}|@)$",
    re.IGNORECASE,
)
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

    def problems(self, source: str, *, metadata: str = "") -> list[str]:
        """Return what the source does not support, in the order of the fields; empty if the claim holds.

        Parameters
        ----------
        source : str
            The whole text that was shown. The evidence must be part of it.
        metadata : str
            What else is known about the source; days and names of agents may be from there.
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
            yield (
                "event_date",
                [f"event_date: the source does not state “{cut(self.event_date, _QUOTED_CHARS)}” as a day"],
            )
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
        """Return the claim as a memory.

        Parameters
        ----------
        fields : Any
            The memory's further fields: source, scope, tags; `occurred_at`, when the source was recorded, which counts if the claim
            states no earlier day; `agents_involved` besides those that it names.
        """
        recorded_at = fields["occurred_at"]
        day = to_iso(self.event_date) if self.event_date else recorded_at
        happened = day if day[:10] < recorded_at[:10] else recorded_at  # the day of a plan may be in the future
        agents = [name.strip()[:400] for name in self.agents if name.strip()]
        given = {
            "content": self.text,
            "outcome": self.outcome,
            "confidence": self.confidence,
            **fields,
            "occurred_at": happened,
            "agents_involved": [*fields.get("agents_involved", ()), *agents],
        }
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
    """Return the JSON schema of a claim: flat, without references and lengths, which servers of small models fail on.

    Parameters
    ----------
    required : sequence of str, optional
        None: all properties, which makes a model consider each of them.
    more : Any
        Further properties, such as the number of an event.
    """
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    properties = {
        "type": {"type": "string", "enum": ["episodic", "semantic", "procedural"]},
        "content": text,
        "outcome": {"type": "string", "enum": ["positive", "negative", "neutral", "unknown"]},
        "tags": texts,
        "confidence": {"type": "number"},
        "evidence": texts,
        "event_date": text,
        "location": text,
        "decision": text,
        "alternatives": texts,
        "trigger": text,
        "steps": texts,
        "agents": texts,
        **more,
    }
    names = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def is_named(name: str, source: str) -> bool:
    """Return whether a source names an agent or person.

    It does if the name stands there by itself, and is a role (“the user”), is capitalised or has a digit or sign there, or follows a
    word that introduces one (“by anna”): a verb of the source is nobody's name.
    """
    wanted = " ".join(name.replace("’", "'").split())
    if not wanted:
        return False
    pattern = r"\s+".join(map(re.escape, wanted.split(" ")))
    text = source.replace("’", "'")
    for found in re.finditer(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE):
        as_written = found[0]
        if any(not char.islower() and not char.isspace() for char in as_written):
            return True
        if canonical_name(as_written).removeprefix("the ") in _ROLES or _is_introduced(text, found.start()):
            return True
    return False


def _is_introduced(text: str, place: int) -> bool:
    return _INTRODUCED.search(text[max(place - 20, 0) : place]) is not None


def is_dated(date: str, source: str) -> bool:
    """Return whether a source states an ISO day: 2026-01-05, 5 January 2026, January 5, 2026, Jan 5 2026.

    Of a time other than midnight, it must also state the hour and minute.
    """
    try:
        day = to_iso(date)[:10]
    except ValueError:
        return False
    time = _TIME.search(date.upper().replace(" ", "T"))
    if time is not None and time[1] != _MIDNIGHT and re.search(rf"(?<!\d){time[1]}(?!\d)", source) is None:
        return False
    number, month, year = in_words(day).split()
    text = canonical_name(source).replace(",", "")
    months = (month, month[:3])
    forms = [f"{first} {second} {year}" for name in months for first, second in ((number, name), (name, number))]
    return any(re.search(rf"(?<!\d){form.casefold()}(?!\d)", text) for form in (day, *forms))
