"""Which memories an agent may have.

An agent may have a memory if its permissions admit the memory's tier and domain, and those of every memory that it is derived from, directly
or through others, deleted ones included: what is derived repeats what its sources say. In a view of the past the stricter of a memory's former
and current state counts. Of a deleted memory the last state counts. If a memory in force is not permitted, neither is the one that
it replaces: that one is outdated, and nearly says what the agent may not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.index.supersession import superseded
from memgraph.privacy import TIER_ORDER, Access, Operation
from memgraph.store.query import Mask, Reader

Permits = Callable[[Reader], Mask]
"""Returns which slots somebody may have; called in a frozen block."""
_DOMAIN = scope_name("domain", "")


def permitted(reader: Reader, access: Access, operation: Operation) -> Mask | None:
    """Return which slots an agent may have; None, at almost no cost, if it may have all. Call it in a frozen block.

    Otherwise it costs one pass over the columns, and one over the links for each step of derivation from a memory that is withheld.
    """
    if access.is_owner:
        return None
    index, today, lineage = reader.index, reader.today(), reader.lineage()
    if today is None and not lineage.deleted and access.is_unrestricted and not index.column("tier").any():
        return None
    mask, live = _by_state(index, access, operation), index.column("is_live")
    if today is not None:
        for slot in np.flatnonzero(mask & live).tolist():
            current = today.get(index.ids.names[slot])
            mask[slot] = current is not None and access.may(operation, current.tier, current.domain)
    if lineage.deleted:
        hidden = [index.ids.names[slot] for slot in np.flatnonzero(live & ~mask).tolist()]
        hidden += [one for one, last in lineage.deleted.items() if not access.may(operation, last.tier, last.domain)]
        mask &= ~slots_of(index, lineage.derived_from(hidden))
    if mask.all():
        return None
    mask &= ~_derived(index, ~mask & live)
    return mask & ~superseded(index, reader.listed() & ~mask)


def everything(reader: Reader) -> Mask:
    """Return all slots: what the owner may have."""
    return np.ones(len(reader.index), dtype=np.bool_)


def _by_state(index: Index, access: Access, operation: Operation) -> Mask:
    """Return which slots the agent may have by their own tier and domain."""
    tier, domain = index.column("tier"), index.column("domain")
    mask = np.zeros(len(index), dtype=np.bool_)
    for code in np.unique(domain).tolist():
        name = index.scopes.names[code].removeprefix(_DOMAIN) if code >= 0 else None
        allowed = np.array([access.may(operation, kind, name) for kind in TIER_ORDER])
        of_domain = domain == code
        mask[of_domain] = allowed[tier[of_domain]]
    return mask


def slots_of(index: Index, memory_ids: Iterable[str]) -> Mask:
    """Return which slots are those of some memories, as far as these exist."""
    mask = np.zeros(len(index), dtype=np.bool_)
    slots = np.array([index.slot(one) for one in memory_ids], dtype=np.int64)
    mask[slots[slots >= 0]] = True
    return mask


def _derived(index: Index, hidden: NDArray[np.bool_]) -> Mask:
    """Return these slots and all that are derived from them."""
    found, new = hidden.copy(), hidden
    while new.any():
        made, _ = index.links.pairs(RELATION_CODE["DERIVED_FROM"], to=new)
        new = np.zeros(len(index), dtype=np.bool_)
        new[made] = True
        new &= ~found
        found |= new
    return found
