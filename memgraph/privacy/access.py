"""Access: who asks, and which memories they may have.

- A *public* memory is for everybody, a *sensitive* one for an agent that gives its name and a justification of more than 20 characters,
  a *private* one only for an agent whose own domain is the memory's.
- An agent's domain, and the domains that it may read, search and write, are settings of the store (``[agents.NAME]`` in ``config.toml``):
  no agent can claim them for itself.
- The owner, who holds the store's directory and key, may read everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from pydantic import Field

from memgraph.errors import PermissionDeniedError
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Model, Name
from memgraph.model.memory import PrivacyTier
from memgraph.privacy.tiers import finding_of, known_domain, tier_of_domain

Operation = Literal["read", "search", "write"]
EVERY_DOMAIN = "*"
MIN_JUSTIFICATION_CHARS = 20
"""A justification must be longer than this (seed 2)."""
_finding_of = lru_cache(maxsize=10_000)(finding_of)
"""Texts of tasks are read again with each turn, and the rules take a millisecond for a long one."""


class AgentPermissions(Model):
    """What an agent may do, by domain. A memory without a domain belongs to ``general``; ``*`` stands for every domain.

    The agent may have the private memories of its own domain. It may read memories of the domains of `read` by id, in lists and in queries,
    find those of `search` in recalls and searches, and store those of `write`.
    """

    domain: Name | None = None
    read: list[Name] = Field(default_factory=lambda: [EVERY_DOMAIN])
    search: list[Name] = Field(default_factory=lambda: [EVERY_DOMAIN])
    write: list[Name] = Field(default_factory=lambda: [EVERY_DOMAIN])


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks (no agent: the owner of the store), and why it needs what is sensitive."""

    agent: str | None = UNNAMED
    justification: str | None = None
    permissions: AgentPermissions = field(default_factory=AgentPermissions)

    @property
    def is_owner(self) -> bool:
        """Whether everything may be read."""
        return self.agent is None

    @property
    def is_justified(self) -> bool:
        """Whether sensitive memories may be read."""
        given = (self.justification or "").strip()
        return self.agent not in (None, UNNAMED) and len(given) > MIN_JUSTIFICATION_CHARS

    @property
    def is_unrestricted(self) -> bool:
        """Whether every public memory may be read and searched."""
        return EVERY_DOMAIN in self.permissions.read and EVERY_DOMAIN in self.permissions.search

    def may(self, operation: Operation, tier: PrivacyTier, domain: str | None) -> bool:
        """Return whether a memory of this tier and domain may be read, found or stored. A tier does not restrict storing."""
        if self.is_owner:
            return True
        listed = {one if one == EVERY_DOMAIN else known_domain(one) for one in getattr(self.permissions, operation)}
        if EVERY_DOMAIN not in listed and known_domain(domain) not in listed:
            return False
        if operation == "write" or tier == "public":
            return True
        if tier == "sensitive":
            return self.is_justified
        return domain is not None and self.permissions.domain is not None and self._own == known_domain(domain)

    def may_read_text(self, *texts: str | None) -> bool:
        """Return whether texts that are no memories may be shown: what plainly concerns private matters only where a memory of it may."""
        if self.is_owner:
            return True
        finding = _finding_of("\n".join(filter(None, texts)))
        return finding is None or self.may("read", finding.tier, finding.domain)

    def check_justification(self) -> None:
        """Reject a justification that justifies nothing."""
        if self.justification is None or self.is_owner or self.is_justified:
            return
        if self.agent == UNNAMED:
            raise PermissionDeniedError("a justification needs the name of the agent that gives it", agent=self.agent)
        problem = f"the justification must have more than {MIN_JUSTIFICATION_CHARS} characters: say what the memories are needed for"
        raise PermissionDeniedError(problem, agent=self.agent)

    def check_asked(self, operation: Operation, *, tier: PrivacyTier | None = None, domain: str | None = None) -> None:
        """Reject a request for a tier or domain of which nothing may be had, whether or not the store holds any."""
        if self.is_owner:
            return
        who = "an unnamed agent" if self.agent == UNNAMED else f"agent {self.agent!r}"
        if tier == "sensitive" and not self.is_justified:
            problem = f"{who} may not {operation} sensitive memories without its name and a justification of more than {MIN_JUSTIFICATION_CHARS} characters"
            raise PermissionDeniedError(problem, agent=self.agent)
        if tier == "private" and self.permissions.domain is None:
            problem = f"{who} may not {operation} private memories: config.toml gives it no domain of its own"
            raise PermissionDeniedError(problem, agent=self.agent)
        if domain is not None and not self.may(operation, tier_of_domain(domain), domain):
            problem = f"{who} may not {operation} memories of the domain {domain!r}; permissions are in config.toml, [agents.NAME]"
            raise PermissionDeniedError(problem, agent=self.agent)

    @property
    def _own(self) -> str:
        return known_domain(self.permissions.domain)


OWNER = Access(agent=None)


def access_of(agents: Mapping[str, AgentPermissions], agent: str, justification: str | None = None) -> Access:
    """Return the access of an agent, with its permissions from the settings, or with those of an agent that has none there."""
    return Access(agent, justification, agents.get(agent, AgentPermissions()))
