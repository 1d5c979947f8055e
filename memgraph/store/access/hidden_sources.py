"""Derived memories that are withheld because a source was forgotten, or made less public, since.

A memory that sleep derives from others (in compress, errors or procedures) repeats their content, and so does one made
by the answer to a work order about them. While one of its sources is forgotten or has a stricter privacy tier, it is left
out of recalls, pictures and shareable exports; the next sleep rewrites or retires what sleep has made. A pinned one is still shown after a source was forgotten: a user has
approved its text.

A deleted source has no links left, so it is not detected here, but by who asks (`permitted`, `visibility`); an archived or invalidated one
does not count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE
from memgraph.model.results.learning import MADE_FROM_OTHERS
from memgraph.store.query import Mask, Reader


def withheld(reader: Reader) -> Mask | None:
    """Return which slots are withheld; None, at almost no cost, if there cannot be any.

    If anything is suppressed or less than public, this costs one pass over the links, and reading the rows found.
    """
    tier = reader.index.column("tier")
    return derived_from_hidden(reader, reader.index.column("is_suppressed"), secrecy=tier, tier=tier)


def derived_from_hidden(
    reader: Reader, is_forgotten: Mask, *, secrecy: NDArray[np.int8], tier: NDArray[np.int8]
) -> Mask | None:
    """Return which slots derive from forgotten sources, or from sources more secret than they are; None if none do.

    Parameters
    ----------
    is_forgotten : ndarray of bool, shape (slots,)
    secrecy, tier : ndarray of int8, shape (slots,)
        Secrecy of each slot as a source, and the privacy tier of each derived memory itself. Places in `TIERS`.
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
    mask[[index.slot(row["id"]) for row in rows if row.get("source") in MADE_FROM_OTHERS]] = True
    return mask
