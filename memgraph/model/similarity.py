"""Vectors, and their cosine similarity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memgraph.errors import InvalidInputError


def _numbers(value: object, kind: Any) -> NDArray[Any]:
    """Return a value as a vector of finite numbers, or raise `ValueError`. A number that is too large for its type becomes infinite."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biufO":
            raise ValueError(f"elements of type {given.dtype}")
        with np.errstate(over="ignore"):
            vector = np.asarray(given, dtype=kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"is not a vector of numbers ({error})") from None
    if vector.ndim != 1:
        raise ValueError(f"must be one-dimensional, not of shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError("holds NaN or infinity")
    return vector


def to_vector(value: object) -> NDArray[np.float32]:
    """Return a read-only float32 vector, shape (d,), bit for bit; refuse what cannot be searched."""
    vector = _numbers(value, np.float32)
    if not vector.any():
        raise ValueError("is empty or all zero, and has no direction")
    if vector.flags.writeable:
        vector = vector.copy()
        vector.flags.writeable = False
    return vector


def cosine_similarity(a: Sequence[float] | ArrayLike, b: Sequence[float] | ArrayLike) -> float:
    """Return the cosine of the angle between two vectors, in [−1, 1]; 0 if either is empty or all zero.

    Vectors that differ in length, or contain anything but finite numbers, raise an `InvalidInputError`.
    """
    vectors = []
    for name, value in (("a", a), ("b", b)):
        try:
            vectors.append(_numbers(value, np.float64))
        except ValueError as error:
            raise InvalidInputError(str(error), field=name, value=value) from None
    left, right = vectors
    if left.shape != right.shape:
        raise InvalidInputError(
            f"vectors differ in length: {left.shape} and {right.shape}", field="b", value=right.size
        )
    if not left.any() or not right.any():
        return 0.0
    # so that squares neither overflow nor underflow
    left, right = left / np.abs(left).max(), right / np.abs(right).max()
    return float(np.clip(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)), -1.0, 1.0))
