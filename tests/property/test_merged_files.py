"""Entries in a user's file: connect, edit, disconnect leaves what the edit makes of the original, byte for byte."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memgraph.errors import StorageError
from memgraph.interfaces.agents.connecting.merged import Entry, MergedFile
from memgraph.interfaces.agents.connecting.programs import is_memgraphs
from memgraph.interfaces.agents.connecting.receipt import Options, Receipt

SERVER = {
    "command": "/opt/bin/memgraph",
    "args": ["mcp", "--agent", "codex"],
    "env": {"MEMGRAPH_HOME": "/home/ada/ü"},
    "required": True,
}
GROUP = {"hooks": [{"type": "command", "command": "/opt/bin/memgraph-hook codex", "timeout": 4}]}
JSON_ENTRIES = [
    Entry(("mcpServers", "memgraph"), SERVER),
    Entry(("hooks", "SessionStart"), GROUP, is_item=True),
    Entry(("hooks", "Stop"), GROUP, is_item=True),
]
TOML_ENTRIES = [Entry(("mcp_servers", "memgraph"), SERVER)]
DRAWN = settings(max_examples=2_000 if os.environ.get("TESTED_AT_LENGTH") else 30)
KEYS = st.sampled_from(["a", "b c", "ä", "hooks", "mcpServers", "Stop", "SessionStart", "memgraph2", "x/*y", 'q"'])
SPACES = st.sampled_from(["", "", " ", "\n  ", "\r\n\t", "  \n\n    ", " // note\n", "/* , } */"])
SCALARS = ["null", "true", "-1.5e3", "NaN", '"\\u00e9, {"', '"\\ud800"', "12345678901234567890"]


class Written:
    """Writes a random document as a person might have, with a token for each text, by which it is edited later."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.tokens: list[tuple[str, bool]] = []

    def value(self, depth: int, path: tuple[str, ...] = ()) -> str:
        kind = "object" if not path or path == ("hooks",) or path == ("mcpServers",) else ""
        kind = kind or ("list" if path[0] == "hooks" and len(path) == 2 else "")
        kind = kind or self.draw(st.sampled_from(["token", "scalar", *(["object", "list"] if depth else [])]))
        if kind == "scalar":
            return str(self.draw(st.sampled_from(SCALARS)))
        if kind == "token":
            return self.token(is_in_object=True)
        keys = self.draw(st.lists(KEYS, unique=True, max_size=3)) if kind == "object" else []
        if kind == "object":
            members = [
                f"{json.dumps(key, ensure_ascii=False)}{self.space()}:{self.space()}{self.value(depth - 1, (*path, key))}"
                for key in keys
            ]
        else:
            members = [self.token(is_in_object=False) for _ in range(self.draw(st.integers(0, 2)))]
        begin, end = ("{", "}") if kind == "object" else ("[", "]")
        inside = ",".join(f"{self.space()}{one}{self.space()}" for one in members) or self.space()
        if members and self.draw(st.booleans()):
            inside = inside.rstrip() if "//" not in inside else inside
            inside += self.draw(st.sampled_from(["", ",", ", ", "\n", ",\n"]))
        return f"{begin}{inside}{end}"

    def token(self, *, is_in_object: bool) -> str:
        token = f'"token {len(self.tokens)}."'
        self.tokens.append((token, is_in_object))
        return token

    def space(self) -> str:
        return str(self.draw(SPACES))


@st.composite
def documents(draw: Any) -> tuple[str, list[tuple[str, str]]]:
    """Return a document, and edits of it as (text, replacement)."""
    written = Written(draw)
    text = (
        draw(st.sampled_from(["", "", "\ufeff", "\n", "// mine\n"]))
        + written.value(3)
        + draw(st.sampled_from(["", "\n", "\r\n\n"]))
    )
    edits = []
    for token, is_in_object in written.tokens:
        more = f'{token},\n "new {len(edits)}": {{"a": [ ]}}' if is_in_object else f"{token}, 3 "
        choice = st.sampled_from([None, '"other"', f"{token} /* , }} ] */ ", f"// new\n{token}", more])
        if (new := draw(choice)) is not None:
            edits.append((token, new))
    return text, edits


def merged(path: Path, entries: list[Entry]) -> tuple[MergedFile, Receipt]:
    return MergedFile(path, entries, partial(is_memgraphs, "codex")), Receipt(
        release="1", options=Options(home="", scripts="")
    )


def round_trip(name: str, entries: list[Entry], original: str | None, edit: Callable[[str], str]) -> str | None:
    """Connect, edit and disconnect; return the file's text then."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        if original is not None:
            path.write_bytes(original.encode())
        change, receipt = merged(path, entries)
        change.apply(receipt)
        assert [part.state for part in change.parts(receipt)] == ["current"]
        once = path.read_bytes()
        change.apply(receipt)
        assert path.read_bytes() == once, "it is idempotent"
        receipt = Receipt.model_validate_json(receipt.model_dump_json())
        path.write_bytes(edit(once.decode()).encode())
        change.undo(receipt)
        assert not receipt.merged
        assert not [one for one in Path(folder).iterdir() if one != path]
        return path.read_bytes().decode() if path.exists() else None


@DRAWN
@given(documents())
def test_a_json_file_is_left_as_it_was(document: tuple[str, Any]) -> None:
    text, _ = document
    assert round_trip("settings.json", JSON_ENTRIES, text, lambda now: now) == text


@DRAWN
@given(documents())
@example(('{"hooks":{\n  "Stop":[ // note\n]},"a":"token 0."}', [('"token 0."', '"other"')]))
@example(('{"hooks":{\n  "Stop":[ ]},"a":"token 0."}', [('"token 0."', '"other"')]))
@example(('{"hooks": {"Stop": ["token 0."]}}', [('"token 0."', '"token 0.", 3 ')]))
def test_edits_in_a_json_file_stay(document: tuple[str, list[tuple[str, str]]]) -> None:
    text, edits = document

    def edit(now: str) -> str:
        for old, new in edits:
            assert now.count(old) == 1
            now = now.replace(old, new)
        return now

    assert round_trip("settings.json", JSON_ENTRIES, text, edit) == edit(text)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('aé{,"\\/ ', max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=6,
)
FILES = st.dictionaries(KEYS.filter(lambda key: key not in {"hooks", "mcpServers"}), PLAIN, max_size=3)
SERVERS = st.dictionaries(KEYS, st.fixed_dictionaries({"command": st.just("/bin/other")}), max_size=2)
GROUPS = st.lists(
    st.fixed_dictionaries({"hooks": st.lists(st.just({"command": "say hi"}), max_size=2)}), min_size=1, max_size=2
)
HOOKS = st.dictionaries(st.sampled_from(["Stop", "SessionStart", "PreToolUse"]), GROUPS, max_size=3)


@DRAWN
@given(
    FILES,
    st.none() | SERVERS,
    st.none() | HOOKS,
    st.sampled_from([None, 2, 4, "\t"]),
    FILES,
    SERVERS,
    HOOKS,
    st.sets(KEYS),
    st.sampled_from([None, 2, 3]),
)
def test_a_json_file_that_another_program_wrote_anew_loses_only_the_entries(
    user: Any, servers: Any, hooks: Any, indent: Any, more: Any, new_servers: Any, new_hooks: Any, gone: Any, then: Any
) -> None:
    """The other program reads the document, changes its own values, and writes all of it in its own form."""
    user = user | ({} if servers is None else {"mcpServers": servers}) | ({} if hooks is None else {"hooks": hooks})

    def edit(text: str) -> str:
        found = json.loads(text)
        for key in gone - {"hooks", "mcpServers"}:
            found.pop(key, None)
        found |= more
        for key, value in new_servers.items():
            found.setdefault("mcpServers", {})[key] = value
        for key, value in new_hooks.items():
            found.setdefault("hooks", {}).setdefault(key, []).extend(value)
        return json.dumps(found, indent=then, ensure_ascii=False)

    text = json.dumps(user, indent=indent, ensure_ascii=False)
    left = round_trip("settings.json", JSON_ENTRIES, text, edit)
    assert left is not None
    expected = edit(text)
    assert json.loads(left) == json.loads(expected)
    # where the other program filled what we had made, the order of keys may be another
    if json.dumps(json.loads(left)) == json.dumps(json.loads(expected)):
        assert left == expected


NAMES = st.sampled_from(["model", "other", "x-1", '"a b"', "'é'"])
LINES = st.sampled_from(["", "", "# mine", "  # [mcp_servers.memgraph] is not here"])
VALUES = st.sampled_from(
    [
        '"token"',
        "1",
        "nan",
        "1979-05-27",
        "[\n  [1, 2],\n  # in it\n]",
        "'''\n[mcp_servers.memgraph]\n'''",
        "{ a = 1 }",
        "true # why",
    ]
)


@st.composite
def toml_files(draw: Any, *, header: str = "") -> str:
    """Return a TOML file: settings, then tables, with comments."""
    parts = []
    names = draw(st.lists(NAMES, unique=True, max_size=2))
    parts += [f"{name} = {draw(VALUES)}" for name in names]
    tables = draw(
        st.lists(
            st.sampled_from(
                ["mcp_servers.tides", "mcp_servers", "projects.'/home/ada'", " a . b ", "mcp_servers.memgraphs"]
            ),
            unique=True,
            max_size=3,
        )
    )
    for table in tables:
        parts += [
            draw(LINES),
            f"[{header}{table}]",
            draw(LINES),
            *[f"{name} = {draw(VALUES)}" for name in draw(st.lists(NAMES, unique=True, max_size=2))],
        ]
    parts += draw(st.lists(LINES, max_size=2))
    text = draw(st.sampled_from(["\n", "\r\n"])).join(parts)
    return text + draw(st.sampled_from(["", "\n", "\n\n", "\r\n"]))


def is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


@DRAWN
@given(toml_files().filter(is_toml))
@example("mcp_servers = { tides = { command = 't' } }\nlast = 1")
@example("mcp_servers.tides.command = 't'")
@example("")
def test_a_toml_file_is_left_as_it_was(text: str) -> None:
    assert round_trip("config.toml", TOML_ENTRIES, text, lambda now: now) == text


@DRAWN
@given(toml_files().filter(is_toml), toml_files(header="new.").filter(is_toml), st.booleans())
def test_edits_in_a_toml_file_stay(text: str, more: str, is_first: bool) -> None:
    """Tables are appended, as Codex does when a directory is trusted, or a setting is put first."""
    more = "\n" + more[more.find("[new") :] if "[new" in more else "# only a comment\n"

    def edit(now: str) -> str:
        now = now.replace('"token"', '"another"')
        return f"first = 1 # new\n{now}" if is_first else now + more

    if not is_toml(edit(text)):
        return
    assert round_trip("config.toml", TOML_ENTRIES, text, edit) == edit(text)


def edits_of_ours() -> Iterator[Any]:
    header = "[mcp_servers.memgraph]\n"
    tools = (
        '\n# mine\n[mcp_servers.memgraph.tools.recall]\napproval_mode = "approve"\n\n# projects\n[projects.x]\ny = 1\n'
    )
    rest = "\n# projects\n[projects.x]\ny = 1\n"
    yield lambda now: now.replace(header, f"{header}startup_timeout_sec = 20\n"), ""
    yield lambda now: now + tools, rest
    yield lambda now: now.replace(header, f"{header}startup_timeout_sec = 20\n") + tools, rest
    yield lambda now: now.replace(header, ""), None


@pytest.mark.parametrize(("edit", "more"), list(edits_of_ours()))
def test_what_was_added_to_an_entry_goes_with_it(edit: Any, more: str | None) -> None:
    """Otherwise a server without a command would be left, which Codex does not accept. If the header is gone, the settings are the user's."""
    original = '# top\nmodel = "x" # y\n\n[a]\nb = 1\n'
    left = round_trip("config.toml", TOML_ENTRIES, original, edit)
    assert left is not None
    if more is None:
        assert left == edit(left)
        assert 'command = "/opt/bin/memgraph"' in left
    else:
        assert tomllib.loads(left) == tomllib.loads(original + more)
        assert left.startswith(original)
        assert left.rstrip("\n").endswith(more.strip("\n"))


@pytest.mark.parametrize(("name", "entries"), [("a.json", JSON_ENTRIES), ("a.toml", TOML_ENTRIES)])
@pytest.mark.parametrize("original", [None, "", "\n", "  \n\n"])
def test_a_file_that_held_nothing_is_as_it_was(name: str, entries: list[Entry], original: str | None) -> None:
    assert round_trip(name, entries, original, lambda now: now) == original


def test_a_file_that_was_made_stays_for_what_the_user_put_into_it() -> None:
    def edit(text: str) -> str:
        return json.dumps({"mine": 1} | json.loads(text), indent=2)

    assert round_trip("a.json", JSON_ENTRIES, None, edit) == '{\n  "mine": 1\n}'
    assert round_trip("a.toml", TOML_ENTRIES, None, lambda now: f"mine = 1\n{now}") == "mine = 1\n"


def test_what_the_user_changed_in_one_entry_outlives_a_new_version_of_another(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"theme": "dark"}\n', "utf-8")
    change, receipt = merged(path, JSON_ENTRIES)
    change.apply(receipt)
    document = json.loads(path.read_text("utf-8"))
    document["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 60
    path.write_text(json.dumps(document, indent=2), "utf-8")
    newer = [Entry(JSON_ENTRIES[0].keys, SERVER | {"args": ["mcp"]}), JSON_ENTRIES[2]]
    change = MergedFile(path, newer, partial(is_memgraphs, "codex"))
    assert [part.state for part in change.parts(receipt)] == ["outdated"]
    change.apply(receipt)
    found = json.loads(path.read_text("utf-8"))
    assert found["mcpServers"]["memgraph"]["args"] == ["mcp"]
    assert found["hooks"] == {"Stop": document["hooks"]["Stop"]}, "the hook at the start is not wanted any more"
    assert [part.state for part in change.parts(receipt)] == ["edited"]
    change.undo(receipt)
    assert json.loads(path.read_text("utf-8")) == {"theme": "dark"}


def test_a_file_that_the_user_removed_is_made_anew_and_removed_again(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("a = 1\n", "utf-8")
    change, receipt = merged(path, TOML_ENTRIES)
    change.apply(receipt)
    path.unlink()
    change.apply(receipt)
    assert tomllib.loads(path.read_text("utf-8")) == {"mcp_servers": {"memgraph": SERVER}}
    change.undo(receipt)
    assert not path.exists()


def test_a_link_to_nothing_is_followed_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "config.toml"
    link.symlink_to(tmp_path / "dotfiles" / "codex.toml")
    change, receipt = merged(link, TOML_ENTRIES)
    change.apply(receipt)
    assert (tmp_path / "dotfiles" / "codex.toml").exists()
    change.undo(receipt)
    assert not (tmp_path / "dotfiles").exists()
    assert link.is_symlink()
    os.mkfifo(tmp_path / "pipe.toml")
    change, receipt = merged(tmp_path / "pipe.toml", TOML_ENTRIES)
    with pytest.raises(StorageError, match="is not a file"):
        change.parts(receipt)
