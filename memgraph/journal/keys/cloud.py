"""Key providers of secret managers: AWS, Google Cloud, Azure and HashiCorp Vault.

A secret holds one key, at least 64 hexadecimal digits; each of its versions is one key, so a new version is a new key, and an id such as
``aws-sm:memgraph/key:VERSION`` names exactly one. Clients are the vendors' own and are imported when first used. They find their
credentials in the ways that their vendors document. Nothing is created or changed in a secret manager.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from memgraph.errors import ConfigError, KeyMissingError, MissingExtraError
from memgraph.journal.keys.ring import SOURCE_VARIABLE, KeyPlace, check_key_id, secret_of
from memgraph.ports import SigningKey


class Version(NamedTuple):
    """One version of a secret, as its manager returned it."""

    name: str
    value: str


class SecretManagerKeys(ABC):
    """A provider on one secret of a secret manager. A `RotatingKeyProvider`.

    The form of `secret` depends on the manager; `client` is one of the vendor's, instead of one with the default credentials.
    """

    name: str  # also the extra's
    package: str

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

    def key(self, store_id: str) -> SigningKey | None:  # noqa: ARG002 - one secret serves every store
        """Return the key of the current version, or None if there is no such secret; raises `KeyMissingError` or `MissingExtraError`."""
        return self._key(None)

    def find(self, store_id: str, key_id: str) -> SigningKey | None:  # noqa: ARG002
        """Return the key of the version that an id names, or None."""
        place = f"{self.name}:{self._secret}:"
        version = key_id.removeprefix(place)
        return self._key(version) if key_id.startswith(place) and version else None

    def create(self, store_id: str) -> SigningKey:
        """Return the key of the current version. It is never created here."""
        if key := self.key(store_id):
            return key
        raise KeyMissingError(f"{self.name} has no key, and memgraph makes none there: {self.place(store_id).remedy}")

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
    """A KV version 2 secret of HashiCorp Vault, ``MOUNT/PATH``, whose field ``key`` has the key; versions are its numbers.

    The client reads ``VAULT_ADDR``, ``VAULT_TOKEN`` and ``VAULT_NAMESPACE``.
    """

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
                path,
                version=int(version) if version else None,
                mount_point=mount,
                raise_on_deleted_version=True,
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


def provider(kind: str, source: str, *, timeout_s: float, expected: str) -> SecretManagerKeys:
    """Return the provider of a kind on a secret; refuse a source that does not have the form of the kind."""
    made, form = _KINDS[kind]
    if not re.fullmatch(form, source):
        raise ConfigError(f"setting key_source: key_provider {kind} needs {expected}")
    return made(source, timeout_s=timeout_s)


def _kind(error: Exception) -> str:
    """Return the class of a vendor's error, and its code or status if it has one."""
    code = getattr(error, "response", None)
    if isinstance(code, dict):  # botocore's
        return f"{type(error).__name__}, {code.get('Error', {}).get('Code', '')}"
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    return f"{type(error).__name__}, {int(status)}" if isinstance(status, int) else type(error).__name__
