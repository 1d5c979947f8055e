"""What somebody may see: the one rule of recalls, searches, lists, items, agents' views and doors.

A memory is visible to whoever asks if their permissions admit it (`permitted`), if it is not withheld (`withheld`), and, where a scope is asked
about, if it is in the scope (`admitted`).
"""

from __future__ import annotations

from memgraph.privacy import Access, Operation
from memgraph.store.access.hidden_sources import withheld
from memgraph.store.access.permitted import Permits, everything, permitted
from memgraph.store.access.scope import Scope, admitted
from memgraph.store.query import Mask, Reader


def visible(reader: Reader, access: Access, *operations: Operation, scope: Scope | None = None) -> Mask:
    """Return which slots somebody may see. Call it, and use the result, in one frozen block.

    Parameters
    ----------
    access : Access
        Who asks. What is withheld is withheld from the owner, too: whoever administers the store reads without this rule.
    operations : {"read", "search", "write"}
        What they do with the memories: each must be permitted.
    scope : Scope, optional
        Which memories are asked about. Default: all, in whatever state.
    """
    mask = everything(reader) if scope is None else admitted(reader.index, scope, reader.now_days())
    for operation in operations:
        if (may := permitted(reader, access, operation)) is not None:
            mask &= may
    if (hidden := withheld(reader)) is not None:
        mask &= ~hidden
    return mask


def readable(access: Access) -> Permits:
    """Return the function that finds what somebody may read and find: what a write may disclose to them, or change. The owner: all."""
    return everything if access.is_owner else lambda reader: visible(reader, access, "read", "search")
