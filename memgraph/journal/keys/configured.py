"""The key provider that the settings name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from memgraph.config import AgentMemoryConfig
from memgraph.errors import ConfigError
from memgraph.journal.keys.cloud import provider
from memgraph.journal.keys.command import CommandKeys
from memgraph.journal.keys.local import EnvKeys, FileKeys, JsonKeys, default_keys
from memgraph.journal.keys.ring import KeyRing
from memgraph.ports import KeyProvider

_SOURCES = {
    "json": "the path of a JSON document",
    "command": 'a JSON list of arguments, such as ["op", "read", "op://vault/memgraph/key"]',
    "aws-sm": "the name or ARN of a secret",
    "gcp-sm": "projects/PROJECT/secrets/NAME",
    "azure-kv": "https://VAULT.vault.azure.net/secrets/NAME",
    "vault": "MOUNT/PATH of a KV version 2 secret",
}
"""What `key_source` must be for each provider that needs one."""


def configured_keys(config: AgentMemoryConfig, environment: Mapping[str, str] | None = None) -> KeyProvider:
    """Return the key provider that the settings name. Nothing is read yet.

    Raises
    ------
    ConfigError
        `key_source` is missing, or not what the provider needs.
    MissingExtraError
        The provider's client is not installed.
    """
    environment = os.environ if environment is None else environment
    kind, source = config.key_provider, config.key_source
    if kind in _SOURCES and not source.strip():
        raise ConfigError(f"setting key_source: key_provider {kind} needs {_SOURCES[kind]}")
    if kind not in _SOURCES and source:
        raise ConfigError(f"setting key_source has no meaning with key_provider {kind}; remove it, or set key_provider")
    match kind:
        case "auto":
            return default_keys(config.keys_home, environment)
        case "file":
            return FileKeys(config.keys_home, is_chosen=True)
        case "env":
            return EnvKeys(environment)
        case "json":
            return JsonKeys(Path(source).expanduser().absolute())
        case "command":
            return CommandKeys(_arguments(source), timeout_s=config.key_timeout_s)
    return provider(kind, source, timeout_s=config.key_timeout_s, expected=_SOURCES[kind])


def configured_ring(config: AgentMemoryConfig, store_id: str) -> KeyRing | None:
    """Return the keys of a store as the settings provide them; None if there is no active key.

    Raises
    ------
    KeyMissingError, StorageError, ConfigError
        The provider cannot be read.
    """
    ring = KeyRing.from_providers(store_id, configured_keys(config), FileKeys(config.keys_home))
    return ring if ring.active else None


def _arguments(source: str) -> list[str]:
    try:
        found = json.loads(source)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not found or not all(isinstance(one, str) and "\0" not in one for one in found):
        raise ConfigError(
            f"setting key_source: key_provider command needs {_SOURCES['command']}; a shell is never used"
        )
    if not found[0]:
        raise ConfigError("setting key_source: the command has no program")
    return found
