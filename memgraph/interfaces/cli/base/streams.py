"""Opens the standard streams of a process that may have been started with closed or unwritable ones."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


class OutputError(OSError):
    """Standard output could not be written: the command ran, but its output is incomplete."""


class _Output(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise  # the reader closed the pipe
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None


class _Notices(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes  # there is no stream left to report this on; the command continues


def open_standard_streams() -> None:
    """Make the process's standard streams usable for a command.

    A closed stream is replaced with ``/dev/null``: otherwise the next file that is opened would get its descriptor and
    receive the output. A failed write to standard output raises `OutputError`; one to standard error is dropped.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor: this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - open for the life of the process
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Notices(2, "w", closefd=False), sys.stderr)


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    if before is not None:
        before.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before is not None else "utf-8",
        errors="backslashreplace",  # characters outside the encoding are printed as codes
        line_buffering=raw.isatty() or raw.fileno() == 2,
    )
