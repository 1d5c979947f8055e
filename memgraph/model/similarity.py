"""Vectors, and their cosine similarity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memgraph.errors import InvalidInputError


def to_vector(value: object) -> NDArray[np.float32]:
    """Return a read-only float32 vector, shape (d,), bit for bit; refuse what cannot be searched."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biufO":
            raise ValueError(f"elements of type {given.dtype}")
        with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite and is refused below
            vector = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"is not a vector of numbers ({error})") from None
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"must be a non-empty one-dimensional vector, not one of shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError("holds NaN or infinity")
    if not vector.any():
        raise ValueError("is all zero and has no direction")
    if vector.flags.writeable:
        vector = vector.copy()
        vector.flags.writeable = False
    return vector


def cosine_similarity(a: Sequence[float] | ArrayLike, b: Sequence[float] | ArrayLike) -> float:
    """Return the cosine of the angle between two vectors, in [−1, 1]; 0 if either is empty or all zero.

    Raises
    ------
    InvalidInputError
        The vectors differ in length, or one contains anything but finite numbers.
    """
    left, right = _vector(a, "a"), _vector(b, "b")
    if left.shape != right.shape:
        raise InvalidInputError(
            f"vectors differ in length: {left.shape} and {right.shape}", field="b", value=right.size
        )
    if not left.any() or not right.any():
        return 0.0
    # so that squares neither overflow nor underflow
    left, right = left / np.abs(left).max(), right / np.abs(right).max()
    return float(np.clip(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)), -1.0, 1.0))


def _vector(value: object, name: str) -> NDArray[np.float64]:
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biufO":
            raise ValueError(f"elements of type {given.dtype}")
        vector = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"is not a vector of numbers ({error})", field=name, value=value) from None
    if vector.ndim != 1:
        raise InvalidInputError(f"must be one-dimensional, not of shape {vector.shape}", field=name, value=value)
    if not np.isfinite(vector).all():
        raise InvalidInputError("contains NaN or infinity", field=name, value=value)
    return vector
