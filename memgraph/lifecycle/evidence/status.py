"""Status of existing procedures and lessons, and how it changes when their episodes are withdrawn.

An episode is withdrawn if it was forgotten, corrected, invalidated or deleted. An episode that only faded is not withdrawn,
whether archived or deleted. A procedure never repeats statements found only in withdrawn episodes: it is composed again from
the remaining ones. If these are too few it *lapses*: it is archived and its text is replaced. If its episodes return, its
former text is restored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from memgraph.fold.fold import last_known
from memgraph.index.index import Index
from memgraph.lifecycle.evidence.evidence import Deletions, Scope, is_true, strictness
from memgraph.lifecycle.evidence.retirement import retired
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.records import FADED
from memgraph.model.memory import StoredMemory
from memgraph.model.results.learning import LAPSED, LAPSED_PROPOSAL, PROPOSED, REJECTED
from memgraph.ports import Row
from memgraph.store.deletions import Deleted
from memgraph.store.query import Reader

LAPSED_TEXT = "A procedure that was learned: too few of the builds that it worked in are left to tell it."
_LAPSES: dict[str | None, str] = {None: LAPSED, FADED: LAPSED, PROPOSED: LAPSED_PROPOSAL}


class Learned(NamedTuple):
    """A procedure or lesson learned before.

    Attributes
    ----------
    members, lost, faded : frozenset of str
        Its episodes; the withdrawn ones among them; those that were deleted because they had faded.
    gone : {"", "collected", "deleted"}
        Empty while it exists; else whether it was deleted because it had faded, or by a user or agent.
    """

    row: Row
    members: frozenset[str]
    lost: frozenset[str] = frozenset()
    faded: frozenset[str] = frozenset()
    gone: str = ""

    @property
    def reason(self) -> str | None:
        """Why it is not in force; None if it is."""
        return self.row.get("archive_reason", "archived") if "archived_at" in self.row else None

    def was_put_away(self, now: str) -> bool:
        """Whether a user or agent hid or deleted it, so that it must not be changed."""
        out = not is_true(self.row, now) or self.gone == "deleted"
        return out or self.reason not in (None, PROPOSED, REJECTED, FADED, LAPSED, LAPSED_PROPOSAL)

    @property
    def is_wordless(self) -> bool:
        """Whether it has lapsed and so has no text to approve."""
        return bool(self.row["content"] == LAPSED_TEXT)

    @property
    def keeps_its_words(self) -> bool:
        """Whether it keeps its approved text: it is in force, or was until it faded, and all of its evidence still supports it."""
        return self.reason in (None, FADED) and (self.row.get("is_pinned", False) or not self.lost)


def withdrawn(index: Index, deletions: Deletions, members: Iterable[str], evidence: Collection[str]) -> frozenset[str]:
    """Return the episodes that are no longer `evidence`."""
    missing = {one for one in members if one not in evidence}
    gone = {one for one in missing if index.slot(one) < 0}
    return deletions.deleted_by_user(gone) | (missing - gone)


def deleted_in(deletions: Deletions, scope: Scope, source: str) -> list[Deleted]:
    """Return what was learned before in a scope and has been deleted."""
    return [one for one in deletions.of(source) if (one.row.get("project_id"), one.row.get("task_id")) == scope]


def lapses(known: Learned, now: str) -> bool:
    """Return whether a procedure that its evidence no longer supports is to be retired: not if a user decided on it or it is."""
    stays = known.was_put_away(now) or known.row.get("is_pinned") or known.is_wordless
    return bool(known.lost) and not stays


def lapsed(known: Learned, before: StoredMemory, now: str) -> StoredMemory:
    """Return a procedure in its lapsed state."""
    state = {"archived_at": now, "archive_reason": _LAPSES[known.reason]} if known.reason in _LAPSES else {}
    return retired(before, LAPSED_TEXT, state, now=now, tags=["procedure"])


def stricter(known: Learned, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the privacy tier and trust that the learned memory must have as well as its evidence, where they changed."""
    own, strict = strictness([known.row]), strictness([known.row, *rows])
    return {name: value for name, value in strict.items() if value != own[name]}


def before_it_lapsed(reader: Reader, memory_id: str) -> Row:
    """Return the fields of a procedure before it lapsed. Reads the journal."""
    events = reader.history(memory_id)
    lapses = [
        place
        for place, event in enumerate(events)
        if isinstance(event.payload, MemoryRevised) and event.content["changed"].get("archive_reason") == LAPSED
    ]
    known = last_known(events[: lapses[-1]], memory_id)
    assert known is not None  # noqa: S101 (what lapsed had been learned)
    return known.row
