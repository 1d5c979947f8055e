"""Key providers: key files, the environment, a JSON document, the output of a command, secret managers; and the one that the settings name.

A document holds the keys of a store, the active one and, after rotations, the earlier ones:
``{"key_id": ID, "secret": HEX, "store_id": ID, "earlier": [{"key_id": ID, "secret": HEX}, …]}``. The key files, `keys export`, the provider
``json`` and what a key command prints have this form.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import selectors
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from memgraph.config import AgentMemoryConfig
from memgraph.disk.files import make_private_file, make_private_folder, open_regular, write_private
from memgraph.errors import ConfigError, KeyMissingError, MissingExtraError, StorageError
from memgraph.journal.keyring import (
    SOURCE_VARIABLE,
    KeyPlace,
    check_key_id,
    fingerprint,
    is_named,
    key_from_secret,
    secret_of,
)
from memgraph.model.ids import stored_form
from memgraph.ports import KeyProvider, SigningKey

KEY_VARIABLE = "MEMGRAPH_KEY"
MAX_KEYS = 64
"""Most keys that one source may hold."""
MAX_DOCUMENT_BYTES = 256 << 10
_SECRET_BYTES = 32
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
    """Return the key provider that the settings name. Nothing is read yet. Raises `ConfigError` or `MissingExtraError`."""
    environment = os.environ if environment is None else environment
    kind, source = config.key_provider, config.key_source
    if kind in _SOURCES and not source.strip():
        raise ConfigError(f"setting key_source: key_provider {kind} needs {_SOURCES[kind]}")
    if kind not in _SOURCES and source:
        raise ConfigError(f"setting key_source has no meaning with key_provider {kind}; remove it, or set key_provider")
    match kind:
        case "auto":
            return EnvKeys(environment) if environment.get(KEY_VARIABLE) else FileKeys(config.keys_home)
        case "file":
            return FileKeys(config.keys_home, is_chosen=True)
        case "env":
            return EnvKeys(environment)
        case "json":
            return JsonKeys(Path(source).expanduser().absolute())
        case "command":
            return CommandKeys(_arguments(source), timeout_s=config.key_timeout_s)
    made, form = _KINDS[kind]
    if not re.fullmatch(form, source):
        raise ConfigError(f"setting key_source: key_provider {kind} needs {_SOURCES[kind]}")
    return made(source, timeout_s=config.key_timeout_s)


class ListedKeys(ABC):
    """A provider whose source gives its keys, the active one first. A `RotatingKeyProvider`; `name` is as in key ids."""

    name: str

    @abstractmethod
    def place(self, store_id: str) -> KeyPlace:
        """Return where a store's key is, for messages. Nothing is read."""

    @abstractmethod
    def keys(self, store_id: str) -> Sequence[SigningKey]:
        """Return the keys of a store, the active one first, none for a store without keys; raises `KeyMissingError` or `StorageError`."""

    def key(self, store_id: str) -> SigningKey | None:
        """Return the active key, or None if there is none."""
        return next(iter(self.keys(store_id)), None)

    def find(self, store_id: str, key_id: str) -> SigningKey | None:
        """Return the key that an id names, or None."""
        return next((key for key in self.keys(store_id) if is_named(key, key_id)), None)

    def create(self, store_id: str) -> SigningKey:
        """Return the active key. Only key files make one."""
        if key := self.key(store_id):
            return key
        raise KeyMissingError(
            f"the key provider {self.name} has no key, and memgraph makes none there: {self.place(store_id).remedy}"
        )


class FileKeys(ListedKeys):
    """Keys in files ``<keys_home>/keys/<store_id>.json``, private; `is_chosen` by the settings, so that ``MEMGRAPH_KEY`` has no effect."""

    name = "file"

    def __init__(self, keys_home: Path, *, is_chosen: bool = False) -> None:
        self._folder = keys_home / "keys"
        self._is_chosen = is_chosen

    def place(self, store_id: str) -> KeyPlace:
        """Return the store's key file."""
        path = self.path(store_id)
        imported, restored = "import it with `memgraph keys import FILE`", f"restore its key file as {path}"
        if self._is_chosen:
            return KeyPlace(str(path), f"{imported} or {restored}")
        return KeyPlace(str(path), f"{imported}, {restored}, or set {KEY_VARIABLE}")

    def path(self, store_id: str) -> Path:
        """Return the path of a store's key file."""
        return self._folder / f"{store_id}.json"

    def keys(self, store_id: str) -> list[SigningKey]:
        """Return the keys of the store's file; empty if it does not exist."""
        path = self.path(store_id)
        advice = "move the file away and run `memgraph keys import FILE`, or put back the copy of it that was kept"
        return _keys_of_file(path, store_id, "the key", advice)

    def create(self, store_id: str) -> SigningKey:
        """Return the store's key, creating it if it does not exist."""
        if known := self.key(store_id):
            return known
        key = _made(1)
        make_private_folder(self._folder)
        make_private_file(self.path(store_id), document_of([key], store_id))  # the first process wins
        return self.key(store_id) or key

    def made_next(self, store_id: str) -> SigningKey:
        """Return a new key, which is not yet stored."""
        return _made(len(self.keys(store_id)) + 1)

    def add(self, store_id: str, *added: SigningKey, is_active: bool = True) -> None:
        """Store keys beside the others, all or none (`KeyMissingError`): in front of them or, if none is the active one, behind them."""
        keys, path = self.keys(store_id), self.path(store_id)
        known = {key.key_id: key.secret for key in keys}
        if others := [key.key_id for key in added if known.get(key.key_id, key.secret) != key.secret]:
            raise KeyMissingError(
                f"{path} has other keys of these ids: {', '.join(others)}; nothing was changed", key_ids=others
            )
        ids = {key.key_id for key in added}
        kept = [key for key in keys if key.key_id not in ids]
        if len(kept) + len(added) > MAX_KEYS:
            raise KeyMissingError(
                f"{path} would hold {len(kept) + len(added)} keys, and the limit is {MAX_KEYS}; nothing was changed. Remove those "
                "that `memgraph keys list` shows as not needed"
            )
        if added:
            make_private_folder(self._folder)
            write_private(path, document_of([*added, *kept] if is_active else [*kept, *added], store_id))


class EnvKeys(ListedKeys):
    """Keys for every store from the variable ``MEMGRAPH_KEY``: 64 or more hexadecimal digits each; the first one is active."""

    name = "env"

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def place(self, store_id: str) -> KeyPlace:  # noqa: ARG002 - the same keys serve every store
        """Return the variable."""
        return KeyPlace(KEY_VARIABLE, f"set {KEY_VARIABLE} to the store's key")

    def keys(self, store_id: str) -> list[SigningKey]:  # noqa: ARG002 - the same keys serve every store
        """Return the keys; empty if the variable is not set."""
        return keys_in_text(self._environment.get(KEY_VARIABLE, ""), KEY_VARIABLE, f"env:{KEY_VARIABLE}")


class JsonKeys(ListedKeys):
    """Keys from a JSON document that somebody else writes, such as a mounted secret."""

    name = "json"

    def __init__(self, path: Path) -> None:
        self._path = path

    def place(self, store_id: str) -> KeyPlace:  # noqa: ARG002 - its store is named in the document
        """Return the document's path."""
        return KeyPlace(str(self._path), f"restore the document {self._path}, or correct {SOURCE_VARIABLE}")

    def keys(self, store_id: str) -> list[SigningKey]:
        """Return the document's keys; empty if there is no file."""
        advice = f"put back a copy of the document, or correct {SOURCE_VARIABLE}"
        return _keys_of_file(self._path, store_id, "the keys", advice)


class CommandKeys(ListedKeys):
    """Keys that a program prints, run without a shell and killed after `timeout_s`; what it prints is never logged nor quoted, since it may hold a key."""

    name = "command"

    def __init__(self, arguments: Sequence[str], *, timeout_s: float) -> None:
        self._arguments = list(arguments)
        self._timeout_s = timeout_s
        self._printed: list[SigningKey] = []
        self._program = PurePath(self._arguments[0]).name

    def place(self, store_id: str) -> KeyPlace:  # noqa: ARG002 - the same command serves every store
        """Return the program's name."""
        remedy = f"run the key command {self._program!r} in a terminal to see why it prints no key, or correct {SOURCE_VARIABLE}"
        return KeyPlace(f"the output of the key command {self._program!r}", remedy)

    def find(self, store_id: str, key_id: str) -> SigningKey | None:
        """Return the key that an id names, or None. The program is run only if it did not print the key before: it may ask a person."""
        found = next((key for key in self._printed if is_named(key, key_id)), None)
        return found or super().find(store_id, key_id)

    def keys(self, store_id: str) -> list[SigningKey]:
        """Run the program and return the keys that it printed; empty if it printed nothing."""
        source = f"the key command {self._program!r}"
        data = self._output([part.replace("{store_id}", store_id) for part in self._arguments], source)
        if data.lstrip().startswith(b"{"):
            advice = "correct what it prints, or the setting key_source"
            self._printed = keys_in(data, f"the output of {source}", store_id, advice=advice)
        else:
            name = "".join(one if one.isascii() and (one.isalnum() or one in "._-") else "-" for one in self._program)
            text = data.decode("ascii", "replace")
            self._printed = keys_in_text(text, f"each word of the output of {source}", f"command:{name}")
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
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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


def _made(number: int) -> SigningKey:
    secret = secrets.token_bytes(_SECRET_BYTES)
    return SigningKey(f"file:store:{number}-{fingerprint(secret)}", secret)


def keys_in_text(text: str, source: str, place: str) -> list[SigningKey]:
    """Return the keys of secrets that stand in a text, separated by white space, the active one first."""
    words = text.split()
    if len(words) > MAX_KEYS:
        raise KeyMissingError(f"{source} holds more than {MAX_KEYS} keys")
    keys = [key_from_secret(secret_of(word, source), place) for word in words]
    return list({key.key_id: key for key in keys}.values())


def keys_in(
    data: bytes, source: str, store_id: str, *, advice: str = "correct what is stored there, or name another source"
) -> list[SigningKey]:
    """Parse a document and return its keys, the active one first; the `KeyMissingError` for any other names its `source` and the `advice`, and never quotes it."""
    stored = _parsed(data)
    try:
        named = [(entry["key_id"], entry["secret"]) for entry in [stored, *stored.get("earlier", [])]]
    except (KeyError, TypeError, AttributeError):
        raise KeyMissingError(f"{source} contains no key; {advice}") from None
    if stored.get("store_id", store_id) != store_id:
        raise KeyMissingError(f"{source} contains the keys of another store, not of {store_id}; {advice}")
    keys = []
    for key_id, secret in named:
        try:
            key = SigningKey(check_key_id(key_id, source), secret_of(secret, source))
        except KeyMissingError:
            raise KeyMissingError(f"{source} contains a damaged key; {advice}") from None
        # an id that memgraph made ends with the fingerprint of its secret
        if (key_id.startswith("file:") or ":" not in key_id) and not is_named(SigningKey("", key.secret), key_id):
            raise KeyMissingError(f"{source} contains a damaged key; {advice}", key_id=key.key_id)
        keys.append(key)
    if len(keys) > MAX_KEYS or len({key.key_id for key in keys}) < len(keys):
        raise KeyMissingError(f"{source} names two keys alike, or more than {MAX_KEYS}; {advice}")
    return keys


def store_named_in(data: bytes) -> str | None:
    """Return the id of the store whose keys a document holds, or None if it names none."""
    stored = _parsed(data)
    store_id = stored.get("store_id") if isinstance(stored, dict) else None
    return store_id if store_id and stored_form(store_id) == store_id else None  # it becomes the name of a file


def document_of(keys: Sequence[SigningKey], store_id: str) -> bytes:
    """Return the document of these keys, the active one first."""
    active, *earlier = ({"key_id": key.key_id, "secret": key.secret.hex()} for key in keys)
    return json.dumps({**active, "store_id": store_id, **({"earlier": earlier} if earlier else {})}).encode()


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data) if len(data) <= MAX_DOCUMENT_BYTES else None
    except (ValueError, RecursionError):
        return None


def _keys_of_file(path: Path, store_id: str, what: str, advice: str) -> list[SigningKey]:
    try:
        with open_regular(path, follows_links=True) as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"{what} cannot be read: {error.strerror}", path=path) from None
    return keys_in(data, str(path), store_id, advice=advice)


class Version(NamedTuple):
    """One version of a secret, as its manager returned it."""

    name: str
    value: str


class SecretManagerKeys(ListedKeys):
    """A provider on one secret of a secret manager, whose current version is the active key; `client` replaces the one with the default credentials."""

    package: str
    """What the extra of the provider's name installs."""

    def __init__(self, secret: str, *, timeout_s: float, client: Any = None) -> None:
        self._secret = secret
        self._timeout_s = timeout_s
        self._made: Any = client

    @abstractmethod
    def _client(self) -> Any:
        """Return a client with the default credentials."""

    @abstractmethod
    def _read(self, client: Any, version: str | None) -> Version | None:
        """Return a version of the secret (None: the current one), or None if there is none."""

    @abstractmethod
    def _errors(self) -> tuple[type[Exception], ...]:
        """Return the roots of the client's errors."""

    def place(self, store_id: str) -> KeyPlace:  # noqa: ARG002 - one secret serves every store
        """Return the secret's name."""
        remedy = f"create the secret {self._secret} with the store's key as its value, or correct {SOURCE_VARIABLE}"
        return KeyPlace(f"the secret {self._secret} ({self.name})", remedy)

    def keys(self, store_id: str) -> list[SigningKey]:  # noqa: ARG002 - one secret serves every store
        """Return the key of the current version; none if there is no such secret."""
        return [key] if (key := self._key(None)) else []

    def find(self, store_id: str, key_id: str) -> SigningKey | None:  # noqa: ARG002
        """Return the key of the version that an id names, or None."""
        place = f"{self.name}:{self._secret}:"
        version = key_id.removeprefix(place)
        return self._key(version) if key_id.startswith(place) and version else None

    def _key(self, version: str | None) -> SigningKey | None:
        try:
            errors = self._errors()
        except ModuleNotFoundError:
            raise MissingExtraError(f"keys of {self.name}", package=self.package, extra=self.name) from None
        try:
            if self._made is None:
                self._made = self._client()
            found = self._read(self._made, version)
        except errors as error:  # their texts may quote a request
            raise KeyMissingError(
                f"{self.name}: the secret {self._secret} cannot be read ({_kind(error)}); check the address, the credentials "
                "and their permission to read it"
            ) from None
        if found is None:
            return None
        source = f"{self.name}: the secret {self._secret}"
        key_id = check_key_id(f"{self.name}:{self._secret}:{found.name}", source)
        return SigningKey(key_id, secret_of(found.value, source))


class AwsKeys(SecretManagerKeys):
    """A secret of AWS Secrets Manager, by its name or ARN; versions are its version ids."""

    name, package = "aws-sm", "boto3"

    def _client(self) -> Any:
        import boto3
        from botocore.config import Config

        limits = Config(
            connect_timeout=self._timeout_s, read_timeout=self._timeout_s, retries={"total_max_attempts": 2}
        )
        return boto3.client("secretsmanager", config=limits)

    def _read(self, client: Any, version: str | None) -> Version | None:
        which = {"VersionId": version} if version else {"VersionStage": "AWSCURRENT"}
        try:
            found = client.get_secret_value(SecretId=self._secret, **which)
        except client.exceptions.ResourceNotFoundException:
            return None
        return Version(found["VersionId"], found.get("SecretString", ""))

    def _errors(self) -> tuple[type[Exception], ...]:
        from botocore.exceptions import BotoCoreError, ClientError

        return BotoCoreError, ClientError


class GcpKeys(SecretManagerKeys):
    """A secret of Google Cloud Secret Manager, ``projects/PROJECT/secrets/NAME``; versions are its numbers."""

    name, package = "gcp-sm", "google-cloud-secret-manager"

    def _client(self) -> Any:
        from google.cloud.secretmanager import SecretManagerServiceClient

        return SecretManagerServiceClient(transport="rest")  # gRPC's threads would not survive a fork

    def _read(self, client: Any, version: str | None) -> Version | None:
        from google.api_core.exceptions import NotFound

        name = f"{self._secret}/versions/{version or 'latest'}"
        try:
            found = client.access_secret_version(request={"name": name}, timeout=self._timeout_s, retry=None)
        except NotFound:
            return None
        return Version(found.name.rpartition("/")[2], found.payload.data.decode("ascii", "replace"))

    def _errors(self) -> tuple[type[Exception], ...]:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
        from requests import RequestException

        return GoogleAPIError, GoogleAuthError, RequestException


class AzureKeys(SecretManagerKeys):
    """A secret of Azure Key Vault, ``https://VAULT.vault.azure.net/secrets/NAME``; versions are its version ids."""

    name, package = "azure-kv", "azure-keyvault-secrets and azure-identity"

    def _client(self) -> Any:
        from azure.identity import DefaultAzureCredential
        from azure.keyvault.secrets import SecretClient

        return SecretClient(
            self._secret.rpartition("/secrets/")[0],
            DefaultAzureCredential(),
            connection_timeout=self._timeout_s,
            read_timeout=self._timeout_s,
            retry_total=1,
        )

    def _read(self, client: Any, version: str | None) -> Version | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            found = client.get_secret(self._secret.rpartition("/secrets/")[2], version)
        except ResourceNotFoundError:
            return None
        return Version(found.properties.version, found.value or "")

    def _errors(self) -> tuple[type[Exception], ...]:
        import azure.identity
        import azure.keyvault.secrets  # noqa: F401
        from azure.core.exceptions import AzureError

        return (AzureError,)


class VaultKeys(SecretManagerKeys):
    """The field ``key`` of a KV version 2 secret of HashiCorp Vault, ``MOUNT/PATH``; versions are its numbers. The client is configured by ``VAULT_ADDR`` and Vault's other environment variables."""

    name, package = "vault", "hvac"

    def _client(self) -> Any:
        from hvac import Client

        namespace = os.environ.get("VAULT_NAMESPACE")
        return Client(timeout=self._timeout_s, allow_redirects=False, namespace=namespace)

    def _read(self, client: Any, version: str | None) -> Version | None:
        from hvac.exceptions import InvalidPath

        mount, _, path = self._secret.partition("/")
        if version is not None and not version.isdecimal():
            return None
        try:
            found = client.secrets.kv.v2.read_secret_version(
                path, version=int(version) if version else None, mount_point=mount, raise_on_deleted_version=True
            )["data"]
        except InvalidPath:
            return None
        value = found["data"].get("key", "")
        return Version(str(found["metadata"]["version"]), value if isinstance(value, str) else "")

    def _errors(self) -> tuple[type[Exception], ...]:
        from hvac.exceptions import VaultError
        from requests import RequestException

        # a server that is not Vault answers with something else: KeyError, TypeError
        return VaultError, RequestException, KeyError, TypeError


_KINDS: dict[str, tuple[type[SecretManagerKeys], str]] = {
    "aws-sm": (AwsKeys, r"[A-Za-z0-9/_+=.@:-]+"),
    "gcp-sm": (GcpKeys, r"projects/[a-z0-9:.-]+/secrets/[A-Za-z0-9_-]+"),
    "azure-kv": (AzureKeys, r"https://[A-Za-z0-9.-]+(:\d+)?/secrets/[A-Za-z0-9-]+"),
    "vault": (VaultKeys, r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+"),
}


def _kind(error: Exception) -> str:
    """Return the class of a vendor's error, and its code or status if it has one."""
    code = getattr(error, "response", None)
    if isinstance(code, dict):  # botocore's
        return f"{type(error).__name__}, {code.get('Error', {}).get('Code', '')}"
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return f"{type(error).__name__}, {int(status)}" if isinstance(status, int) else type(error).__name__
