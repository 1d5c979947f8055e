"""Settings of diagnostics: where records and alerts go. The environment and arguments alone set them."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from memgraph.model.base import Address, Model
from memgraph.model_server import is_this_machine

DIAGNOSTIC_VARIABLES = {
    "MEMGRAPH_DIAGNOSTICS_FILE": "diagnostics_file",
    "MEMGRAPH_DIAGNOSTICS_RECALLS": "diagnostics_recalls",
    "MEMGRAPH_ALERT_WEBHOOK": "alert_webhook",
    "MEMGRAPH_ALERT_PAGERDUTY_URL": "alert_pagerduty_url",
    "MEMGRAPH_ALERT_SEVERITY": "alert_severity",
    "MEMGRAPH_ALERT_TIMEOUT_S": "alert_timeout_s",
    "MEMGRAPH_ALERT_ATTEMPTS": "alert_attempts",
    "MEMGRAPH_ALERT_DEAD_LETTERS": "alert_dead_letters",
}
"""Settings by environment variable. The store's ``config.toml`` cannot set them, because who can write it would choose where data goes."""
WEBHOOK_SECRET_VARIABLE = "MEMGRAPH_ALERT_SECRET"  # noqa: S105 - its name, not its value
PAGERDUTY_KEY_VARIABLE = "MEMGRAPH_PAGERDUTY_KEY"
"""Secrets are read from the environment alone and are no settings, because settings are shown."""


class DiagnosticSettings(Model):
    """Settings of diagnostics.

    Attributes
    ----------
    alert_severity : {"warning", "error", "critical"}
        The lowest severity that is sent to the webhook and to PagerDuty.
    """

    diagnostics_file: str = Field(
        default="",
        max_length=4_000,
        description="File to which every diagnostic record is appended as one line of JSON. Empty: none.",
    )
    diagnostics_recalls: Literal["changes", "all"] = Field(
        default="changes",
        description="Retrieval records: at the first use of a ranking in an open store, every hour of use and at the end (changes); or "
        "also of each recall (all).",
    )
    alert_webhook: Address = Field(
        default="",
        description="Address to which alerts are posted, signed with MEMGRAPH_ALERT_SECRET: https, or http on this machine. "
        "Empty: none.",
    )
    alert_pagerduty_url: Address = Field(
        default="https://events.pagerduty.com/v2/enqueue",
        description="Address of PagerDuty's Events API v2, used if MEMGRAPH_PAGERDUTY_KEY is set.",
    )
    alert_severity: Literal["warning", "error", "critical"] = Field(
        default="error",
        description="Lowest severity of the records that are sent as alerts: warning, error or critical.",
    )
    alert_timeout_s: Annotated[float, Field(gt=0.0, le=60.0, allow_inf_nan=False)] = Field(
        default=5.0,
        description="Timeout of one attempt to send an alert, and of the wait for alerts at the exit, in seconds.",
    )
    alert_attempts: Annotated[int, Field(ge=1, le=10)] = Field(
        default=4, description="Attempts to send an alert before it is written to the file of undelivered alerts."
    )
    alert_dead_letters: str = Field(
        default="",
        max_length=4_000,
        description="File of undelivered alerts, one line of JSON each. Empty: dead-letters.jsonl in keys_home.",
    )

    @field_validator("alert_webhook", "alert_pagerduty_url")
    @classmethod
    def _is_private(cls, address: str) -> str:
        if not address:
            return address
        parts = urlsplit(address)
        if parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and is_this_machine(address))):
            return address
        raise ValueError("must be an address with https, or with http on this machine")
