"""Providers of secret managers, under the vendors' own clients: AWS as moto answers, the others as their references document."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memgraph.errors import KeyMissingError, MissingExtraError
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import AwsKeys, AzureKeys, GcpKeys, SecretManagerKeys, VaultKeys
from memgraph.store.maintenance.keys import rotate
from tests.unit.journal.conftest import NOW

STORE = "6d656d67-7261-4068-8b75-7a75206a726e"
OLD, NEW = "ab" * 32, "cd" * 32
TIMEOUT_S = 5.0


class Manager:
    """A secret manager with one secret, and the provider under test on it."""

    keys: SecretManagerKeys
    ids: tuple[str, str]
    """Of the old and the new version."""

    def add(self, value: str) -> str:
        """Add a version and return its id."""
        raise NotImplementedError

    def refuse(self) -> None:
        """From now on, deny access."""
        raise NotImplementedError


class Aws(Manager):
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import boto3

        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        self.client = boto3.client("secretsmanager")
        self.keys = AwsKeys("memgraph/key", timeout_s=TIMEOUT_S)
        self._monkeypatch = monkeypatch

    def add(self, value: str) -> str:
        if not self.client.list_secrets()["SecretList"]:
            return str(self.client.create_secret(Name="memgraph/key", SecretString=value)["VersionId"])
        return str(self.client.put_secret_value(SecretId="memgraph/key", SecretString=value)["VersionId"])

    def refuse(self) -> None:
        self.client.delete_secret(SecretId="memgraph/key")  # reading it is then an InvalidRequestException


class Served(Manager):
    """One that is answered for by a local server."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.is_refusing = False
        self.asked: list[Request] = []

    def add(self, value: str) -> str:
        self.values.append(value)
        return self.id_of(len(self.values))

    def id_of(self, number: int) -> str:
        return str(number)

    def refuse(self) -> None:
        self.is_refusing = True

    def answer(self, request: Request) -> Response:
        self.asked.append(request)
        status, body = self.reply(request)
        headers = self.headers if status == 401 else {}
        return Response(json.dumps(body), status, headers=headers, content_type="application/json")

    headers: dict[str, str] = {}  # noqa: RUF012

    def reply(self, request: Request) -> tuple[int, Any]:
        raise NotImplementedError


class Gcp(Served):
    """https://cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets.versions/access"""

    def __init__(self, server: HTTPServer) -> None:
        from google.auth.credentials import AnonymousCredentials
        from google.cloud.secretmanager import SecretManagerServiceClient
        from google.cloud.secretmanager_v1.services.secret_manager_service.transports import (
            SecretManagerServiceRestTransport,
        )

        super().__init__()
        transport = SecretManagerServiceRestTransport(
            host=f"127.0.0.1:{server.port}", url_scheme="http", credentials=AnonymousCredentials()
        )
        client = SecretManagerServiceClient(transport=transport)
        self.keys = GcpKeys("projects/p-1/secrets/memgraph", timeout_s=TIMEOUT_S, client=client)

    def reply(self, request: Request) -> tuple[int, Any]:
        place = "/v1/projects/p-1/secrets/memgraph/versions/"
        assert request.path.startswith(place)
        assert request.path.endswith(":access")
        wanted = request.path.removeprefix(place).removesuffix(":access")
        number = len(self.values) if wanted == "latest" else int(wanted)
        if self.is_refusing:
            return 403, {"error": {"code": 403, "message": f"denied {NEW}", "status": "PERMISSION_DENIED"}}
        if not 0 < number <= len(self.values):
            return 404, {"error": {"code": 404, "message": "not found", "status": "NOT_FOUND"}}
        data = base64.b64encode(self.values[number - 1].encode()).decode()
        name = f"projects/123456/secrets/memgraph/versions/{number}"
        return 200, {"name": name, "payload": {"data": data}}


class Vault(Served):
    """https://developer.hashicorp.com/vault/api-docs/secret/kv/kv-v2#read-secret-version"""

    def __init__(self, server: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        monkeypatch.setenv("VAULT_ADDR", server.url_for("").rstrip("/"))
        monkeypatch.setenv("VAULT_TOKEN", "hvs.testing")
        self.keys = VaultKeys("secret/memgraph/key", timeout_s=TIMEOUT_S)

    def reply(self, request: Request) -> tuple[int, Any]:
        assert request.path == "/v1/secret/data/memgraph/key"
        assert request.headers["X-Vault-Token"] == "hvs.testing"
        if self.is_refusing:
            return 403, {"errors": [f"permission denied {NEW}"]}
        number = int(request.args.get("version") or len(self.values))
        if not 0 < number <= len(self.values):
            return 404, {"errors": []}
        metadata = {
            "created_time": "2026-01-01T00:00:00Z", "custom_metadata": None, "deletion_time": "", "destroyed": False,
            "version": number,
        }  # fmt: skip
        return 200, {"data": {"data": {"key": self.values[number - 1]}, "metadata": metadata}}


class Azure(Served):
    """https://learn.microsoft.com/rest/api/keyvault/secrets/get-secret/get-secret"""

    headers = {  # noqa: RUF012
        "WWW-Authenticate": 'Bearer authorization="https://login.microsoftonline.com/tenant", resource="https://vault.azure.net"'
    }

    def __init__(self, server: HTTPServer, certificate: Path) -> None:
        from azure.core.credentials import AccessToken
        from azure.keyvault.secrets import SecretClient

        class Credential:
            def get_token(self, *scopes: str, **_: Any) -> AccessToken:
                return AccessToken("token", 4_000_000_000)

        super().__init__()
        self._address = f"https://localhost:{server.port}"
        client = SecretClient(
            self._address, Credential(), connection_verify=str(certificate), verify_challenge_resource=False, retry_total=0
        )  # fmt: skip
        self.keys = AzureKeys(f"{self._address}/secrets/memgraph", timeout_s=TIMEOUT_S, client=client)

    def id_of(self, number: int) -> str:
        return f"{number:032x}"

    def reply(self, request: Request) -> tuple[int, Any]:
        if "Authorization" not in request.headers:
            return 401, {"error": {"code": "Unauthorized", "message": "AKV10000: Request is missing a token."}}
        assert request.headers["Authorization"] == "Bearer token"
        assert request.path.startswith("/secrets/memgraph/")
        if self.is_refusing:
            return 403, {"error": {"code": "Forbidden", "message": f"denied {NEW}"}}
        wanted = request.path.removeprefix("/secrets/memgraph/")
        number = int(wanted, 16) if wanted else len(self.values)
        if not 0 < number <= len(self.values):
            return 404, {"error": {"code": "SecretNotFound", "message": "not found"}}
        place = f"{self._address}/secrets/memgraph/{self.id_of(number)}"
        attributes = {
            "enabled": True,
            "created": 1_767_225_600,
            "updated": 1_767_225_600,
            "recoveryLevel": "Recoverable",
        }
        return 200, {"value": self.values[number - 1], "id": place, "attributes": attributes}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of localhost, with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = tmp_path_factory.mktemp("certificate") / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture(params=["aws-sm", "gcp-sm", "azure-kv", "vault"])
def manager(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, certificate: Path) -> Iterator[Manager]:
    kind = request.param
    if kind == "aws-sm":
        from moto import mock_aws

        with mock_aws():
            yield Aws(monkeypatch)
        return
    context = None
    if kind == "azure-kv":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    with HTTPServer(host="localhost" if context else "127.0.0.1", port=0, ssl_context=context) as server:
        made: Served = (
            Gcp(server) if kind == "gcp-sm" else Vault(server, monkeypatch) if kind == "vault" else Azure(server, certificate)
        )  # fmt: skip
        import re

        server.expect_request(re.compile(".*")).respond_with_handler(made.answer)
        yield made


class TestSecretManagers:
    def test_each_version_is_a_key(self, manager: Manager) -> None:
        old = manager.add(OLD)
        key = manager.keys.key(STORE)
        assert key is not None
        assert key.secret == bytes.fromhex(OLD)
        place = f"{manager.keys.name}:{manager.keys._secret}"
        assert key.key_id == f"{place}:{old}"
        new = manager.add(NEW)
        key = manager.keys.create(STORE)
        assert (key.key_id, key.secret) == (f"{place}:{new}", bytes.fromhex(NEW))
        found = manager.keys.find(STORE, f"{place}:{old}")
        assert found is not None
        assert found.secret == bytes.fromhex(OLD)
        assert manager.keys.find(STORE, f"{manager.keys.name}:another:{old}") is None
        assert manager.keys.find(STORE, "file:store:1-0123456789abcdef") is None

    def test_a_version_that_is_not_there_is_none(self, manager: Manager) -> None:
        manager.add(OLD)
        unknown = {"aws-sm": "00000000-0000-4000-8000-000000000009", "azure-kv": f"{9:032x}"}.get(
            manager.keys.name, "9"
        )
        assert manager.keys.find(STORE, f"{manager.keys.name}:{manager.keys._secret}:{unknown}") is None

    def test_a_secret_that_is_not_there_is_none(self, manager: Manager) -> None:
        assert manager.keys.key(STORE) is None
        with pytest.raises(KeyMissingError, match="has no key"):
            manager.keys.create(STORE)

    def test_a_refusal_names_its_kind_alone(self, manager: Manager) -> None:
        manager.add(NEW)
        manager.refuse()
        with pytest.raises(KeyMissingError, match="cannot be read") as refused:
            manager.keys.key(STORE)
        assert NEW not in str(refused.value)
        assert refused.value.__cause__ is None

    @pytest.mark.parametrize("value", ["a password", NEW[:-2], "{}"])
    def test_a_value_that_is_no_key_is_refused_without_being_shown(self, manager: Manager, value: str) -> None:
        manager.add(value)
        with pytest.raises(KeyMissingError, match="64 hexadecimal digits") as refused:
            manager.keys.key(STORE)
        assert value not in str(refused.value)

    def test_a_store_is_signed_and_rotated(self, manager: Manager, open_one: Any, write: Any, added: Any) -> None:
        manager.add(OLD)
        write(open_one(keys=manager.keys), added(1))
        manager.add(NEW)
        journal: Journal = open_one(keys=manager.keys)
        write(journal, added(2))  # the journal names the key, not the manager
        assert len(journal.used.uses) == 1
        rotate(journal, manager.keys, now=lambda: NOW, rotated_by="tests")
        write(journal, added(3))
        again = open_one(keys=manager.keys)
        assert again.verify() == 5
        assert [use.key_id.partition(":")[0] for use in again.used.uses] == [manager.keys.name] * 2


@pytest.mark.parametrize(
    ("made", "environment"),
    [
        (lambda: AwsKeys("key", timeout_s=0.5), {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_DEFAULT_REGION": "x-1",
            "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}),
        (lambda: AwsKeys("key", timeout_s=0.5), {"AWS_EC2_METADATA_DISABLED": "true"}),  # no region, no credentials
        (lambda: VaultKeys("secret/key", timeout_s=0.5), {"VAULT_ADDR": "http://127.0.0.1:9", "VAULT_TOKEN": "t"}),
        (lambda: GcpKeys("projects/p/secrets/key", timeout_s=0.5),
            {"NO_GCE_CHECK": "true", "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere.json"}),
    ],
)  # fmt: skip
def test_one_that_is_out_of_reach_is_refused_at_once(
    made: Any, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(KeyMissingError, match="cannot be read"):
        made().key(STORE)


def test_an_unreachable_vault_refuses_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import memgraph

    monkeypatch.setenv("VAULT_ADDR", "http://127.0.0.1:9")
    config = memgraph.AgentMemoryConfig(
        home=tmp_path / "store", keys_home=tmp_path / "keys", key_provider="vault", key_source="secret/memgraph",
        key_timeout_s=1.0,
    )  # fmt: skip
    with pytest.raises(KeyMissingError, match="vault: the secret secret/memgraph cannot be read"):
        memgraph.AgentMemoryStore(config)
    assert not list((tmp_path / "store").rglob("*.jsonl"))


def test_a_vault_that_redirects_is_refused(monkeypatch: pytest.MonkeyPatch, httpserver: HTTPServer) -> None:
    """Its token must not be sent elsewhere."""
    asked: list[str] = []

    def elsewhere(request: Request) -> Response:
        asked.append(request.path)
        return Response("", 307, headers={"Location": httpserver.url_for("/elsewhere")})

    import re

    httpserver.expect_request(re.compile(".*")).respond_with_handler(elsewhere)
    monkeypatch.setenv("VAULT_ADDR", httpserver.url_for("").rstrip("/"))
    monkeypatch.setenv("VAULT_TOKEN", "hvs.testing")
    with pytest.raises(KeyMissingError):
        VaultKeys("secret/key", timeout_s=TIMEOUT_S).key(STORE)
    assert asked == ["/v1/secret/data/key"]


@pytest.mark.parametrize(
    ("made", "module"),
    [
        (AwsKeys, "botocore"),
        (GcpKeys, "google.api_core"),
        (AzureKeys, "azure.identity"),
        (VaultKeys, "hvac"),
    ],
)
def test_without_its_client_the_extra_is_named(made: Any, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name == module or name.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'memgraph-kuzu\[{made.name}\]'"):
        made("secret/key", timeout_s=1.0).key(STORE)


def test_importing_the_providers_imports_no_client() -> None:
    import subprocess
    import sys

    program = (
        "import sys, memgraph.journal.key_providers\n"
        "print([name for name in ('boto3', 'botocore', 'google.cloud', 'azure', 'hvac', 'requests') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
