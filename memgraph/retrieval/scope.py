"""Scope: the memories that a retrieval may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memgraph.index.columns import TIERS, TRUST
from memgraph.index.index import Index, scope_name
from memgraph.privacy.access import Access

Mask = NDArray[np.bool_]
_UNKNOWN = -2
"""Code of an unknown project: only shared knowledge is visible then."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a retrieval.

    Attributes
    ----------
    access : Access
        Who asks: admits what that agent may have (see `memgraph.store.access.permitted`).
    project_id : str or None
        Admits that project's memories and those without a project; None: every project.
    task_id : str or None
        Admits that task's own memories; None: no task's memories.
    """

    access: Access
    project_id: str | None = None
    task_id: str | None = None
    agents: Sequence[str] | None = None
    privacy_tiers: Sequence[str] | None = None
    trust_classes: Sequence[str] | None = None
    domain: str | None = None
    include_archived: bool = False


def admitted(index: Index, scope: Scope, now_days: float) -> Mask:
    """Return which slots may be scored. Superseded ones may, since they hand their score on."""
    mask: Mask = index.column("is_live") & ~index.column("is_suppressed") & (index.column("invalid_days") > now_days)
    if not scope.include_archived:
        mask &= ~index.column("is_archived")
    if scope.project_id is not None:
        mask &= _of(index, "project", scope_name("project", scope.project_id))
    mask &= _of(index, "task", scope_name("task", scope.task_id) if scope.task_id else "")
    if scope.domain is not None:
        general = index.scopes.find(scope_name("domain", "general"))
        mask &= _of(index, "domain", scope_name("domain", scope.domain)) | (index.column("domain") == general)
    if scope.privacy_tiers is not None:
        mask &= np.isin(index.column("tier"), [TIERS.index(tier) for tier in scope.privacy_tiers])
    if scope.trust_classes is not None:
        mask &= np.isin(index.column("trust"), [TRUST.index(trust) for trust in scope.trust_classes])
    if scope.agents is not None:
        involved = np.zeros(len(index), dtype=np.bool_)
        for agent in scope.agents:
            involved[index.agents.get(index.agent_names.find(agent))[0]] = True
        mask &= involved
    return mask


def projects_of(index: Index, among: Mask | None = None) -> list[str]:
    """Return the names of projects with at least one memory that is not deleted, of all or of some slots, in alphabetical order."""
    live = index.column("is_live") if among is None else index.column("is_live") & among
    codes = np.unique(index.column("project")[live]).tolist()
    prefix = scope_name("project", "")
    return sorted(index.scopes.names[code].removeprefix(prefix) for code in codes if code >= 0)


def _of(index: Index, column: str, name: str) -> Mask:
    """Return which slots belong to this scope, or to none."""
    code = index.scopes.find(name)
    values = index.column(column)
    found: Mask = (values == (code if code >= 0 else _UNKNOWN)) | (values == -1)
    return found
