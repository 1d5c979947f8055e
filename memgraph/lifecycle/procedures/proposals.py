"""Decisions on proposed procedures: the user approves, rejects or reopens them (seed 1)."""

from __future__ import annotations

from typing import Any

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.lifecycle.evidence.evidence import revision
from memgraph.lifecycle.procedures.learning import LAPSED_TEXT, SOURCE
from memgraph.model.events.payload import WriteScope
from memgraph.model.memory import ProceduralMemory, StoredMemory
from memgraph.model.results.learning import PROPOSED, REJECTED, Proposal, ProposalState
from memgraph.store import AgentMemoryStore

STATES: tuple[ProposalState, ...] = ("proposed", "in force", "rejected")
_OF_REASON: dict[str, ProposalState] = {PROPOSED: "proposed", REJECTED: "rejected"}


def list_proposals(
    store: AgentMemoryStore, *, state: ProposalState | None = "proposed", project_id: str | None = None
) -> list[Proposal]:
    """Return learned procedures, those with the most evidence first.

    Parameters
    ----------
    state : {"proposed", "in force", "rejected"} or None
        None: any of these states.
    """
    if state is not None and state not in STATES:
        raise InvalidInputError(f"must be one of {', '.join(STATES)}", field="state", value=state)
    with store.reader.frozen():
        archived = store.list_memories(type="procedural", project_id=project_id, state="archived")
        listed = store.list_memories(type="procedural", project_id=project_id)
    found = [_proposal(memory) for memory in (*archived, *listed) if _state(memory) is not None]
    wanted = [one for one in found if state is None or one.state == state]
    return sorted(wanted, key=lambda one: (-one.builds, -(one.success_rate or 0.0), one.id))


def approve_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Bring a proposed or rejected procedure into force; `reopen_proposal` undoes it.

    Raises
    ------
    NotFoundError
        The memory does not exist.
    InvalidInputError
        It is not a learned procedure, or something else keeps it out of recall.
    """

    def changes(memory: StoredMemory, now: str) -> dict[str, Any]:
        relevance = store.config.forgetting_curve.confirmed(memory.relevance_score)  # it has faded while it waited
        fresh = {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": now}
        return {"archived_at": None, "archive_reason": None, "archive_summary": None, **fresh}

    return _moved(store, id, "in force", changes)


def reject_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Reject a procedure, proposed or in force. It is proposed again only if three more builds support it.

    `reopen_proposal` or `approve_proposal` undoes it; the errors are those of the latter.
    """
    return _moved(store, id, "rejected", lambda _memory, now: {"archived_at": now, "archive_reason": REJECTED})


def reopen_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Undo an approval or a rejection: the procedure is a proposal again. Errors are those of `approve_proposal`."""
    return _moved(store, id, "proposed", lambda _memory, now: {"archived_at": now, "archive_reason": PROPOSED})


def _moved(store: AgentMemoryStore, id: str, state: ProposalState, changes: Any) -> Proposal:
    """Change the state of a procedure by one event; do nothing if it is in that state."""
    with store.exclusive():
        before = store.get_memory(id)
        if before is None:
            raise NotFoundError("proposal", id)
        if _state(before) is None:
            problem = "does not name a learned procedure that is proposed, approved or rejected"
            raise InvalidInputError(f"{problem}; `memgraph proposals list --all` lists them", field="id", value=id)
        if _state(before) != state:
            now = store.now()
            after = before.model_copy(update={**changes(before, now), "updated_at": now})
            if (event := revision(before, after)) is not None:
                scope: WriteScope = "task" if before.task_id else "global"
                store.commit(scope, [event], task_id=before.task_id, actor="user")
        return _proposal(store.read_memories([before.id])[0])


def _state(memory: StoredMemory) -> ProposalState | None:
    """Return the state of a procedure; None if it was not learned, or was archived for another reason."""
    if (
        memory.source != SOURCE
        or memory.is_suppressed
        or memory.invalid_at is not None
        or memory.content == LAPSED_TEXT
    ):
        return None
    return "in force" if memory.archived_at is None else _OF_REASON.get(memory.archive_reason or "")


def _proposal(memory: StoredMemory) -> Proposal:
    assert isinstance(memory, ProceduralMemory)  # noqa: S101 (what was learned here is one)
    return Proposal(
        id=memory.id,
        state=_state(memory) or "proposed",
        trigger=memory.trigger_pattern or "",
        steps=memory.steps,
        success_rate=memory.success_rate,
        confidence=memory.confidence,
        builds=len(memory.evidence_build_ids) or len(memory.supporting_memory_ids),
        since=memory.archived_at or memory.updated_at or "",
        project_id=memory.project_id,
        common_errors=[f"{known.error}: {known.fix}" for known in memory.common_errors],
    )
