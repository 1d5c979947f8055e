"""Changes to the text of a TOML file that leave every other character as it is: a table is added at the end."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.interfaces.agents.connecting.json_text import places_of, without
from memgraph.interfaces.agents.connecting.receipt import Insertion
from memgraph.text import lazy_re as re

_HEADER = re.compile(r"[ \t]*\[.*")
_NOTHING = re.compile(r"\s*(?:#.*)?\s*")


def parsed(text: str) -> Any:
    """Return the document.

    Raises
    ------
    InvalidInputError
        It is not valid.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "nested too deeply"
        raise InvalidInputError(f"is not valid TOML: {reason}", field="document") from None


def inserted(text: str, keys: Sequence[str], value: Any, *, is_item: bool) -> tuple[str, Insertion]:
    """Insert a table at the end, or in the inline table that holds its like, and return the new text with what was inserted.

    Raises
    ------
    InvalidInputError
        The document is not valid, or something other than a table stands where one is needed.
    """
    if is_item:
        raise InvalidInputError("cannot be added to", field=".".join(keys))
    before = parsed(text)
    depth, expected = 0, _plain(before)
    parent = expected
    for key in keys[:-1]:
        depth += key in parent
        parent = parent.setdefault(key, {})
        if not isinstance(parent, dict):
            raise InvalidInputError("must be a table", field=".".join(keys[:-1]))
    parent[keys[-1]] = value
    new_line = "\r\n" if "\r\n" in text else "\n"
    lead = "" if not text or text.endswith("\n\n") else new_line if text.endswith("\n") else 2 * new_line
    new, offset = text + lead + _block(keys, value, new_line), len(text)
    if not _is_document(new, expected):  # the parent is an inline table
        new, offset = _inline(text, keys, value)
        if not _is_document(new, expected):
            raise InvalidInputError("cannot take another table; write it as a table of its own", field=keys[0])
    piece = new[offset : offset + len(new) - len(text)]
    return new, Insertion(keys=list(keys), value=value, depth=depth, offset=offset, text=piece)


def removed(text: str, insertion: Insertion, value: Any) -> str:
    """Remove a table that was inserted, with its own tables.

    Raises
    ------
    InvalidInputError
        It cannot be removed without other changes.
    """
    expected = without(_plain(parsed(text)), insertion.keys, _plain(value), is_item=False, depth=0)
    for candidate in _candidates(text, insertion):
        if _is_document(candidate, expected):
            return candidate
    raise InvalidInputError("cannot be removed by itself; remove it by hand", field=".".join(insertion.keys))


def _candidates(text: str, insertion: Insertion) -> Iterator[str]:
    for piece in (insertion.text, insertion.text.lstrip()):
        for place in places_of(piece, text):
            yield text[:place] + text[place + len(piece) :]
    yield _without_lines(text, insertion.keys)
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        parent: Any = document
        for key in insertion.keys[:-1]:
            parent = parent[key]
        parent.remove(insertion.keys[-1])
        yield tomlkit.dumps(document)
    except (TOMLKitError, KeyError, ValueError):
        return


def _without_lines(text: str, keys: Sequence[str]) -> str:
    """Remove a table's lines, from its header to its last setting; comments after that belong to the next table."""
    name = r"[ \t]*\.[ \t]*".join(f"[\"']?{re.escape(key)}[\"']?" for key in keys)
    own = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*(?:\.[^\]]*)?\][ \t]*(?:#.*)?[\r\n]*")
    kept: list[str] = []
    waiting: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            is_own = own.fullmatch(line) is not None
            kept += [] if is_own and is_inside else waiting
            waiting, is_inside = [], is_own
        elif is_inside and _NOTHING.fullmatch(line):
            waiting.append(line)
            continue
        if is_inside:
            waiting = []
        else:
            kept.append(line)
    return "".join([*kept, *waiting])


def _block(keys: Sequence[str], value: dict[str, Any], new_line: str) -> str:
    import tomlkit

    table: Any = tomlkit.table()
    for key, one in value.items():
        table.add(key, _inline_table(one) if isinstance(one, dict) else one)
    for key in reversed(keys):
        outer = tomlkit.table(is_super_table=True)
        outer.add(key, table)
        table = outer
    return tomlkit.dumps(tomlkit.document() | table).replace("\n", new_line)


def _inline(text: str, keys: Sequence[str], value: dict[str, Any]) -> tuple[str, int]:
    """Return the text with the value in an inline table, and where it was inserted: where tomlkit would put it."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        parent: Any = document
        for key in keys[:-1]:
            parent = parent[key]
        comma = ", " if len(parent) else ""
        parent[keys[-1]] = _inline_table(value)
        new = tomlkit.dumps(document)
    except (TOMLKitError, KeyError, ValueError, TypeError):
        return text, 0
    offset = next((place for place, (old, now) in enumerate(zip(text, new, strict=False)) if old != now), len(text))
    return f"{text[:offset]}{comma}{keys[-1]} = {_inline_table(value).as_string()}{text[offset:]}", offset


def _inline_table(value: dict[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.inline_table()
    for key, one in value.items():
        table.append(key, _inline_table(one) if isinstance(one, dict) else one)
    return table


def _plain(value: Any) -> Any:
    """Return a document that can be compared: dates and floating-point numbers as texts."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int) else str(value)


def _is_document(text: str, expected: Any) -> bool:
    try:
        return bool(_pruned(_plain(parsed(text))) == _pruned(expected))
    except InvalidInputError:
        return False


def _pruned(document: Any) -> Any:
    """Return a document without empty tables at its top."""
    return {key: one for key, one in document.items() if one != {}}
