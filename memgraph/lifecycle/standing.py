"""How what was learned before stands, and what becomes of it when the episodes that it was learned from are withdrawn.

Withdrawn is what was forgotten, corrected, proved untrue, was deleted or moved elsewhere; what only faded happened all the same, whether it was
archived or deleted. A procedure never tells what withdrawn episodes alone said: it is told anew by those that are left, and where
these are too few it *lapses*: it is archived without its words. Should its episodes come back, it stands as it stood before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from memgraph.fold.past import last_known
from memgraph.lifecycle.collect import ARCHIVE_REASON as FADED
from memgraph.lifecycle.evidence import Scope, shared_context
from memgraph.model.events import MemoryRevised
from memgraph.model.procedures import LAPSED, LAPSED_PROPOSAL, PROPOSED, REJECTED
from memgraph.ports import Row
from memgraph.store.past import Deleted
from memgraph.store.reading import Reader

LAPSED_TEXT = "A procedure that was learned: too few of the builds that it worked in are left to tell it."
_WORDLESS: dict[str, Any] = {
    "content": LAPSED_TEXT,
    "title": None,
    "trigger_pattern": None,
    "steps": [],
    "prerequisites": [],
    "exit_criteria": [],
    "common_errors": [],
    "agents_involved": [],
    "entities": [],
    "tags": ["procedure"],
}
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

    @property
    def was_put_away(self) -> bool:
        """Whether somebody has put it away, or deleted it, so that it is left alone."""
        out = self.row.get("is_suppressed", False) or "invalid_at" in self.row or self.gone == "deleted"
        return out or self.reason not in (None, PROPOSED, REJECTED, FADED, LAPSED, LAPSED_PROPOSAL)

    @property
    def is_wordless(self) -> bool:
        """Whether it has lapsed, so that there is nothing to be approved."""
        return bool(self.row["content"] == LAPSED_TEXT)

    @property
    def keeps_its_words(self) -> bool:
        """Whether it says what somebody approved: it is in force, or was until it faded, and all of its evidence still says so."""
        return self.reason in (None, FADED) and (self.row.get("is_pinned", False) or not self.lost)


def withdrawn(reader: Reader, members: Iterable[str], evidence: Collection[str]) -> frozenset[str]:
    """Return those episodes that are `evidence` no more. Reads the journal if some were deleted."""
    missing = {one for one in members if one not in evidence}
    gone = {one for one in missing if reader.index.slot(one) < 0}
    reasons = reader.reasons_of_deletion(gone) if gone else {}
    return frozenset(one for one in missing if one not in gone or reasons.get(one) != FADED)


def deleted_in(reader: Reader, scope: Scope, source: str) -> list[Deleted]:
    """Return what of a scope was learned before and deleted. Reads the journal."""
    return [one for one in reader.deleted_of(source) if (one.row.get("project_id"), one.row.get("task_id")) == scope]


def lapse(known: Known, now: str) -> dict[str, Any]:
    """Return what changes in a procedure that its evidence no longer tells; nothing where nobody may say so, or it was said before."""
    if known.was_put_away or known.row.get("is_pinned") or not known.lost or known.is_wordless:
        return {}
    state = {"archived_at": now, "archive_reason": _LAPSES[known.reason]} if known.reason in _LAPSES else {}
    return {**_WORDLESS, **state}


def stricter(known: Known, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the privacy tier and the trust that something learned must have as well as its evidence, where they changed."""
    context = shared_context([known.row, *rows])
    names = ("privacy_tier", "trust_class")
    own = shared_context([known.row])
    return {name: context[name] for name in names if context[name] != own[name]}


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
