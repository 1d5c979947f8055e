"""Cosine similarity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from memgraph.errors import InvalidInputError


def cosine_similarity(a: Sequence[float] | ArrayLike, b: Sequence[float] | ArrayLike) -> float:
    """Cosine of the angle between two vectors, in [−1, 1]; 0 if either is empty or all zero.

    Raises
    ------
    InvalidInputError
        The vectors differ in length.
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.shape != right.shape:
        raise InvalidInputError(
            f"vectors differ in length: {left.shape} and {right.shape}", field="b", value=right.size
        )
    norms = float(np.linalg.norm(left) * np.linalg.norm(right))
    if norms == 0.0:
        return 0.0
    return float(np.clip(left @ right / norms, -1.0, 1.0))
