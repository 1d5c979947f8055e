"""The audit: what agents were refused, and which sensitive memories they got with a justification."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from memgraph.errors import ClosedError, PermissionDeniedError, ReadOnlyError, StorageError
from memgraph.index.columns import TIERS
from memgraph.logs import logger_of
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import MAX_ITEMS, Limit, Name, Text, checked
from memgraph.model.events.records import AccessAudited
from memgraph.model.memory import PrivacyTier, StoredMemory
from memgraph.privacy import Access, AgentPermissions, Operation, access_of
from memgraph.store.commit.writer import Requests
from memgraph.store.query import Reader, StorePart

logger = logger_of(__name__)


@dataclass(eq=False)
class Auditing(StorePart):
    """Decides what agents may ask for, and records what was refused or justified."""

    _agents: Mapping[str, AgentPermissions]

    @property
    def requests(self) -> Requests:
        """What finds the commits of a client's request."""
        return Requests(self._journal)

    def access_of(self, agent: str = UNNAMED, justification: str | None = None) -> Access:
        """Return the access of an agent with its permissions from the settings; a justification that justifies nothing is refused and recorded."""
        agent = checked(Name, agent, "agent")
        access = access_of(self._agents, agent, checked(Text | None, justification, "justification"))
        with self._refusals(access, "read"):
            access.check_justification()
        return access

    def check_asked(
        self,
        access: Access,
        operation: Operation,
        *,
        tiers: Sequence[PrivacyTier] | None = None,
        domain: str | None = None,
    ) -> None:
        """Reject a request for tiers or a domain of which the agent may have nothing, and record the refusal."""
        for tier in tiers or ():
            with self._refusals(access, operation, tier=tier):
                access.check_asked(operation, tier=tier)
        if domain is not None:
            with self._refusals(access, operation, domain=domain):
                access.check_asked(operation, domain=domain)

    def record_disclosure(self, access: Access, operation: Operation, memories: Sequence[StoredMemory]) -> None:
        """Record which sensitive memories an agent got with its justification."""
        sensitive = [memory.id for memory in memories if memory.privacy_tier == "sensitive"]
        if sensitive and not access.is_owner:
            self._append(access, operation, tier="sensitive", is_refused=False, disclosed_ids=sensitive)

    def watch(self, access: Access, reader: Reader) -> tuple[Callable[[], None], Callable[..., None]]:
        """Record which sensitive memories an agent's view gives, each once; return what to call after a Cypher query, and to check tiers and domains."""
        recorded: set[str] = set()

        def record(memory_ids: Iterable[str]) -> None:
            new = [one for one in memory_ids if one not in recorded]
            recorded.update(new)
            for start in range(0, len(new), MAX_ITEMS):
                ids = new[start : start + MAX_ITEMS]
                self._append(access, "read", tier="sensitive", is_refused=False, disclosed_ids=ids)

        def on_query() -> None:
            with reader.frozen():
                index = reader.index
                slots = np.flatnonzero(index.column("is_live") & (index.column("tier") == TIERS.index("sensitive")))
                record([index.ids.names[slot] for slot in slots.tolist()])

        reader.on_read = lambda rows: record(row["id"] for row in rows if row.get("privacy_tier") == "sensitive")
        return on_query, partial(self.check_asked, access, "read")

    def audit(self, *, agent: str | None = None, limit: int = 100) -> list[AccessAudited]:
        """Return the latest records of the audit, the newest last. Reads the whole journal.

        Parameters
        ----------
        agent : str, optional
            Only those of this agent.
        """
        checked(Name | None, agent, "agent")
        found: deque[AccessAudited] = deque(maxlen=checked(Limit, limit, "limit"))
        for event in self._journal.events_of(AccessAudited.TYPE):
            payload = event.payload
            if isinstance(payload, AccessAudited) and agent in (None, payload.agent):
                found.append(payload)
        return list(found)

    @contextmanager
    def _refusals(
        self, access: Access, operation: Operation, *, tier: PrivacyTier | None = None, domain: str | None = None
    ) -> Iterator[None]:
        try:
            yield
        except PermissionDeniedError as error:
            self._append(access, operation, tier=tier, domain=domain, is_refused=True, reason=str(error))
            raise

    def _append(self, access: Access, operation: Operation, **fields: object) -> None:
        """Record; where the store cannot be written, log that, since the decision stands all the same."""
        payload = AccessAudited.parse(
            {
                "agent": access.agent or UNNAMED,
                "operation": operation,
                "justification": access.justification,
                "audited_at": self._now(),
                **fields,
            }
        )
        try:
            self._writer.commit("system", [payload], actor="agent")
        except (ClosedError, ReadOnlyError, StorageError) as error:
            logger.warning("the audit could not be recorded: %s", error.loggable)
