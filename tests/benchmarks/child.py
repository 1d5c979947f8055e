"""Jobs in processes of their own, so that memory, imports and opening are each one's own. Without network.

A job is a generator, ``module:function``; what it yields comes out as JSON lines.
"""

from __future__ import annotations

import importlib
import json
import os
import site
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "MEM0_TELEMETRY": "False",
    "OTEL_SDK_DISABLED": "true",
    "POSTHOG_DISABLED": "1",
}
"""Read by the peers when they are imported."""


class JobError(Exception):
    """A job ended badly; the message says how."""


class Job:
    """A job that runs: tell it lines, take its results. A context manager; leaving it ends the process.

    Parameters
    ----------
    job : str
        ``module:function``.
    home : Path
        The process's home, so that nothing of the user's is read or written.
    timeout_s : float
        After so long it is killed.
    arguments : Any
        The function's keyword arguments.
    """

    def __init__(self, job: str, home: Path, *, timeout_s: float, **arguments: Any) -> None:
        home.mkdir(parents=True, exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not _is_personal(name)}
        own = {"HOME": str(home), "MEM0_DIR": str(home / "mem0"), "PYTHONUSERBASE": site.getuserbase()}
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.child", job, json.dumps(arguments, default=str)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env={**kept, **OFFLINE, **own},
        )
        self._timeout_s = timeout_s
        self._is_late = False
        self._timer = threading.Timer(timeout_s, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self.kill()
        with suppress(OSError):
            self._in.close()
        self._out.close()
        self._errors.close()

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        try:
            print(line, file=self._in, flush=True)
        except OSError:
            raise JobError(self._why()) from None

    def result(self) -> dict[str, Any]:
        """Return its next result; JobError if it ended instead."""
        result = next(self.results(), None)
        if result is None:
            raise JobError(self._why())
        return result

    def results(self) -> Iterator[dict[str, Any]]:
        """Iterate over its results until it ends; a last one that a kill cut short is left out."""
        for line in self._out:
            if line.endswith("\n"):
                yield json.loads(line)

    def finish(self) -> None:
        """Wait for its end; JobError unless it was a good one."""
        with suppress(OSError):
            self._in.close()
        if self._process.wait():
            raise JobError(self._why())

    def kill(self) -> None:
        """End it at once, as ``kill -9`` does."""
        self._process.kill()
        self._process.wait()

    @property
    def _in(self) -> IO[str]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _out(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _expire(self) -> None:
        self._is_late = True
        self._process.kill()

    def _why(self) -> str:
        """Return why it ended: the last line that it wrote to standard error."""
        code = self._process.wait()
        if self._is_late:
            return f"took longer than {self._timeout_s:,.0f} s"
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return lines[-1] if lines else f"ended with code {code}"


def run(job: str, home: Path, *, timeout_s: float, given: str = "", **arguments: Any) -> list[dict[str, Any]]:
    """Run a job to its end and return its results.

    Raises
    ------
    JobError
        It failed, or took longer than the timeout.
    """
    with Job(job, home, timeout_s=timeout_s, **arguments) as running:
        running.tell(given)
        results = list(running.results())
        running.finish()
    return results


def _is_personal(name: str) -> bool:
    upper = name.upper()
    return upper.startswith(
        ("MEMGRAPH_", "OPENAI_", "OPENROUTER_", "OLLAMA_", "XDG_", "CHROMA_", "MEM0_")
    ) or upper.endswith("_PROXY")


def _go_offline(attempts: list[str]) -> None:
    """Refuse everything but UNIX sockets, and keep what was tried. (Python's sockets: a compiled library has its own.)"""

    def refuse(target: object) -> None:
        attempts.append(repr(target))
        raise OSError(f"benchmarks run without network; {target!r} was asked for")

    def guarded(name: str) -> None:
        real = getattr(socket.socket, name)

        def call(self: socket.socket, *arguments: Any) -> Any:
            if self.family in {socket.AF_INET, socket.AF_INET6}:
                refuse(arguments[-1])
            return real(self, *arguments)

        setattr(socket.socket, name, call)

    for name in ("connect", "connect_ex", "sendto"):
        guarded(name)
    socket.getaddrinfo = lambda host, *_args, **_options: refuse(host)  # type: ignore[assignment]


def _results(job: str, arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    module, _, function = job.partition(":")
    yield from getattr(importlib.import_module(module), function)(**arguments)


def main() -> int:
    """Run the job that the command line names."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a peer prints is no result
    attempts: list[str] = []
    _go_offline(attempts)
    for result in _results(sys.argv[1], json.loads(sys.argv[2])):
        print(json.dumps(result), file=out, flush=True)
    if attempts:
        print(json.dumps({"network": sorted(set(attempts))}), file=out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
