"""Identifiers: memories by UUID, things with natural keys by UUIDv5 of (kind, project, canonical name)."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import sha1
from typing import Annotated
from uuid import UUID, uuid4

from pydantic import AfterValidator

_NAMESPACE = UUID("6d656d67-7261-5068-8b75-7a75206a726e")
_TITLES = frozenset(str.split("dr mr mrs ms mx miss prof professor sir dame rev"))
_CANONICAL = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _lower_uuid(text: str) -> str:
    if isinstance(text, str) and _CANONICAL.fullmatch(text):
        return text
    try:
        return str(UUID(text))
    except (ValueError, AttributeError):
        raise ValueError("is not a UUID") from None


MIN_ID_CHARS = 8
"""The shortest prefix that stands for an id, and the one that is shown."""
MemoryId = Annotated[str, AfterValidator(_lower_uuid)]


def new_id() -> str:
    """Return a random (version 4) id."""
    return str(uuid4())


def source_id(source_key: str, ordinal: int) -> str:
    """Id of the memory made from part `ordinal` of a source record: equal input, equal id."""
    return _uuid5(f"memory\x1f{source_key}\x1f{ordinal}")


def stored_form(memory_id: object) -> str:
    """Return the stored form of an id, a UUID in lower case; of anything else a text that is no memory's id."""
    try:
        return str(UUID(str(memory_id)))
    except ValueError:
        return ""


@lru_cache(maxsize=65_536)
def natural_id(kind: str, name: str, *, project_id: str | None = None) -> str:
    """Return the id of a thing known by its exact name, such as a project, build or agent; of tags and entities give the `canonical_name`."""
    return _uuid5(f"{kind}\x1f{project_id or ''}\x1f{name}")


def _uuid5(name: str) -> str:
    """Return the version 5 UUID of a name: ``uuid.uuid5`` takes four times as long, and a store has many names."""
    digest = bytearray(sha1(_NAMESPACE.bytes + name.encode(), usedforsecurity=False).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x50, digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def without_title(name: str) -> str:
    """Return a person's canonical name without titles such as "Dr."; a title alone is returned as it is."""
    words = canonical_name(name).split()
    while len(words) > 1 and words[0].removesuffix(".") in _TITLES:
        words = words[1:]
    return " ".join(words)


def short_name(kind: str, name: str) -> str:
    """Return the short form of a name: a file without its folders, a person's last name."""
    name = canonical_name(name)
    if kind == "file":
        return name.rstrip("/").rsplit("/", 1)[-1] or name
    return without_title(name).split()[-1] if kind == "person" and name else name


def lower(text: str) -> str:
    """Return a text in lower case, and as long as it was: what is found in it stands at the same place in the text."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else "".join(one.lower()[0] for one in text)


@lru_cache(maxsize=65_536)
def canonical_name(name: str) -> str:
    """Return a name's form for comparison: NFKC, case folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
