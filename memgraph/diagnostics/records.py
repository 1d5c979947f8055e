"""The diagnostic records: one strict, versioned class for each kind. They hold ids, numbers, names of files and of keys, never a text.

A record that does not fit its class is refused. A change of a class that readers would notice gets a new version.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from memgraph.model.base import Count, Finite, Seconds, Strict, Timestamp

Severity = Literal["info", "warning", "error", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error", "critical")
"""From the least to the most severe."""
SecurityReason = Literal[
    "mode_invalid", "dev_bypass", "unsigned_replay", "signature", "envelope", "schema", "boot_key", "journal"
]
_BYPASSES = frozenset({"mode_invalid", "dev_bypass", "unsigned_replay"})
Quota = Literal["max_memory_mb", "model_budget"]

Token = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}$")]
"""An id, or a name that cannot be a sentence."""
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]
"""Name of a class or of a setting."""
EventNumber = Annotated[int, Field(ge=0)]


def security_severity(reason: SecurityReason, mode: Literal["prod", "dev"]) -> Severity:
    """Return how severe a security record is: what is refused in ``prod`` is critical, a bypass in ``dev`` an error (seed 4, section 9)."""
    return "error" if mode == "dev" or reason in _BYPASSES else "critical"


class DiagnosticRecord(Strict):
    """What all records have.

    Attributes
    ----------
    store_id : str or None
        None: the store could not be identified.
    """

    version: Literal[1] = 1
    at: Timestamp
    severity: Severity
    store_id: Token | None = None

    @property
    def subject(self) -> str:
        """What it is about, from a small set of values: records with the same subject and store belong to one incident."""
        raise NotImplementedError


class SecurityRecord(DiagnosticRecord):
    """Something that concerns the trust in a store's journal.

    Attributes
    ----------
    reason : str
        ``mode_invalid``: an unknown security mode counts as ``prod``. ``dev_bypass``: a store was opened although a key is missing or
        a signature invalid. ``unsigned_replay``: events were read without verification. ``signature``, ``envelope``, ``schema``: events
        were refused, because their signature is invalid, or their envelope's version or their payload's schema unknown.
        ``boot_key``: a key is missing or has expired. ``journal``: other damage, such as a truncated or reordered journal.
    key_ids : list of str
        The missing or expired keys.
    segment, offset, seq
        File of the journal, byte offset in it, and number of the event that was refused.
    """

    kind: Literal["security"] = "security"
    reason: SecurityReason
    mode: Literal["prod", "dev"]
    key_ids: Annotated[list[Token], Field(max_length=100)] = Field(default_factory=list)
    segment: Token | None = None
    offset: EventNumber | None = None
    seq: EventNumber | None = None

    @model_validator(mode="after")
    def _has_its_severity(self) -> Self:
        if self.severity != (wanted := security_severity(self.reason, self.mode)):
            raise ValueError(f"{self.reason} in {self.mode} has the severity {wanted}")
        return self

    @property
    def subject(self) -> str:
        """The reason."""
        return self.reason


class RetrievalRecord(DiagnosticRecord):
    """A recall, and the versions of everything that its ranking depends on.

    Attributes
    ----------
    settings_version : str
        As recorded in the journal; results of different versions are not comparable.
    configuration_sha256 : str
        Hash of all settings of the ranking, of which `settings_version` has the beginning.
    embedder, dimension : str, int
        Model of the vectors; ``none`` and 0 without vectors.
    weights : dict
        Every number of the ranking's settings.
    floor : float or None
        Least evidence of a returned memory; None: off.
    """

    kind: Literal["retrieval"] = "retrieval"
    severity: Literal["info"] = "info"
    query_id: Token
    settings_version: Token
    configuration_sha256: Digest
    analyser_version: Count
    embedder: Token
    dimension: Count
    fusion: Token
    weights: dict[Identifier, Finite]
    floor: Finite | None = None
    results: Count
    tokens: Count
    duration_ms: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]

    @property
    def subject(self) -> str:
        """The kind: there is one."""
        return self.kind


class LifecycleRecord(DiagnosticRecord):
    """A run of the lifecycle.

    Attributes
    ----------
    outcome : {"complete", "interrupted", "failed"}
        A failed run is an error, and names its phase and the class of its error.
    phases, left : list of str
        Phases that ran, and those that did not, or not to their end.
    changed : int
        Number of memories that were changed, created or linked.
    """

    kind: Literal["lifecycle"] = "lifecycle"
    run: Literal["sleep"]
    outcome: Literal["complete", "interrupted", "failed"]
    phases: Annotated[list[Token], Field(max_length=100)] = Field(default_factory=list)
    left: Annotated[list[Token], Field(max_length=100)] = Field(default_factory=list)
    phase: Token | None = None
    error: Identifier | None = None
    changed: Count = 0
    resumed: bool = False
    duration_s: Seconds

    @model_validator(mode="after")
    def _has_its_severity(self) -> Self:
        has_failed = self.outcome == "failed"
        if self.severity != ("error" if has_failed else "info"):
            raise ValueError("a failed run is an error, every other one an info")
        if has_failed != (self.error is not None):
            raise ValueError("a failed run, and no other, names its error")
        return self

    @property
    def subject(self) -> str:
        """The run and its outcome."""
        return f"{self.run}.{self.outcome}"


class QuotaRecord(DiagnosticRecord):
    """A limit that was reached or exceeded.

    Attributes
    ----------
    value, limit : float
        In the unit; for ``model_budget`` the calls that were made and those that were allowed.
    """

    kind: Literal["quota"] = "quota"
    severity: Literal["warning"] = "warning"
    quota: Quota
    value: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    limit: Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
    unit: Literal["bytes", "calls"]

    @property
    def subject(self) -> str:
        """The quota."""
        return self.quota


Record = SecurityRecord | RetrievalRecord | LifecycleRecord | QuotaRecord
