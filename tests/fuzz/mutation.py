"""Spoils documents, texts and bytes: at random places, in the ways that find faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any

NUMBERS = [
    0,
    -1,
    1,
    2,
    2**31 - 1,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    0.5,
    -0.0,
    5e-324,
    1e308,
    1e39,
]
CHARS = [*"\0\t\n\r\x1b \"'`\\/{}[]()<>,:;$%&|#@~^*", "\x85", "\xa0", "\xad", "\u0130", "\u0301", "\u200b", "\u2028", "\u202e", "\ufeff", "\uff0e", "\ufffe", "\ud800", "\udfff", "ß", "数", "🎉", "\U0010ffff"]  # fmt: skip
TEXTS = [
    *("", " ", "\0", "\ud83d", "null", "true", "NaN", "0", "-1", "1e999", "..", "/", "x" * 401, "x" * 801, "x" * 8_001),
    *("🎉" * 401, "a\u0301" * 300, "\u202eabc", "{{}}", "${HOME}", "%s%n", "<script>", "'; DROP TABLE Memory; --"),
    *("2026-02-30", "2026-01-01T25:00:00Z", "0000-01-01", "9999-12-31T23:59:59.999-14:00", "0001-01-01T00:00+14:00"),
    *("2026-W05", "20260201T090000Z", "2026-02-01T09:00:00.123456789Z", "2026-02-01 09:00", "1e3", "٣", "²"),
    *("00000000-0000-0000-0000-000000000000", "{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    *("episodic", "semantic", "procedural", "positive", "success", "SUPPORTS", "NEXT", "public", "1.0.0"),
]  # fmt: skip
OTHERS: list[Any] = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": None},
    {"a": {"a": {}}},
    float("nan"),
    float("inf"),
]
NEST = "\x01nest"
"""Stands in a document for something nested deeper than a document can be written: see `expanded`."""
_MOST_NODES = 4_000
_DEEPEST = 20_000


def odd_value(rng: Random) -> Any:
    """Return a value that is seldom expected."""
    kind = rng.randrange(8)
    if kind < 2:
        return rng.choice(NUMBERS)
    if kind < 5:
        return rng.choice(TEXTS)
    if kind == 5 and rng.random() < 0.2:
        return {NEST: rng.choice(["list", "dict"]), "depth": rng.choice([50, 300, 1_500, _DEEPEST])}
    return deepcopy(rng.choice(OTHERS))


def mutated(rng: Random, document: Any) -> Any:
    """Return a copy of a document, spoilt at one or a few places."""
    document = deepcopy(document)
    for _ in range(_few(rng)):
        places = _places(document)
        if not places:
            return odd_value(rng)
        rng.choice(_CHANGES)(rng, *rng.choice(places), places)
    return document


def random_document(rng: Random, depth: int = 4) -> Any:
    """Return a document that follows no plan."""
    if depth == 0 or rng.random() < 0.4:
        return odd_value(rng)
    if rng.random() < 0.5:
        return [random_document(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {mutated_text(rng, rng.choice(TEXTS)[:20]): random_document(rng, depth - 1) for _ in range(rng.randrange(4))}


def mutated_text(rng: Random, text: str, dictionary: Sequence[str] = ()) -> str:
    """Return a text with a few characters or words changed."""
    for _ in range(_few(rng)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.choice([0, 1, 1, 2, 5, 20, 200]))
        piece = text[start:end]
        piece = rng.choice(
            [
                "",
                rng.choice(CHARS),
                rng.choice(dictionary or TEXTS),
                piece + rng.choice(CHARS),
                rng.choice(dictionary or CHARS) + piece,
                piece * rng.choice([2, 3, 20]),
                piece.swapcase(),
                piece[::-1],
                chr(rng.choice([rng.randrange(128), rng.randrange(0x300), rng.randrange(0x110000)])),
            ]
        )
        text = text[:start] + piece + text[end:]
        if rng.random() < 0.03:
            text = text[:start]
    return text


def mutated_bytes(rng: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Return bytes with some flipped, lost, repeated, moved, or put in from elsewhere."""
    for _ in range(_few(rng)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.choice([0, 1, 1, 2, 8, 64, 1_000]))
        piece = data[start:end]
        if data and rng.random() < 0.3:
            start = rng.randrange(len(data))
            end = start + 1
            piece = bytes([data[start] ^ 1 << rng.randrange(8)])
        else:
            other = rng.choice(others) if others else data
            at = rng.randrange(len(other) + 1)
            piece = rng.choice(
                [
                    b"",
                    rng.randbytes(rng.choice([1, 4, 64])),
                    piece * 2,
                    piece[::-1],
                    rng.choice([b"\0", b"\n", b"\r\n", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b'"', b"{", b"]", b"1e999", b"-0"]),
                    other[at : at + rng.choice([1, 10, 100, 1_000])],
                ]
            )  # fmt: skip
        data = data[:start] + piece + data[end:]
        if rng.random() < 0.05:
            data = data[:start]
    whole = rng.random()
    if whole < 0.01:
        return data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-32", "utf-8-sig", "utf-7"]), "replace")
    return b"" if whole < 0.012 else data


def written(document: Any) -> bytes:
    """Return a document as a case: JSON as Python has it, with NaN, halves of pairs and numbers of any size."""
    return json.dumps(document).encode()


def read(case: bytes) -> Any:
    """Return the document that a case stands for, with what it cannot say itself."""
    return expanded(json.loads(case))


def expanded(value: Any) -> Any:
    """Return a document with what is nested too deep to be written."""
    if isinstance(value, list):
        return [expanded(item) for item in value]
    if isinstance(value, dict) and NEST in value:
        depth = value.get("depth")
        nested: Any = value
        for _ in range(depth if isinstance(depth, int) and depth <= _DEEPEST else 100):
            nested = [nested] if value[NEST] == "list" else {"a": nested}
        return nested
    if isinstance(value, dict):
        return {name: expanded(item) for name, item in value.items()}
    return value


Container = list[Any] | dict[str, Any]
Place = tuple[Container, Any]
"""A list and an index in it, or a dictionary and a key in it."""


def _few(rng: Random) -> int:
    return rng.choice([1, 1, 1, 2, 2, 3, 5])


def _places(document: Any) -> list[Place]:
    found: list[Place] = []
    waiting = [document]
    while waiting and len(found) < _MOST_NODES:
        value = waiting.pop()
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in entries:
            found.append((value, key))
            waiting.append(inner)
    return found


def _replace(rng: Random, holder: Any, key: Any, _: list[Place]) -> None:
    holder[key] = odd_value(rng)


def _remove(_rng: Random, holder: Any, key: Any, _: list[Place]) -> None:
    del holder[key]


def _move(rng: Random, holder: Any, key: Any, places: list[Place]) -> None:
    other, other_key = rng.choice(places)
    holder[key] = deepcopy(other[other_key])


def _repeat(rng: Random, holder: Any, key: Any, _: list[Place]) -> None:
    value = holder[key]
    if isinstance(value, list) and rng.random() < 0.3:
        holder[key] = value * rng.choice([2, 3, 1_001 if len(value) < 3 else 2])
    elif isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), deepcopy(value))
    else:
        head, *rest = key.split("_")
        holder[rng.choice([head + "".join(map(str.title, rest)), key.upper(), key + " ", "_" + key])] = deepcopy(value)


def _rename(rng: Random, holder: Any, key: Any, places: list[Place]) -> None:
    names = [name for _, name in places if isinstance(name, str)]
    if isinstance(holder, dict):
        holder[rng.choice([*TEXTS, *names])] = holder.pop(key)


def _wrap(rng: Random, holder: Any, key: Any, _: list[Place]) -> None:
    holder[key] = rng.choice([[holder[key]], {key if isinstance(key, str) else "a": holder[key]}, str(holder[key])])


def _tweak(rng: Random, holder: Any, key: Any, _: list[Place]) -> None:
    value = holder[key]
    if isinstance(value, str):
        holder[key] = mutated_text(rng, value)
    elif isinstance(value, bool) or value is None:
        holder[key] = not value
    elif isinstance(value, int | float):
        holder[key] = rng.choice([value + 1, -value, str(value), [value]])
    else:
        holder[key] = odd_value(rng)


_CHANGES: list[Callable[[Random, Any, Any, list[Place]], None]] = [
    *(_replace, _replace, _replace, _remove, _move, _repeat, _rename, _wrap, _tweak, _tweak)
]
