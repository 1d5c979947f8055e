"""What a peer keeps when its process is killed, and when two processes write at once: tried, not read up."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.child import Job, JobError, run

WRITERS = 2


@dataclass(frozen=True, slots=True)
class Kept:
    """How many acknowledged memories a new process found, and who was refused, with which words."""

    acknowledged: int
    kept: int
    refused: str | None = None

    def __str__(self) -> str:
        told = f"{self.kept} of {self.acknowledged}"
        return f"{told}, one refused" if self.refused else told


def killed(name: str, folder: Path, *, inserts: int, timeout_s: float) -> Kept:
    """Kill -9 a writer after so many acknowledged inserts, and count what is there."""
    folder.mkdir(parents=True)
    job = "tests.benchmarks.peers.jobs:insert_on"
    with Job(job, folder / "home", timeout_s=timeout_s, name=name, folder=folder, count=1_000_000, first=0) as writer:
        writer.result()  # it is ready
        writer.tell("go")
        ids = [writer.result()["id"] for _ in range(inserts)]
        writer.kill()
        ids += [result["id"] for result in writer.results()]
    return Kept(len(ids), _count(name, folder, ids, timeout_s))


def two_writers(name: str, folder: Path, *, inserts: int, timeout_s: float) -> Kept:
    """Let two processes insert at once into one store, and count what is there."""
    folder.mkdir(parents=True)
    ids: list[str] = []
    refused: str | None = None
    with ExitStack() as stack:
        ready = []
        for place in range(WRITERS):
            arguments = {"name": name, "folder": folder, "count": inserts, "first": place * 1_000}
            job = Job("tests.benchmarks.peers.jobs:insert_on", folder / "home", timeout_s=timeout_s, **arguments)
            writer = stack.enter_context(job)
            try:
                writer.result()
                ready.append(writer)
            except JobError as error:
                refused = str(error).replace(str(folder), "…")
        for writer in ready:
            writer.tell("go")
        for writer in ready:
            ids += [result["id"] for result in writer.results() if "id" in result]
            try:
                writer.finish()
            except JobError as error:
                refused = str(error).replace(str(folder), "…")
    return Kept(len(ids), _count(name, folder, ids, timeout_s), refused)


def _count(name: str, folder: Path, ids: list[str], timeout_s: float) -> int:
    job = "tests.benchmarks.peers.jobs:count"
    results = run(job, folder / "home", timeout_s=timeout_s, given=json.dumps(ids), name=name, folder=folder)
    return int(results[0]["kept"])
