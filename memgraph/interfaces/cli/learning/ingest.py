"""``ingest``: turn a source's history into memories."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import SourceError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, Subgroup, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, notice, plain, progress, usage_lines
from memgraph.interfaces.refusals import one_source
from memgraph.model.base import MAX_CONTENT_CHARS

if TYPE_CHECKING:
    from memgraph.extraction.readers import Reader
    from memgraph.facade import MemGraph
    from memgraph.model.results.learning import IngestReport

_REASONS_SHOWN = 5
_SUMMED = "read builds known extracted merged forgotten left_out recorded repeated skipped secrets_redacted compressed".split()
_FOREIGN = {
    rb'\[\s*\{[^{}\[\]]*(?:"account":\s*\{[^{}]*\},\s*)?"(?:mapping|chat_messages)"\s*:\s*[\[{]': (
        "holds exported chats of ChatGPT or Claude, which do not say how anything ended, so nothing is learned from them. "
        "Save what should be kept with `memgraph remember TEXT`, or write it as build logs: see `memgraph docs sources`"
    ),
    rb'\{\s*"type"\s*:\s*"(?:entity|relation)"': "is of the MCP memory server: read it with `memgraph import FILE`",
}
"""How files of other products begin, and what to say of them."""
_NOTHING = "none of the {} sources could be read"
_NO_REPOSITORY = (
    "is not a git repository; to read saved output of `git log --name-status`, name the files themselves: "
    "`memgraph ingest git FILE...`"
)


def history_reader(path: Path, project: str | None = None) -> Reader:
    """Return the reader of a history: a directory is a repository, a file a saved log."""
    from memgraph.extraction.readers import GitReader, SavedGitLogReader

    if path.is_file():
        return SavedGitLogReader(path, project_id=project)
    if not path.exists():
        raise SourceError("does not exist", path=path)
    return GitReader(path, project_id=project)


def _reader(name: str) -> Callable[[Path, str | None], Reader]:
    """Return a factory of the named reader, which is imported on first use."""

    def make(path: Path, project: str | None) -> Reader:
        reader: Reader = getattr(import_module("memgraph.extraction.readers"), name)(path, project_id=project)
        return reader

    return make


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source.

    Attributes
    ----------
    about : str
        The command's help.
    reader : callable
        Factory: (path, project or None) → reader.
    endings : frozenset of str
        Suffixes of the source files in a directory; empty if a directory is itself a source.
    reads_hidden : bool
        Whether hidden files in a directory are read, too.
    folder_is_project : bool
        Whether all files in a directory belong to one project, named after the directory by default.
    agent : str or None
        The agent program whose sessions are read if no path is given.
    """

    about: str
    reader: Callable[[Path, str | None], Reader]
    endings: frozenset[str] = frozenset()
    reads_hidden: bool = False
    folder_is_project: bool = False
    agent: str | None = None


KINDS = {
    "git": Kind("Read a repository, or saved output of `git log --name-status`.", history_reader),
    "builds": Kind(
        "Read build logs: a JSON object or array, or JSON lines.",
        _reader("BuildLogReader"),
        frozenset({".json", ".jsonl", ".ndjson"}),
    ),
    "transcripts": Kind(
        "Read Claude Code transcripts or Codex logs; without PATH, all of the former.",
        _reader("TranscriptReader"),
        frozenset({".jsonl"}),
        reads_hidden=True,
        agent="claude-code",
    ),
    "codex": Kind(
        "Read sessions of Codex; without PATH, all of them.",
        _reader("TranscriptReader"),
        frozenset({".jsonl"}),
        reads_hidden=True,
        agent="codex",
    ),
    "trajectories": Kind("Read SWE-agent trajectories.", _reader("TrajectoryReader"), frozenset({".traj"})),
    "reflexion": Kind(
        "Read Reflexion trials: ALFWorld, MBPP or HotPotQA.",
        _reader("reflexion_reader"),
        frozenset({".json", ".jsonl", ".txt"}),
    ),
    "tau-bench": Kind(
        "Read tau-bench results: a JSON array, or JSON lines.",
        _reader("TauBenchReader"),
        frozenset({".json", ".jsonl"}),
    ),
    "junit": Kind(
        "Read test reports in JUnit XML.", _reader("JunitReader"), frozenset({".xml"}), folder_is_project=True
    ),
    "ci-log": Kind(
        "Read CI logs as text: pytest, tsc, cargo, go test and npm are recognised.",
        _reader("CiLogReader"),
        frozenset({".log", ".txt"}),
        folder_is_project=True,
    ),
}


@click.group(cls=Subgroup)
def ingest() -> None:
    """Turn sources into memories. A second run reads only what is new.

    A PATH may be compressed with gzip, or a directory: all matching files below it are read; symbolic links are not followed.
    """


def _command(name: str, kind: Kind) -> click.Command:
    @pass_settings
    def command(settings: Settings, paths: tuple[str, ...], project: str | None) -> None:
        run(settings, name, [Path(path) for path in paths] or _sessions(kind), project)

    needs_path = kind.agent is None
    params: list[click.Parameter] = [
        click.Argument(["paths"], nargs=-1, required=needs_path, metavar="PATH..." if needs_path else "[PATH]..."),
        click.Option(["--project"], metavar="NAME", help="The memories' project.  [default: the source's name]"),
    ]
    return Command(name, params=params, callback=command, help=kind.about)


for _name, _kind in KINDS.items():
    ingest.add_command(_command(_name, _kind))


def _sessions(kind: Kind) -> list[Path]:
    """Return where the agent program of a kind of source keeps its sessions."""
    from memgraph.interfaces.agents.clients.catalogue import transcripts_of

    return [transcripts_of(kind.agent)] if kind.agent else []


def run(settings: Settings, name: str, paths: Sequence[Path], project: str | None) -> None:
    """Ingest sources and print a report of each; an unreadable source does not stop the others."""
    kind = KINDS[name]
    found: list[tuple[Path, str | None]] = []
    reports: list[tuple[Path, IngestReport]] = []
    unreadable: list[SourceError] = []
    for path in paths:
        try:
            found += [(file, project or own) for file, own in _sources(kind, name, path)]
        except SourceError as error:
            if len(paths) == 1:
                raise
            notice(str(error))
            unreadable.append(error)
    if not found:
        raise Refused(_NOTHING.format(len(paths)))
    with opened(settings) as memory:
        for path, its_project in found:
            try:
                reports.append((path, _ingested(settings, memory, kind, path, its_project)))
            except SourceError as error:
                if len(found) == 1:
                    raise
                notice(str(error))
                unreadable.append(error)
        if reports:
            last, report = reports[-1]
            made = memory.consolidation.compress_if_due()
            memory.distillation.request()
            notices = "; ".join(filter(None, [report.notice, made.notice])) or None
            reports[-1] = last, report.model_copy(update={"compressed": made.compressed, "notice": notices})
        is_one = len(found) == 1 and len(paths) == 1 and name in {"git", "builds"}
        if is_one:
            emit(settings, reports[0][1], report_lines(reports[0][1]))
        else:
            total = _total(name, [report for _, report in reports])
            emit(settings, _document(reports, total, unreadable), [*_each(reports), *_total_lines(total, reports)])
    for text in {report.notice for _, report in reports if report.notice}:
        notice(text)
    if not any(report.builds or report.known or not report.skipped for _, report in reports):
        if len(found) > 1:
            raise Refused(_NOTHING.format(len(found)))
        raise SourceError("contains nothing that can be read", path=found[0][0])


def _sources(kind: Kind, name: str, path: Path) -> list[tuple[Path, str | None]]:
    """Return the sources at a path, each with the project of its directory, or None."""
    from memgraph.extraction.readers.source import files_below

    if not kind.endings or not path.is_dir():
        return [(path, None)]
    files = files_below(path, kind.endings, hidden=kind.reads_hidden)
    if not files:
        raise SourceError(f"contains no file for {name} ({', '.join(sorted(kind.endings))})", path=path)
    return [(file, (path.resolve().name or None) if kind.folder_is_project else None) for file in files]


def _ingested(settings: Settings, memory: MemGraph, kind: Kind, path: Path, project: str | None) -> IngestReport:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise SourceError("has a name that is not UTF-8; rename it", path=path) from None
    if kind is not KINDS["git"]:  # a saved log may have bytes that are no text
        _check_kind(path)
    try:
        reader = kind.reader(path, project)
        with one_source(path), progress(settings, f"reading {plain(reader.project_id)}") as bar:
            report = memory.ingest(reader, progress=bar, compress=False)
        if kind is KINDS["git"] and reader.count() == 0:
            notice(f"{path} has no commits yet")
        return report
    except SourceError as error:
        if "not a git repository" not in str(error):
            raise
        raise SourceError(_NO_REPOSITORY, path=path) from None


def _check_kind(path: Path) -> None:
    from memgraph.extraction.readers.source import opened as opened_file

    if path.is_file():
        with opened_file(path) as (stream, _):
            head = stream.read(16_384).removeprefix(b"\xef\xbb\xbf").lstrip()
        for problem in (problem for beginning, problem in _FOREIGN.items() if re.match(beginning, head)):
            raise SourceError(problem, path=path)


def _total(name: str, reports: Sequence[IngestReport]) -> IngestReport:
    """Return the sum of several reports."""
    from memgraph.model.results.learning import IngestReport

    sums = {name: sum(getattr(report, name) for report in reports) for name in _SUMMED}
    builds = sums["builds"]
    used = [report.usage for report in reports if report.usage is not None]
    return IngestReport(
        source=f"{name}: {count(len(reports), 'source')}",
        **sums,
        kept_share=sum(report.kept_share * report.builds for report in reports) / builds if builds else 0.0,
        reasons=dict(sum((Counter(report.reasons) for report in reports), Counter())),
        seconds=round(sum(report.seconds for report in reports), 3),
        usage=reduce(add, used) if used else None,
    )


def _document(
    reports: Sequence[tuple[Path, IngestReport]], total: IngestReport, unreadable: Sequence[SourceError]
) -> dict[str, Any]:
    return {
        "reports": [{"path": str(path), **report.model_dump(mode="json")} for path, report in reports],
        "total": total.model_dump(mode="json"),
        "unreadable": [str(error) for error in unreadable],
    }


def _each(reports: Sequence[tuple[Path, IngestReport]]) -> list[str]:
    """Return a line per source."""
    return [f"{plain(str(path))}: {_counts(report) if report.read else 'nothing new'}" for path, report in reports]


def _counts(report: IngestReport) -> str:
    added = f"{count(report.extracted, 'memory', 'memories')} added"
    skipped = f", {report.skipped:,} skipped" if report.skipped else ""
    return f"{count(report.builds, 'build')}, {added}, {report.merged:,} merged{skipped}"


def _total_lines(total: IngestReport, reports: Sequence[tuple[Path, IngestReport]]) -> list[str]:
    if len(reports) < 2:
        return report_lines(total)[1:]
    said = report_lines(total)[0] if total.read else "nothing new."
    return [
        f"{count(len(reports), 'source')}: {said[:1].lower()}{said[1:]}",
        *report_lines(total)[1:],
    ]


def _balance(report: IngestReport) -> list[str]:
    """Return a line whose parts add up to the commits read; none if a model made several memories of one commit."""
    parts = {
        ("memory", "memories"): report.extracted,
        ("record", "records"): report.recorded,
        ("merge not kept", "merges not kept"): report.repeated,
        ("that repeats what was forgotten or deleted", "that repeat what was forgotten or deleted"): report.forgotten,
    }
    parts["that left nothing new", "that left nothing new"] = left = report.read - sum(parts.values())
    said = [count(many, *words) for words, many in parts.items() if many]
    return [f"{count(report.read, 'commit')} = {' + '.join(said)}."] if left >= 0 and len(said) > 1 else []


def report_lines(report: IngestReport) -> list[str]:
    """Return a report as text."""
    if not report.read:
        return ["Nothing new to read."]
    is_history = report.source.startswith("git")
    merged = (
        f", {count(report.merged, 'merged into an existing one', 'merged into existing ones')}" if report.merged else ""
    )
    if is_history and report.merged:
        merged += f" and kept as {'a record' if report.merged == 1 else 'records'}"
    read, attempt = ("commit", "sitting") if is_history else ("record", "build")
    source = f"{count(report.read, read)} as {count(report.builds, attempt)}"
    lines = [f"Read {source} in {report.seconds:.1f} s: {count(report.extracted, 'memory', 'memories')} added{merged}."]
    if report.builds > 1 and report.extracted + report.merged:
        lines.append(f"{report.kept_share:.0%} of the {attempt}s yielded a memory.")
    if report.recorded:
        kept = count(report.recorded, "record")
        what = (
            f"{count(report.recorded, 'commit')} as {'a record' if report.recorded == 1 else 'records'}"
            if is_history
            else f"{kept} of what else happened"
        )
        lines.append(
            f"Kept {what}, each of up to {MAX_CONTENT_CHARS} characters, which searches and recalls find, too."
        )
    if report.repeated:
        lines.append(
            f"Did not keep {count(report.repeated, 'merge that only repeats', 'merges that only repeat')} the message of what is brought in."
        )
    if report.left_out:
        lines.append(f"Left out {count(report.left_out, 'finding')} that scored below the best of the same build.")
    if report.forgotten:
        lines.append(
            f"Left out {count(report.forgotten, 'memory', 'memories')} that {'repeats' if report.forgotten == 1 else 'repeat'} what was forgotten or deleted."
        )
    lines += _balance(report) if is_history else []
    if report.compressed:
        made = count(report.compressed, "generalisation", "generalisations")
        lines.append(f"Added {made} of what at least three builds have in common.")
    if report.secrets_redacted:
        lines.append(f"Redacted {count(report.secrets_redacted, 'secret')} before anything was written.")
    lines += usage_lines(report.usage)
    if report.skipped:
        lines.append(f"Skipped {count(report.skipped, 'part')} that could not be read:")
        shown = list(report.reasons.items())[:_REASONS_SHOWN]
        lines += [f"  {plain(reason)}" for reason, _ in shown]
        if more := report.skipped - sum(number for _, number in shown):
            lines.append(f"  … and {more:,} more")
    return lines
