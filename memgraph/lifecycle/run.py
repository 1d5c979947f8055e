"""What runs of the lifecycle share: changes since the last one, the committing runner, time, model usage and diagnostics.

The runner is the only place where phases commit. A phase plans: it reads a `View` and returns events, writes nothing and reads no clock.
The plan is made while others may write, and made again if they changed its input; the last attempt holds the writer lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.reports import RunNotes, report_quota, reported_run
from memgraph.disk.files import beyond, size_on_disk
from memgraph.embedding import embed_each
from memgraph.errors import EmbeddingError
from memgraph.journal.envelope import Event
from memgraph.model.base import Model
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.payload import Actor, Payload, WriteScope
from memgraph.model.memory import AgentMemory, Vector
from memgraph.model.model_usage import ModelUsage, UsageMeter
from memgraph.model.results.learning import OrdersResult
from memgraph.ports import Embedder, Metered, Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write, with_vector
from memgraph.store.query import Reader

ATTEMPTS = 3
"""Maximum number of planning attempts if others write meanwhile; the last one holds the lock."""
MOST_EVENTS = 20_000
"""Maximum number of journal events read per batch."""
_MOST_IN_A_COMMIT = 400

M = TypeVar("M", bound=Model)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Watch:
    """Events after which a phase reads memories again: all but these types, and revisions of no other than these fields."""

    ignored: tuple[type[Payload], ...]
    ignored_fields: frozenset[str] = frozenset()

    def touched(self, event: Event) -> list[str]:
        """Return the memories to read again after an event."""
        if isinstance(event.payload, self.ignored):
            return []
        if isinstance(event.payload, MemoryRevised):
            revised = {*event.content.get("changed", ()), *event.content.get("cleared", ())}
            return [] if revised <= self.ignored_fields else event.payload.memory_ids()
        return event.payload.memory_ids()


class Changes(NamedTuple):
    """The memories touched after one event up to another, each with its first event; whether it is the last batch."""

    touched: dict[str, int]
    after_seq: int
    through_seq: int
    is_last: bool


def changes_after(
    reader: Reader,
    since: int,
    touched_by: Callable[[Event], Sequence[str]],
    *,
    until: int | None = None,
    most_memories: float = float("inf"),
    most_events: float = float("inf"),
) -> Iterator[Changes]:
    """Yield the changes after an event in batches that end at one of these numbers; the last one may be empty."""
    touched: dict[str, int] = {}
    seq = since
    for event in reader.events_after(since):
        if until is not None and event.seq > until:
            break
        seq = event.seq
        for one in touched_by(event):
            touched.setdefault(one, seq)
        if len(touched) >= most_memories or seq - since >= most_events:
            yield Changes(touched, since, seq, is_last=seq == until)
            if seq == until:
                return
            touched, since = {}, seq
    yield Changes(touched, since, seq if until is None else until, is_last=True)


def last_run(reader: Reader, key: str) -> Row:
    """Return the row with the last event (`seq`) that a phase has covered completely; empty before its first run."""
    return reader.record("LifecycleRun", key) or {}


@dataclass(frozen=True, slots=True)
class View:
    """The input of a plan, which may be made under the writer lock, so that it must not ask a model."""

    reader: Reader
    config: AgentMemoryConfig
    now: str


class Commit(NamedTuple):
    """Writes that are committed together, in a task's scope, in the global one, or (system) as the record of a run."""

    writes: Sequence[Write]
    task_id: str | None = None
    is_account: bool = False

    @property
    def write_scope(self) -> WriteScope:
        """The write scope that all writes share."""
        if self.is_account:
            return "system"
        return "task" if self.task_id else "global"


@dataclass(frozen=True, slots=True)
class Plan(Generic[R]):
    """The commits to make, in order, the phase's result after them, and the texts of memories to embed for them."""

    result: R
    commits: Sequence[Commit] = ()
    texts: Collection[str] = ()


class Done(NamedTuple, Generic[R]):
    """The result of a plan, and the sequence numbers of the committed events."""

    result: R
    seqs: list[int]


def always(_event: Event) -> bool:
    """Return True: a plan depends on every event."""
    return True


def carry_out(
    store: AgentMemoryStore,
    plan: Callable[[View], Plan[R]],
    *,
    embedder: Embedder | None = None,
    rests_on: Callable[[Event], object] = always,
    attempts: int = ATTEMPTS,
    actor: Actor = "system",
) -> Done[R]:
    """Plan and commit; plan again if others wrote meanwhile what the plan `rests_on`. With one attempt it is made under the writer lock.

    The actor asked for it, and is recorded with each event except the records of runs, which are the system's.
    """
    vectors: dict[str, Vector | None] = {}
    for left in reversed(range(attempts)):
        with nullcontext() if left else store.exclusive():
            seq = store.reader.index.offset.seq
            made = plan(View(store.reader, store.config, store.now()))
            if not made.commits:
                return Done(made.result, [])
            if embedder is not None:
                lacking = [text for text in dict.fromkeys(made.texts) if text not in vectors]
                vectors |= dict(zip(lacking, vectors_of(embedder, lacking), strict=True))
            with store.exclusive():
                if embedder is not None:
                    store.check_embedder(embedder)
                is_stale = store.reader.index.offset.seq != seq and any(map(rests_on, store.reader.events_after(seq)))
                if not left or not is_stale:
                    return Done(made.result, _committed(store, made.commits, vectors, actor))
    raise AssertionError("unreachable: under the lock nobody else writes")  # pragma: no cover


def account(event: Payload) -> Commit:
    """Return the commit of an event that records a run or its progress."""
    return Commit([event], is_account=True)


def note(store: AgentMemoryStore, event_of: Callable[[View], Payload]) -> None:
    """Commit an event that records a run or its progress, made under the writer lock."""
    carry_out(store, lambda view: Plan(None, [account(event_of(view))]), attempts=1)


def added(one: M, other: M) -> M:
    """Return the sum of the counts and lists of two partial results; it is complete if both are."""
    values = {name: (getattr(one, name), getattr(other, name)) for name in type(one).model_fields}
    fields = {name: a + b for name, (a, b) in values.items() if isinstance(a, int | list) and name != "complete"}
    if "complete" in values:
        fields["complete"] = all(values["complete"])
    return one.model_copy(update=fields)


def commits_of(task_id: str | None, units: Sequence[Sequence[Write]]) -> list[Commit]:
    """Return commits of a few hundred writes each; writes that belong together stay together."""
    batches: list[list[Write]] = [[]]
    for unit in units:
        if len(batches[-1]) + len(unit) > _MOST_IN_A_COMMIT:
            batches.append([])
        batches[-1].extend(unit)
    return [Commit(batch, task_id) for batch in batches if batch]


def commits_by_task(units: Iterable[tuple[str | None, Sequence[Write]]]) -> list[Commit]:
    """Return commits of writes, each unit with its task: one commit has one task, and units stay whole."""
    by_task: dict[str | None, list[Sequence[Write]]] = {}
    for task_id, unit in units:
        by_task.setdefault(task_id, []).append(unit)
    return [commit for task_id, of_task in by_task.items() for commit in commits_of(task_id, of_task)]


def _committed(
    store: AgentMemoryStore, commits: Sequence[Commit], vectors: Mapping[str, Vector | None], actor: Actor
) -> list[int]:
    seqs: list[int] = []
    for commit in commits:
        writes = [_embedded(write, vectors) for write in commit.writes]
        by = "system" if commit.is_account else actor
        events = store.commit(commit.write_scope, writes, task_id=commit.task_id, actor=by)
        seqs += [event.seq for event in events]
    return seqs


def _embedded(write: Write, vectors: Mapping[str, Vector | None]) -> Write:
    """Return a write with the vector of its memory's new text, if that was embedded."""
    if isinstance(write, AgentMemory):
        return write.model_copy(update={"embedding": vectors.get(write.content)}) if write.embedding is None else write
    if isinstance(write, MemoryRevised):
        return with_vector(write, vectors.get(write.changed.content))  # type: ignore[attr-defined]
    return write


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
    """Embed texts before any lock is taken; None for a text that fails: the store keeps it without a vector and reports it."""
    try:
        return _each(embedder, texts)
    except EmbeddingError:
        return [None] * len(texts)


def _each(embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
    return [None if isinstance(one, EmbeddingError) else one for one in embed_each(embedder, texts)]


Timer = Callable[[], float]
"""Returns seconds of a monotonic clock."""
TimeIsUp = Callable[[], bool]


def never() -> bool:
    """Return False: no time limit."""
    return False


class TimeLimit:
    """The remaining time of a run, counted from its creation."""

    def __init__(self, limit_ms: float, timer: Timer) -> None:
        self._timer = timer
        self._until_s = timer() + limit_ms / 1000

    @property
    def left_s(self) -> float:
        """Remaining seconds; negative when the time is up."""
        return self._until_s - self._timer()

    @property
    def is_up(self) -> bool:
        """Whether no time is left."""
        return self.left_s <= 0


def vectors_in_time(embedder: Embedder, texts: Sequence[str], limit: TimeLimit, timer: Timer) -> list[Vector | None]:
    """Return the vectors of as many of the first texts as there is time for, at least one; None as for `vectors_of`.

    A call of a model cannot be interrupted: portions double as long as they fit into the remaining time.
    """
    vectors: list[Vector | None] = []
    size = 1
    while size and len(vectors) < len(texts):
        portion, began = texts[len(vectors) : len(vectors) + size], timer()
        try:
            vectors += _each(embedder, portion)
        except EmbeddingError:
            return [*vectors, *[None] * (len(texts) - len(vectors))]
        text_s = (timer() - began) / len(portion)
        size = min(2 * size, int(max(0.0, limit.left_s) / max(text_s, 1e-6)))
    return vectors


class RunUsage:
    """Meters of a run's current parts, each counted once: an embedder and an extractor may share one."""

    def __init__(self, parts: Callable[[], Sequence[object]]) -> None:
        self._parts = parts

    def restart(self) -> None:
        """Begin a new run: reset the usage and the budget."""
        for meter in self._meters():
            meter.restart()

    def begin_stage(self) -> None:
        """Begin a stage of the run, such as one of its sources; the budget continues."""
        for meter in self._meters():
            meter.begin_stage()

    def total(self) -> ModelUsage | None:
        """Return the usage of the run; None if no part uses a server."""
        return _sum(meter.usage for meter in self._meters())

    def of_stage(self) -> ModelUsage | None:
        """Return the usage of the last stage; None as for `total`."""
        return _sum(meter.of_stage for meter in self._meters())

    def _meters(self) -> list[UsageMeter]:
        return list({id(part.meter): part.meter for part in self._parts() if isinstance(part, Metered)}.values())


def _sum(used: Iterable[ModelUsage]) -> ModelUsage | None:
    total = sum(used, ModelUsage())
    return total if total.calls or total.spent else None


@contextmanager
def reported(store: AgentMemoryStore, run: str) -> Iterator[RunNotes]:
    """Report a block as a run, and after it the store's size if that is above ``max_memory_mb``. A step of another run is a part of it."""
    with reported_run(store.config, run, now=store.now, store_id=store.store_id) as notes:
        yield notes
    most = store.config.max_memory_mb
    if most and not notes.is_step and beyond(size := size_on_disk(store.config.home), most):
        report_quota(store.config, "max_memory_mb", now=store.now, store_id=store.store_id, value=size, limit=most * 1_000_000, unit="bytes")  # fmt: skip


def counts_of(result: Model) -> dict[str, int]:
    """Return the counts among a result's fields."""
    values = {name: getattr(result, name) for name in type(result).model_fields}
    return {name: value for name, value in values.items() if type(value) is int}


def report_budget(store: AgentMemoryStore, usage: ModelUsage | None) -> None:
    """Report a model budget that was spent, with the first of its limits that was reached."""
    if usage is None or not usage.spent:
        return
    budget = store.config.model_budget
    used = [
        ("calls", usage.calls, budget.calls),
        ("tokens", usage.prompt_tokens + usage.completion_tokens, budget.tokens),
        ("seconds", usage.seconds, budget.seconds),
    ]
    unit, value, limit = next((one for one in used if one[1] >= one[2]), used[0])
    report_quota(store.config, "model_budget", now=store.now, store_id=store.store_id, value=value, limit=limit, unit=unit)  # fmt: skip


def report_orders(store: AgentMemoryStore, found: OrdersResult) -> OrdersResult:
    """Report work orders that were not made because of ``distil_orders_a_day``; return the result."""
    if (left_out := found.candidates - found.requested) > 0:
        most = store.config.distil_orders_a_day
        report_quota(store.config, "distil_orders_a_day", now=store.now, store_id=store.store_id, value=left_out, limit=most, unit="orders")  # fmt: skip
    return found
