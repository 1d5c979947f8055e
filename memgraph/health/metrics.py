"""Metrics of a store, in Prometheus' text format (version 0.0.4): sizes, memories, runs, backups, recalls and diagnostics.

No text, and no name that a memory brought.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import orjson

from memgraph.diagnostics.delivery import dead_letters_of, predecessor_of
from memgraph.diagnostics.records import SEVERITIES
from memgraph.disk.files import free_bytes, size_on_disk
from memgraph.errors import ReadOnlyError
from memgraph.index.index import superseded
from memgraph.lifecycle.contradictions.resolution import pairs_among
from memgraph.lifecycle.run import last_run
from memgraph.lifecycle.sleep import episodes_since
from memgraph.model.events.records import COMPRESSION, SLEEP
from memgraph.model.memory import MEMORY_TYPES, OUTCOME_OF_WORD
from memgraph.model.timestamps import epoch_days, from_iso
from memgraph.store import AgentMemoryStore
from memgraph.store.opening import release
from memgraph.store.store import PastStore

_ONE: tuple[str, ...] = ()
_KINDS = ("security", "retrieval", "lifecycle", "quota")
_OTHER = "other"


def metrics_of(store: AgentMemoryStore) -> list[Metric]:
    """Return a store's metrics. It brings graph and index up to date, and costs one pass over the journal's bytes and the recalls."""
    if isinstance(store, PastStore):
        raise ReadOnlyError("a view has no metrics of its own; ask the store itself")
    lag = store.graph_lag()  # before anything is read, which brings the graph up to date
    return [*_files(store, lag), *_memories(store), *_runs(store), *_recalls(store), *_diagnostics(store)]


def _files(store: AgentMemoryStore, lag: int | None) -> Iterator[Metric]:
    config, home = store.config, store.config.home
    sizes = store.sizes()
    info = (store.store_id, release(), config.engine, store.vector_model.name or "none")
    yield Metric(
        "memgraph_store_info",
        "gauge",
        "The store's id, memgraph's version, the graph engine and the embedding model; always 1.",
        {info: 1},
        ("store_id", "version", "engine", "embedding_model"),
    )
    yield _one("memgraph_scrape_timestamp_seconds", "When these metrics were computed, in Unix time.", time.time())
    yield _count("memgraph_journal_events_total", "Events that the journal recorded.", store.reader.index.offset.seq)
    yield _one("memgraph_journal_bytes", "Size of these events, without archived ones.", sizes.events)
    yield _one("memgraph_archive_bytes", "Size of the archived ones, compressed.", sizes.archive)
    yield _one("memgraph_store_bytes", "Size of everything in the store's directory.", size_on_disk(home))
    yield _one("memgraph_store_limit_bytes", "The setting max_memory_mb; 0: none.", config.max_memory_mb * 1_000_000)
    yield _one("memgraph_disk_free_bytes", "Bytes by which the journal can grow.", free_bytes(home / "lock"))
    meaning = "Events by which the graph was behind the journal before this command brought it up to date."
    yield Metric("memgraph_graph_lag_events", "gauge", meaning, {} if lag is None else {_ONE: lag})


def _memories(store: AgentMemoryStore) -> Iterator[Metric]:
    with store.reader.frozen():
        index = store.reader.index
        live, kind = index.memories(), index.column("type")
        listed = live & ~index.column("is_archived") & ~index.column("is_suppressed")
        listed &= index.column("invalid_days") > epoch_days(store.now())
        is_replaced = superseded(index, listed)
        states = {
            "in_force": listed & ~is_replaced,
            "superseded": listed & is_replaced,
            "archived": live & index.column("is_archived"),
            "suppressed": live & ~index.column("is_archived") & index.column("is_suppressed"),
        }
        states["invalidated"] = live & ~np.logical_or.reduce(list(states.values()))
        counts: dict[tuple[str, ...], float] = {
            (name, state): int((mask & (kind == code)).sum())
            for state, mask in states.items()
            for code, name in enumerate(MEMORY_TYPES)
        }
        pinned = int((listed & index.column("is_pinned")).sum())
        contradictions = len(pairs_among(index, states["in_force"]))
    yield Metric(
        "memgraph_memories",
        "gauge",
        "Memories that are not deleted, each in one state: archived, else suppressed, else invalidated, else superseded, else in force.",
        counts,
        ("type", "state"),
    )
    yield _one("memgraph_memories_pinned", "Pinned memories that are listed.", pinned)
    yield _one("memgraph_memories_awaiting_vectors", "Memories without a vector.", store.awaiting_vectors())
    yield _one("memgraph_contradictions_open", "Contradictions that are undecided.", contradictions)


def _runs(store: AgentMemoryStore) -> Iterator[Metric]:
    slept, compressed = last_run(store.reader, SLEEP), last_run(store.reader, COMPRESSION)
    ended = not slept.get("phases_left") and slept.get("applied_at")
    yield _moment("memgraph_sleep_completed_timestamp_seconds", "When the last sleep was completed, in Unix time; absent while one is unfinished.", ended)  # fmt: skip
    yield _one("memgraph_sleep_phases_left", "Phases that the last sleep has left.", len(slept.get("phases_left", ())))
    yield _one("memgraph_sleep_failed", "1 if the last sleep failed, else 0.", int("failed_at" in slept))
    yield _one("memgraph_sleep_waiting_episodes", "Live episodes that no sleep has processed.", episodes_since(store))
    yield _moment("memgraph_compress_completed_timestamp_seconds", "When the last compression was completed, in Unix time.", compressed.get("applied_at"))  # fmt: skip
    backups = store.backups()
    yield _moment("memgraph_backup_timestamp_seconds", "When the last backup was recorded, in Unix time.", store.last_backup_at())  # fmt: skip
    since = store.reader.index.offset.seq - backups[-1].seq if backups else store.reader.index.offset.seq
    yield _one("memgraph_backup_lag_events", "Events that the last backup does not have.", since)


def _recalls(store: AgentMemoryStore) -> Iterator[Metric]:
    found = Counter(row.get("outcome", "") for row in store.reader.every_record("Recall"))
    outcomes: Counter[tuple[str, ...]] = Counter()
    for word, number in found.items():
        if word:
            outcomes[(OUTCOME_OF_WORD.get(word, _OTHER),)] += number
    yield _count("memgraph_recalls_total", "Recalls that the graph holds.", sum(found.values()))
    yield Metric(
        "memgraph_recall_outcomes_total", "counter", "Recalls by their recorded outcome.", outcomes, ("outcome",)
    )


def _diagnostics(store: AgentMemoryStore) -> Iterator[Metric]:
    config = store.config
    if config.diagnostics_file:
        yield Metric(
            "memgraph_diagnostic_records",
            "gauge",
            "Records in the file of diagnostics and its predecessor.",
            _by_severity(Path(config.diagnostics_file).expanduser().absolute()),
            ("kind", "severity"),
        )
    letters = sum(1 for _ in _lines(dead_letters_of(config)))
    yield _one("memgraph_dead_letters", "Alerts in the file of undelivered ones and its predecessor.", letters)


def _by_severity(file: Path) -> Mapping[tuple[str, ...], float]:
    """Return the number of records by kind and severity: of all that can occur, so that an alert does not miss the first one."""
    found: Counter[tuple[str, ...]] = Counter({(kind, severity): 0 for kind in _KINDS for severity in SEVERITIES})
    for line in _lines(file):
        record: Any = None
        try:
            record = orjson.loads(line)
            key = (record["kind"], record["severity"])
        except (orjson.JSONDecodeError, TypeError, KeyError):
            key = (_OTHER, _OTHER)
        found[key if key in found else (_OTHER, _OTHER)] += 1
    return found


def _lines(file: Path) -> Iterator[bytes]:
    """Yield the lines of a file of records, after those of its predecessor; a file that cannot be read has none."""
    for path in (predecessor_of(file), file):
        try:
            with path.open("rb") as stream:
                yield from stream
        except OSError:
            continue


def _one(name: str, meaning: str, value: float) -> Metric:
    return Metric(name, "gauge", meaning, {_ONE: value})


def _count(name: str, meaning: str, value: float) -> Metric:
    return Metric(name, "counter", meaning, {_ONE: value})


def _moment(name: str, meaning: str, moment: str | bool | None) -> Metric:
    """Return the metric of a time; it has no sample if there is none."""
    return Metric(name, "gauge", meaning, {_ONE: from_iso(moment).timestamp()} if isinstance(moment, str) else {})


class Metric(NamedTuple):
    """One metric, in base units, a counter's name ending with ``_total``: its samples, by the values of its labels in their order."""

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    samples: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = ()


def exposition(metrics: Iterable[Metric]) -> str:
    """Return metrics as text; those without samples are left out."""
    lines: list[str] = []
    for metric in metrics:
        if not metric.samples:
            continue
        lines.append(f"# HELP {metric.name} {_escaped(metric.meaning)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        lines += [
            f"{metric.name}{_labels(metric, values)} {_number(value)}" for values, value in metric.samples.items()
        ]
    return "".join(f"{line}\n" for line in lines)


def _labels(metric: Metric, values: tuple[str, ...]) -> str:
    pairs = [f'{name}="{_quoted(value)}"' for name, value in zip(metric.labels, values, strict=True)]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
