"""Events about ingested build logs and sources."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memgraph.model.base import Count, Name, Text, Timestamp
from memgraph.model.events.payload import Payload, Policy, Sha256, nothing


class BuildConsolidated(Payload):
    """A build log was consolidated, wholly or (when time ran out) up to `consumed_keys`."""

    TYPE = "build.consolidated"
    POLICY = Policy(
        carries=nothing,
        agents="in_part",
        irreversible="it records that a build was read; `forget`, `archive` or `delete` its memories instead",
        is_act=True,
    )

    project_id: Name
    build_id: Name
    log_sha256: Sha256
    outcome: Literal["success", "failure", "partial"]
    started_at: Timestamp
    completed_at: Timestamp
    task_count: Count
    agents: list[Name] = Field(default_factory=list)
    consumed_keys: list[Name] = Field(default_factory=list)
    complete: bool
    extracted: Count
    merged: Count
    extractor: Name
    consolidated_at: Timestamp

    def occurred_at(self) -> str | None:
        """Return when the build ended."""
        return self.completed_at


class SourceRead(Payload):
    """A source was read up to `cursor`; counts are totals over all reads."""

    TYPE = "source.read"
    POLICY = Policy(carries=nothing, irreversible="it records how far a source was read")

    source_id: Name
    kind: Name
    locator: Text
    project_id: Name
    cursor: Text
    records: Count
    builds: Count
    extracted: Count
    merged: Count
    skipped: Count
    read_at: Timestamp
