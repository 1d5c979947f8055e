"""Whether the work of a call grows as its input does: a question that a busy machine answers as an idle one does."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from itertools import pairwise

STEP = 4
"""Each input is so many times as large as the one before: linear work becomes fourfold, quadratic sixteenfold."""
MOST_GROWTH = 10.0
"""Between the two, with room for a logarithm and for caches that overflow."""
FLOOR_S = 0.05
"""Work that costs less of a processor's time is not judged."""


def assert_grows_linearly(call: Callable[[int], object], most: int) -> None:
    """Call with sizes up to `most`; fail if one costs out of proportion to the size before it.

    The smallest size is a thousandth of the largest. Small sizes come first, so that what explodes is found before it
    takes long. Only this thread's time on a processor counts, and of up to five runs the least.
    """

    def cost_s(size: int) -> float:
        return timeit.timeit(lambda: call(size), number=1, timer=time.thread_time)

    sizes = [most // STEP**step for step in range(5, -1, -1)]
    costs_s = [cost_s(sizes[0])]
    for before, size in pairwise(sizes):
        costs_s.append(cost_s(size))
        for _ in range(5):
            if costs_s[-1] <= max(FLOOR_S, MOST_GROWTH * costs_s[-2]):
                break
            costs_s[-2:] = min(costs_s[-2], cost_s(before)), min(costs_s[-1], cost_s(size))
        else:
            raise AssertionError(f"sizes {sizes} cost {', '.join(f'{cost:.3f}' for cost in costs_s)} s")
