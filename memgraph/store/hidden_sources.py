"""What is not told although nobody has put it away: what tells of something that was forgotten, or made less public, since.

A memory that sleep has made of others (in compress, errors or procedures) repeats what these say. When one of these is
forgotten or gets a stricter privacy tier, the next sleep words it anew, or takes it back; until then no recall, picture or shareable export tells
it. One that is pinned stays for what was forgotten: somebody has vouched for its text.

A source that was deleted has no links any more, so this cannot see it; and what was archived, or is no longer true, did happen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE
from memgraph.model.results.sleep import MADE_BY_SLEEP
from memgraph.store.query import Mask, Reader


def withheld(reader: Reader) -> Mask | None:
    """Return which slots tell of what must not be told; None, at next to no cost, if there is nothing of the kind.

    Costs one pass over the links where anything is suppressed or less than public, and the rows of what is found.
    """
    tier = reader.index.column("tier")
    return telling(reader, reader.index.column("is_suppressed"), secrecy=tier, tier=tier)


def telling(reader: Reader, is_forgotten: Mask, *, secrecy: NDArray[np.int8], tier: NDArray[np.int8]) -> Mask | None:
    """Return which slots tell of these forgotten ones, or of what is more secret than they are; None if there are none.

    Parameters
    ----------
    is_forgotten : ndarray of bool, shape (slots,)
    secrecy, tier : ndarray of int8, shape (slots,)
        How secret each is as a source; and how secret what was made of others is itself. Places in `TIERS`.
    """
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
    mask = np.zeros(len(index), dtype=np.bool_)
    mask[[index.slot(row["id"]) for row in rows if row.get("source") in MADE_BY_SLEEP]] = True
    return mask
