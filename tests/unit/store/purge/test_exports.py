"""The list of files that memgraph wrote from a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memgraph.store.purge.exports import known_exports, note_exports

AT = "2026-02-01T09:00:00.000Z"


def note(home: Path, *names: str) -> None:
    note_exports(home, "export", *map(Path, names), at=AT)


def known(home: Path) -> list[str]:
    return [one.path for one in known_exports(home)]


def test_files_are_remembered_once_with_the_given_time(tmp_path: Path) -> None:
    note(tmp_path, "/a", "/b")
    note(tmp_path, "/a")
    assert [(one.path, one.at, one.is_there) for one in known_exports(tmp_path)] == [
        ("/b", AT, False),
        ("/a", AT, False),
    ]


def test_a_damaged_list_is_kept_beside_the_new_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name, aside in (("/a", "exports.json.damaged"), ("/b", "exports.json.damaged1")):
        note(tmp_path, name)
        damaged = (tmp_path / "exports.json").read_bytes()[:-1]
        (tmp_path / "exports.json").write_bytes(damaged)
        assert known(tmp_path) == []
        caplog.clear()
        note(tmp_path, "/c")
        assert known(tmp_path) == ["/c"]
        assert (tmp_path / aside).read_bytes() == damaged
        assert f"is kept as {aside};" in caplog.text


def test_a_damaged_list_that_cannot_be_kept_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "exports.json").write_text("[")

    def refused(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "rename", refused)
    note(tmp_path, "/c")
    assert (tmp_path / "exports.json").read_text() == "["
