"""Migration of a store to this release, with a report.

The journal is never rewritten: events of earlier versions are converted whenever they are read, by the upcasters, and are signed as they
are. What a release changes is the graph and the index. Any use of a store brings them to its schema; a migration does that on its own,
after it has verified and read every event, and says what it found.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.errors import GraphError, JournalError
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.journal.closed.files import first_seq_of
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.journal import Journal
from memgraph.journal.keys.configured import configured_keys
from memgraph.journal.opening import identify
from memgraph.journal.repair import Unwitnessed
from memgraph.journal.replay import Committed
from memgraph.model.base import Callback, checked
from memgraph.model.events.store import StoreMigrated
from memgraph.model.events.upcasting import UPCASTERS
from memgraph.model.results.maintenance import MigrationReport, SegmentReport
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.opening import DATABASE, open_projector, open_store_journal, release, utc_now
from memgraph.store.projection.projector import Projector


def migrate(
    config: AgentMemoryConfig | None = None,
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
    progress: Progress | None = None,
) -> MigrationReport:
    """Verify and read every event of a store, and bring graph and index to this release's schema.

    Parameters
    ----------
    dry_run : bool
        Verify and report; change nothing.
    progress : callable, optional
        Called with (done, total) events.

    Raises
    ------
    JournalError
        An event is not what was signed, or this release cannot read it; or the journal contradicts its head file. Nothing is changed.
    StorageError
        There is no store.
    """
    checked(Callback, progress, "progress")
    config = config or load_config()
    provider, time_of = keys or configured_keys(config), clock or utc_now
    started, started_at = time.perf_counter(), to_iso(time_of())
    store_id, ring = identify(config.home, provider, keys_home=config.keys_home, lock_timeout_s=config.lock_timeout_s)
    journal = Unwitnessed(config.home, store_id, ring, keys_home=config.keys_home)  # writes nothing
    journal.load_to_end(by_checkpoint=False)
    if journal.condition().contradicting:
        raise JournalError(f"the journal under {journal.folder} contradicts its head file: see `memgraph repair` first")
    read = _Read()
    for commit in journal.replay():
        read.take(commit)
        if progress:
            progress(commit.after.chain.seq, journal.tail.chain.seq)
    before = _schema_of(config, journal) if (config.home / DATABASE).exists() else None
    found = MigrationReport(
        store_id=store_id,
        release=release(),
        started_at=started_at,
        dry_run=dry_run,
        segments=read.reports(),
        events=journal.tail.chain.seq,
        first_seq=min(1, journal.tail.chain.seq),
        last_seq=journal.tail.chain.seq,
        types=dict(sorted(read.types.items())),
        converted=read.converted(),
        journal_sha256=read.whole.hexdigest(),
        signature=journal.tail.chain.signature,
        schema_before=before,
        schema_version=SCHEMA_VERSION,
        rebuilds=before != SCHEMA_VERSION,
        seconds=0.0,
    )
    updates = {} if dry_run else _bring_up(config, provider, found, lambda: to_iso(time_of()), progress)
    return found.model_copy(update={**updates, "seconds": round(time.perf_counter() - started, 3)})


def _bring_up(
    config: AgentMemoryConfig,
    keys: KeyProvider,
    found: MigrationReport,
    now: Callable[[], str],
    progress: Progress | None,
) -> dict[str, object]:
    """Make graph and index with this release's schema; record that, if they were of another one."""
    journal = open_store_journal(config, keys, now)
    projector = open_projector(config.engine, journal, config.home)
    try:
        if found.rebuilds:
            projector.rebuild(progress)
        with projector.reading():
            digest = f"{projector.projection.digest:064x}"
        if not found.rebuilds:
            return {"digest": digest}
        record = StoreMigrated(
            seq=found.last_seq,
            signature=found.signature,
            journal_sha256=found.journal_sha256,
            schema_before=found.schema_before,
            schema_version=SCHEMA_VERSION,
            converted=sum(found.types[name] for name in found.converted),
            digest=digest,
            migrated_at=now(),
            migrated_by=f"memgraph {release()}",
        )
        with projector.writing():
            events = projector.append([CommitDraft("system", [record], actor="user")], now())
        return {"digest": digest, "recorded_as": events[-1].seq}
    finally:
        projector.close()


def _schema_of(config: AgentMemoryConfig, journal: Journal) -> str | None:
    """Return the version of the schema of the rows as they are; None if it cannot be read."""
    projector: Projector = open_projector(config.engine, journal, config.home)
    try:
        state = projector.stored.state()
        return state.projection.schema_version if state else None
    except GraphError:
        return None
    finally:
        projector.database.close()


@dataclass(slots=True)
class _Segment:
    """What one segment was found to hold."""

    first_seq: int
    last_seq: int = 0
    size_bytes: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    envelopes: set[int] = field(default_factory=set)
    signatures: set[int] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)


class _Read:
    """Collects what the verified lines say of themselves, before any conversion."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.whole = hashlib.sha256()
        self._segments: dict[str, _Segment] = {}
        self._versions: set[tuple[str, int]] = set()

    def take(self, commit: Committed) -> None:
        """Add a commit."""
        name = commit.after.position.segment
        segment = self._segments.setdefault(name, _Segment(first_seq_of(name)))
        segment.last_seq = commit.after.chain.seq  # its events may be purged
        segment.size_bytes += len(commit.data)
        segment.digest.update(commit.data)
        self.whole.update(commit.data)
        for line in commit.data.splitlines():
            head = orjson.loads(line)["head"]
            segment.envelopes.add(head["envelope_version"])
            segment.signatures.add(head["signature_version"])
            segment.keys |= {key_id for key_id in [head["key_id"]] if key_id}  # an unsigned line names none
            self.types[f"{head['type']} {head['event_version']}"] += 1
            self._versions.add((head["type"], head["event_version"]))

    def converted(self) -> dict[str, str]:
        """Return the types and versions that are converted when they are read, and the version they become."""
        found = {}
        for type_, version in sorted(self._versions):
            newest = version
            while (type_, newest) in UPCASTERS:
                newest += 1
            if newest > version:
                found[f"{type_} {version}"] = f"{type_} {newest}"
        return found

    def reports(self) -> list[SegmentReport]:
        """Return a report on each segment."""
        return [
            SegmentReport(
                name=name,
                first_seq=one.first_seq,
                last_seq=one.last_seq,
                events=one.last_seq - one.first_seq + 1,
                size_bytes=one.size_bytes,
                sha256=one.digest.hexdigest(),
                envelope_versions=sorted(one.envelopes),
                signature_versions=sorted(one.signatures),
                key_ids=sorted(one.keys),
            )
            for name, one in sorted(self._segments.items())
        ]
