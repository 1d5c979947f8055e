"""Which memories may be seen: the one rule of recalls, searches, lists, items, agents' views, pictures and exports.

`visible` is for whoever asks: what their permissions admit (`permitted`), without what is withheld (`withheld`), in a scope (`admitted`).

An agent may have a memory if its permissions admit the memory's tier and domain, and those of every memory that it is derived from, directly
or through others, deleted ones included: what is derived repeats what its sources say. In a view of the past the stricter of a memory's former
and current state counts. Of a deleted memory the last state counts. If a memory in force is not permitted, neither is the one that
it replaces: that one is outdated, and nearly says what the agent may not have.

A memory that sleep derives from others (in compress, errors or procedures), or that the answer to a work order about them made, is withheld
while one of its sources is forgotten or has a stricter privacy tier; the next sleep rewrites or retires what sleep has made. A pinned one is
still shown after a source was forgotten: a user has approved its text. An archived or invalidated source does not count.

`shown` is for pictures, exports and networks, which are made to be passed on: suppressed, archived, private and sensitive memories are left
out unless they are requested, and so are memories derived from them or from a deleted one that was not public. In a view of the past, today's
restrictions apply as well: what was hidden or deleted since is not shown in a picture of an earlier day either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import InvalidInputError
from memgraph.index.columns import TIERS
from memgraph.index.index import RELATION_CODE, Index, scope_name, superseded
from memgraph.model.results.learning import MADE_FROM_OTHERS
from memgraph.privacy import TIER_ORDER, Access, Operation
from memgraph.store.access.scope import Scope, admitted, of_project
from memgraph.store.deletions import Disclosures, Lineage
from memgraph.store.query import Mask, Reader

INCLUDABLE = ("suppressed", "archived", "sensitive", "private", "records")
"""Categories shown only on request; "public" is accepted, too, and always shown."""
Permits = Callable[[Reader], Mask]
"""Returns which slots somebody may have; called in a frozen block."""
_DOMAIN = scope_name("domain", "")


def visible(reader: Reader, access: Access, *operations: Operation, scope: Scope | None = None) -> Mask:
    """Return which slots somebody may see who does these operations, in a scope or in all states; for one frozen block. Withheld is withheld from the owner, too."""
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


def everything(reader: Reader) -> Mask:
    """Return all slots: what the owner may have."""
    return np.ones(len(reader.index), dtype=np.bool_)


def permitted(reader: Reader, access: Access, operation: Operation) -> Mask | None:
    """Return which slots an agent may have, in a frozen block; None, at almost no cost, if all; else a pass over the links for each step of derivation."""
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
        mask &= ~_slots_of(index, lineage.derived_from(hidden))
    if mask.all():
        return None
    mask &= ~_derived(index, ~mask & live)
    return mask & ~superseded(index, reader.listed() & ~mask)


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


def _slots_of(index: Index, memory_ids: Iterable[str]) -> Mask:
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


def withheld(reader: Reader) -> Mask | None:
    """Return which slots are withheld; None, at almost no cost, if nothing is suppressed or less than public, else one pass over the links."""
    tier = reader.index.column("tier")
    return _derived_from_hidden(reader, reader.index.column("is_suppressed"), secrecy=tier, tier=tier)


def _derived_from_hidden(
    reader: Reader, is_forgotten: Mask, *, secrecy: NDArray[np.int8], tier: NDArray[np.int8]
) -> Mask | None:
    """Return which slots, of these privacy tiers, derive from forgotten sources or from ones of more `secrecy` (places in `TIERS`); None if none do."""
    index = reader.index
    is_hidden = is_forgotten | (secrecy > 0)
    if not is_hidden.any():
        return None
    made, source = index.links.pairs(RELATION_CODE["DERIVED_FROM"], to=is_hidden)
    tells = (is_forgotten[source] & ~index.column("is_pinned")[made]) | (secrecy[source] > tier[made])
    slots = np.unique(made[tells])
    if not len(slots):
        return None
    rows = reader.rows([index.ids.names[slot] for slot in slots.tolist()])
    return _slots_of(index, [row["id"] for row in rows if row.get("source") in MADE_FROM_OTHERS])


def shown(reader: Reader, *, project_id: str | None = None, include: Collection[str] = ()) -> Mask:
    """Return which slots may be shown, with the categories of `INCLUDABLE` that are named; call it and use the result in one frozen block."""
    named = {include} if isinstance(include, str) else set(include)
    if unknown := sorted(named - {*INCLUDABLE, "public"}):
        raise InvalidInputError(f"must be one of {', '.join(INCLUDABLE)}", field="include", value=unknown[0])
    index, today = reader.index, reader.today()
    state = _then(index) if today is None else _since(index, today)
    mask = (index.column("is_live") if "records" in named else index.memories()) & ~state.is_gone
    if "suppressed" not in named:
        mask &= ~state.is_suppressed
    if "archived" not in named:
        mask &= ~index.column("is_archived")
    is_named = np.array([tier == "public" or tier in named for tier in TIERS])
    mask &= is_named[state.tier]
    is_forgotten = state.is_gone if "suppressed" in named else state.is_gone | state.is_suppressed
    secrecy = np.where(is_named[state.tier], np.int8(0), state.tier)
    derived = _derived_from_hidden(reader, is_forgotten, secrecy=secrecy, tier=state.tier)
    if derived is not None:
        mask &= ~derived
    mask &= ~_slots_of(index, _from_deleted(index, reader.lineage(), index.column("is_live") & (secrecy > 0), is_named))
    return mask if project_id is None else mask & of_project(index, project_id)


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
    then = _then(index)
    is_gone, is_suppressed, tier = then.is_gone, then.is_suppressed.copy(), then.tier.copy()
    for slot in np.flatnonzero(index.column("is_live")).tolist():
        current = today.get(index.ids.names[slot])
        if current is None or current.is_deleted:
            is_gone[slot] = True
        else:
            is_suppressed[slot] |= current.is_suppressed
            tier[slot] = max(tier[slot], TIERS.index(current.tier))
    return _State(is_gone, is_suppressed, tier)
