"""Settings, in order of precedence: arguments, ``MEMGRAPH_*``, the store's ``config.toml``, the defaults."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_origin
from urllib.parse import unquote, urlsplit, urlunsplit

import platformdirs
from pydantic import Field, ValidatorFunctionWrapHandler, field_validator, model_validator
from pydantic.alias_generators import to_camel

from memgraph.errors import ConfigError, InvalidInputError
from memgraph.logs import logger_of
from memgraph.model.base import Address, Count, Floor, Model, Name, storable
from memgraph.model.build import ConsolidationConfig as ConsolidationConfig  # noqa: PLC0414 - public here
from memgraph.model.model_usage import ChatServer, EmbeddingModel, ModelBudget
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.model.results.maintenance import HealthLimits
from memgraph.model.results.retrieval import PromptBudget
from memgraph.model.results.retrieval import RetrievalBudget as RetrievalBudget  # noqa: PLC0414 - public here
from memgraph.model.results.tasks import TurnSettings
from memgraph.model_server import is_this_machine
from memgraph.privacy import AgentPermissions

logger = logger_of(__name__)

DEFAULT_HOME = "~/.memgraph"
OLLAMA_PREFIX = "ollama:"
_ALIASES = {"min_similarity": "retrieval_floor", "minSimilarity": "retrieval_floor"}
"""Other names of settings: seed 4's."""
_NO_STORE_YET = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""Errors that mean `home` is missing or not a directory; opening the store reports that."""
NO_HOME = "set HOME, or MEMGRAPH_HOME and MEMGRAPH_KEYS_HOME: the system does not know this user's home directory"
_REMOVED = frozenset({"journal_segment_days", "journal_compression", "graph_idle_s", "graphIdleS"})
"""Settings of earlier versions, which a settings file may still have."""
_environment: ContextVar[Mapping[str, str] | None] = ContextVar("memgraph_environment", default=None)


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


class _RefusedMode(str):
    """``prod``, because a security mode was given that does not exist."""


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

    @property
    def is_mode_refused(self) -> bool:
        """Whether a security mode was given that does not exist, so that ``prod`` counts. The diagnostics report it when the store is opened."""
        return isinstance(self.security_mode, _RefusedMode)

    @field_validator("security_mode", mode="wrap")
    @classmethod
    def _unknown_counts_as_prod(cls, value: object, validate: ValidatorFunctionWrapHandler) -> object:
        if value in ("prod", "dev"):
            return validate(value)
        shown = json.dumps(str(value)[:40])
        logger.error(
            "the security mode %s is neither prod nor dev, and counts as prod; correct MEMGRAPH_SECURITY_MODE", shown
        )
        return _RefusedMode("prod")


ADDRESS = "postgresql://USER@HOST/DATABASE"
"""How the address of a server's database is written."""
_SCHEMES = ("postgresql://", "postgres://")
_MEANT = re.compile(r"\s*postgres(ql)?(\+\w+)?(:|//)|.*\b(dbname|password)\s*=|.*://", re.IGNORECASE | re.DOTALL)
"""What is meant to be an address, and is no path."""
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
    """Return whether a store's place is the address of a database server; what is only meant to be one raises a `ValueError` that does not quote it."""
    if not _MEANT.match(str(home)):
        return False
    refused = f"is no address of a database: {ADDRESS}, with %40 for @ and %2F for / in a password"
    try:
        parts = urlsplit(str(home))
        _ = parts.port
    except ValueError:
        raise ValueError(refused) from None
    is_whole = str(home).startswith(_SCHEMES) and bool(parts.path.strip("/"))
    if not is_whole or "@" in parts.path or parts.netloc.count("@") > 1:
        raise ValueError(refused)
    return True


def without_password(address: str) -> str:
    """Return a database's address without its password, for messages."""
    parts = urlsplit(address)
    user, _, host = parts.netloc.rpartition("@")
    user = user.partition(":")[0]
    query = "&".join(one for one in parts.query.split("&") if unquote(one.partition("=")[0]) not in _SECRETS)
    return urlunsplit((parts.scheme, f"{user}@{host}" if user else host, parts.path, query, ""))


OUTSIDE_THE_STORE = frozenset(
    {*SecuritySettings.model_fields, *DiagnosticSettings.model_fields, *ServerSettings.model_fields} - {"security_mode"}
)
"""Settings that the store's own ``config.toml`` cannot set, because who can write it could then run programs, pass off forged events, or choose where data goes."""


class AgentMemoryConfig(DiagnosticSettings, SecuritySettings, ServerSettings):
    """Settings of a store. Values that are not given come from ``MEMGRAPH_*``, then from the store's ``config.toml``.

    The description of a field says what it sets; `memgraph docs settings` lists them all.

    Raises
    ------
    InvalidInputError
        A setting is unknown or ill-typed.
    ConfigError
        ``config.toml`` cannot be read, or is not TOML.
    """

    home: Path = Field(
        default_factory=lambda: _of_user(Path(DEFAULT_HOME).expanduser),
        validate_default=True,
        description="The store's directory; one store is one tenant.",
    )
    keys_home: Path = Field(
        default_factory=lambda: _of_user(lambda: platformdirs.user_config_dir("memgraph")),
        validate_default=True,
        description="Directory of signing keys and head files, outside the store.",
    )
    redact_secrets: bool = Field(
        default=True, description="Whether keys, tokens and passwords are redacted before anything is stored."
    )
    consolidation_enabled: bool = Field(default=True, description="Whether memories are extracted from build logs.")
    retrieval_budget: RetrievalBudget = Field(default_factory=RetrievalBudget, description="Limits on a recall.")
    prompt_budget: PromptBudget = Field(default_factory=PromptBudget, description="Limits on a prompt's sections.")
    retrieval_floor: Floor = Field(
        default="auto",
        description="Evidence that a recalled memory needs: auto (calibrated), off or a number from 0 to 1. Also min_similarity.",
    )
    recall_when_nothing: Literal["say", "empty"] = Field(
        default="say",
        description="What a recall's notes are if nothing concerns the task: one line that says so, or empty.",
    )
    forgetting_curve: ForgettingCurveConfig = Field(
        default_factory=ForgettingCurveConfig, description="How fast memories lose relevance, and what restores it."
    )
    compression_cycle_interval: int = Field(
        default=10, ge=1, description="Number of builds after which memories are generalised."
    )
    garbage_collection: Literal["archive", "delete"] = Field(
        default="archive", description="What `memgraph collect` does with faded memories."
    )
    archive_retention_days: Annotated[int, Field(ge=0, le=100_000)] = Field(
        default=0,
        description="Age in days from which `memgraph compact` purges memories that were deleted. There is no undo. 0: never.",
    )
    max_memory_mb: Count = Field(
        default=0,
        description="Size of the store on disk, in MB (1,000,000 bytes), above which `memgraph doctor` reports a problem and "
        "`memgraph collect` prints a notice. Nothing is removed for it. 0: no limit.",
    )
    procedure_approval: Literal["user", "evidence"] = Field(
        default="user",
        description="What approves a learned procedure: the user (`memgraph proposals`), or evidence from later successes.",
    )
    sleep_trigger: Literal["manual", "auto"] = Field(
        default="manual",
        description="When the store consolidates memories: only when `memgraph sleep` runs; or also automatically, for a few "
        "seconds, after five new episodes and immediately after negative user feedback.",
    )
    engine: Literal["kuzu", "ladybug"] = Field(
        default="kuzu",
        description="The graph engine: kuzu, or ladybug, its maintained fork (installed by the extra `ladybug`). "
        "`memgraph rebuild --engine NAME` switches a store.",
    )
    tracing: Literal["off", "spans", "content"] = Field(
        default="off",
        description="OpenTelemetry spans of operations on memories, and log records of diagnostics (extra `otel`): off; spans, without any text; "
        "or content, also with the texts of queries and of public memories.",
    )
    agents: dict[Name, AgentPermissions] = Field(
        default_factory=dict,
        description="Permissions of agents, tables [agents.NAME]: the agent's own domain; lists of domains to read, search, write.",
    )
    lock_timeout_s: float = Field(
        default=10.0,
        ge=0.0,
        allow_inf_nan=False,
        description="How long to wait for a lock that another process holds, in seconds.",
    )
    embedding_model: EmbeddingModel = Field(
        default="minilm",
        description="The embedding model: minilm, the packaged model; ollama:NAME, such as ollama:nomic-embed-text, a model "
        "of an Ollama server; or none, which finds memories by text alone. `memgraph reembed` switches a store that has "
        "vectors to another model.",
    )
    extractor: Literal["rules", "ollama", "openai"] = Field(
        default="rules",
        description="What extracts memories from build logs: rules; or a model of an Ollama server (ollama) or of an "
        "OpenAI-compatible one (openai), with the rules as fallback when it fails or its budget is spent.",
    )
    openai: ChatServer = Field(
        default_factory=ChatServer, description="The OpenAI-compatible server of the setting extractor."
    )
    distil_orders_a_day: Count = Field(
        default=40, description="Maximum number of work orders made in a day for agents or people (`memgraph distil`)."
    )
    ollama_host: Address = Field(
        default="", description="Address of the Ollama server. Empty: OLLAMA_HOST, else http://127.0.0.1:11434."
    )
    ollama_model: Name = Field(default="llama3.2", description="The Ollama model that extracts memories.")
    ollama_timeout_s: float = Field(
        default=60.0,
        gt=0.0,
        allow_inf_nan=False,
        description="Timeout of a request to the Ollama server, in seconds.",
    )
    ollama_context_tokens: int = Field(
        default=8192,
        ge=2048,
        le=1_048_576,
        description="Context length of ollama_model in tokens, prompt and answer together; longer logs are shortened to fit.",
    )
    max_task_links: Count = Field(default=3, description="Maximum number of other tasks that a task may read.")
    working_memory_days: Count = Field(default=7, description="Days after which a session's working memory is void.")
    turns: TurnSettings = Field(default_factory=TurnSettings, description="What a turn may decide by itself.")
    ollama_embedding_dimension: int = Field(
        default=0,
        ge=0,
        le=65_536,
        description="Dimension of the Ollama embedding model's vectors. 0: use the known dimension, or ask the server.",
    )
    health: HealthLimits = Field(default_factory=HealthLimits, description="Limits of `memgraph doctor`.")
    model_budget: ModelBudget = Field(
        default_factory=ModelBudget,
        description="Limits on one run's use of models' servers; when they are reached, rules do the rest.",
    )

    @model_validator(mode="before")
    @classmethod
    def _resolved(cls, data: object) -> object:
        if not isinstance(data, Mapping):
            return data
        given = _by_field(data)
        upper = _from_environment(_environment.get()) | given
        home = upper.setdefault("home", DEFAULT_HOME)
        try:
            path, server = _place(home, upper.get("tenant"))
        except (TypeError, ValueError) as error:
            if _MEANT.match(str(home)):  # whose password must not be quoted
                raise ConfigError(f"home {error}") from None
            return upper  # the field's own validation reports the error
        if server is not None:
            upper |= {"home": path, "database": server.address}
        return {**_by_field(_read_toml(path / "config.toml")), **upper}

    @field_validator("home", "keys_home")
    @classmethod
    def _usable(cls, path: Path) -> Path:
        return _absolute(path)


def _is_table(kind: Any) -> bool:
    return get_origin(kind) is dict or (isinstance(kind, type) and issubclass(kind, Model))


_ENVIRONMENT = {
    f"MEMGRAPH_{name.upper()}": name
    for name, field in AgentMemoryConfig.model_fields.items()
    if not _is_table(field.annotation) and name != "database"
}
"""Settings by environment variable. Tables have none."""


def load_config(
    overrides: Mapping[str, Any] | None = None, *, environment: Mapping[str, str] | None = None
) -> AgentMemoryConfig:
    """Return the effective settings, given those of arguments (None values are ignored) and an environment instead of ``os.environ``.

    Raises a `ConfigError` if a setting is unknown or ill-typed, or ``config.toml`` is not TOML.
    """
    token = _environment.set(environment)
    try:
        return AgentMemoryConfig.parse({name: value for name, value in (overrides or {}).items() if value is not None})
    except InvalidInputError as error:
        raise ConfigError(f"setting {error}; see the arguments, MEMGRAPH_* and the store's config.toml") from None
    finally:
        _environment.reset(token)


class Setting(NamedTuple):
    """One setting, by its dotted name, and the source of its value: argument, environment (`variable`), file or default."""

    name: str
    value: Any
    default: Any
    source: str
    variable: str | None
    meaning: str


def config_path(home: str | Path | None = None, *, environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of a store's settings file, without reading it."""
    return home_of(home, environment=environment)[0] / "config.toml"


def home_of(
    home: str | Path | None = None, *, environment: Mapping[str, str] | None = None
) -> tuple[Path, Server | None]:
    """Return a store's directory, and its place on a server if it has one, without reading its settings."""
    given = _from_environment(environment)
    try:
        return _place(home or given.get("home", DEFAULT_HOME), given.get("tenant"))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"home {error}") from None


def _place(home: str | Path, tenant: object) -> tuple[Path, Server | None]:
    if not is_address(home):
        return _absolute(Path(home)), None
    server = Server(str(home), str(tenant or DEFAULT_TENANT))
    return _absolute(_of_user(lambda: platformdirs.user_data_path("memgraph") / "servers" / server.folder)), server


def settings_in_force(
    overrides: Mapping[str, Any] | None = None, *, environment: Mapping[str, str] | None = None
) -> list[Setting]:
    """Return every setting with its value and its source, in the order of the model; arguments and errors are those of `load_config`."""
    config = load_config(overrides, environment=environment)
    sources = {
        "argument": _by_field({name: value for name, value in (overrides or {}).items() if value is not None}),
        "environment": _from_environment(environment),
        "file": _by_field(_read_toml(config.home / "config.toml")),
    }
    found = []
    for setting in default_settings():
        name, _, inner = setting.name.partition(".")
        source = next((kind for kind, given in sources.items() if name in given), "default")
        value = getattr(config, name)
        if name == "database" and value:
            value, source = without_password(value), next(kind for kind, given in sources.items() if "home" in given)
        if inner:  # a table comes as a whole from its first source
            given = sources[source][name] if source != "default" else {}
            if not isinstance(given, Model) and inner not in _by_field(given, type(value)):
                source = "default"
            value = getattr(value, inner)
        found.append(setting._replace(value=value, source=source))
    return found


def default_settings() -> list[Setting]:
    """Return every setting at its default, in the order of the model; reads nothing."""
    variables = {field: name for name, field in _ENVIRONMENT.items()}
    found = []
    for name, field in AgentMemoryConfig.model_fields.items():
        try:
            default = field.get_default(call_default_factory=True, validated_data={})
        except ConfigError:  # below a home directory that nobody knows
            default = None
        parts = type(default).model_fields if isinstance(default, Model) else {}
        for inner, part in parts.items():
            value = getattr(default, inner)
            found.append(Setting(f"{name}.{inner}", value, value, "default", None, part.description or ""))
        if not parts:
            found.append(Setting(name, default, default, "default", variables.get(name), field.description or ""))
    return found


def _from_environment(environment: Mapping[str, str] | None) -> dict[str, Any]:
    environment = os.environ if environment is None else environment
    return {field: environment[name] for name, field in _ENVIRONMENT.items() if environment.get(name)}


def _by_field(data: Mapping[str, Any], model: type[Model] | None = None) -> dict[str, Any]:
    """Return settings by field name; accepts snake_case and camelCase."""
    names = {to_camel(name): name for name in (model or AgentMemoryConfig).model_fields}
    if model is None:
        names |= _ALIASES
    return {names.get(name, name): value for name, value in data.items()}


def _of_user(found: Callable[[], str | Path]) -> Path:
    """Return a directory below the user's home."""
    try:
        return Path(found())
    except RuntimeError:
        raise ConfigError(NO_HOME) from None


def _absolute(path: Path) -> Path:
    storable(str(path))
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"names an unknown home directory ({error}); {NO_HOME}") from None
    except FileNotFoundError:
        raise ValueError(
            "is relative to the current directory, which no longer exists; give an absolute path"
        ) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() and not path.is_dir() and path.exists():  # reading a pipe would block
            raise ConfigError(f"{path} is not a regular file; replace or remove it")
        settings = tomllib.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}; fix or remove it") from None
    except OSError as error:
        if error.errno in _NO_STORE_YET:
            return {}
        raise ConfigError(f"{path} cannot be read: {error.strerror}; fix or remove it") from None
    for name in settings.keys() & _REMOVED:
        logger.warning("%s sets %s, which has no effect any more; remove the line", path, name)
        del settings[name]
    if "home" in settings:
        raise ConfigError(f"{path} sets home, but home is the directory that holds this file; remove the line")
    if outside := _by_field(settings).keys() & OUTSIDE_THE_STORE:
        raise ConfigError(
            f"{path} sets {', '.join(sorted(outside))}, which only MEMGRAPH_* and arguments may set: whoever can write to the store "
            "could otherwise choose its keys and where its diagnostics go; remove the line"
        )
    return settings
