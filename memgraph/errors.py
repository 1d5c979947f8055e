"""Every error that memgraph raises, as one tree with ``MemGraphError`` at its root.

Leaves carry what a program needs as attributes (path, seq, field, pid), so no caller parses a message; the message
says what happened, where, and what to do next.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar


class MemGraphError(Exception):
    """Root of all errors raised by memgraph."""

    _names_places_only: ClassVar[bool] = False
    """Whether the message contains only paths, numbers and ids."""
    _own_words: str | None = None
    """The message without what an engine or a server says in it, which may quote memories."""

    @property
    def loggable(self) -> str:
        """What a log may say about the error: its message, or the part of it that cannot quote memories; else its class name."""
        if self._own_words is not None:
            return self._own_words
        return str(self) if self._names_places_only else type(self).__name__


class InvalidInputError(MemGraphError, ValueError):
    """The caller gave an invalid value; nothing was stored.

    Parameters
    ----------
    problem : str
        What is wrong and what would be accepted.
    field : str
        Dotted name of the refused field, such as ``tasks.0.outcome``.
    value : object
        The refused value, shortened for display. Left out: the message shows none.
    """

    def __init__(self, problem: str, *, field: str, value: object = ...) -> None:
        self.problem = problem
        self.field = field
        self.value = None if value is ... else value
        super().__init__(f"{field}: {problem}" + ("" if value is ... else f" (got {_shown(value)})"))


class UnsupportedClaimError(InvalidInputError):
    """Statements about a source of which it supports none; nothing was stored.

    Attributes
    ----------
    problems : list of str
        What is wrong with each, with its place, such as ``statements.0.content: “8080” is not in the quoted evidence``.
    """

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        said = "; ".join(problems) + ". Correct or remove these statements, and send the answer again"
        super().__init__(said, field="answer")


class NotFoundError(MemGraphError, KeyError):
    """No live memory or other record has this id; `listed_by` lists the ids, or `known` are all."""

    def __init__(
        self, kind: str, key: str, *, listed_by: str = "memgraph list", known: Sequence[str] = (), problem: str = ""
    ) -> None:
        self.kind, self.key = kind, key
        message = problem or f"no {kind} with id {_shown(key)}; `{listed_by}` shows the ids"
        super().__init__(f"no {kind} {_shown(key)}; there are {', '.join(known)}" if known else message)

    def __str__(self) -> str:  # KeyError would quote the message
        return str(self.args[0])


class DuplicateIdError(MemGraphError):
    """A memory with this id is already in the store, or occurs twice in one call."""

    def __init__(self, memory_id: str, *, where: str = "in the store") -> None:
        self.memory_id = memory_id
        super().__init__(f"id {memory_id} is already {where}; leave `id` out to get a new one, or use update_memory")


class UndoError(MemGraphError):
    """An event cannot be undone. Undo first the later events that changed the same fields or links (`blocked_by`)."""

    def __init__(self, problem: str, *, seq: int, blocked_by: Sequence[int] = (), what: str | None = None) -> None:
        self.seq = seq
        self.blocked_by = list(blocked_by)
        super().__init__(f"{what or f'event {seq} cannot be undone'}: {problem}")


class ScopeError(MemGraphError):
    """The events of one commit have different write scopes."""


class PermissionDeniedError(MemGraphError):
    """An agent asked for what its permissions exclude. The message does not depend on what the store holds."""

    def __init__(self, problem: str, *, agent: str | None) -> None:
        self.agent = agent
        super().__init__(problem)


class ConfigError(MemGraphError):
    """A setting is unknown, ill-typed, or its file cannot be read."""


class NotAStoreError(MemGraphError):
    """The directory exists, holds files, and is not a memgraph store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"{path} is not a memgraph store: it holds files but no memgraph.db; "
            "give an empty or new directory, or the directory of a store"
        )


class StorageError(MemGraphError):
    """The operating system refused a read or write under the store."""

    _names_places_only = True

    def __init__(self, message: str, *, path: Path | str) -> None:
        self.path = path
        super().__init__(f"{path}: {message}")


class BackupError(StorageError):
    """A backup is damaged, incomplete or does not fit, or its file exists; nothing was changed."""


class BusyError(MemGraphError):
    """Another process held the store's lock for longer than the timeout."""

    _names_places_only = True

    def __init__(self, what: str, *, pid: int | None, timeout_s: float) -> None:
        self.pid = pid
        self.timeout_s = timeout_s
        holder = f"process {pid}" if pid else "another process"
        super().__init__(f"{what} has been held by {holder} for over {timeout_s:g} s; try again, or stop that process")


class ClosedError(MemGraphError):
    """The store was closed."""

    _names_places_only = True


class ReadOnlyError(MemGraphError):
    """The store is open for reading only."""

    _names_places_only = True


class JournalError(MemGraphError):
    """The journal cannot be trusted or written; the store refuses to open."""

    _names_places_only = True


class DamagedJournalError(JournalError):
    """The journal's bytes differ from what was signed: in which database, at which event."""

    concerns_signature = concerns_envelope = False
    """Whether the line's signature was refused; whether the version of its envelope is unknown."""

    def __init__(
        self,
        reason: str,
        *,
        path: Path | str,
        seq: int | None = None,
        advice: str = "`memgraph repair` restores it from a backup, or keeps what verifies",
    ) -> None:
        self.path, self.seq = path, seq
        where = f"{path}" + (f", event {seq}" if seq is not None else "")
        super().__init__(f"journal damaged at {where}: {reason}; {advice}")


class TruncatedJournalError(JournalError):
    """The journal ends before the event that its head file, or the process that has it open, names (`witness`).

    `seq` is the last event found; None if it was not determined.
    """

    def __init__(self, *, path: Path | str, seq: int | None, head_seq: int, witness: str) -> None:
        self.path, self.seq, self.head_seq = path, seq, head_seq
        super().__init__(
            f"the journal in {path} ends {'too early' if seq is None else f'at event {seq}'}, but {witness} says {head_seq} were written: it was truncated or is "
            "an old copy; restore the journal from a backup or, to continue with the events it has, run `memgraph repair --accept-head`"
        )


class KeyMissingError(JournalError):
    """Keys of the store are missing, invalid, expired or out of reach; `key_ids` are those that are known by their ids."""

    def __init__(self, message: str, *, key_id: str | None = None, key_ids: Sequence[str] = ()) -> None:
        self.key_id, self.key_ids = key_id, list(key_ids or ([key_id] if key_id else []))
        super().__init__(message)


class UnknownEventError(JournalError):
    """The journal holds an event whose type or version this release does not know."""


class PayloadError(JournalError):
    """An event's payload does not match the schema of its type and version."""


class VectorDamageError(MemGraphError):
    """A vector in the database differs from what the journal recorded."""

    _names_places_only = True

    def __init__(self, *, path: Path | str, row: int, memory_id: str) -> None:
        self.path = path
        self.row = row
        self.memory_id = memory_id
        super().__init__(
            f"{path}, row {row} (memory {memory_id}) differs from what the journal recorded; recompute it with "
            "`memgraph embed --repair`, or restore it from a backup"
        )


class GraphError(MemGraphError):
    """The graph engine failed; the journal is unaffected and the graph can be rebuilt from it.

    The engine's own message (`engine_says`) may quote stored data, so it is shown to the caller and never logged.
    """

    def __init__(self, message: str, *, engine_says: str = "") -> None:
        self._own_words = message
        super().__init__(f"{message}: {engine_says}" if engine_says else message)


class OutdatedGraphError(GraphError):
    """The graph belongs to another release, store or journal position. It is not damaged; it is rebuilt."""


class QueryError(GraphError):
    """A Cypher query was refused or failed."""

    @property
    def loggable(self) -> str:
        """The class name: the message may quote the query."""
        return type(self).__name__


class DiskFullError(GraphError):
    """The disk has too little space for the graph's writes. The journal holds all acknowledged events."""

    def __init__(self, problem: str, *, path: Path | str) -> None:
        self.path = path
        super().__init__(
            f"{path}: {problem}; free some disk space and try again: the journal holds everything that was acknowledged"
        )


class EmbeddingError(MemGraphError):
    """The embedding model cannot be loaded, or it failed on a text."""

    _names_places_only = True


class ModelMismatchError(EmbeddingError):
    """The store's vectors come from another model or have another dimension; `setting` selects the stored one as ``embedding_model``."""

    def __init__(self, *, stored: tuple[str, int], given: tuple[str, int], setting: str | None = None) -> None:
        self.stored = stored
        self.given = given
        self.setting = setting
        remedy = f"set embedding_model to {setting}" if setting else "open it with the former model"
        super().__init__(
            f"this store's vectors are {stored[0]} with {stored[1]} dimensions, the embedder given is "
            f"{given[0]} with {given[1]}: {remedy}, or switch the store's model with `memgraph reembed`"
        )


class ProviderError(MemGraphError):
    """A server of models cannot be reached, refused a request for `model` at `host` (`status`), or sent an invalid answer.

    The server's own message (`server_says`) may quote the request, so it is shown to the caller and never logged.
    """

    def __init__(
        self, problem: str, *, model: str, host: str = "", status: int | None = None, server_says: str = ""
    ) -> None:
        self.model = model
        self.host = host
        self.status = status
        self._own_words = problem
        super().__init__(f"{problem}: {server_says}" if server_says else problem)


class BudgetSpentError(MemGraphError):
    """A run has used up its budget for models: `what` is ``calls``, ``tokens`` or ``seconds``."""

    _names_places_only = True

    def __init__(self, what: str, *, most: float) -> None:
        self.what = what
        self.most = most
        super().__init__(
            f"the budget of {most:,.12g} {what} for models is spent; raise model_budget.{what} to allow more"
        )


class MissingExtraError(MemGraphError, ImportError):
    """An optional package is not installed; ``pip install 'memgraph-kuzu[extra]'`` installs its `extra`."""

    _names_places_only = True

    def __init__(self, what: str, *, package: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} need {package}, which is not installed: pip install 'memgraph-kuzu[{extra}]'")


class SourceError(MemGraphError):
    """A source (log file, repository) cannot be read."""

    def __init__(self, message: str, *, path: Path) -> None:
        self.path = path
        is_about_it = message.startswith(("is ", "does ", "has ", "holds ", "contains "))
        super().__init__(f"{path}{' ' if is_about_it else ': '}{message}")


_REPR = reprlib.Repr()
_REPR.maxother = sys.maxsize


def _shown(value: object, limit: int = 80) -> str:
    """Render a refused value as short, one-line, encodable text."""
    text = _REPR.repr_instance(value, 1)  # repr(), or the type's name where repr() fails (nested too deeply, too long)
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text)} characters)"
    return text.encode("utf-8", "backslashreplace").decode()
