"""Settings of a store's trust: its mode, where its keys come from, and for how long they verify."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, field_validator, model_validator

from memgraph.model.base import Model
from memgraph.settings.diagnostics import DIAGNOSTIC_VARIABLES

_refused_mode: ContextVar[bool] = ContextVar("memgraph_refused_mode", default=False)
"""Whether the validation that is under way has met a security mode that does not exist."""
KeyProviderName = Literal["auto", "file", "env", "json", "command", "aws-sm", "gcp-sm", "azure-kv", "vault"]
SECURITY_VARIABLES = {
    "MEMGRAPH_SECURITY_MODE": "security_mode",
    "MEMGRAPH_ALLOW_UNSIGNED_REPLAY": "allow_unsigned_replay",
    "MEMGRAPH_KEY_PROVIDER": "key_provider",
    "MEMGRAPH_KEY_SOURCE": "key_source",
    "MEMGRAPH_KEY_TIMEOUT_S": "key_timeout_s",
    "MEMGRAPH_KEY_VERIFICATION_DAYS": "key_verification_days",
}
"""Settings by environment variable."""
OUTSIDE_THE_STORE = frozenset({*SECURITY_VARIABLES.values(), *DIAGNOSTIC_VARIABLES.values()} - {"security_mode"})
"""Settings that the store's own ``config.toml`` cannot set, because who can write it could then run programs, pass off forged events, or choose where data goes."""


class SecuritySettings(Model):
    """Settings of a store's trust.

    Attributes
    ----------
    security_mode : {"prod", "dev"}
        Any other value counts as ``prod``, and is logged as an error.
    """

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
