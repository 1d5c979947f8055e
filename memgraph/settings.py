"""Settings of single parts, which `memgraph.config` puts together: the journal's files, diagnostics, and a store's trust."""

from __future__ import annotations

import hashlib
import json
import logging
from contextvars import ContextVar
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, field_validator, model_validator

from memgraph.model.base import Address, Model, Name
from memgraph.model_server import is_this_machine


class JournalSettings(Model):
    """Settings of the journal's files."""

    journal_segment_days: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=30,
        description="Without effect since the journal is in a database; settings of earlier releases may have it.",
    )
    journal_compression: bool = Field(
        default=True,
        description="Without effect since the journal is in a database; settings of earlier releases may have it.",
    )
    archive_retention_days: Annotated[int, Field(ge=0, le=100_000)] = Field(
        default=0,
        description="Age in days from which `memgraph compact` purges memories that were deleted. There is no undo. 0: never.",
    )


WEBHOOK_SECRET_VARIABLE = "MEMGRAPH_ALERT_SECRET"  # noqa: S105 - its name, not its value
PAGERDUTY_KEY_VARIABLE = "MEMGRAPH_PAGERDUTY_KEY"
"""Secrets are read from the environment alone and are no settings, because settings are shown."""


class DiagnosticSettings(Model):
    """Settings of diagnostics: where records and alerts go. The environment and arguments alone set them."""

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


_refused_mode: ContextVar[bool] = ContextVar("memgraph_refused_mode", default=False)
"""Whether the validation that is under way has met a security mode that does not exist."""
KeyProviderName = Literal["auto", "file", "env", "json", "command", "aws-sm", "gcp-sm", "azure-kv", "vault"]


class SecuritySettings(Model):
    """Settings of a store's trust: its mode, where its keys come from, and for how long they verify."""

    security_mode: Literal["prod", "dev"] = Field(
        default="prod",
        description="prod: a store opens only with its active key and every key that verifies its events. dev: "
        "allow_unsigned_replay has an effect. Any other value counts as prod.",
    )
    allow_unsigned_replay: bool = Field(
        default=False,
        description="In dev: whether a store with a missing key or an invalid signature opens, read-only. Each use is logged as an "
        "error.",
    )
    key_provider: KeyProviderName = Field(
        default="auto",
        description="Where the signing keys come from: file (in keys_home), env (MEMGRAPH_KEY), json, command, aws-sm, gcp-sm, "
        "azure-kv or vault. auto: env if MEMGRAPH_KEY is set, else file.",
    )
    key_source: str = Field(
        default="",
        max_length=4_000,
        description="What the provider reads: the path of a JSON document, a command as a JSON list of arguments, the name of a secret.",
    )
    key_timeout_s: Annotated[float, Field(gt=0.0, le=600.0, allow_inf_nan=False)] = Field(
        default=10.0, description="Timeout of a key command or a request for a key, in seconds."
    )
    key_verification_days: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=30,
        description="Days for which a key verifies events after its rotation. Afterwards the store is refused until "
        "`memgraph keys rotate --reseal`.",
    )

    _is_mode_refused: bool = PrivateAttr(default=False)

    @property
    def is_mode_refused(self) -> bool:
        """Whether a security mode was given that does not exist, so that ``prod`` counts."""
        return self._is_mode_refused

    def model_post_init(self, _context: Any) -> None:
        """Note whether the mode was refused: the diagnostics report it when the store is opened."""
        self._is_mode_refused = _refused_mode.get()

    @model_validator(mode="wrap")
    @classmethod
    def _on_its_own(cls, data: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        token = _refused_mode.set(False)
        try:
            return validate(data)
        finally:
            _refused_mode.reset(
                token
            )  # also if another setting is refused: else the next validation would take it for its own

    @field_validator("security_mode", mode="before")
    @classmethod
    def _unknown_counts_as_prod(cls, value: object) -> object:
        if value in ("prod", "dev"):
            return value
        _refused_mode.set(True)
        shown = json.dumps(str(value)[:40])
        logging.getLogger("memgraph.config").error(
            "the security mode %s is neither prod nor dev, and counts as prod; correct MEMGRAPH_SECURITY_MODE", shown
        )
        return "prod"


ADDRESS = "postgresql://USER@HOST/DATABASE"
"""How the address of a server's database is written."""
_SCHEMES = ("postgresql", "postgres")
_SECRETS = ("password", "sslpassword", "passfile")
DEFAULT_TENANT = "default"


class Server(NamedTuple):
    """A store's place on a database server: the database's address, which may hold a password, and the name of the store in it."""

    address: str
    tenant: str

    def __repr__(self) -> str:
        return f"{without_password(self.address)} (tenant {self.tenant})"

    @property
    def folder(self) -> str:
        """The name of the local folder of this store, the same whatever the password is."""
        address = without_password(self.address).replace("postgres://", "postgresql://", 1)
        return hashlib.sha256(f"{address}\x1f{self.tenant}".encode()).hexdigest()[:24]


class ServerSettings(Model):
    """Where a store is that lives on a database server. Arguments and the environment alone set them."""

    database: str = Field(
        default="",
        repr=False,
        max_length=4_000,
        description="Address of the PostgreSQL database that holds the store, as it was given as home. Empty: a file in home.",
    )
    tenant: Name = Field(
        default=DEFAULT_TENANT,
        description="Name of the store in the PostgreSQL database; one database holds many stores.",
    )

    @property
    def server(self) -> Server | None:
        """The store's place on a database server; None if it is a file in its directory."""
        return Server(self.database, self.tenant) if self.database else None


def is_address(home: object) -> bool:
    """Return whether a store's place is the address of a database server.

    Raises
    ------
    ValueError
        It is meant to be one, but is not. The message does not quote it.
    """
    if not isinstance(home, str) or "://" not in home:
        return False
    try:
        parts = urlsplit(home)
        _ = parts.port
    except ValueError:
        raise ValueError(f"is no address of a database: {ADDRESS}") from None
    if parts.scheme not in _SCHEMES or not parts.path.strip("/"):
        raise ValueError(f"is no address of a database: {ADDRESS}")
    return True


def without_password(address: str) -> str:
    """Return a database's address without its password, for messages."""
    parts = urlsplit(address)
    user, _, host = parts.netloc.rpartition("@")
    user = user.partition(":")[0]
    query = "&".join(one for one in parts.query.split("&") if one.partition("=")[0] not in _SECRETS)
    return urlunsplit((parts.scheme, f"{user}@{host}" if user else host, parts.path, query, ""))


OUTSIDE_THE_STORE = frozenset(
    {*SecuritySettings.model_fields, *DiagnosticSettings.model_fields, *ServerSettings.model_fields} - {"security_mode"}
)
"""Settings that the store's own ``config.toml`` cannot set, because who can write it could then run programs, pass off forged events, or choose where data goes."""
