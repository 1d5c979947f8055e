"""All event payloads by (type, version). Events state effects as absolute values, never commands.

A payload class never changes once it has been released: any change is a new class with a higher version, and a fixture of
the old one stays readable. Replay therefore calls no model and no clock.
"""

from __future__ import annotations

from memgraph.model.events.distillation import DistilAnswered, DistilAttempted, DistilRequested, DistilSkipped
from memgraph.model.events.earlier.released import (
    JournalRepaired1,
    MemoryAdded1,
    MemoryMerged1,
    MemoryMerged2,
    MemoryReembedded1,
    MemoryRevised1,
    MemoryUndeleted1,
)
from memgraph.model.events.erasure import ArchiveCondensed, MemoryPurged
from memgraph.model.events.intake import BuildConsolidated, SourceRead
from memgraph.model.events.lifecycle import (
    CollectionApplied,
    CompressionApplied,
    ContradictionsSought,
    DecayApplied,
    ErrorsAnalysed,
    ProcedureMeasured,
    ProceduresLearned,
    SleepAdvanced,
    SleepFailed,
)
from memgraph.model.events.links import MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryMerged, MemoryRevised, MemoryUndeleted
from memgraph.model.events.payload import Payload
from memgraph.model.events.recalls import AccessAudited, AccessRecorded, OutcomeRecorded, RetrievalRecorded
from memgraph.model.events.reembedding import MemoryReembedded, VectorsLost
from memgraph.model.events.store import (
    BackupMade,
    CommitUndone,
    EmbeddingSwitched,
    JournalCut,
    JournalRepaired,
    JournalResealed,
    KeyRotated,
    StoreCreated,
    StoreMigrated,
    StoreReset,
    StoreRestored,
)
from memgraph.model.events.tasks import HANDOFF_EVENTS, SESSION_EVENTS, TASK_EVENTS

_KINDS: tuple[type[Payload], ...] = (
    StoreCreated,
    EmbeddingSwitched,
    JournalRepaired1,
    MemoryAdded1,
    MemoryRevised1,
    MemoryMerged1,
    MemoryMerged2,
    MemoryUndeleted1,
    MemoryReembedded1,
    MemoryAdded,
    MemoryRevised,
    MemoryMerged,
    MemoryReembedded,
    MemoryDeleted,
    MemoryUndeleted,
    MemoryLinked,
    MemoryUnlinked,
    MemoryDerived,
    AccessRecorded,
    RetrievalRecorded,
    OutcomeRecorded,
    BuildConsolidated,
    SourceRead,
    DecayApplied,
    CollectionApplied,
    CompressionApplied,
    ContradictionsSought,
    ProcedureMeasured,
    ProceduresLearned,
    ErrorsAnalysed,
    SleepAdvanced,
    SleepFailed,
    DistilRequested,
    DistilAnswered,
    DistilAttempted,
    DistilSkipped,
    AccessAudited,
    JournalRepaired,
    KeyRotated,
    JournalResealed,
    VectorsLost,
    CommitUndone,
    MemoryPurged,
    BackupMade,
    StoreRestored,
    JournalCut,
    StoreMigrated,
    ArchiveCondensed,
    StoreReset,
    *TASK_EVENTS,
    *SESSION_EVENTS,
    *HANDOFF_EVENTS,
)
PAYLOADS: dict[tuple[str, int], type[Payload]] = {(kind.TYPE, kind.VERSION): kind for kind in _KINDS}
