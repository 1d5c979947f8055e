"""Runs a target on many cases: each is made from its number alone, so each can be made again.

A case is bytes, whatever it stands for, so one that fails is kept as a file; put into ``found/`` it becomes a test.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from memgraph.errors import MemGraphError

SEED = 20260201
LONGEST_S = 30.0
"""A case that takes longer counts as one that hangs."""
_SHOWN = 10


@dataclass(frozen=True)
class Target:
    """What is given hostile input.

    Attributes
    ----------
    make : callable
        Makes a case from a source of chance.
    run : callable
        Takes a case; returns whether it was accepted. Raises what must not be, and asserts what must be.
    refusals : tuple of exception types
        What it may be refused with.
    """

    make: Callable[[Random], bytes]
    run: Callable[[bytes], bool]
    refusals: tuple[type[Exception], ...] = (MemGraphError,)


Opening = Callable[[Path], AbstractContextManager[Target]]
"""Sets a target up in an empty folder."""


class HangError(BaseException):
    """A case took too long. No `Exception`, so that nobody takes it for a failure of their own."""


@dataclass
class Outcome:
    """What became of the cases of a target."""

    name: str
    seed: int = SEED
    cases: int = 0
    refused: int = 0
    accepted: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    failures: dict[str, str] = field(default_factory=dict)
    """Messages by where it happened: a fault that many cases meet is told once."""

    def row(self) -> str:
        """Return a line of the table."""
        counts = f"{self.cases:>8,}{self.refused:>9,}{self.accepted:>9,}{len(self.failures):>9}"
        return f"{self.name:<16}{self.seed:>10}{counts}{self.seconds:>9.1f}{self.slowest_s * 1000:>12,.0f}"


HEADING = (
    f"{'target':<16}{'seed':>10}{'cases':>8}{'refused':>9}{'accepted':>9}{'faults':>9}{'seconds':>9}{'slowest, ms':>12}"
)


def fuzz(name: str, opening: Opening, cases: int, folder: Path) -> Outcome:
    """Run the cases 0 to `cases` of a target; failing ones are written under `folder`."""
    (folder / "target").mkdir(parents=True)
    outcome = Outcome(name)
    started = time.monotonic()
    with opening(folder / "target") as target:
        for number in range(cases):
            case = target.make(Random(f"{name} {SEED} {number}"))
            began = time.monotonic()
            problem = attempt(target, case, outcome)
            outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - began)
            if problem is not None and problem[0] not in outcome.failures and len(outcome.failures) < _SHOWN:
                kept = folder / f"{name}-{number}.case"
                kept.write_bytes(case)
                outcome.failures[problem[0]] = (
                    f"{problem[1]}\ncase {number} of seed {SEED}, kept as {kept}: {case[:500]!r}"
                )
    outcome.seconds = time.monotonic() - started
    return outcome


def attempt(target: Target, case: bytes, outcome: Outcome) -> tuple[str, str] | None:
    """Run one case; return where and how it failed, if it did."""
    outcome.cases += 1
    try:
        with _deadline():
            refusal: Exception | None = None
            try:
                accepted = target.run(case)
            except target.refusals as error:
                accepted, refusal = False, error
            assert refusal is None or str(refusal).encode(), "nothing is said"
    except (Exception, HangError) as error:  # noqa: BLE001 - which it is, is the question
        frames = traceback.extract_tb(error.__traceback__)
        last = next((frame for frame in reversed(frames) if "memgraph" in Path(frame.filename).parts), frames[-1])
        where = f"{type(error).__name__} at {last.filename}:{last.lineno}"
        told = "".join(traceback.format_exception(error))[-3_000:]
        return where, told.encode("utf-8", "backslashreplace").decode()
    outcome.accepted += accepted
    outcome.refused += not accepted
    return None


@contextmanager
def afterwards() -> Iterator[None]:
    """Check what was taken: from here on a refusal is a fault."""
    try:
        yield
    except MemGraphError as error:
        raise AssertionError(f"it was taken, and cannot be used: {error}") from error


@contextmanager
def _deadline() -> Iterator[None]:
    """Interrupt the block when it takes too long (only the main thread can be)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise HangError(f"more than {LONGEST_S:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
