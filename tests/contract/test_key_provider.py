"""The contract of key providers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memgraph.errors import KeyMissingError
from memgraph.journal.key_providers import CommandKeys, EnvKeys, FileKeys, JsonKeys
from memgraph.journal.keyring import key_place, name_of
from memgraph.ports import KeyProvider, RotatingKeyProvider, SigningKey
from memgraph.testing import FakeKeys

STORE = "6d656d67-7261-4068-8b75-7a75206a726e"
OTHER = "7d656d67-7261-4068-8b75-7a75206a726e"
ENVIRONMENT = {"MEMGRAPH_KEY": "0123456789abcdef" * 4}


@pytest.fixture(params=["file", "env", "json", "command", "fake"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> KeyProvider:
    made: dict[str, Callable[[], KeyProvider]] = {
        "file": lambda: FileKeys(tmp_path / "home"),
        "env": lambda: EnvKeys(ENVIRONMENT),
        "json": lambda: JsonKeys(_document(tmp_path)),
        "command": lambda: CommandKeys(["cat", str(_document(tmp_path))], timeout_s=20.0),
        "fake": FakeKeys,
    }
    return made[request.param]()


def _document(folder: Path) -> Path:
    """Write the document of one key for every store."""
    path = folder / "keys.json"
    path.write_text(json.dumps({"key_id": "json:prod:1", "secret": ENVIRONMENT["MEMGRAPH_KEY"]}))
    return path


class TestKeyProvider:
    def test_it_is_one(self, provider: KeyProvider) -> None:
        assert isinstance(provider, KeyProvider)

    def test_a_created_key_is_found_again(self, provider: KeyProvider) -> None:
        key = provider.create(STORE)
        assert isinstance(key, SigningKey)
        assert provider.key(STORE) == key == provider.create(STORE)

    def test_a_key_is_long_enough_and_has_a_name(self, provider: KeyProvider) -> None:
        key = provider.create(STORE)
        assert len(key.secret) >= 32
        assert 8 <= len(key.key_id) <= 100
        assert key.key_id.isprintable()

    def test_a_secret_is_not_shown(self, provider: KeyProvider) -> None:
        key = provider.create(STORE)
        for shown in (repr(key), str(key), f"{key}", key.key_id):
            assert key.secret.hex() not in shown
            assert repr(key.secret) not in shown

    def test_those_that_rotate_find_a_key_by_its_id(self, provider: KeyProvider) -> None:
        key = provider.create(STORE)
        if isinstance(provider, RotatingKeyProvider):
            assert provider.find(STORE, key.key_id) == key
            assert provider.find(STORE, "file:store:9-0123456789abcdef") is None
        else:
            assert isinstance(provider, FakeKeys)

    def test_it_says_where_its_key_is_and_what_to_do_without_it(self, provider: KeyProvider, tmp_path: Path) -> None:
        where, remedy = key_place(provider, STORE)
        expected = {
            "file": (f"{tmp_path}/home/keys/{STORE}.json", "or set MEMGRAPH_KEY"),
            "env": ("MEMGRAPH_KEY", "set MEMGRAPH_KEY"),
            "json": (f"{tmp_path}/keys.json", "correct MEMGRAPH_KEY_SOURCE"),
            "command": ("the output of the key command 'cat'", "correct MEMGRAPH_KEY_SOURCE"),
            "FakeKeys": ("the key provider FakeKeys", "restore the key there"),
        }[name_of(provider)]
        assert where == expected[0]
        assert expected[1] in remedy
        assert not any(secret in where + remedy for secret in ENVIRONMENT.values())

    def test_stores_do_not_affect_each_other(self, provider: KeyProvider) -> None:
        key = provider.create(STORE)
        provider.create(OTHER)
        assert provider.key(STORE) == key


@pytest.mark.parametrize("kind", [FileKeys, lambda _home: FakeKeys()])
def test_providers_that_make_keys_have_none_before(kind: Callable[[Path], KeyProvider], tmp_path: Path) -> None:
    provider = kind(tmp_path)
    assert provider.key(STORE) is None
    assert provider.key(STORE) is None  # asking creates none
    assert provider.create(STORE).secret != provider.create(OTHER).secret


def test_files_are_shared_by_providers_on_one_folder(tmp_path: Path) -> None:
    key = FileKeys(tmp_path).create(STORE)
    assert FileKeys(tmp_path).key(STORE) == key
    assert FileKeys(tmp_path / "elsewhere").key(STORE) is None


def test_the_environment_creates_no_key() -> None:
    provider = EnvKeys({})
    assert provider.key(STORE) is None
    with pytest.raises(KeyMissingError, match="set MEMGRAPH_KEY to the store's key"):
        provider.create(STORE)
    assert EnvKeys(ENVIRONMENT).key(STORE) == EnvKeys(ENVIRONMENT).key(OTHER)
