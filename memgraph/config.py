"""Settings, in order of precedence: arguments, ``MEMGRAPH_*``, the store's ``config.toml``, the defaults."""

from __future__ import annotations

import errno
import os
import tomllib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_origin

import platformdirs
from pydantic import Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from memgraph.errors import ConfigError, InvalidInputError
from memgraph.model.base import Address, Count, Floor, Model, Name, storable
from memgraph.model.build import ConsolidationConfig as ConsolidationConfig  # noqa: PLC0414 - public here
from memgraph.model.model_usage import ChatServer, EmbeddingModel, ModelBudget
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.model.results.maintenance import HealthLimits
from memgraph.model.results.retrieval import PromptBudget
from memgraph.model.results.retrieval import RetrievalBudget as RetrievalBudget  # noqa: PLC0414 - public here
from memgraph.model.results.tasks import TurnSettings
from memgraph.privacy.access import AgentPermissions
from memgraph.settings import (
    DEFAULT_TENANT,
    OUTSIDE_THE_STORE,
    DiagnosticSettings,
    JournalSettings,
    SecuritySettings,
    Server,
    ServerSettings,
    is_address,
    without_password,
)

DEFAULT_HOME = "~/.memgraph"
OLLAMA_PREFIX = "ollama:"
_ALIASES = {"min_similarity": "retrieval_floor", "minSimilarity": "retrieval_floor"}
"""Other names of settings: seed 4's."""
_NO_STORE_YET = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""Errors that mean `home` is missing or not a directory; opening the store reports that."""
NO_HOME = "set HOME, or MEMGRAPH_HOME and MEMGRAPH_KEYS_HOME: the system does not know this user's home directory"
_environment: ContextVar[Mapping[str, str] | None] = ContextVar("memgraph_environment", default=None)


class AgentMemoryConfig(DiagnosticSettings, JournalSettings, SecuritySettings, ServerSettings):
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
    graph_idle_s: float = Field(
        default=2.0,
        ge=0.0,
        allow_inf_nan=False,
        description="No effect any more: no process keeps the graph locked.",
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
        default=20, description="Maximum number of work orders made in a day for agents or people (`memgraph distil`)."
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
            if isinstance(home, str) and "://" in home:  # whose password must not be quoted
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

    Raises
    ------
    ConfigError
        A setting is unknown or ill-typed, or ``config.toml`` is not TOML.
    """
    token = _environment.set(environment)
    try:
        return AgentMemoryConfig.parse({name: value for name, value in (overrides or {}).items() if value is not None})
    except InvalidInputError as error:
        raise ConfigError(f"setting {error}; see the arguments, MEMGRAPH_* and the store's config.toml") from None
    finally:
        _environment.reset(token)


class Setting(NamedTuple):
    """One setting, by its dotted name (``retrieval_budget.episodic``), and the source of its value.

    The source is argument, environment, file or default; `variable` is the environment variable that sets it.
    """

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
    if "home" in settings:
        raise ConfigError(f"{path} sets home, but home is the directory that holds this file; remove the line")
    if outside := _by_field(settings).keys() & OUTSIDE_THE_STORE:
        raise ConfigError(
            f"{path} sets {', '.join(sorted(outside))}, which only MEMGRAPH_* and arguments may set: whoever can write to the store "
            "could otherwise choose its keys and where its diagnostics go; remove the line"
        )
    return settings
