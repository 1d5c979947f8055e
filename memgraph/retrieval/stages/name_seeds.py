"""Names in a query: a speaker, an entity that memories are about, a tag, a procedure's trigger, a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from memgraph.index.index import scope_name
from memgraph.model.ids import canonical_name
from memgraph.retrieval.stages.state import Counts, Search
from memgraph.retrieval.stages.time_phrases import spans_in
from memgraph.retrieval.stages.walk import about, holders

_DAYS_UNTIL_TOLD = 3.0
_MOST_TAG_WORDS = 3
_PUNCTUATION = ".,;:!?\"'()`"


def speakers(search: Search) -> Counts:
    """Boost memories of the speaker named in the query; several named speakers share the boost."""
    index, terms = search.index, search.query_terms
    runs = {" ".join(terms[at : at + length]) for length in (1, 2, 3) for at in range(len(terms) - length + 1)}
    codes = [index.scopes.find(scope_name("speaker", run)) for run in sorted(runs)]
    named = [
        slots
        for code in codes
        if code >= 0 and len(slots := np.flatnonzero(search.mask & (index.column("speaker") == code)))
    ]
    for slots in named:
        search.add("speaker", slots, np.full(len(slots), search.config.speaker_weight / len(named)))
    return {"named": len(named)}


def things(search: Search) -> Counts:
    """Boost memories about an entity named in the query, less if several memories are about it.

    The boost is also lower if the name is a single word that many texts contain.
    """
    gained: dict[int, float] = {}
    named = list(search.index.naming.named_in(search.query_terms, lambda entities: about(search, entities)))
    for name, slots in named:
        for slot in slots:
            gain = search.config.name_weight / max(len(slots), holders(search, name)) ** 0.5
            gained[slot] = max(gained.get(slot, 0.0), gain)
    return {"named": len(named), "gained": _add(search, "named", gained)}


def tags(search: Search) -> Counts:
    """Boost memories with a tag whose words are adjacent in the query, less if many memories have it."""
    index, mask = search.index, search.mask
    gained: dict[int, float] = {}
    for tag in dict.fromkeys(_tags_in(search.text)):
        code = index.tag_names.find(tag)
        if code >= 0:
            slots = index.tags.get(code)[0]
            slots = slots[mask[slots]]
            for slot in slots.tolist() if len(slots) <= search.config.candidates else ():
                gained[slot] = max(gained.get(slot, 0.0), search.config.tag_weight / len(slots) ** 0.5)
    return {"gained": _add(search, "tag", gained)}


def _tags_in(text: str) -> Iterator[str]:
    """Yield runs of up to three words in the spellings used for tags."""
    words = [word.strip(_PUNCTUATION) for word in canonical_name(text).replace("-", " ").replace("_", " ").split()]
    yield from words
    for length in range(2, _MOST_TAG_WORDS + 1):
        for at in range(len(words) - length + 1):
            for joiner in (" ", "-", "_"):
                yield joiner.join(words[at : at + length])


def triggers(search: Search) -> Counts:
    """Boost procedures with at least half of their trigger words in the query: share × confidence (seed 1)."""
    index = search.index
    held: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for term in sorted(set(search.query_terms)):
        code = index.vocabulary.find(term)
        slots, counts = index.triggers.get(code) if code >= 0 else (np.empty(0, np.int32), np.empty(0, np.int32))
        for slot, size in zip(slots.tolist(), counts.tolist(), strict=True):
            if search.mask[slot]:
                held[slot], sizes[slot] = held.get(slot, 0) + 1, size
    confidence = index.column("confidence")
    gained = {
        slot: search.config.trigger_weight * count / sizes[slot] * float(confidence[slot])
        for slot, count in held.items()
        if 2 * count >= sizes[slot]
    }
    return {"gained": _add(search, "trigger", gained)}


def times(search: Search) -> Counts:
    """Boost memories of events in a time named by the query, or reported up to three days later."""
    spans = spans_in(search.text, search.now_days)
    if not spans:
        return {"spans": 0}
    occurred = search.index.column("occurred_days")
    within = np.zeros(len(occurred), dtype=np.bool_)
    for span in spans:
        within |= (occurred >= span.start_days) & (occurred < span.end_days + _DAYS_UNTIL_TOLD)
    slots = np.flatnonzero(within & search.mask)
    search.add("time", slots, np.full(len(slots), search.config.time_weight))
    return {"spans": len(spans), "gained": len(slots)}


def _add(search: Search, part: str, gained: dict[int, float]) -> int:
    slots = np.fromiter(gained, dtype=np.int64, count=len(gained))
    search.add(part, slots, np.fromiter(gained.values(), dtype=np.float64, count=len(gained)))
    return len(gained)
