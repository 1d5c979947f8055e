"""The standard streams of a process that may have been started without them, or with some that cannot be written."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


class OutputError(OSError):
    """Standard output could not be written: the command's answer did not arrive, whatever the command has done."""


class _Output(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise  # who reads has read enough
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None


class _Notices(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes  # nobody is left who could be told; that shall not end the command


def open_standard_streams() -> None:
    """Make the process's standard streams such that a command can use them, whatever it was started with.

    One that is closed reads and writes nothing, as ``/dev/null`` does: otherwise the next file that is opened would take its
    place, and be written into. What standard output cannot take raises `OutputError`; standard error drops it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest place that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - it lasts as long as the process
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Notices(2, "w", closefd=False), sys.stderr)


def _text(raw: io.FileIO, before: TextIO | None) -> io.TextIOWrapper:
    if before is not None:
        before.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before is not None else "utf-8",
        errors="backslashreplace",  # a terminal that lacks a character shows its code
        line_buffering=raw.isatty() or raw.fileno() == 2,
    )
