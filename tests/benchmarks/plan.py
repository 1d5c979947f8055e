"""How much a run measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes
    ----------
    memories : tuple of int
        Sizes of the stores, ascending.
    batch : int
        Memories in a call of the bulk insert.
    repeats : int
        New stores that are filled, and replays.
    openings : int
        Fresh processes that open a store and recall.
    singles, looks, reads, peer_queries : int
        Single inserts; inserts that are looked for, of each kind; reads of each kind; queries of a peer.
    trial_inserts : int
        Acknowledged inserts before a writer is killed, and of each of two writers.
    within_s : float
        After so long no repeat of a kind begins, and a peer's bulk insert stops at the end of a call.
    timeout_s : float
        After so long a job is given up.
    """

    memories: tuple[int, ...] = (10_000, 100_000)
    batch: int = 10_000
    repeats: int = 3
    openings: int = 5
    singles: int = 200
    looks: int = 50
    reads: int = 200
    peer_queries: int = 50
    trial_inserts: int = 30
    within_s: float = 120.0
    timeout_s: float = 1_800.0


QUICK = Plan(
    memories=(100, 200), batch=100, repeats=1, openings=1, singles=5, looks=1, reads=5, peer_queries=5, trial_inserts=5,
    within_s=5.0, timeout_s=60.0,
)  # fmt: skip
"""Whether everything runs; its figures say nothing."""
