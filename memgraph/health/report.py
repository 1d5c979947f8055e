"""What an examination found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from memgraph.errors import JournalError, MemGraphError
from memgraph.model.results.maintenance import Health, HealthCheck


@dataclass(slots=True)
class Report:
    """The facts, and the checks.

    Attributes
    ----------
    found : dict
        Facts by part: places, sizes, versions.
    unseen : list of str
        What could not be checked, and why.
    refusals : list of JournalError
        Why opening would refuse the store, or has: what diagnostics report of it.
    """

    found: dict[str, Any] = field(default_factory=dict)
    checks: list[HealthCheck] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    refusals: list[JournalError] = field(default_factory=list)

    def error(self, name: str, message: str, advice: str = "", **measured: float | None) -> None:
        """Add an error; without advice, its message says what to do."""
        self.checks.append(HealthCheck(name=name, status="error", message=message, advice=advice, **measured))

    def refused(self, name: str, error: MemGraphError, *, value: float | None = None) -> None:
        """Add an error that was raised; one of the journal is also a refusal."""
        self.error(name, str(error), value=value)
        if isinstance(error, JournalError):
            self.refusals.append(error)

    def warning(self, name: str, message: str, advice: str = "", **measured: float | None) -> None:
        """Add a warning."""
        self.checks.append(HealthCheck(name=name, status="warning", message=message, advice=advice, **measured))

    def passed(self, name: str, *, value: float | None = None, limit: float | None = None) -> None:
        """Add a check that found nothing, unless this one has found something."""
        if all(check.name != name for check in self.checks):
            self.checks.append(HealthCheck(name=name, value=value, limit=limit))

    def compare(self, name: str, value: float, limit: float, message: str, advice: str) -> None:
        """Warn if a value is above its limit."""
        if value > limit:
            self.warning(name, message, advice, value=value, limit=limit)
        self.passed(name, value=value, limit=limit)

    def health(self) -> Health:
        """Return the checks as a result."""
        said = {status: [one.message for one in self.checks if one.status == status] for status in ("warning", "error")}
        return Health(healthy=not said["error"], checks=self.checks, warnings=said["warning"], errors=said["error"])
