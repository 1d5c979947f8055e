"""The order in which things are measured: memgraph at each size, then everybody side by side."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import child
from tests.benchmarks.figures import MEANINGS, PEER_MEANINGS, made_of
from tests.benchmarks.peers import PEERS
from tests.benchmarks.peers.trials import killed, two_writers
from tests.benchmarks.plan import Plan
from tests.benchmarks.report import PeerResult, Report, Trial

Values = defaultdict[str, list[float]]


class Run:
    """One run in one folder.

    Parameters
    ----------
    plan : Plan
    folder : Path
        Holds the stores while they are measured.
    report : Report
        Is told each figure as it comes.
    """

    def __init__(self, plan: Plan, folder: Path, report: Report) -> None:
        self._plan = plan
        self._folder = folder
        self._report = report

    def memgraph(self, size: int) -> None:
        """Measure memgraph at a size: fill, open, write, read, replay."""
        plan, folder = self._plan, self._folder / f"memgraph-{size}"
        self._report.title(f"{size:,} memories, inserted in calls of {min(size, plan.batch):,}")
        try:
            values: Values = defaultdict(list)
            for _ in range(plan.repeats):
                self._fresh(folder)
                self._job("jobs:build", folder, values, size=size, batch=plan.batch)
                if sum(size / rate for rate in values["bulk"]) > plan.within_s:
                    break
            self._report.measured(size, values)
            self._openings(size, folder)
            self._job_at(size, "jobs:write", folder, of=size, singles=plan.singles, looks=plan.looks)
            later: Values = defaultdict(list)
            self._job("first_recall:measure", folder, later)
            self._report.measured(size, {"open_after_writes": later["open_to_recall"]})
            self._job_at(size, "jobs:read", folder, reads=plan.reads, within_s=plan.within_s)
            self._job_at(size, "jobs:replay", folder, repeats=plan.repeats, within_s=plan.within_s)
        except child.JobError as error:
            self._report.failed(f"memgraph at {size:,}: {error}")
        shutil.rmtree(folder, ignore_errors=True)

    def side_by_side(self, names: Sequence[str], size: int) -> None:
        """Measure memgraph and its peers at a size, all by the same job."""
        for name in names:
            self._report.say(f"  measuring {name} at {size:,} …")
            result = PeerResult(name, size)
            try:
                values = self._filled(name, size, result.notes)
            except child.JobError as error:
                self._report.failed(f"{name} at {size:,}: {error}")
                values = defaultdict(list)
            for figure, meaning in PEER_MEANINGS.items():
                if values[figure]:
                    result.figures += made_of(figure, meaning, values[figure], memories=size, system=name)
            self._report.peers.append(result)

    def trials(self, names: Sequence[str]) -> None:
        """Kill a writer of each, and let two write at once."""
        inserts, timeout_s = self._plan.trial_inserts, self._plan.timeout_s
        for name in names:
            folder = self._folder / f"{name}-trial"
            try:
                after_kill = killed(name, folder / "killed", inserts=inserts, timeout_s=timeout_s)
                after_two = two_writers(name, folder / "two", inserts=inserts, timeout_s=timeout_s)
            except child.JobError as error:
                self._report.failed(f"{name}, killed or beside another writer: {error}")
            else:
                self._report.trials.append(Trial(name, after_kill, after_two))
            shutil.rmtree(folder, ignore_errors=True)

    def _openings(self, size: int, folder: Path) -> None:
        values: Values = defaultdict(list)
        for _ in range(self._plan.openings):
            self._job("first_recall:measure", folder, values)
        self._report.measured(size, values)

    def _filled(self, name: str, size: int, notes: list[str]) -> Values:
        """Fill, query and reopen one of them, and note what should be known of it."""
        plan, folder = self._plan, self._folder / f"{name}-{size}"
        values: Values = defaultdict(list)
        arguments: dict[str, Any] = {"name": name, "size": size, "batch": plan.batch, "singles": plan.singles}
        arguments |= {"queries": plan.peer_queries, "within_s": plan.within_s}
        spent_s = 0.0
        for _ in range(plan.repeats):
            self._fresh(folder)
            records = self._job("peers.jobs:fill", folder, values, **arguments)
            notes += [record["note"] for record in records if "note" in record and record["note"] not in notes]
            spent_s += sum(record["spent_s"] for record in records if "spent_s" in record)
            if spent_s > plan.within_s:
                break
        sample = next(record["sample"] for record in records if "sample" in record)
        for _ in range(plan.openings):
            records = self._job("peers.jobs:reopen", folder, values, given=json.dumps(sample), name=name)
        kept = next(record["kept"] for record in records if "kept" in record)
        if kept < len(sample):
            notes.append(f"a new process found {kept} of {len(sample)} of its memories")
        shutil.rmtree(folder, ignore_errors=True)
        return values

    def _job_at(self, size: int, job: str, folder: Path, **arguments: Any) -> None:
        """Run a job and report its figures."""
        values: Values = defaultdict(list)
        self._job(job, folder, values, **arguments)
        self._report.measured(size, {name: values[name] for name in MEANINGS if values[name]})

    def _job(
        self, job: str, folder: Path, values: Values, *, given: str = "", **arguments: Any
    ) -> list[dict[str, Any]]:
        """Run a job in a process of its own, collect its figures, and return all that it said."""
        records = child.run(
            f"tests.benchmarks.{job}",
            folder / "home",
            timeout_s=self._plan.timeout_s,
            given=given,
            folder=folder,
            **arguments,
        )
        for record in records:
            if "figure" in record:
                values[record["figure"]] += record["values"]
            elif "network" in record:
                self._report.failed(f"{job} {arguments.get('name', '')}: asked for the network: {record['network']}")
        return records

    def _fresh(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)


def installed_and_missing() -> tuple[list[str], list[str]]:
    """Return the names of what can be measured side by side, and of what is not installed."""
    from tests.benchmarks.machine import installed

    there = [name for name, entry in PEERS.items() if entry.distribution is None or installed(entry.distribution)]
    return there, [name for name in PEERS if name not in there]
