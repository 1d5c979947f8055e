"""The diagnostic records: one strict, versioned class for each kind. They hold ids, numbers, names of files and of keys, never a text.

A record that does not fit its class is refused. A change of a class that readers would notice gets a new version.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from memgraph.model.base import Count, Finite, Seconds, Strict, Timestamp

Severity = Literal["info", "warning", "error", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error", "critical")
"""From the least to the most severe."""
SecurityReason = Literal[
    "mode_invalid", "dev_bypass", "unsigned_replay", "signature", "envelope", "schema", "boot_key", "journal"
]
_BYPASSES = frozenset({"mode_invalid", "dev_bypass", "unsigned_replay"})
Quota = Literal["disk", "max_memory_mb", "model_budget", "distil_orders_a_day", "server_requests", "server_bodies"]
_PLAIN_NAME = r"[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}"
Token = Annotated[str, StringConstraints(pattern=f"^{_PLAIN_NAME}$")]
"""An id, or a name that cannot be a sentence."""
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
"""Name of a class or of a setting."""
EventNumber = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Duration = Amount
"""In milliseconds."""


def token_of(name: str) -> str:
    """Return a name as a `Token`: itself, or its SHA-256 if it could be a sentence. A journal that was forged may name anything."""
    if re.fullmatch(_PLAIN_NAME, name):
        return name
    return f"sha256:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def security_severity(reason: SecurityReason, mode: Literal["prod", "dev"]) -> Severity:
    """Return how severe a security record is: what is refused in ``prod`` is critical, a bypass in ``dev`` an error (seed 4, section 9)."""
    return "error" if mode == "dev" or reason in _BYPASSES else "critical"


class DiagnosticRecord(Strict):
    """What all records have. Without a `store_id` the store could not be identified."""

    version: Literal[1] = 1
    at: Timestamp
    severity: Severity
    store_id: Token | None = None

    @property
    def subject(self) -> str:
        """What it is about, from a small set of values: records with the same subject and store belong to one incident."""
        raise NotImplementedError

    @property
    def identity(self) -> tuple[str | int | None, ...]:
        """What it shares with its repetitions, which say nothing new."""
        return (type(self).__name__, self.store_id, self.subject)


class SecurityRecord(DiagnosticRecord):
    """Something that concerns the trust in a journal (``memgraph docs alerts``); `offset` is only in records of releases 0.1 and 0.2."""

    kind: Literal["security"] = "security"
    reason: SecurityReason
    mode: Literal["prod", "dev"]
    key_ids: Annotated[list[Token], Field(max_length=100)] = Field(default_factory=list)
    segment: Token | None = None
    offset: EventNumber | None = None
    seq: EventNumber | None = None

    @property
    def subject(self) -> str:
        """The reason."""
        return self.reason

    @property
    def identity(self) -> tuple[str | int | None, ...]:
        """Damage at another place, or another missing key, is no repetition."""
        return (*super().identity, self.segment, self.offset, self.seq, *self.key_ids)


class Ranking(Strict):
    """The versions of everything that a ranking depends on; without vectors the embedder is ``none``, without a floor it is None."""

    settings_version: Token
    configuration_sha256: Digest
    analyser_version: Count
    embedder: Token
    dimension: Count
    fusion: Token
    weights: dict[Identifier, Finite]
    floor: Finite | None = None

    def __hash__(self) -> int:
        """Return a hash: a dictionary of weights has none, and equal rankings have equal configurations."""
        return hash((self.configuration_sha256, self.embedder, self.dimension))


class RecallCounts(Strict):
    """What the recalls of some time gave: memories, the tokens of their texts, and the time that all of them and the longest one took."""

    recalls: Count
    empty: Count
    results: Count
    tokens: Count
    duration_ms: Duration
    longest_ms: Duration

    def __add__(self, other: RecallCounts) -> RecallCounts:
        """Return the counts of both."""
        return RecallCounts(
            recalls=self.recalls + other.recalls,
            empty=self.empty + other.empty,
            results=self.results + other.results,
            tokens=self.tokens + other.tokens,
            duration_ms=round(self.duration_ms + other.duration_ms, 3),
            longest_ms=max(self.longest_ms, other.longest_ms),
        )


class RetrievalRecord(DiagnosticRecord):
    """The ranking of an open store's recalls, and what those since the last record gave: at the first, hourly, at the end, or at each."""

    kind: Literal["retrieval"] = "retrieval"
    severity: Literal["info"] = "info"
    reason: Literal["begun", "hour", "ended", "recall"]
    ranking: Ranking
    counts: RecallCounts | None = None
    query_id: Token | None = None

    @property
    def subject(self) -> str:
        """The reason."""
        return self.reason


class LifecycleRecord(DiagnosticRecord):
    """A run of the lifecycle, with what it counted: a sleep's by phase, such as ``collect.archived``. An interrupted one ran out of time, or was stopped."""

    kind: Literal["lifecycle"] = "lifecycle"
    run: Literal["sleep", "compress", "collect"]
    outcome: Literal["complete", "interrupted", "failed"]
    phases: Annotated[list[Token], Field(max_length=100)] = Field(default_factory=list)
    left: Annotated[list[Token], Field(max_length=100)] = Field(default_factory=list)
    phase: Token | None = None
    error: Identifier | None = None
    counts: Annotated[dict[Token, Count], Field(max_length=500)] = Field(default_factory=dict)
    changed: Count = 0
    resumed: bool = False
    duration_s: Seconds

    @property
    def subject(self) -> str:
        """The run and its outcome."""
        return f"{self.run}.{self.outcome}"

    @property
    def identity(self) -> tuple[str | int | None, ...]:
        """Another error, or one in another phase, is no repetition."""
        return (*super().identity, self.phase, self.error)


def quota_severity(quota: Quota) -> Severity:
    """Return how severe a reached limit is: a full disk stops all writes; the other limits only delay or shorten something."""
    return "error" if quota == "disk" else "warning"


class QuotaRecord(DiagnosticRecord):
    """A limit because of which something was refused or left out, or that was exceeded, so often since the record before."""

    kind: Literal["quota"] = "quota"
    quota: Quota
    value: Amount
    limit: Amount
    unit: Literal["bytes", "calls", "tokens", "seconds", "orders", "requests"]
    occasions: Annotated[int, Field(ge=1)] = 1

    @property
    def subject(self) -> str:
        """The quota."""
        return self.quota


Record = SecurityRecord | RetrievalRecord | LifecycleRecord | QuotaRecord
