"""`MemGraph.distillation`: work orders for what rules cannot judge, answered by agents or people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memgraph.lifecycle.answers import answer_order, skip_order
from memgraph.lifecycle.orders import SessionWatch, known_order, sheet_of, work_orders
from memgraph.model.events.payload import Actor
from memgraph.model.memory import TrustClass
from memgraph.model.results.learning import AnswerResult, OrdersResult, OrderState, WorkOrder, WorkSheet
from memgraph.store import AgentMemoryStore


@dataclass(frozen=True)
class Distillation:
    """The work orders of a store. No other operation waits for an answer."""

    store: AgentMemoryStore
    sessions: SessionWatch
    """The long sessions that were read and have no work order yet."""

    def request(self) -> OrdersResult:
        """Create work orders for long sessions that were read since the last call and yielded few memories. Sleep creates all others."""
        return self.sessions.request_orders()

    def list(
        self, *, state: OrderState | None = "open", project: str | None = None, limit: int | None = None
    ) -> list[WorkOrder]:
        """Return work orders, the most valuable first.

        Parameters
        ----------
        state : {"open", "answered", "skipped"} or None
            None: any state.
        project : str, optional
            Only of this project.
        """
        return work_orders(self.store, state=state, project=project, limit=limit)

    def show(self, order_id: str) -> WorkSheet:
        """Return a work order with the instructions, the fenced excerpt and the JSON schema of an answer.

        Raises
        ------
        NotFoundError, InvalidInputError
            No order, or more than one, has an id with this prefix.
        """
        return sheet_of(known_order(self.store, order_id))

    def answer(
        self, order_id: str, answer: Mapping[str, Any], *, answered_by: str = "agent", trust_class: TrustClass = "agent"
    ) -> AnswerResult:
        """Store the statements of an answer as memories, and close the order unless some are refused.

        Idempotent: once the order is closed, an answer returns the result of those before. While statements were refused, it stays
        open for corrections (`AnswerResult.attempts_left`); statements that it has already are left out.

        Parameters
        ----------
        answer : mapping
            Must match the schema of `show`. A statement that the excerpt does not support is refused (`AnswerResult.problems`).
        answered_by : str
            Name of the agent or person.
        trust_class : {"user", "agent", "tool", "imported", "web"}
            Trust in whoever answered.

        Raises
        ------
        UnsupportedClaimError
            None of the statements can be accepted, and none was before. Nothing is stored.
        NotFoundError, InvalidInputError
            The order does not exist or was skipped, or the answer is malformed. Nothing is stored.
        """
        return answer_order(self.store, order_id, answer, answered_by=answered_by, trust_class=trust_class)

    def skip(self, order_id: str, *, reason: str | None = None, actor: Actor = "user") -> WorkOrder:
        """Close a work order without an answer. It is not created again.

        Parameters
        ----------
        actor : {"user", "agent", "system"}
            Who skips it.

        Raises
        ------
        NotFoundError, InvalidInputError
            The order does not exist, or was answered.
        """
        return skip_order(self.store, order_id, reason=reason, actor=actor)
