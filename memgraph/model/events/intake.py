"""Events about ingested build logs and sources."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from memgraph.model.base import Count, Name, Text, Timestamp
from memgraph.model.events.payload import Payload, Sha256


class BuildConsolidated(Payload):
    """A build log was consolidated, wholly or (when time ran out) up to `consumed_keys`."""

    TYPE = "build.consolidated"

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
