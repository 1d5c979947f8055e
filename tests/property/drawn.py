"""What is drawn for a store: ids from a small pool, so that they meet again, and values that have been trouble elsewhere."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from memgraph.model.link import EXPLICIT_RELATIONS
from tests.projections import INDEX, ROWS

DIMENSION = 8
POOL = [str(UUID(int=number << 64 | 0x8000 << 48 | 4 << 76)) for number in range(1, 7)]

ids = st.sampled_from(POOL)
either = st.integers(0, 1)
"""Which of the store objects acts, where there are two."""
texts = st.sampled_from(
    ["The build failed", "Retry the build", "数据库 ünï", "a\nb\tc", "'; DROP TABLE Memory //", "{x}"]
)
texts |= st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12).filter(
    str.strip
)
moments = st.sampled_from(
    ["2025-12-31T23:59:59.999Z", "2026-02-10T00:00:00.000Z", "2026-07-01", "2030-01-01T00:00:00+02:00"]
)
units = st.floats(0.0, 1.0)
vectors = st.lists(st.integers(-3, 3), min_size=DIMENSION, max_size=DIMENSION).filter(any)
names = st.sampled_from(["auth", "a, b", "'q\"", " spaced ", "Ünï"])
changeable = {
    "content": texts,
    "tags": st.lists(names, max_size=3),
    "outcome": st.sampled_from(["positive", "negative", "failure", "partial", "unknown"]),
    "confidence": units,
    "relevance_score": units,
    "floor": st.sampled_from([0.0, 0.1, 1.0]),
    "is_pinned": st.booleans(),
    "is_suppressed": st.booleans(),
    "archived_at": st.none() | moments,
    "archive_reason": st.none() | texts,
    "valid_at": st.none() | moments,
    "invalid_at": st.none() | moments,
    "title": st.none() | texts,
    "privacy_tier": st.sampled_from(["public", "private"]),
    "agents_involved": st.lists(st.sampled_from(["MARS", "VENUS"]), max_size=2),
    "entities": st.lists(
        st.fixed_dictionaries({"name": names, "kind": st.sampled_from(["file", "concept"]), "about": st.booleans()}),
        max_size=2,
    ),
    "failure_fingerprint": st.none() | st.just("f00"),
    "embedding": st.none() | vectors,
}
fixed = {
    "project_id": st.sampled_from([None, "A", "B"]),
    "build_id": st.sampled_from([None, "b1"]),
    "occurred_at": moments,
    "previous_id": ids,
}


@st.composite
def some_of(draw: st.DrawFn, fields: dict[str, Any], **always: Any) -> dict[str, Any]:
    """Draw values of a few of these fields."""
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=5, unique=True))
    return {name: draw(strategy) for name, strategy in {**{name: fields[name] for name in chosen}, **always}.items()}


new_memories = some_of(
    changeable | fixed,
    type=st.sampled_from(["episodic", "episodic", "semantic", "procedural"]),
    content=texts,
    session_id=st.sampled_from([None, "s", "s"]),
)
changes = some_of(changeable)
bad_fields = st.sampled_from(
    [
        {"content": " "},
        {"content": "x" * 801},
        {"content": "\ud800"},
        {"relevance_score": 1.5},
        {"confidence": "high"},
        {"embedding": [1.0] * (DIMENSION + 1)},
        {"embedding": [0.0] * DIMENSION},
        {"tags": ["fine", ""]},
        {"invalid_at": "soon"},
        {"colour": "red"},
    ]
)
ways = st.sampled_from(["suppress", "unsuppress", "archive", "unarchive", "invalidate", "revalidate"])
relations = st.sampled_from([*EXPLICIT_RELATIONS, "superseded_by", "related_to"])
projections = st.sampled_from([[ROWS], [INDEX], [ROWS, INDEX]])
