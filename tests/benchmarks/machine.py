"""What the benchmarks run on, and what a process holds."""

from __future__ import annotations

import os
import platform
import resource
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import percentile, timed

PACKAGES = ("memgraph-kuzu", "kuzu", "numpy", "pydantic", "orjson")


def described(folder: Path, peers: Sequence[str] = ()) -> dict[str, Any]:
    """Return machine, versions, load and filesystem."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_1_min": round(os.getloadavg()[0], 2),
        "filesystem": _filesystem(folder),
        "append_fsync_ms_p50": round(_append_fsync_ms(folder), 3),
        "python": platform.python_version(),
        "versions": {name: found for name in (*PACKAGES, *peers) if (found := installed(name))},
    }


def installed(distribution: str) -> str | None:
    """Return a distribution's version, None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def resident_mb() -> dict[str, float]:
    """Return what this process holds: ``peak``, and on Linux ``now`` and ``own`` (without mapped files), 10⁶ bytes."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except FileNotFoundError:
        # the peak alone; its unit is bytes on macOS, and a child's begins with its parent's
        unit = 1 if sys.platform == "darwin" else 1024
        return {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6}
    held = {
        name: int(rest.split()[0]) * 1024 / 1e6
        for name, _, rest in (line.partition(":") for line in lines)
        if "kB" in rest
    }
    return {"peak": held["VmHWM"], "now": held["VmRSS"], "own": held["RssAnon"]}


def size_of(*paths: Path) -> int:
    """Return the bytes of files, and of all files in folders."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if file.is_file())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _filesystem(folder: Path) -> str:
    """Return the type of the filesystem that a folder lies on, "unknown" where there is no /proc."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    except FileNotFoundError:
        return "unknown"
    around = [(len(point), kind) for point, kind in mounts if folder.resolve().is_relative_to(point)]
    return max(around)[1]


def _append_fsync_ms(folder: Path) -> float:
    """Return what it costs here to make one kilobyte durable: the floor under every single insert."""
    path = folder / "fsync"
    with path.open("ab", buffering=0) as file:

        def append() -> None:
            file.write(b"x" * 1024)
            os.fsync(file.fileno())

        taken = [timed(append) for _ in range(30)]
    path.unlink()
    return 1e3 * percentile(taken, 0.5)
