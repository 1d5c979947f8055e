"""Changes to the text of a JSON file that leave every other character as it is. Comments and trailing commas are allowed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.interfaces.agents.connecting.receipt import Insertion
from memgraph.text import lazy_re as re

_SKIPPED = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_INDENT = "  "
_DECODER = json.JSONDecoder()


@dataclass(slots=True)
class Node:
    """A value and its place in the text."""

    start: int
    end: int
    value: Any
    members: list[Member] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object, or an item of a list, whose key is its number. It starts with its key."""

    key: str | int
    start: int
    node: Node


def parsed(text: str) -> Any:
    """Return the value of a document; an empty object for a blank one.

    Raises
    ------
    InvalidInputError
        It is not valid, or not an object.
    """
    return _document(text).value if text.strip() else {}


def inserted(text: str, keys: Sequence[str], value: Any, *, is_item: bool) -> tuple[str, Insertion]:
    """Insert a value at the end of its object, or of its list, and return the new text with what was inserted.

    Raises
    ------
    InvalidInputError
        The document is not valid, or something other than an object (or list) stands where one is needed.
    """
    node = _document(text)
    depth = 0
    for key in keys:
        found = _member(node, key)
        if found is None:
            break
        node, depth = found.node, depth + 1
    wanted: Any = [value] if is_item else value
    for key in reversed(keys[depth + 1 :]):
        wanted = {key: wanted}
    is_in_list = is_item and depth == len(keys)
    if not isinstance(node.value, list if is_in_list else dict):
        raise InvalidInputError(
            f"must be {'a list' if is_in_list else 'an object'}", field=".".join(keys[:depth]) or "document"
        )
    new_line = "\r\n" if "\r\n" in text else "\n"
    if is_in_list:
        label, wanted = "", value
    else:
        label = f"{json.dumps(keys[depth], ensure_ascii=False)}: "
    if node.members:
        last = node.members[-1]
        before = _blank_before(text, last.start)
        offset, tail = last.node.end, ""
        if "\n" in before:
            indent = before.rpartition("\n")[2]
            piece = f",{new_line}{indent}{label}{_rendered(wanted, indent, _unit(text), new_line)}"
        else:
            piece = f", {label}{json.dumps(wanted, ensure_ascii=False)}"
    else:
        offset = node.start + 1
        unit = _unit(text)
        outer = re.match(r"[ \t]*", text[text.rfind("\n", 0, node.start) + 1 :]).group()  # type: ignore[union-attr]
        tail = "" if "\n" in text[offset : node.end] else new_line + outer
        indent = outer + unit
        piece = f"{new_line}{indent}{label}{_rendered(wanted, indent, unit, new_line)}{tail}"
    record = Insertion(keys=list(keys), is_item=is_item, value=value, depth=depth, offset=offset, text=piece, tail=tail)
    return text[:offset] + piece + text[offset:], record


def removed(text: str, insertion: Insertion, value: Any) -> str:
    """Remove a value that was inserted, with the objects and lists that were inserted for it if they are empty then.

    Parameters
    ----------
    value : object
        The value as it stands now.
    """
    keys, depth = insertion.keys, insertion.depth
    expected = without(parsed(text), keys, value, is_item=insertion.is_item, depth=depth)
    for start in places_of(insertion.text, text):
        plain = text[:start] + text[start + len(insertion.text) :]
        if _is_document(plain, expected):
            return plain
    place = keys if insertion.is_item else keys[:-1]
    container = _at(text, place)
    members = [
        one for one in container.members if (one.node.value == value if insertion.is_item else one.key == keys[-1])
    ]
    text = _cut(text, container, container.members.index(members[-1]), insertion.tail)
    for length in range(len(place), depth, -1):
        if _at(text, keys[:length]).members:
            break
        container = _at(text, keys[: length - 1])
        number = max(number for number, one in enumerate(container.members) if one.key == keys[length - 1])
        text = _cut(text, container, number, insertion.tail)
    if not _is_document(text, expected):
        raise InvalidInputError("cannot be removed by itself; remove it by hand", field=".".join(keys))
    return text


def without_members(text: str, keys: Sequence[str], group: Any, is_removed: Callable[[Any], bool]) -> str:
    """Remove some of the hooks of a group in a list, and leave the group."""
    for number in reversed([number for number, one in enumerate(group["hooks"]) if is_removed(one)]):
        member = next(one for one in _at(text, keys).members if one.node.value == group)
        hooks = next(one.node for one in member.node.members if one.key == "hooks")
        text = _cut(text, hooks, number, "")
        group = {**group, "hooks": [*group["hooks"][:number], *group["hooks"][number + 1 :]]}
    _document(text)
    return text


def places_of(piece: str, text: str) -> Iterator[int]:
    """Yield where a piece stands in a text."""
    place = text.find(piece) if piece else -1
    while place >= 0:
        yield place
        place = text.find(piece, place + 1)


def without(document: Any, keys: Sequence[str], value: Any, *, is_item: bool, depth: int) -> Any:
    """Return a copy of a document without a value, and without those of its parents below `depth` that are empty then."""
    document = json.loads(json.dumps(document))
    parents = [document]
    for key in keys if is_item else keys[:-1]:
        parents.append(parents[-1][key])
    if is_item:
        number = max(number for number, one in enumerate(parents[-1]) if one == value)
        del parents[-1][number]
    else:
        del parents[-1][keys[-1]]
    for number in range(len(parents) - 1, depth, -1):
        if parents[number]:
            break
        del parents[number - 1][keys[number - 1]]
    return document


def _is_document(text: str, expected: Any) -> bool:
    try:
        return json.dumps(parsed(text)) == json.dumps(expected)
    except InvalidInputError:
        return False


def _cut(text: str, container: Node, number: int, tail: str) -> str:
    """Remove a member, the white space before it, and one comma. `tail` is what an insertion put before the closing bracket."""
    members = container.members
    member = members[number]
    start, end, close = member.start - len(_blank_before(text, member.start)), member.node.end, container.end - 1
    comma = _after_blank(text, members[number - 1].node.end if number else end)
    others = members[:number] + members[number + 1 :]
    if not others:
        inside = text[container.start + 1 : start] + text[end:close].replace(",", "", 1)
        return text[: container.start + 1] + (inside if inside.strip() else "") + text[close:]
    if number:
        if tail and text[:close].endswith(tail) and "\n" not in _blank_before(text, others[0].start):
            text = text[: close - len(tail)] + text[close:]
        return text[:comma] + text[comma + 1 : start] + text[end:]
    if not text[comma + 1 : others[0].start].strip():
        return text[: member.start] + text[others[0].start :]
    return text[:start] + text[end:comma] + text[comma + 1 :]


def _at(text: str, keys: Sequence[str]) -> Node:
    node = _document(text)
    for key in keys:
        node = next(one.node for one in reversed(node.members) if one.key == key)
    return node


def _member(node: Node, key: str) -> Member | None:
    if not isinstance(node.value, dict):
        return None
    return next((one for one in reversed(node.members) if one.key == key), None)  # of equal keys, the last one counts


def _rendered(value: Any, indent: str, unit: str, new_line: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", new_line + indent)


def _unit(text: str) -> str:
    """Return what one level is indented by: as far as the document's first member."""
    members = _document(text).members
    before = _blank_before(text, members[0].start) if members else ""
    return before.rpartition("\n")[2] or _INDENT


def _blank_before(text: str, place: int) -> str:
    begin = place
    while begin and text[begin - 1] in " \t\r\n":
        begin -= 1
    return text[begin:place]


def _after_blank(text: str, place: int) -> int:
    found = _SKIPPED.match(text, place)
    return found.end() if found else place


def _document(text: str) -> Node:
    try:
        start = _after_blank(text, 1 if text.startswith("\ufeff") else 0)
        node = _node(text, start)
        end = _after_blank(text, node.end)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise InvalidInputError(f"is not valid JSON: {reason}", field="document") from None
    if end != len(text):
        raise InvalidInputError(f"is not valid JSON: {_where(text, end)}", field="document")
    if not isinstance(node.value, dict):
        raise InvalidInputError("must be a JSON object", field="document")
    return node


def _node(text: str, place: int) -> Node:
    opening = text[place : place + 1]
    if opening not in {"{", "["}:
        if not opening:
            raise ValueError(_where(text, place))
        value, end = _DECODER.raw_decode(text, place)
        return Node(place, end, value)
    is_object = opening == "{"
    members: list[Member] = []
    begin, place = place, _after_blank(text, place + 1)
    while text[place : place + 1] not in {"}", "]"}:
        start: int = place
        key: str | int = len(members)
        if is_object:
            key, place = _DECODER.raw_decode(text, place)
            place = _after_blank(text, place)
            if not isinstance(key, str) or text[place : place + 1] != ":":
                raise ValueError(_where(text, start))
            place = _after_blank(text, place + 1)
        node = _node(text, place)
        members.append(Member(key, start, node))
        place = _after_blank(text, node.end)
        if text[place : place + 1] == ",":
            place = _after_blank(text, place + 1)
        elif text[place : place + 1] not in {"}", "]"}:
            raise ValueError(_where(text, place))
    if text[place] != ("}" if is_object else "]"):
        raise ValueError(_where(text, place))
    value = {one.key: one.node.value for one in members} if is_object else [one.node.value for one in members]
    return Node(begin, place + 1, value, members)


def _where(text: str, place: int) -> str:
    line = text.count("\n", 0, place) + 1
    return f"line {line} column {place - text.rfind(chr(10), 0, place)}"
