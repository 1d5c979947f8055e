"""Safe rendering of untrusted text in prompts, headings and sentences: one line without control characters."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_JOINERS = "\u200c\u200d"
_UNSEEN = range(0xE0000, 0xE1000)
"""Tags and variation selectors of plane 14: they are invisible, and can spell any text to a model."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain, not even as references."""
_SPACES = " \t\r\n"
_COMMANDS = frozenset(
    [
        *range(0x20),
        *range(0x7F, 0xA0),
        *(0x061C, 0x200E, 0x200F, 0xFEFF),
        *range(0x2028, 0x202F),
        *range(0x2066, 0x206A),
        *range(0xE0000, 0xE0080),
    ]
)
"""Control characters, direction overrides, tags and other invisible characters; as in `visualizations/src/text.js`."""
_HIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_SURROGATES = range(0xD800, 0xE000)


def visible(text: str) -> str:
    """Return a text as one line, with each control character written as its code: ⟨U+202E⟩. Lone surrogates are replaced."""
    line = " ".join(part for part in text.translate(dict.fromkeys(map(ord, _SPACES), " ")).split(" ") if part)
    return "".join(_seen(character) for character in line)


def _seen(character: str) -> str:
    code = ord(character)
    if code in _SURROGATES:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩" if code in _COMMANDS else character


def one_line(text: str) -> str:
    """Reduce a text to one line: line ends, control characters and direction overrides become spaces."""
    plain = "".join(" " if unicodedata.category(char) == "Cc" or char in _BIDI else char for char in text)
    return " ".join(plain.split())


def visible_line(text: str) -> str:
    """Reduce a text to one line of visible characters: invisible ones could tell a model what no person reads."""
    if not text.isascii():
        text = "".join(char for char in text if not _is_invisible(char))
    return one_line(text)


def _is_invisible(char: str) -> bool:
    return (unicodedata.category(char) == "Cf" and char not in _JOINERS) or ord(char) in _UNSEEN


def visible_json(value: Any) -> str:
    """Return a JSON value on one line, in which control characters and invisible ones are written as JSON's own escapes."""
    line = json.dumps(value, ensure_ascii=False)
    if line.isascii() and line.isprintable():
        return line
    return "".join(json.dumps(char)[1:-1] if is_hidden(char) else char for char in line)


def is_hidden(char: str) -> bool:
    """Return whether a character is a command, a line end, a part of a broken one, or invisible, except joiners of words and emoji."""
    return unicodedata.category(char) in _HIDDEN or _is_invisible(char)


def xml_text(text: str) -> str:
    """Return a text with U+FFFD for characters that XML cannot contain."""
    return _NOT_XML.sub("\ufffd", text)
