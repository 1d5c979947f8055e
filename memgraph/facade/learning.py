"""What `MemGraph` learns from memories, and who decides about it: `maintenance`, `procedures`, `contradictions` and `distillation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memgraph import lifecycle
from memgraph.lifecycle import answers, errors, orders
from memgraph.lifecycle import procedures as learned
from memgraph.model.base import Callback, checked
from memgraph.model.events.payload import Actor
from memgraph.model.link import Link
from memgraph.model.memory import TrustClass
from memgraph.model.results import learning as results
from memgraph.model.results.maintenance import CollectionResult, ResetResult, ResetScope
from memgraph.ports import Judge, Progress
from memgraph.store import AgentMemoryStore


@dataclass(frozen=True)
class Maintenance:
    """The upkeep of a store."""

    store: AgentMemoryStore
    consolidation: lifecycle.ConsolidationPipeline
    judge: Callable[[], Judge | None] = lambda: None

    def sleep(
        self, *, phases: Sequence[str] = (), max_seconds: float | None = None, progress: Progress | None = None
    ) -> results.SleepReport:
        """Run the phases of maintenance that have work to do, in their order.

        They expire and replace facts, merge duplicates and copies, generalise, extract rules from feedback, analyse errors, learn
        procedures, find contradictions, collect, and create work orders.

        Parameters
        ----------
        phases : sequence of str, optional
            Run only these: temporal, copies, near-duplicates, compress, feedback, errors, procedures, contradictions, collect, work-orders.
        max_seconds : float, optional
            Start no further step after this time. The report lists what is left, and the next sleep continues there.
        progress : callable, optional
            Called with (done, total) after each phase.

        Raises
        ------
        InvalidInputError
            A phase is unknown, or the time is negative.
        """
        checked(Callback, progress, "progress")
        judge = self.judge()
        model = self.consolidation.language_model
        return lifecycle.sleep(
            self.store, phases=phases, max_seconds=max_seconds, model=model, judge=judge, progress=progress
        )

    def compress(self) -> results.CompressionResult:
        """Generalise what at least three builds have in common, then collect faded memories; see `ConsolidationPipeline`."""
        return self.consolidation.compress()

    def analyse_errors(self) -> results.ErrorAnalysis:
        """Classify errors as the agent's own, external or of configuration, and record how to prevent repeated ones."""
        return errors.analyse_errors(self.store)

    def collect(self, *, preview: bool = False, progress: Progress | None = None) -> CollectionResult:
        """Archive faded memories, apply the floors of landmarks, and summarise episodes that were not used for 30 days.

        Parameters
        ----------
        preview : bool
            Write nothing, and return a `CollectionPreview` with the memories that would be collected.
        progress : callable, optional
            Called with (done, total).
        """
        checked(Callback, progress, "progress")
        return lifecycle.preview_collection(self.store) if preview else lifecycle.collect(self.store, progress=progress)

    def reset(self, scope: ResetScope, *, preview: bool = False) -> ResetResult:
        """Remove what was learned and what is kept for sessions ("memory"), or everything ("all"), from every view. Idempotent.

        ``memory`` keeps pinned memories, facts that somebody asked to keep (`remember`, observations, pins), and tasks; ``all`` keeps
        none of them. The store's id and keys, its settings and the journal's history stay in both cases. Only the owner can do it.

        Parameters
        ----------
        scope : {"memory", "all"}
        preview : bool
            Write nothing; return what would be removed.
        """
        return self.store.reset(scope, preview=preview)


@dataclass(frozen=True)
class Procedures:
    """The learned procedures of a store.

    Decisions raise `NotFoundError` if no memory has the id, and `InvalidInputError` if it is not a learned procedure. Nothing is changed then.
    """

    store: AgentMemoryStore

    def learn(self) -> results.ProcedureResult:
        """Propose procedures for problems that were solved repeatedly, and update existing ones; see `proposals`."""
        return learned.learn_procedures(self.store)

    def proposals(
        self, *, state: results.ProposalState | None = "proposed", project: str | None = None
    ) -> list[results.Proposal]:
        """Return learned procedures, those with the most evidence first.

        Parameters
        ----------
        state : {"proposed", "in force", "rejected"} or None
            None: any state.
        project : str, optional
            Of this project alone.
        """
        return learned.list_proposals(self.store, state=state, project_id=project)

    def approve(self, proposal_id: str) -> results.Proposal:
        """Approve a learned procedure, so that it is recalled from now on."""
        return learned.approve_proposal(self.store, proposal_id)

    def reject(self, proposal_id: str) -> results.Proposal:
        """Reject a learned procedure. It is proposed again only with evidence from three more builds."""
        return learned.reject_proposal(self.store, proposal_id)

    def reopen(self, proposal_id: str) -> results.Proposal:
        """Undo an approval or a rejection."""
        return learned.reopen_proposal(self.store, proposal_id)


@dataclass(frozen=True)
class Contradictions:
    """The contradictions between memories of a store; `judge` returns the `Judge`, if there is one."""

    store: AgentMemoryStore
    judge: Callable[[], Judge | None] = lambda: None

    def find(self, *, seconds: float | None = None, progress: Progress | None = None) -> results.ContradictionResult:
        """Compare the memories added since the last run with those in force.

        Memories from builds, observations and `remember` are already compared, by their words, when they are added.

        Parameters
        ----------
        seconds : float, optional
            Start no further comparison after this time; the next run continues there.
        progress : callable, optional
            Called with (done, total).
        """
        checked(Callback, progress, "progress")
        return lifecycle.find_contradictions(
            self.store, seconds=seconds, progress=progress, actor="user", judge=self.judge()
        )

    def resolve(self, one_id: str, other_id: str, *, keep: str, reason: str | None = None) -> Link:
        """Decide a contradiction: the memory to keep supersedes the other. `Curation.undo` undoes it.

        Raises
        ------
        InvalidInputError, NotFoundError
            The memories do not contradict each other, `keep` is the id of neither, or one does not exist. Nothing is changed.
        """
        return lifecycle.resolve_contradiction(self.store, one_id, other_id, keep=keep, reason=reason)

    def dismiss(self, one_id: str, other_id: str, *, reason: str | None = None) -> Link:
        """Record that two memories do not contradict each other. They stay related and are not proposed again.

        Raises
        ------
        InvalidInputError, NotFoundError
            The memories are not linked as a contradiction, or one does not exist. Nothing is changed.
        """
        return lifecycle.dismiss_contradiction(self.store, one_id, other_id, reason=reason)

    def list(self, *, project: str | None = None, decided: bool = False) -> list[results.Contradiction]:
        """Return the open contradictions, or the decided ones, the most certain first.

        Parameters
        ----------
        project : str, optional
            Only of this project.
        """
        found = lifecycle.decided_contradictions if decided else lifecycle.open_contradictions
        return found(self.store, project_id=project)


@dataclass(frozen=True)
class Distillation:
    """The work orders of a store. No other operation waits for an answer."""

    store: AgentMemoryStore
    sessions: orders.SessionWatch
    """The long sessions that were read and have no work order yet."""

    def request(self) -> results.OrdersResult:
        """Create work orders for long sessions that were read since the last call and yielded few memories. Sleep creates all others."""
        return self.sessions.request_orders()

    def list(
        self, *, state: results.OrderState | None = "open", project: str | None = None, limit: int | None = None
    ) -> list[results.WorkOrder]:
        """Return work orders, the most valuable first.

        Parameters
        ----------
        state : {"open", "answered", "skipped"} or None
            None: any state.
        project : str, optional
            Only of this project.
        """
        return orders.work_orders(self.store, state=state, project=project, limit=limit)

    def show(self, order_id: str) -> results.WorkSheet:
        """Return a work order with the instructions, the fenced excerpt and the JSON schema of an answer.

        Raises
        ------
        NotFoundError, InvalidInputError
            No order, or more than one, has an id with this prefix.
        """
        return orders.sheet_of(orders.known_order(self.store, order_id))

    def answer(
        self, order_id: str, answer: Mapping[str, Any], *, answered_by: str = "agent", trust_class: TrustClass = "agent"
    ) -> results.AnswerResult:
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
        return answers.answer_order(self.store, order_id, answer, answered_by=answered_by, trust_class=trust_class)

    def skip(self, order_id: str, *, reason: str | None = None, actor: Actor = "user") -> results.WorkOrder:
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
        return answers.skip_order(self.store, order_id, reason=reason, actor=actor)
