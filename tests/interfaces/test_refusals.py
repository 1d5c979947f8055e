"""What doors say of errors: all doors the same, and none of it secret."""

from __future__ import annotations

from memgraph.errors import InvalidInputError
from memgraph.interfaces.refusals import message_of

SECRET = "ghp_" + "a1B2" * 9


def test_the_message_says_what_is_wrong_without_secrets() -> None:
    refused = message_of(InvalidInputError("is no type", field="type", value=SECRET))
    assert "type" in refused
    assert SECRET not in refused


def test_an_error_of_the_system_names_the_file() -> None:
    assert message_of(PermissionError(13, "Permission denied", "/store/journal")) == "/store/journal: Permission denied"


def test_an_error_that_nobody_expected_is_named_but_not_quoted() -> None:
    said = message_of(ValueError("the text of a memory"))
    assert said.startswith("failed unexpectedly (ValueError)")
    assert "text of a memory" not in said
