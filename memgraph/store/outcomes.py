"""Whether what is said of a retrieval can be true."""

from __future__ import annotations

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.model.events.payload import Payload
from memgraph.model.events.recalls import OutcomeRecorded
from memgraph.model.memory import OUTCOME_OF_WORD
from memgraph.store.query import Reader
from memgraph.store.usage_outcomes import measured


def check_outcome(payload: OutcomeRecorded, reader: Reader) -> None:
    """Refuse what would be lost silently.

    Call it, and those below, under the writer lock.

    Raises
    ------
    NotFoundError
        There was no such retrieval.
    InvalidInputError
        The outcome is unknown, a memory was not among the retrieval's results, or one is said to be both used and overridden.
    """
    if payload.outcome not in OUTCOME_OF_WORD:
        raise InvalidInputError(f"must be one of {', '.join(OUTCOME_OF_WORD)}", field="outcome", value=payload.outcome)
    if reader.record("Recall", payload.query_id) is None:
        raise NotFoundError("retrieval", payload.query_id)
    if both := sorted(set(payload.used) & set(payload.overridden)):
        raise InvalidInputError("is also listed as used", field="overridden", value=both[0])
    for field in ("used", "overridden"):
        for memory_id in getattr(payload, field):
            if reader.record("RECALLED", (payload.query_id, memory_id)) is None:
                raise InvalidInputError("was not a result of that retrieval", field=field, value=memory_id)


def is_recorded(payload: OutcomeRecorded, reader: Reader) -> bool:
    """Tell whether all of it was said before."""
    recall = reader.record("Recall", payload.query_id) or {}
    said = [(memory_id, True) for memory_id in payload.used] + [(memory_id, False) for memory_id in payload.overridden]
    return recall.get("outcome") == payload.outcome and all(
        _said_of(payload.query_id, memory_id, reader) is used for memory_id, used in said
    )


def events_of(payload: OutcomeRecorded, reader: Reader) -> list[Payload]:
    """Return the outcome and what it says of the procedures that it names."""
    return [payload, *measured(payload, reader)]


def newly_used(payload: OutcomeRecorded, reader: Reader) -> list[str]:
    """Return the memories, each once, of which it was not the last word that they were used."""
    return [one for one in dict.fromkeys(payload.used) if _said_of(payload.query_id, one, reader) is not True]


def _said_of(query_id: str, memory_id: str, reader: Reader) -> bool | None:
    return (reader.record("RECALLED", (query_id, memory_id)) or {}).get("used")
