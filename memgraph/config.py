"""Settings: from arguments, then ``MEMGRAPH_*``, then the store's ``config.toml``, then the defaults.

pydantic-settings does not read them: it merges a table over several sources, passes over a ``config.toml`` that is a directory,
names no file when one is not TOML, does not say where a value came from, and its import costs each command about 40 ms.
"""

from __future__ import annotations

import errno
import os
import re
import tomllib
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import platformdirs
from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from memgraph.errors import ConfigError, InvalidInputError
from memgraph.model.base import Count, Model, Name, Text, Unit, storable
from memgraph.model.model_usage import ModelBudget
from memgraph.model.relevance import ForgettingCurveConfig

DEFAULT_HOME = "~/.memgraph"
OLLAMA_PREFIX = "ollama:"
_OLLAMA_MODEL = re.compile(r"ollama:[\w.:/@-]{1,200}")


def _known_model(name: str) -> str:
    if name in {"minilm", "none"} or _OLLAMA_MODEL.fullmatch(name):
        return name
    raise ValueError("must be minilm, none, or ollama: and a model's name, as in ollama:nomic-embed-text")


EmbeddingModel = Annotated[Name, AfterValidator(_known_model)]
_ENVIRONMENT = {
    "MEMGRAPH_HOME": "home",
    "MEMGRAPH_KEYS_HOME": "keys_home",
    "MEMGRAPH_SECURITY_MODE": "security_mode",
    "MEMGRAPH_ENGINE": "engine",
    "MEMGRAPH_LOCK_TIMEOUT_S": "lock_timeout_s",
    "MEMGRAPH_GRAPH_IDLE_S": "graph_idle_s",
    "MEMGRAPH_REDACT_SECRETS": "redact_secrets",
    "MEMGRAPH_CONSOLIDATION_ENABLED": "consolidation_enabled",
    "MEMGRAPH_COMPRESSION_CYCLE_INTERVAL": "compression_cycle_interval",
    "MEMGRAPH_GARBAGE_COLLECTION": "garbage_collection",
    "MEMGRAPH_PROCEDURE_APPROVAL": "procedure_approval",
    "MEMGRAPH_SLEEP_TRIGGER": "sleep_trigger",
    "MEMGRAPH_EMBEDDING_MODEL": "embedding_model",
    "MEMGRAPH_EXTRACTOR": "extractor",
    "MEMGRAPH_OLLAMA_HOST": "ollama_host",
    "MEMGRAPH_OLLAMA_MODEL": "ollama_model",
    "MEMGRAPH_OLLAMA_TIMEOUT_S": "ollama_timeout_s",
    "MEMGRAPH_OLLAMA_CONTEXT_TOKENS": "ollama_context_tokens",
    "MEMGRAPH_OLLAMA_EMBEDDING_DIMENSION": "ollama_embedding_dimension",
}
_NO_STORE_YET = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""There is no file because `home` is not there, or no directory: opening the store says so."""
_environment: ContextVar[Mapping[str, str] | None] = ContextVar("memgraph_environment", default=None)


class RetrievalBudget(Model):
    """How much of each type, and how many tokens of content, a prompt gets."""

    episodic: Count = Field(default=5, description="Memories of what happened, at most.")
    semantic: Count = Field(default=3, description="Memories of what is so, at most.")
    procedural: Count = Field(default=2, description="Memories of how to do something, at most.")
    max_tokens: Count = Field(default=800, description="Tokens of content in all, at most.")


class AgentMemoryConfig(Model):
    """Settings of a store: what is not given comes from ``MEMGRAPH_*``, then from the store's ``config.toml``.

    Attributes
    ----------
    home : Path
        The store's directory; one store is one tenant.
    keys_home : Path
        Where keys and heads lie, outside the store.
    security_mode : {"prod", "dev"}
        In ``dev`` a store whose key is missing is served read-only; anything unknown counts as ``prod``.
    engine : {"kuzu", "ladybug"}
        Which engine keeps the graph. The journal is the way from one to the other.
    lock_timeout_s, graph_idle_s : float
        How long a lock is waited for; how long an idle graph stays open to this process alone.
    embedding_model : str
        What makes vectors: ``minilm``, the packaged model; ``ollama:`` and a model's name, that model of an Ollama server; or
        ``none``, and memories are found by text alone.
    extractor : {"rules", "ollama"}
        What finds memories in build logs: the rules; or a model of an Ollama server, for which the rules step in.

    Raises
    ------
    InvalidInputError
        A setting is unknown or ill-typed.
    ConfigError
        ``config.toml`` cannot be read, or is not TOML.
    """

    home: Path = Field(
        default_factory=lambda: Path(DEFAULT_HOME).expanduser(),
        validate_default=True,
        description="The store's directory; one store is one tenant.",
    )
    keys_home: Path = Field(
        default_factory=lambda: Path(platformdirs.user_config_dir("memgraph")),
        validate_default=True,
        description="Where signing keys and head files lie, outside the store.",
    )
    redact_secrets: bool = Field(
        default=True, description="Whether keys, tokens and passwords are taken out of what is kept."
    )
    consolidation_enabled: bool = Field(default=True, description="Whether build logs become memories.")
    retrieval_budget: RetrievalBudget = Field(
        default_factory=RetrievalBudget, description="What a prompt gets of each type of memory."
    )
    forgetting_curve: ForgettingCurveConfig = Field(
        default_factory=ForgettingCurveConfig, description="How fast memories fade, and what brings them back."
    )
    compression_cycle_interval: int = Field(
        default=10, ge=1, description="Builds after which what was learned is compressed into generalisations."
    )
    garbage_collection: Literal["archive", "delete"] = Field(
        default="archive", description="What becomes of memories that have faded, when `memgraph collect` is run."
    )
    procedure_approval: Literal["user", "evidence"] = Field(
        default="user",
        description="Who brings a learned procedure into force: the user (`memgraph proposals`), or the evidence of later successes.",
    )
    sleep_trigger: Literal["manual", "auto"] = Field(
        default="manual",
        description="When the store sleeps: when `memgraph sleep` is run; or also of its own accord, for a few seconds, after five "
        "new episodes, and at once when the user was not content.",
    )
    security_mode: Literal["prod", "dev"] = Field(
        default="prod",
        description="In dev a store whose key is missing is served, read-only. Anything unknown counts as prod.",
    )
    engine: Literal["kuzu", "ladybug"] = Field(
        default="kuzu",
        description="Which engine keeps the graph: kuzu; or ladybug, its maintained fork (the extra `ladybug` installs it). "
        "`memgraph rebuild --engine NAME` moves a store.",
    )
    lock_timeout_s: float = Field(
        default=10.0, ge=0.0, allow_inf_nan=False, description="How long another process is waited for, in seconds."
    )
    graph_idle_s: float = Field(
        default=2.0,
        ge=0.0,
        allow_inf_nan=False,
        description="How long an idle graph stays open to this process alone, in seconds.",
    )
    embedding_model: EmbeddingModel = Field(
        default="minilm",
        description="What makes vectors: minilm, the packaged model; ollama: and a name, as in ollama:nomic-embed-text, that "
        "model of an Ollama server; or none, and memories are found by text alone. A store that has vectors is changed to "
        "another model by `memgraph reembed`.",
    )
    extractor: Literal["rules", "ollama"] = Field(
        default="rules",
        description="What finds memories in build logs: rules; or a model of an Ollama server, for which the rules step in "
        "when it fails or its budget is spent.",
    )
    ollama_host: Text = Field(
        default="", description="The Ollama server's address. Empty: OLLAMA_HOST, else http://127.0.0.1:11434."
    )
    ollama_model: Name = Field(default="llama3.2", description="The Ollama server's model that finds memories.")
    ollama_timeout_s: float = Field(
        default=60.0,
        gt=0.0,
        allow_inf_nan=False,
        description="How long the Ollama server may take to answer, in seconds.",
    )
    ollama_context_tokens: int = Field(
        default=8192,
        ge=2048,
        le=1_048_576,
        description="Tokens that ollama_model takes in and writes at a time; longer logs are shortened to fit.",
    )
    ollama_embedding_dimension: int = Field(
        default=0,
        ge=0,
        le=65_536,
        description="Length of the embedding model's vectors. 0: what is known of it, or it is asked.",
    )
    model_budget: ModelBudget = Field(
        default_factory=ModelBudget, description="What one run may ask of Ollama; when it is spent, the rules serve."
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
            path = _absolute(Path(home))
        except (TypeError, ValueError):
            return upper  # the field's own check says what is wrong
        return {**_by_field(_read_toml(path / "config.toml")), **upper}

    @field_validator("home", "keys_home")
    @classmethod
    def _usable(cls, path: Path) -> Path:
        return _absolute(path)

    @field_validator("security_mode", mode="before")
    @classmethod
    def _unknown_counts_as_prod(cls, value: object) -> object:
        return value if value == "dev" else "prod"


class ConsolidationConfig(Model):
    """Settings of consolidation (seed 0).

    Attributes
    ----------
    max_duration_ms : float
        So long may what is consolidated together be extracted and embedded, and so long may the candidates of each build be
        compared and kept. What there is no time for is left to the next call with the same logs.
    """

    deduplication_threshold: Unit = 0.82
    max_memories_per_extraction: int = Field(default=8, ge=1)
    compression_cycle_interval: int = Field(default=10, ge=1)
    max_duration_ms: float = Field(default=60_000.0, gt=0.0)


def load_config(
    overrides: Mapping[str, Any] | None = None, *, environment: Mapping[str, str] | None = None
) -> AgentMemoryConfig:
    """Return the settings in force.

    Parameters
    ----------
    overrides : mapping, optional
        Settings given as arguments; None values are ignored.
    environment : mapping, optional
        Instead of ``os.environ``.

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
    """One setting, and where its value comes from.

    Attributes
    ----------
    name : str
        Dotted: ``retrieval_budget.episodic``.
    value, default : Any
        In force; without any source.
    source : {"argument", "environment", "file", "default"}
    variable : str or None
        The environment variable that sets it.
    """

    name: str
    value: Any
    default: Any
    source: str
    variable: str | None
    meaning: str


def config_path(home: str | Path | None = None, *, environment: Mapping[str, str] | None = None) -> Path:
    """Return where a store's settings file lies, without reading it.

    Raises
    ------
    ConfigError
        `home` names no directory.
    """
    named = home or _from_environment(environment).get("home", DEFAULT_HOME)
    try:
        return _absolute(Path(named)) / "config.toml"
    except (TypeError, ValueError) as error:
        raise ConfigError(f"home {error}") from None


def settings_in_force(
    overrides: Mapping[str, Any] | None = None, *, environment: Mapping[str, str] | None = None
) -> list[Setting]:
    """Return every setting with its value and where that comes from, in the order of the model.

    Parameters
    ----------
    overrides, environment : mapping, optional
        As for `load_config`.

    Raises
    ------
    ConfigError
        As `load_config` does.
    """
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
        if inner:  # a table is taken as a whole from where it is given first
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
        default = field.get_default(call_default_factory=True, validated_data={})
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
    """Return settings under their fields' names, whichever of the two spellings was used."""
    names = {to_camel(name): name for name in (model or AgentMemoryConfig).model_fields}
    return {names.get(name, name): value for name, value in data.items()}


def _absolute(path: Path) -> Path:
    storable(str(path))
    try:
        return path.expanduser().absolute()
    except RuntimeError as error:
        raise ValueError(f"names a home directory that is not known ({error})") from None
    except FileNotFoundError:
        raise ValueError("is relative to the current directory, which is no longer there; name it in full") from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() and not path.is_dir() and path.exists():  # a pipe would be waited for
            raise ConfigError(f"{path} is no regular file; put one in its place, or remove it")
        settings = tomllib.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}; mend it or remove it") from None
    except OSError as error:
        if error.errno in _NO_STORE_YET:
            return {}
        raise ConfigError(f"{path} cannot be read: {error.strerror}; mend it or remove it") from None
    if "home" in settings:
        raise ConfigError(f"{path} sets home, which is where this file was found; remove the line")
    return settings
