"""The key provider ``command``: a program of the user's, such as a password manager's, that prints the keys."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePath

from memgraph.errors import KeyMissingError
from memgraph.journal.keys.document import MAX_DOCUMENT_BYTES, keys_in
from memgraph.journal.keys.local import ListedKeys, keys_in_text
from memgraph.journal.keys.place import SOURCE_VARIABLE, KeyPlace
from memgraph.journal.keys.secret import is_named
from memgraph.ports import SigningKey

_BLOCK_BYTES = 64 << 10


class CommandKeys(ListedKeys):
    """Keys that a program prints: the document of the provider ``json``, or secrets in hexadecimal, the active one first.

    The program is run with a list of arguments, never by a shell. What it prints is neither logged nor quoted in an error, and
    what it writes to standard error is discarded, because either may hold a key.

    Parameters
    ----------
    arguments : sequence of str
        The program and its arguments. ``{store_id}`` in an argument becomes the store's id.
    timeout_s : float
        Seconds after which the program, and what it started, is killed.
    """

    name = "command"

    def __init__(self, arguments: Sequence[str], *, timeout_s: float) -> None:
        self._arguments = list(arguments)
        self._timeout_s = timeout_s
        self._printed: list[SigningKey] = []

    def place(self, store_id: str) -> KeyPlace:  # noqa: ARG002 - the same command serves every store
        """Return the program's name."""
        remedy = f"run the key command {self._program!r} in a terminal to see why it prints no key, or correct {SOURCE_VARIABLE}"
        return KeyPlace(f"the output of the key command {self._program!r}", remedy)

    @property
    def _program(self) -> str:
        return PurePath(self._arguments[0]).name

    def find(self, store_id: str, key_id: str) -> SigningKey | None:
        """Return the key that an id names, or None. The program is run only if it did not print the key before: it may ask a person."""
        found = next((key for key in self._printed if is_named(key, key_id)), None)
        return found or super().find(store_id, key_id)

    def keys(self, store_id: str) -> list[SigningKey]:
        """Run the program and return the keys that it printed; empty if it printed nothing.

        Raises
        ------
        KeyMissingError
            The program cannot be run, fails, takes too long, prints too much, or prints something else.
        """
        source = f"the key command {self._program!r}"
        data = self._output([part.replace("{store_id}", store_id) for part in self._arguments], source)
        if data.lstrip().startswith(b"{"):
            self._printed = keys_in(
                data, f"the output of {source}", store_id, advice="correct what it prints, or the setting key_source"
            )
        else:
            text = data.decode("ascii", "replace")
            self._printed = keys_in_text(
                text, f"each word of the output of {source}", f"command:{_name(self._program)}"
            )
        return self._printed

    def _output(self, arguments: list[str], source: str) -> bytes:
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "an argument holds a null character"
            raise KeyMissingError(f"{source} cannot be run: {reason}; check key_source") from None
        until = time.monotonic() + self._timeout_s  # for all of it: it may close its output and go on
        try:
            data = self._read(process, source, until)
            code = process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(process)
            raise self._late(source) from None
        except BaseException:
            _kill(process)
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()
        if code:
            raise KeyMissingError(f"{source} failed with exit code {code}; run it in a terminal to see why")
        return data

    def _read(self, process: subprocess.Popen[bytes], source: str, until: float) -> bytes:
        """Read to the end of the output, within the limits of time and size."""
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        data = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise self._late(source)
                block = os.read(process.stdout.fileno(), _BLOCK_BYTES)
                if not block:
                    return bytes(data)
                data += block
                if len(data) > MAX_DOCUMENT_BYTES:
                    raise KeyMissingError(
                        f"{source} printed more than {MAX_DOCUMENT_BYTES >> 10} KiB, which are no keys"
                    )

    def _late(self, source: str) -> KeyMissingError:
        return KeyMissingError(
            f"{source} took longer than {self._timeout_s:g} s and was ended; unlock what it asks, or raise key_timeout_s"
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the program, which was not waited for yet, and what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _name(program: str) -> str:
    """Return a program's name as it may stand in a key id."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in program)
