"""Text that others wrote, to be put into headings and sentences: one line in which nothing gives commands."""

from __future__ import annotations

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
"""Controls, overrides of direction, tags and what else is not seen; as in `visualizations/src/text.js`."""
_SURROGATES = range(0xD800, 0xE000)


def visible(text: str) -> str:
    """Return a text as one line, each command in it written out as its code: ⟨U+202E⟩. Half a character is replaced."""
    line = " ".join(part for part in text.translate(dict.fromkeys(map(ord, _SPACES), " ")).split(" ") if part)
    return "".join(_seen(character) for character in line)


def _seen(character: str) -> str:
    code = ord(character)
    if code in _SURROGATES:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩" if code in _COMMANDS else character
