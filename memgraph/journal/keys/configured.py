"""The key provider that the settings name."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from memgraph.config import AgentMemoryConfig
from memgraph.errors import ConfigError, KeyMissingError
from memgraph.journal.keys.cloud import provider
from memgraph.journal.keys.document import MAX_DOCUMENT_BYTES, keys_in
from memgraph.journal.keys.local import EnvKeys, FileKeys, JsonKeys, ListedKeys, default_keys, keys_in_text
from memgraph.journal.keys.place import SOURCE_VARIABLE, KeyPlace
from memgraph.journal.keys.ring import KeyRing
from memgraph.journal.keys.secret import is_named
from memgraph.ports import KeyProvider, SigningKey

_BLOCK_BYTES = 64 << 10
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


class CommandKeys(ListedKeys):
    """Keys that a program prints: the document of the provider ``json``, or secrets in hexadecimal, the active one first.

    The program is run with a list of arguments, never by a shell. What it prints is neither logged nor quoted in an error, and
    what it writes to standard error is discarded, because either may hold a key.

    Parameters
    ----------
    arguments : sequence of str
        The program and its arguments. ``{store_id}`` in an argument becomes the store's id.
    timeout_s : float
        Seconds after which the program, and what it started, is killed.
    """

    name = "command"

    def __init__(self, arguments: Sequence[str], *, timeout_s: float) -> None:
        self._arguments = list(arguments)
        self._timeout_s = timeout_s
        self._printed: list[SigningKey] = []

    def place(self, store_id: str) -> KeyPlace:  # noqa: ARG002 - the same command serves every store
        """Return the program's name."""
        remedy = f"run the key command {self._program!r} in a terminal to see why it prints no key, or correct {SOURCE_VARIABLE}"
        return KeyPlace(f"the output of the key command {self._program!r}", remedy)

    @property
    def _program(self) -> str:
        return PurePath(self._arguments[0]).name

    def find(self, store_id: str, key_id: str) -> SigningKey | None:
        """Return the key that an id names, or None. The program is run only if it did not print the key before: it may ask a person."""
        found = next((key for key in self._printed if is_named(key, key_id)), None)
        return found or super().find(store_id, key_id)

    def keys(self, store_id: str) -> list[SigningKey]:
        """Run the program and return the keys that it printed; empty if it printed nothing.

        Raises
        ------
        KeyMissingError
            The program cannot be run, fails, takes too long, prints too much, or prints something else.
        """
        source = f"the key command {self._program!r}"
        data = self._output([part.replace("{store_id}", store_id) for part in self._arguments], source)
        if data.lstrip().startswith(b"{"):
            self._printed = keys_in(
                data, f"the output of {source}", store_id, advice="correct what it prints, or the setting key_source"
            )
        else:
            text = data.decode("ascii", "replace")
            self._printed = keys_in_text(
                text, f"each word of the output of {source}", f"command:{_name(self._program)}"
            )
        return self._printed

    def _output(self, arguments: list[str], source: str) -> bytes:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "an argument holds a null character"
            raise KeyMissingError(f"{source} cannot be run: {reason}; check key_source") from None
        until = time.monotonic() + self._timeout_s  # for all of it: it may close its output and go on
        try:
            data = self._read(process, source, until)
            code = process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(process)
            raise self._late(source) from None
        except BaseException:
            _kill(process)
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()
        if code:
            raise KeyMissingError(f"{source} failed with exit code {code}; run it in a terminal to see why")
        return data

    def _read(self, process: subprocess.Popen[bytes], source: str, until: float) -> bytes:
        """Read to the end of the output, within the limits of time and size."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        data = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise self._late(source)
                block = os.read(process.stdout.fileno(), _BLOCK_BYTES)
                if not block:
                    return bytes(data)
                data += block
                if len(data) > MAX_DOCUMENT_BYTES:
                    raise KeyMissingError(
                        f"{source} printed more than {MAX_DOCUMENT_BYTES >> 10} KiB, which are no keys"
                    )

    def _late(self, source: str) -> KeyMissingError:
        return KeyMissingError(
            f"{source} took longer than {self._timeout_s:g} s and was ended; unlock what it asks, or raise key_timeout_s"
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the program, which was not waited for yet, and what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _name(program: str) -> str:
    """Return a program's name as it may stand in a key id."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in program)
