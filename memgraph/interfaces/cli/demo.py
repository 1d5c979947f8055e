"""``demo``: run everything on a real history: ingest it, show what was learned, recall for a task, write the page."""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import SourceError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit_json, plain, progress, wrapped
from memgraph.interfaces.cli.learning.ingest import history_reader, report_lines
from memgraph.interfaces.lookups import without_vectors
from memgraph.model.memory import RECORD_SOURCES
from memgraph.model.results.learning import COUNTING_SOURCE
from memgraph.retrieval import format_context_for_prompt

if TYPE_CHECKING:
    from memgraph.extraction.readers import Reader
    from memgraph.facade import MemGraph
    from memgraph.model.memory import StoredMemory
    from memgraph.model.results.learning import IngestReport
    from memgraph.model.results.retrieval import RetrievalResult
    from memgraph.viz.page.page import PageReport

_PAGE = "memgraph-demo.html"
_EXAMPLES = 5
_READABLE_CHARS = 360
_BUILD_LOG_ENDINGS = frozenset({".json", ".jsonl", ".ndjson"})
_ANY_SOURCE = "a repository, a saved `git log --name-status` or a build log: memgraph demo PATH"
_MOST_NAMED = """
    MATCH (m:Memory)-[named:MENTIONS {about: true}]->(e:Entity {kind: 'file'})
    RETURN e.name AS name, count(m) AS memories
    ORDER BY memories DESC, name LIMIT 1
"""


@click.command(cls=Command)
@click.argument("path", required=False)
@click.option("--page", "file", metavar="FILE", default=_PAGE, show_default=True, help="Where to write the page.")
@pass_settings
def demo(settings: Settings, path: str | None, file: str) -> None:
    """Learn from PATH (default: the repository that holds the current directory) in a temporary store.

    At the end, write an HTML page that replays what was learned.
    """
    from memgraph.viz.page.page import write_page

    reader = _reader(path)
    with _store(settings) as memory:
        with progress(settings, f"reading {plain(reader.project_id)}") as bar:
            report = memory.ingest(reader, progress=bar)
        memory.maintenance.sleep(phases=["counting"])
        kept = list(memory.store.every_memory())
        learned = [one for one in kept if one.source not in RECORD_SOURCES]
        examples = _examples(learned or kept)
        task = _task(memory, examples)
        result = memory.recall(task, project=examples[0].project_id) if task else None
        if not settings.as_json:  # printed before the page is written, which may fail
            for line in _lines(reader, report, learned, examples, task, result):
                click.echo(line)
        with progress(settings, "reading the history") as bar:
            page = write_page(memory.store, file, progress=bar) if kept else None
    if settings.as_json:
        emit_json(_document(reader, report, learned, examples, task, result, page))
    elif page:
        for line in _next(reader, page):
            click.echo(line)


def _reader(path: str | None) -> Reader:
    from memgraph.extraction.readers import BuildLogReader

    if path is not None and Path(path).is_file() and _holds_builds(Path(path)):
        return BuildLogReader(path)
    reader = history_reader(Path(path or "."))
    try:
        reader.source_id  # noqa: B018 - fails if there is no history
    except SourceError as error:
        if path is None:
            raise Refused(f"there is no git repository around {Path.cwd()}; name {_ANY_SOURCE}") from None
        raise Refused(f"{error}; name {_ANY_SOURCE}") from None
    return reader


def _holds_builds(path: Path) -> bool:
    if path.suffix.lower() in _BUILD_LOG_ENDINGS:
        return True
    with path.open("rb") as stream:
        return stream.read(4096).lstrip()[:1] in {b"{", b"["}


@contextmanager
def _store(settings: Settings) -> Iterator[MemGraph]:
    """Open the store named with ``--home``, otherwise one in a temporary directory that also holds its keys."""
    if settings.home is not None:
        with opened(settings) as memory:
            yield memory
        return
    with tempfile.TemporaryDirectory(prefix="memgraph-demo-") as folder:
        temporary = replace(settings, home=str(Path(folder) / "store"))
        with opened(temporary, keys_home=Path(folder) / "keys", is_lasting=False) as memory:
            yield memory


def _examples(memories: Sequence[StoredMemory]) -> list[StoredMemory]:
    """Return a few memories: the best of each reason before a second of any, what went wrong first."""
    place_in_reason: Counter[str | None] = Counter()
    ranked = []
    for place, memory in enumerate(sorted(memories, key=_substance, reverse=True)):
        ranked.append((place_in_reason[memory.reason], memory.outcome != "negative", place, memory))
        place_in_reason[memory.reason] += 1
    return [memory for *_, memory in sorted(ranked, key=lambda item: item[:3])[:_EXAMPLES]]


def _substance(memory: StoredMemory) -> tuple[int, str]:
    """Return how much a memory says, unless it is a wall of text; ties go by id."""
    length = len(memory.content)
    return length if length <= _READABLE_CHARS else 0, memory.id


def _task(memory: MemGraph, examples: Sequence[StoredMemory]) -> str | None:
    """Return a task that touches what the memories name most often."""
    if found := memory.store.cypher(_MOST_NAMED):
        return f"change {found[0]['name']}"
    return examples[0].title or examples[0].content[:80] if examples else None


def _document(
    reader: Reader,
    report: IngestReport,
    learned: Sequence[StoredMemory],
    examples: Sequence[StoredMemory],
    task: str | None,
    result: RetrievalResult | None,
    page: PageReport | None,
) -> dict[str, Any]:
    return {
        "source": reader.locator,
        "project": reader.project_id,
        "report": report.model_dump(mode="json"),
        "memories": len(learned),
        "telling": [without_vectors(memory) for memory in examples],
        "task": task,
        "formatted": format_context_for_prompt(result, format="notes") if result else "",
        "injected_prompt_prefix": result.injected_prompt_prefix if result else "",
        "query_id": result.query_id if result else None,
        "page": str(page.path) if page else None,
    }


def _lines(
    reader: Reader,
    report: IngestReport,
    learned: Sequence[StoredMemory],
    examples: Sequence[StoredMemory],
    task: str | None,
    result: RetrievalResult | None,
) -> Iterator[str]:
    yield f"1. Reading {plain(reader.locator)}"
    for line in report_lines(report):
        yield wrapped(line, indent="   ")
    yield ""
    if learned:
        by_reason = Counter(_why(memory) for memory in learned)
        yield f"2. What was learned: {count(len(learned), 'memory', 'memories')}, because"
        for reason, number in by_reason.most_common():
            yield f"   {number:>5}  {plain(reason)}"
    else:
        nothing = "2. Nothing was learned yet: nobody explains a change in it, nothing fails, and too little comes again to be counted."
        yield wrapped(nothing, indent="   ", first="")
        yield wrapped(f"What it says is kept, and recalls find it. Try a longer history: {_ANY_SOURCE}", indent="   ")
        if not examples:
            return
    yield ""
    yield "   Examples:"
    for memory in examples:
        yield wrapped(memory.content, indent="     ", first="   - ")
        yield f"     [{(memory.occurred_at or '')[:10]}; {plain(memory.reason or '')}]"
    if task and result:
        yield ""
        heading = f"3. An agent about to “{task}” would get ({result.total_tokens_used} tokens of memories):"
        yield wrapped(heading, indent="   ", first="")
        yield ""
        text = format_context_for_prompt(result, format="notes", when_nothing="say")
        for line in text.split("\n"):
            yield wrapped(line, indent="     " if line.startswith("- ") else "   ", first="   ") if line else ""


def _why(memory: StoredMemory) -> str:
    """Return why a memory was made; of a counted rule, what was counted."""
    counted = getattr(memory, "category", None) if memory.source == COUNTING_SOURCE else None
    return f"it was counted ({counted})" if counted else memory.reason or ""


def _next(reader: Reader, page: PageReport) -> Iterator[str]:
    yield ""
    yield f"4. To see how it learned, open {plain(str(page.path))} in a browser."
    yield ""
    yield "Next:"
    kind = "builds" if reader.kind == "builds" else "git"
    yield f"   memgraph ingest {kind} {plain(shlex.quote(reader.locator))}"
    yield "                                    learn from this history for good"
    yield '   memgraph recall "TASK"           the text to put before a prompt'
    yield "   memgraph list --sort-by created  the newest memories"
