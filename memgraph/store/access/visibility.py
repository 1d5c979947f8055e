"""Visibility in pictures, exports and networks: one rule for all of them.

Suppressed, archived, private and sensitive memories are left out unless they are requested, and so are memories derived
from them (see `withheld`), and what is derived from one that was deleted: a picture is made to be passed on. In a view of the past, today's restrictions apply as
well: what was hidden or deleted since is not shown in a picture of an earlier day either.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import InvalidInputError
from memgraph.index.columns import TIERS
from memgraph.index.index import Index, scope_name
from memgraph.store.access.hidden_sources import derived_from_hidden
from memgraph.store.access.permitted import slots_of
from memgraph.store.deletions import Disclosures, Lineage
from memgraph.store.query import Mask, Reader

INCLUDABLE = ("suppressed", "archived", "sensitive", "private")
"""Categories shown only on request; "public" is accepted, too, and always shown."""


def shown(reader: Reader, *, project_id: str | None = None, include: Collection[str] = ()) -> Mask:
    """Return which slots may be shown; call it and use the result in one frozen block.

    Parameters
    ----------
    project_id : str, optional
        Only memories of this project.
    include : collection of str
        Of `INCLUDABLE`: categories to show in addition.

    Raises
    ------
    InvalidInputError
        `include` has another value.
    """
    named = {include} if isinstance(include, str) else set(include)
    if unknown := sorted(named - {*INCLUDABLE, "public"}):
        raise InvalidInputError(f"must be one of {', '.join(INCLUDABLE)}", field="include", value=unknown[0])
    index, today = reader.index, reader.today()
    state = _then(index) if today is None else _since(index, today)
    mask = index.column("is_live") & ~state.is_gone
    if "suppressed" not in named:
        mask &= ~state.is_suppressed
    if "archived" not in named:
        mask &= ~index.column("is_archived")
    is_named = np.array([tier == "public" or tier in named for tier in TIERS])
    mask &= is_named[state.tier]
    is_forgotten = state.is_gone if "suppressed" in named else state.is_gone | state.is_suppressed
    secrecy = np.where(is_named[state.tier], np.int8(0), state.tier)
    derived = derived_from_hidden(reader, is_forgotten, secrecy=secrecy, tier=state.tier)
    if derived is not None:
        mask &= ~derived
    mask &= ~slots_of(index, _from_deleted(index, reader.lineage(), index.column("is_live") & (secrecy > 0), is_named))
    if project_id is not None:
        code = index.scopes.find(scope_name("project", project_id))
        mask &= (index.column("project") == code) & (code >= 0)
    return mask


def _from_deleted(index: Index, lineage: Lineage, hidden: Mask, is_named: Mask) -> set[str]:
    """Return the memories derived from deleted ones that were not public, or were themselves derived from such."""
    if not lineage.deleted:
        return set()
    secret = {one for one, last in lineage.deleted.items() if not is_named[TIERS.index(last.tier)]}
    secret |= lineage.derived_from([*secret, *(index.ids.names[slot] for slot in np.flatnonzero(hidden).tolist())])
    return lineage.derived_from(secret & lineage.deleted.keys())


class _State(NamedTuple):
    """For each slot: whether it was deleted since, whether it is suppressed, and its privacy (its place in `TIERS`)."""

    is_gone: Mask
    is_suppressed: Mask
    tier: NDArray[np.int8]


def _then(index: Index) -> _State:
    return _State(np.zeros(len(index), dtype=np.bool_), index.column("is_suppressed"), index.column("tier"))


def _since(index: Index, today: Disclosures) -> _State:
    """Return the stricter of a memory's former and current privacy."""
    state = _then(index)
    is_suppressed, tier = state.is_suppressed.copy(), state.tier.copy()
    for slot in np.flatnonzero(index.column("is_live")).tolist():
        current = today.get(index.ids.names[slot])
        if current is None or current.is_deleted:
            state.is_gone[slot] = True
        else:
            is_suppressed[slot] |= current.is_suppressed
            tier[slot] = max(tier[slot], TIERS.index(current.tier))
    return _State(state.is_gone, is_suppressed, tier)
