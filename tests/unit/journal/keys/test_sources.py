"""Where keys come from: the environment, a JSON document, a command; and that a secret is shown nowhere."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memgraph.config import AgentMemoryConfig
from memgraph.errors import ConfigError, KeyMissingError, MemGraphError, StorageError
from memgraph.journal.key_providers import (
    MAX_DOCUMENT_BYTES,
    MAX_KEYS,
    CommandKeys,
    EnvKeys,
    FileKeys,
    JsonKeys,
    configured_keys,
    document_of,
    keys_in,
)
from memgraph.journal.keyring import fingerprint, is_named, key_from_secret
from memgraph.ports import SigningKey

STORE = "6d656d67-7261-4068-8b75-7a75206a726e"
OLD, NEW = "ab" * 32, "cd" * 32
DOCUMENT = {"key_id": "json:prod:2", "secret": NEW, "earlier": [{"key_id": "json:prod:1", "secret": OLD}]}


def printing(text: str, *, code: int = 0) -> list[str]:
    """Return a command that prints a text."""
    return [sys.executable, "-S", "-c", f"import sys; sys.stdout.write({text!r}); sys.exit({code})"]


def command(*arguments: str, timeout_s: float = 20.0) -> CommandKeys:
    return CommandKeys(arguments, timeout_s=timeout_s)


class TestEnvironment:
    def test_the_first_of_several_keys_is_active(self) -> None:
        keys = EnvKeys({"MEMGRAPH_KEY": f" {NEW}\n{OLD} "})
        active = keys.key(STORE)
        assert active == SigningKey(f"env:MEMGRAPH_KEY:{fingerprint(bytes.fromhex(NEW))}", bytes.fromhex(NEW))
        old = keys.find(STORE, f"env:MEMGRAPH_KEY:{fingerprint(bytes.fromhex(OLD))}")
        assert old is not None
        assert old.secret == bytes.fromhex(OLD)
        assert keys.find(STORE, "env:MEMGRAPH_KEY:0000000000000000") is None

    def test_a_key_is_found_by_the_id_that_earlier_releases_gave_it(self) -> None:
        keys = EnvKeys({"MEMGRAPH_KEY": OLD})
        assert keys.find(STORE, key_from_secret(bytes.fromhex(OLD)).key_id) == keys.key(STORE)

    def test_one_bad_key_among_good_ones_is_refused_without_being_shown(self) -> None:
        with pytest.raises(KeyMissingError, match="MEMGRAPH_KEY") as refused:
            EnvKeys({"MEMGRAPH_KEY": f"{NEW} {OLD[:-2]}"}).key(STORE)
        assert OLD[:-2] not in str(refused.value)


class TestDocument:
    def test_a_round_trip(self) -> None:
        keys = keys_in(json.dumps(DOCUMENT).encode(), "it", STORE)
        assert [key.key_id for key in keys] == ["json:prod:2", "json:prod:1"]
        assert keys_in(document_of(keys, STORE), "it", STORE) == keys

    @pytest.mark.parametrize(
        "document",
        [
            {"key_id": "json:prod:2"},
            {"secret": NEW},
            {**DOCUMENT, "secret": NEW[:-2]},
            {**DOCUMENT, "secret": "zz" * 32},
            {**DOCUMENT, "secret": 7},
            {**DOCUMENT, "key_id": 7},
            {**DOCUMENT, "key_id": "with a space:1"},
            {**DOCUMENT, "key_id": "x" * 301},
            {**DOCUMENT, "key_id": "short"},
            {**DOCUMENT, "store_id": "7d656d67-7261-4068-8b75-7a75206a726e"},
            {**DOCUMENT, "earlier": [{"key_id": "json:prod:2", "secret": OLD}]},
            {**DOCUMENT, "earlier": {"key_id": "json:prod:1"}},
            {**DOCUMENT, "earlier": [{"key_id": f"json:prod:{number}", "secret": OLD} for number in range(3, 99)]},
            {**DOCUMENT, "key_id": "file:store:1-0123456789abcdef"},
            [],
            None,
            7,
        ],
    )
    def test_a_damaged_one_is_refused_without_being_quoted(self, document: Any) -> None:
        with pytest.raises(KeyMissingError, match="it ") as refused:
            keys_in(json.dumps(document).encode(), "it", STORE)
        assert NEW[:20] not in str(refused.value)
        assert OLD[:20] not in str(refused.value)

    @pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[" * 100_000, b" " * (MAX_DOCUMENT_BYTES + 1)])
    def test_other_bytes_are_refused(self, data: bytes) -> None:
        with pytest.raises(KeyMissingError):
            keys_in(data, "it", STORE)


class TestJson:
    def test_it_reads_the_document_each_time(self, tmp_path: Path) -> None:
        path = tmp_path / "keys.json"
        keys = JsonKeys(path)
        assert keys.key(STORE) is None
        path.write_text(json.dumps({"key_id": "json:prod:1", "secret": OLD}))
        assert keys.key(STORE) == SigningKey("json:prod:1", bytes.fromhex(OLD))
        path.write_text(json.dumps(DOCUMENT))
        assert keys.key(STORE) == SigningKey("json:prod:2", bytes.fromhex(NEW))
        assert keys.find(STORE, "json:prod:1") == SigningKey("json:prod:1", bytes.fromhex(OLD))

    def test_a_mounted_secret_may_be_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text(json.dumps(DOCUMENT))
        (tmp_path / "keys.json").symlink_to(tmp_path / "data")
        assert JsonKeys(tmp_path / "keys.json").key(STORE) is not None

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="cannot be read"):
            JsonKeys(tmp_path).key(STORE)


class TestCommand:
    def test_it_prints_secrets_or_a_document(self) -> None:
        keys = command(*printing(f"{NEW}\n{OLD}\n"))
        active = keys.key(STORE)
        assert active is not None
        assert active.secret == bytes.fromhex(NEW)
        assert active.key_id.startswith("command:python")
        assert active.key_id.endswith(fingerprint(active.secret))
        assert command(*printing(json.dumps(DOCUMENT))).key(STORE) == SigningKey("json:prod:2", bytes.fromhex(NEW))
        assert command(*printing("")).key(STORE) is None

    def test_it_is_not_run_again_for_a_key_that_it_printed(self, tmp_path: Path) -> None:
        note = tmp_path / "runs"
        program = f"open({str(note)!r}, 'a').write('x'); print({f'{NEW} {OLD}'!r})"
        keys = command(sys.executable, "-S", "-c", program)
        old = key_from_secret(bytes.fromhex(OLD)).key_id
        assert keys.key(STORE) is not None
        assert keys.find(STORE, old) is not None
        assert note.read_text() == "x"
        assert keys.find(STORE, "0" * 16) is None
        assert note.read_text() == "xx"

    def test_no_shell_reads_its_arguments(self, tmp_path: Path) -> None:
        target = tmp_path / "made"
        for arguments in ([f"true; touch {target}"], ["true", f"$(touch {target})", f"; touch {target}"]):
            with suppress(KeyMissingError):
                command(*arguments).key(STORE)
        assert not target.exists()

    def test_the_stores_id_is_an_argument(self) -> None:
        program = f"import sys; print({NEW!r} if sys.argv[1:] == [{STORE!r}] else '')"
        assert command(sys.executable, "-S", "-c", program, "{store_id}").key(STORE) is not None

    def test_one_that_hangs_is_killed_with_what_it_started(self, tmp_path: Path) -> None:
        note = tmp_path / "pid"
        program = (
            "import os, time, sys\n"
            "pid = os.fork()\n"
            f"open({str(note)!r}, 'w').write(str(os.getpid())) if pid == 0 else None\n"
            "time.sleep(600)"
        )
        begun = time.monotonic()
        with pytest.raises(KeyMissingError, match=r"longer than 1 s .*key_timeout_s"):
            command(sys.executable, "-S", "-c", program, timeout_s=1.0).key(STORE)
        assert time.monotonic() - begun < 300  # it would sleep for twice as long
        child = int(note.read_text())
        until = time.monotonic() + 60
        while _runs(child) and time.monotonic() < until:
            time.sleep(0.01)
        assert not _runs(child)

    def test_one_that_closes_its_output_and_hangs_is_killed(self) -> None:
        program = "import os, time; os.close(1); time.sleep(600)"
        with pytest.raises(KeyMissingError, match="longer than"):
            command(sys.executable, "-S", "-c", program, timeout_s=0.5).key(STORE)

    def test_its_time_is_for_reading_and_waiting_together(self) -> None:
        program = f"import os, time; time.sleep(0.8); os.write(1, b'{NEW}'); os.close(1); time.sleep(0.8)"
        with pytest.raises(KeyMissingError, match="longer than 1 s"):
            command(sys.executable, "-S", "-c", program, timeout_s=1.0).key(STORE)

    def test_endless_output_is_refused(self) -> None:
        program = "import sys\nwhile True: sys.stdout.write('ab' * 10_000)"
        with pytest.raises(KeyMissingError, match="more than 256 KiB"):
            command(sys.executable, "-S", "-c", program).key(STORE)

    @pytest.mark.parametrize("arguments", [["/nowhere/at/all"], ["/"], ["a\0b"]])
    def test_one_that_cannot_be_run_is_refused(self, arguments: list[str]) -> None:
        with pytest.raises(KeyMissingError, match="cannot be run"):
            command(*arguments).key(STORE)

    def test_a_failure_is_refused_even_if_it_printed_a_key(self) -> None:
        with pytest.raises(KeyMissingError, match="exit code 3") as refused:
            command(*printing(NEW, code=3)).key(STORE)
        assert NEW not in str(refused.value)


def _runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "output",
    [NEW, f"{NEW[:-1]}", f"{NEW} {OLD}x", json.dumps(DOCUMENT), json.dumps(DOCUMENT)[:-3], f"Error: bad token {NEW}"],
)
def test_nothing_that_a_command_prints_is_logged_or_quoted(
    output: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Opening, rotating and failing at the most verbose level, and everything that was said meanwhile."""
    import memgraph
    from memgraph.store.maintenance.keys import list_keys, rotate_key
    from memgraph.testing import FakeClock

    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    program = f"import sys; sys.stderr.write({output!r}); sys.stdout.write({output!r})"
    source = json.dumps([sys.executable, "-S", "-c", program])
    config = memgraph.AgentMemoryConfig(
        home=tmp_path / "store", keys_home=tmp_path / "keys", key_provider="command", key_source=source,
        embedding_model="none",
    )  # fmt: skip
    for act in (
        lambda: memgraph.AgentMemoryStore(config, clock=FakeClock()).close(),
        lambda: said.append(repr(list_keys(config))),
        lambda: rotate_key(config),
    ):
        try:
            act()
        except MemGraphError as error:
            said.append(f"{error} {error!r} {error.loggable}")
    captured = capfd.readouterr()
    said += [record.getMessage() for record in caplog.records] + [captured.out, captured.err]
    for text in said:
        for secret in (NEW, OLD, NEW[:-1], "bad token"):
            assert secret[:24] not in text.replace(repr(program), "").replace(json.dumps(program), "")
    for path in (tmp_path / "store").rglob("*"):
        if path.is_file():
            assert NEW.encode() not in path.read_bytes()


class TestConfigured:
    def config(self, tmp_path: Path, **settings: Any) -> AgentMemoryConfig:
        return AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys", **settings)

    def test_each_provider_has_its_class(self, tmp_path: Path) -> None:
        def kind(**settings: Any) -> str:
            return type(configured_keys(self.config(tmp_path, **settings), {})).__name__

        assert kind() == "FileKeys"
        assert kind(key_provider="env") == "EnvKeys"
        assert kind(key_provider="json", key_source="~/keys.json") == "JsonKeys"
        assert kind(key_provider="command", key_source='["true"]') == "CommandKeys"
        assert kind(key_provider="aws-sm", key_source="memgraph/key") == "AwsKeys"
        assert kind(key_provider="gcp-sm", key_source="projects/p-1/secrets/key") == "GcpKeys"
        assert kind(key_provider="azure-kv", key_source="https://v.vault.azure.net/secrets/key") == "AzureKeys"
        assert kind(key_provider="vault", key_source="secret/memgraph") == "VaultKeys"
        assert type(configured_keys(self.config(tmp_path), {"MEMGRAPH_KEY": NEW})).__name__ == "EnvKeys"
        assert type(configured_keys(self.config(tmp_path), {"MEMGRAPH_KEY": ""})).__name__ == "FileKeys"

    def test_an_unknown_provider_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(MemGraphError, match="key_provider"):
            self.config(tmp_path, key_provider="keychain")

    @pytest.mark.parametrize(
        ("provider", "source"),
        [
            ("json", ""),
            ("command", ""),
            ("command", "op read key"),
            ("command", "[]"),
            ("command", '["op", 7]'),
            ("command", '[""]'),
            ("command", '{"a": 1}'),
            ("command", "[" * 3_000),
            ("aws-sm", "a secret"),
            ("gcp-sm", "memgraph"),
            ("azure-kv", "http://v.vault.azure.net/secrets/key"),
            ("azure-kv", "https://v.vault.azure.net/"),
            ("vault", "memgraph"),
            ("vault", "secret/../../sys/raw"),
            ("file", "/a/path"),
            ("auto", "/a/path"),
        ],
    )
    def test_a_source_that_does_not_fit_is_refused(self, tmp_path: Path, provider: Any, source: str) -> None:
        with pytest.raises(ConfigError, match="key_source"):
            configured_keys(self.config(tmp_path, key_provider=provider, key_source=source), {})

    @pytest.mark.parametrize(
        "line",
        ['key_provider = "command"', 'key_source = "x"', "allow_unsigned_replay = true", "keyVerificationDays = 9000"],
    )
    def test_the_store_cannot_choose_its_keys(self, tmp_path: Path, line: str) -> None:
        (tmp_path / "store").mkdir()
        (tmp_path / "store" / "config.toml").write_text(line)
        with pytest.raises(MemGraphError, match="only MEMGRAPH_"):
            self.config(tmp_path)


def test_ids_name_keys_exactly_or_by_their_fingerprint() -> None:
    key = SigningKey("vault:secret/memgraph:3", bytes.fromhex(NEW))
    digest = fingerprint(key.secret)
    assert all(is_named(key, key_id) for key_id in (key.key_id, digest, f"file:store:1-{digest}", f"env:M:{digest}"))
    assert not any(
        is_named(key, key_id) for key_id in ("vault:secret/memgraph:4", "0" * 16, f"x{digest}", f"{digest}:1")
    )


def test_key_files_take_all_of_several_keys_or_none(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path)
    keys.create(STORE)
    before = keys.path(STORE).read_bytes()
    many = [key_from_secret(number.to_bytes(32), "json:prod") for number in range(MAX_KEYS)]
    with pytest.raises(KeyMissingError, match="would hold 65 keys"):
        keys.add(STORE, *many)
    assert keys.path(STORE).read_bytes() == before
    keys.add(STORE, *many[1:], is_active=False)
    assert len(keys.keys(STORE)) == MAX_KEYS
    stored = keys.path(STORE).read_bytes()
    with pytest.raises(KeyMissingError, match="other keys of these ids"):
        keys.add(STORE, SigningKey(many[1].key_id, b"x" * 32), many[2])
    assert keys.path(STORE).read_bytes() == stored


def test_a_key_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path)
    keys.path(STORE).parent.mkdir(parents=True)
    os.mkfifo(keys.path(STORE))
    with pytest.raises(StorageError, match="cannot be read"):
        keys.keys(STORE)


def test_a_key_file_of_an_earlier_release_keeps_its_id(tmp_path: Path) -> None:
    keys = FileKeys(tmp_path)
    old = key_from_secret(bytes.fromhex(OLD))
    keys.path(STORE).parent.mkdir(parents=True)
    keys.path(STORE).write_text(json.dumps({"key_id": old.key_id, "secret": OLD, "store_id": STORE}))
    assert keys.key(STORE) == old == keys.find(STORE, old.key_id)
