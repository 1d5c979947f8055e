"""Whether what is said of a retrieval can be true."""

from __future__ import annotations

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.model.events import OutcomeRecorded
from memgraph.model.memory import OUTCOME_OF_WORD
from memgraph.store.reading import Reader


def check_outcome(payload: OutcomeRecorded, reader: Reader) -> None:
    """Refuse what would be lost silently.

    Raises
    ------
    NotFoundError
        There was no such retrieval.
    InvalidInputError
        The outcome is unknown, or a memory was not among the retrieval's results.
    """
    if payload.outcome not in OUTCOME_OF_WORD:
        raise InvalidInputError(f"must be one of {', '.join(OUTCOME_OF_WORD)}", field="outcome", value=payload.outcome)
    if reader.record("Recall", payload.query_id) is None:
        raise NotFoundError("retrieval", payload.query_id)
    for field in ("used", "overridden"):
        for memory_id in getattr(payload, field):
            if reader.record("RECALLED", (payload.query_id, memory_id)) is None:
                raise InvalidInputError("was not among the results of that retrieval", field=field, value=memory_id)
