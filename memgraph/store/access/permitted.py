"""Which memories an agent may have.

An agent may have a memory if its permissions admit the memory's tier and domain, and those of every memory that it is derived from, directly
or through others: what is derived repeats what its sources say. In a view of the past the stricter of a memory's former and current state
counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index, scope_name
from memgraph.privacy.access import Access, Operation
from memgraph.privacy.tiers import TIER_ORDER
from memgraph.store.query import Mask, Reader

_DOMAIN = scope_name("domain", "")


def permitted(reader: Reader, access: Access, operation: Operation) -> Mask | None:
    """Return which slots an agent may have; None, at almost no cost, if it may have all. Call it in a frozen block.

    Otherwise it costs one pass over the columns, and one over the links for each step of derivation from a memory that is withheld.
    """
    if access.is_owner:
        return None
    index, today = reader.index, reader.today()
    if today is None and access.is_unrestricted and not index.column("tier").any():
        return None
    mask = _by_state(index, access, operation)
    if today is not None:
        for slot in np.flatnonzero(mask & index.column("is_live")).tolist():
            current = today.get(index.ids.names[slot])
            mask[slot] = current is None or access.may(operation, current.tier, current.domain)
    if mask.all():
        return None
    return mask & ~_derived(index, ~mask & index.column("is_live"))


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
