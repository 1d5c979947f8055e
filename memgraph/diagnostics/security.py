"""Security records: which error of a journal is which reason."""

from __future__ import annotations

from collections.abc import Callable

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.records import SecurityReason, SecurityRecord, security_severity, token_of
from memgraph.diagnostics.repeats import Repeats
from memgraph.diagnostics.reporting import report
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, PayloadError, UnknownEventError

_MAX_KEYS = 100
_Finding = tuple[str | int | None, ...]
_reported = Repeats()
"""What this process has reported: where the records go, the store, the reason and the place."""


def reason_of(error: JournalError) -> SecurityReason:
    """Return the reason of the record of an error."""
    if isinstance(error, KeyMissingError):
        return "boot_key"
    if isinstance(error, PayloadError | UnknownEventError):
        return "schema"
    if isinstance(error, DamagedJournalError) and error.concerns_signature:
        return "signature"
    if isinstance(error, DamagedJournalError) and error.concerns_envelope:
        return "envelope"
    return "journal"


def report_security(
    config: AgentMemoryConfig,
    reason: SecurityReason,
    *,
    now: Callable[[], str],
    store_id: str | None,
    error: JournalError | None = None,
) -> None:
    """Report something that concerns a store's trust, and where the error says it is."""
    severity = security_severity(reason, config.security_mode)
    if error is not None:
        _reported.note(_finding(config, reason, store_id, error))

    def made() -> SecurityRecord:
        place = error if isinstance(error, DamagedJournalError) else None
        return SecurityRecord(
            at=now(),
            severity=severity,
            store_id=store_id,
            reason=reason,
            mode=config.security_mode,
            key_ids=[*map(token_of, error.key_ids[:_MAX_KEYS])] if isinstance(error, KeyMissingError) else [],
            segment=token_of(place.path.name) if place else None,
            seq=place.seq if place else None,
        )

    report(config, made, severity=severity)


def report_finding(
    config: AgentMemoryConfig,
    error: JournalError,
    *,
    now: Callable[[], str],
    store_id: str | None,
    repeats: Repeats = _reported,
) -> None:
    """Report an error that an examination or an open store has met, unless this process has reported it within the last hour.

    An opening that was refused counts as a report. A server would otherwise report damage at each request.
    """
    if repeats.note(_finding(config, reason_of(error), store_id, error)):
        report_security(config, reason_of(error), now=now, store_id=store_id, error=error)


def _finding(config: AgentMemoryConfig, reason: str, store_id: str | None, error: JournalError) -> _Finding:
    keys = error.key_ids if isinstance(error, KeyMissingError) else []
    place = (error.path.name, error.seq) if isinstance(error, DamagedJournalError) else ()
    what = type(error).__name__
    return (config.diagnostics_file, config.alert_webhook, store_id, reason, what, *keys, *place)
