"""Reads an argument from standard input where it is ``-``, or from a file."""

from __future__ import annotations

import sys
from pathlib import Path

from memgraph.interfaces.cli.base.commands import Refused

MAX_STDIN_CHARS = 1_000_000


def standard_input(instead: str) -> str:
    """Return the text on standard input.

    Parameters
    ----------
    instead : str
        What to do if the text is too long: the end of the error message.

    Raises
    ------
    Refused
        It is not UTF-8, or longer than 1,000,000 characters.
    """
    try:
        text = sys.stdin.read(MAX_STDIN_CHARS + 1)
    except UnicodeDecodeError as error:
        raise Refused(f"standard input is not UTF-8 text (byte {error.start})") from None
    if len(text) > MAX_STDIN_CHARS:
        raise Refused(f"standard input holds more than {MAX_STDIN_CHARS:,} characters; {instead}")
    return text


def text_of(file: str) -> str:
    """Return the text of a file; of standard input for ``-``.

    Raises
    ------
    Refused
        It cannot be read, is not UTF-8, or is longer than 1,000,000 characters.
    """
    if file == "-":
        return standard_input("give a shorter text")
    try:
        with Path(file).open(encoding="utf-8", newline="") as opened:
            text = opened.read(MAX_STDIN_CHARS + 1)
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Refused(f"{file} is not UTF-8 text (byte {error.start})") from None
    if len(text) > MAX_STDIN_CHARS:
        raise Refused(f"{file} holds more than {MAX_STDIN_CHARS:,} characters; give a shorter text")
    return text
