"""How what was learned before stands, and what becomes of it when the episodes that it was learned from are withdrawn.

Withdrawn is what was forgotten, corrected, proved untrue or deleted; what only faded happened all the same, whether it was
archived or deleted. A procedure never tells what withdrawn episodes alone said: it is told anew by those that are left, and where
these are too few it *lapses*: it is archived without its words. Should its episodes come back, it stands as it stood before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from memgraph.fold.last_state import last_known
from memgraph.index.index import Index
from memgraph.lifecycle.evidence.deletions import Deletions
from memgraph.lifecycle.evidence.evidence import Scope, is_true, strictness
from memgraph.lifecycle.evidence.retirement import retired
from memgraph.model.events.lifecycle import FADED
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.memory import StoredMemory
from memgraph.model.results.procedures import LAPSED, LAPSED_PROPOSAL, PROPOSED, REJECTED
from memgraph.ports import Row
from memgraph.store.query import Reader
from memgraph.store.undeletion import Deleted

LAPSED_TEXT = "A procedure that was learned: too few of the builds that it worked in are left to tell it."
_LAPSES: dict[str | None, str] = {None: LAPSED, FADED: LAPSED, PROPOSED: LAPSED_PROPOSAL}


class Known(NamedTuple):
    """What was learned before.

    Attributes
    ----------
    members, lost, faded : frozenset of str
        The episodes that it was learned from; those of them that were withdrawn; those that were deleted because they had faded.
    gone : {"", "collected", "deleted"}
        Whether it is there, or was deleted: because it had faded, or by somebody.
    """

    row: Row
    members: frozenset[str]
    lost: frozenset[str] = frozenset()
    faded: frozenset[str] = frozenset()
    gone: str = ""

    @property
    def reason(self) -> str | None:
        """Why it is not in force; None: it is."""
        return self.row.get("archive_reason", "archived") if "archived_at" in self.row else None

    def was_put_away(self, now: str) -> bool:
        """Whether somebody has put it away, or deleted it, so that it is left alone."""
        out = not is_true(self.row, now) or self.gone == "deleted"
        return out or self.reason not in (None, PROPOSED, REJECTED, FADED, LAPSED, LAPSED_PROPOSAL)

    @property
    def is_wordless(self) -> bool:
        """Whether it has lapsed, so that there is nothing to be approved."""
        return bool(self.row["content"] == LAPSED_TEXT)

    @property
    def keeps_its_words(self) -> bool:
        """Whether it says what somebody approved: it is in force, or was until it faded, and all of its evidence still says so."""
        return self.reason in (None, FADED) and (self.row.get("is_pinned", False) or not self.lost)


def withdrawn(index: Index, deletions: Deletions, members: Iterable[str], evidence: Collection[str]) -> frozenset[str]:
    """Return those episodes that are `evidence` no more."""
    missing = {one for one in members if one not in evidence}
    gone = {one for one in missing if index.slot(one) < 0}
    return deletions.withdrawn(gone) | (missing - gone)


def deleted_in(deletions: Deletions, scope: Scope, source: str) -> list[Deleted]:
    """Return what of a scope was learned before and deleted."""
    return [one for one in deletions.of(source) if (one.row.get("project_id"), one.row.get("task_id")) == scope]


def lapses(known: Known, now: str) -> bool:
    """Whether a procedure that its evidence no longer tells is to be retired; not where nobody may do so, or it was done before."""
    stays = known.was_put_away(now) or known.row.get("is_pinned") or known.is_wordless
    return bool(known.lost) and not stays


def lapsed(known: Known, before: StoredMemory, now: str) -> StoredMemory:
    """Return a procedure as it is once it has lapsed."""
    state = {"archived_at": now, "archive_reason": _LAPSES[known.reason]} if known.reason in _LAPSES else {}
    return retired(before, LAPSED_TEXT, state, now=now, tags=["procedure"])


def stricter(known: Known, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the privacy tier and the trust that something learned must have as well as its evidence, where they changed."""
    own, strict = strictness([known.row]), strictness([known.row, *rows])
    return {name: value for name, value in strict.items() if value != own[name]}


def before_it_lapsed(reader: Reader, memory_id: str) -> Row:
    """Return what a procedure said before it lapsed. Reads the journal."""
    events = reader.history(memory_id)
    lapses = [
        place
        for place, event in enumerate(events)
        if isinstance(event.payload, MemoryRevised) and event.content["changed"].get("archive_reason") == LAPSED
    ]
    known = last_known(events[: lapses[-1]], memory_id)
    assert known is not None  # noqa: S101 (what lapsed had been learned)
    return known.row
