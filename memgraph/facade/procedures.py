"""`MemGraph.procedures`: learns procedures, and approves or rejects proposed ones."""

from __future__ import annotations

from dataclasses import dataclass

from memgraph.lifecycle.procedures import (
    approve_proposal,
    learn_procedures,
    list_proposals,
    reject_proposal,
    reopen_proposal,
)
from memgraph.model.results.learning import ProcedureResult, Proposal, ProposalState
from memgraph.store import AgentMemoryStore


@dataclass(frozen=True)
class Procedures:
    """The learned procedures of a store."""

    store: AgentMemoryStore

    def learn(self) -> ProcedureResult:
        """Propose procedures for problems that were solved repeatedly, and update existing ones; see `proposals`."""
        return learn_procedures(self.store)

    def proposals(self, *, state: ProposalState | None = "proposed", project: str | None = None) -> list[Proposal]:
        """Return learned procedures, those with the most evidence first.

        Parameters
        ----------
        state : {"proposed", "in force", "rejected"} or None
            None: any state.
        project : str, optional
            Of this project alone.
        """
        return list_proposals(self.store, state=state, project_id=project)

    def approve(self, proposal_id: str) -> Proposal:
        """Approve a learned procedure, so that it is recalled from now on.

        Raises
        ------
        NotFoundError, InvalidInputError
            No memory has this id, or it is not a learned procedure. Nothing is changed.
        """
        return approve_proposal(self.store, proposal_id)

    def reject(self, proposal_id: str) -> Proposal:
        """Reject a learned procedure. It is proposed again only with evidence from three more builds.

        Raises
        ------
        NotFoundError, InvalidInputError
            As for `approve`.
        """
        return reject_proposal(self.store, proposal_id)

    def reopen(self, proposal_id: str) -> Proposal:
        """Undo an approval or a rejection.

        Raises
        ------
        NotFoundError, InvalidInputError
            As for `approve`.
        """
        return reopen_proposal(self.store, proposal_id)
