"""Secrets never reach the journal, whatever they are in; what only looks like one stays."""

from __future__ import annotations

import json
import random
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import memgraph
from memgraph import MemoryCommands
from memgraph.extraction.readers import BuildLogReader
from memgraph.extraction.secrets import FORMATS, kinds_of_secrets, redact, redact_any
from memgraph.lifecycle import ingest
from tests.growth import assert_grows_linearly
from tests.unit.extraction.credentials import credentials, drawn, is_left

# put together here, so that no scanner of this repository takes them for real ones
SECRETS = {
    "AWS key": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "fine-grained GitHub token": "github_pat_" + "11AAAAAAA0" * 5,
    "GitLab token": "glpat-" + "abcdefghij1234567890",
    "OpenAI key": "sk-proj-" + "aB3" * 12,
    "Anthropic key": "sk-ant-api03-" + "xY9" * 12,
    "Slack token": "xoxb-" + "123456789012-abcdefghijkl",
    "Google key": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "Stripe key": "sk_live_" + "4eC39HqLyjWDarjtT1",
    "npm token": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "Hugging Face token": "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "JSON web token": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3",
    "private key with a header": "-----BEGIN RSA "
    "PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB-CD\n\nb3BlbnNzaC1r\n-----END RSA PRIVATE KEY-----",
    "private key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1r\nZXk=\n-----END OPENSSH PRIVATE KEY-----",
}
ASSIGNED = (
    ("password = '{}'", "hunter2-and-more"),
    ('{{"api_key": "{}"}}', "abcd-efgh-ijkl"),
    ("export AWS_SECRET_ACCESS_KEY={}", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY"),
    ("DB_PASSWORD={} docker compose up", "correcthorse"),
    ("password: {}", "hunter2hunter"),
    ("deploy --token {} --now", "abcd1234efgh"),
    ("Authorization: Bearer {}", "abcdef0123456789abcdef"),
    ("postgres://admin:{}@db.local/shop", "s3cret"),
    ("secret_key: {}", "abcd1234efgh5678"),
    ("secret_key_base = {}", "9f86d081884c7d659a2feaa0c55ad015"),
    ("The password for staging is {}, remember that.", "Blue-Horse-42"),
    ("curl -s -u ann:{} http://shop.local", "S3cretPw"),
    ("sshpass -p {} ssh ann@shop", "S3cretPw"),
    ("mysql -u root -p{} shop", "S3cretPw"),
    ("mysql -uroot -p{}", "S3cretPw0rd"),
    ("deploy --password={} --now", "abcdefghij"),
    ("mariadb -u root -p{} shop", "S3cretPw"),
    ('"body": "{{\\"password\\": \\"{}\\"}}"', "S3cretPw0rd"),
    ('token="{}', "SECRET0123456789ab"),
)
HARMLESS = (
    "The password was reset because the token had expired.",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "token = get_token(user1)",
    "password: str = Field(min_length=8)",
    'SECRET_KEY=os.environ["SECRET"]',
    "API_KEY=$API_KEY make test; API_KEY=<your-key>",
    "max_tokens=4096, TOKENIZERS_PARALLELISM=false",
    "git clone https://github.com/owner/name.git, see http://localhost:8080/a@b",
    "KeyError: 'token' in auth/session.py:42",
    "key: value123",
    "PWD=/home/anna/project OLDPWD=/home/anna",
    "MAX_TOKENS=200000 TOKENS_USED=12345678",
    "PRIMARY_KEY=user_id CACHE_KEY=linux-x64-deps SSH_KEY_PATH=/home/anna/.ssh/id_ed25519",
    "tokenType = 'Identifier', token_type: 'bearer1'",
    "api_key=config.api_key2",
    "sk-circle-fade-dot-animation-x",
    "curl -u anna https://shop.local and mysql -p shop",
)


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_issued_secrets_are_recognised_by_their_format(secret: str) -> None:
    text, number = redact(f"it said {secret}, and failed")
    assert number == 1
    assert secret not in text
    assert text.startswith("it said [redacted: ")
    assert text.endswith(", and failed")


@pytest.mark.parametrize(("template", "secret"), ASSIGNED)
def test_assigned_secrets_are_recognised_by_their_name(template: str, secret: str) -> None:
    text, number = redact(template.format(secret))
    assert number == 1
    assert secret not in text
    before, after = template.format("\0").split("\0")
    assert text.startswith(before)
    assert text.endswith(after)


@pytest.mark.parametrize("text", HARMLESS)
def test_mentions_of_secrets_are_kept(text: str) -> None:
    assert redact(text) == (text, 0)


@pytest.mark.parametrize(
    "said",
    [
        "Here's your encryption key:\n\n```\n{}\n```",
        "Your API key is:\n```text\n{}\n```",
        "**Encryption key**:\n`{}`",
        "the secret: ``` {} ```",
    ],
)
def test_a_secret_in_a_block_of_code_is_hidden(said: str) -> None:
    assert redact(said.format("9f2c" * 16)).value == said.format("[redacted: secret]")


def test_credentials_of_150_kinds_are_hidden() -> None:
    kinds = credentials()
    texts = [(kind, secret, text) for kind, some in kinds.items() for secret, text in some]
    left = [(kind, text) for kind, secret, text in texts if is_left(secret, redact(text).value)]
    print(f"{len(kinds)} kinds, {len(texts)} texts, {len(texts) - len(left)} hidden")
    assert len(kinds) >= 150
    assert left == []


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: f"{row.kind}: {row.forms[:20]}")
def test_each_row_of_the_table_hides_its_examples(row: Any) -> None:
    examples = [drawn(form, form) for form in row.forms.split(", ")]
    assert examples
    assert row.source
    for example in examples:
        hidden = redact(f"with {example} at the end")
        assert hidden.number == 1
        assert hidden.value.startswith("with ")
        assert hidden.value.endswith(" at the end")
        assert kinds_of_secrets(example) == [row.kind]


def test_ordinary_lines_are_not_taken_for_secrets() -> None:
    """2,000 lines of Python's own library and of the documentation."""
    modules = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    pages = sorted((Path(memgraph.__file__).parent / "docs").glob("*.md"))
    code, prose = (
        [line for path in paths for line in path.read_text("utf-8").splitlines() if line.strip()]
        for paths in (modules, pages)
    )
    lines = [*random.Random(32).sample(code, 1_000), *random.Random(32).sample(prose, 1_000)]
    taken = [line for line in lines if redact(line).number]
    print(f"{len(lines)} lines, {len(taken)} taken for a secret")
    assert len(taken) <= len(lines) * 0.002, taken


@pytest.mark.parametrize(("length", "is_one"), [(15, False), (16, True), (17, False)])
def test_an_aws_key_has_sixteen_characters_after_its_prefix(length: int, is_one: bool) -> None:
    assert redact("it said " + "AKIA" + "Q" * length).number == is_one


@pytest.mark.parametrize(
    ("length", "stand_in"), [(18, "[redacted: secret]"), (17, "[secret]"), (8, "[secret]"), (7, "***")]
)
def test_a_stand_in_is_never_longer_than_the_secret(length: int, stand_in: str) -> None:
    assert redact(f"password='{'a1' * 9:.{length}}'").value == f"password='{stand_in}'"


def test_a_redacted_tuple_is_a_tuple() -> None:
    assert redact_any(("password='abcdef1'", 1)).value == ("password='***'", 1)


def test_a_secret_is_found_where_lower_case_changes_the_length() -> None:
    assert redact("İ" * 300 + " password='abcdef1'").value.endswith("password='***'")


def test_secrets_far_apart_are_all_found() -> None:
    text = ("password='abcdef1' " + "words between them " * 50) * 20
    assert redact(text) == (text.replace("abcdef1", "***"), 20)


@given(st.lists(st.sampled_from([*SECRETS.values(), *HARMLESS, *(t.format(s) for t, s in ASSIGNED)]), max_size=5))
def test_redaction_is_idempotent_and_never_lengthens(parts: list[str]) -> None:
    text = "\n".join(parts)
    once, _ = redact(text)
    assert redact(once) == (once, 0)
    assert len(once) <= len(text)


@pytest.mark.parametrize(
    "part",
    [
        "token ",
        'password="',
        "-----BEGIN PRIVATE KEY-----",
        "eyJabcdefgh.",
        "a://b:",
        "A_KEY_",
        "token: a1",
        "secret",
        "curl -u a ",
        "token=",
        "password:a1",
        "ghp_a1b2-",
        "machine a login ",
        "seed phrase: ",
        "sig=",
    ],
)
def test_hostile_text_costs_no_more_than_its_length(part: str) -> None:
    assert_grows_linearly(lambda length: redact(part * (length // len(part))), 150_000)


class TestTheStore:
    SECRET = SECRETS["GitHub token"]

    def journal(self, store: Any) -> str:
        folder = Path(store.config.home) / "journal"
        return "".join(path.read_text() for path in folder.glob("*.jsonl"))

    def test_secrets_in_any_field_are_not_stored(self, store: Any) -> None:
        kept = store.insert_memory(
            {
                "type": "episodic",
                "content": f"Pushed with {self.SECRET}.",
                "title": self.SECRET,
                "tags": [self.SECRET],
                "project_id": self.SECRET,
                "files_involved": [f"a/{self.SECRET}"],
                "errors_encountered": [{"type": "E", "message": f"bad {self.SECRET}", "resolution": self.SECRET}],
            }
        )
        other = store.insert_memory({"type": "semantic", "content": "Tokens belong in the keychain."})
        store.update_memory(other.id, content=f"Use {self.SECRET} to push.", reason=self.SECRET)
        store.archive(other.id, reason=f"for {self.SECRET}", summary=self.SECRET)
        store.link(kept.id, "related_to", other.id, reason=f"both hold {self.SECRET}")
        store.delete_memory(other.id, reason=self.SECRET)

        assert kept.content == "Pushed with [redacted: GitHub token]."
        assert self.SECRET not in self.journal(store)
        assert any("redacted before storing" in notice for notice in store.notices)

    def test_what_is_embedded_is_what_is_kept(self, store: Any, embedder: Any, embedded_texts: Any) -> None:
        store.insert_memory({"type": "semantic", "content": f"Use {self.SECRET}."})
        assert embedded_texts(embedder) == ["Use [redacted: GitHub token]."]

    def test_content_of_the_greatest_length_stays_within_it(self, store: Any) -> None:
        content = "x" * 770 + " password='abcdef1' and so on."
        assert len(content) == 800
        assert store.insert_memory({"type": "semantic", "content": content}).content.endswith(
            "password='***' and so on."
        )

    def test_what_is_answered_is_what_is_kept(self, store: Any) -> None:
        answer = MemoryCommands(store).remember(f"Push with {self.SECRET}.")
        assert answer.message.startswith("Remembered: 'Push with [redacted: GitHub token].'")
        assert self.SECRET not in answer.model_dump_json()

    def test_a_secret_that_a_split_would_cut_is_redacted_whole(self, store: Any) -> None:
        token = f"eyJ{'h' * 40}.eyJ{'p' * 900}.{'s' * 40}"
        answer = MemoryCommands(store).remember(f"{'Deploy on Tuesdays. ' * 38}Then send {token} to the gateway.")

        assert answer.data["redacted"] == ["JSON web token"]
        assert "pppp" not in self.journal(store) + answer.model_dump_json()
        assert store.notices == ["1 secret was redacted before storing (JSON web token)"]

    def test_it_can_be_switched_off(self, open_store: Any) -> None:
        store = open_store("other", redact_secrets=False)
        assert self.SECRET in store.insert_memory({"type": "semantic", "content": self.SECRET}).content

    def test_every_field_of_a_build_log(self, store: Any, tmp_path: Path) -> None:
        secret = self.SECRET
        task = {
            "task_id": f"t-{secret}",
            "agent_name": f"coder {secret}",
            "description": f"Deploy the shop with {secret}",
            "output": "step\n" * 100 + f"RuntimeError: the server refused {secret} for the deployment",
            "outcome": "failure",
            "files_changed": [f"deploy/{secret}.sh"],
        }
        build = {
            "build_id": f"b-{secret}",
            "project_id": f"p-{secret}",
            "tasks": [task],
            "user_interventions": [
                {"timestamp": "2026-01-01T00:00:00Z", "action": f"Never print {secret} again", "context": secret}
            ],
            "build_summary": f"We decided to use {secret} instead of a password.",
            "build_outcome": "failure",
            "started_at": "2026-01-01T00:00:00Z",
            "completed_at": "2026-01-01T00:10:00Z",
        }
        path = tmp_path / "builds.jsonl"
        path.write_text(json.dumps(build) + "\n")

        report = ingest(store, BuildLogReader(path))

        assert report.extracted >= 2
        assert report.secrets_redacted == 10
        assert secret not in self.journal(store)
