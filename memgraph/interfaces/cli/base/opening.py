"""Opens the store that the command line names, and prints the library's log messages."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import ConfigError, InvalidInputError
from memgraph.interfaces.cli.base.options import OPTION_OF, WORD_OF, ReadingCommand, Settings
from memgraph.logs import DIAGNOSTICS_LOGGER

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

LOG_VARIABLE = "MEMGRAPH_LOG"
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


@contextmanager
def opened(
    settings: Settings,
    *,
    is_lasting: bool = True,
    asks: bool = False,
    reads: bool = False,
    checks: bool = False,
    embeds: bool = False,
    **config: Any,
) -> Iterator[MemGraph]:
    """Open the store, a view of its past, or what an agent may read of either, for a block; print the library's log messages to stderr.

    A command that only reads creates no store: without one, it reads an empty one in a temporary folder.

    Parameters
    ----------
    asks : bool
        The command itself asks for the agent, so that it needs no view.
    reads : bool
        The command only reads; a `ReadingCommand` always does.
    checks : bool
        The command checks a store: without one, it is refused.
    embeds : bool
        The command needs the embedding model: it is loaded while the library is imported and the store is opened.
    """
    if settings.justification is not None and settings.agent is None:
        raise click.UsageError("--justification has no effect without --agent NAME: give both")
    if settings.is_recorded and settings.as_of is None:
        raise click.UsageError("--recorded has no effect without --as-of WHEN: give both")
    with logs_shown(settings), _options_named():
        from memgraph.config import home_of, load_config
        from memgraph.journal.opening import is_store

        home, server = home_of(settings.home)
        was_there = is_store(home, server)
        if (checks or settings.as_of is not None) and not was_there:
            from memgraph.interfaces.cli.base.commands import Refused

            lacking = "there is nothing to check" if checks else "--as-of has nothing to read"
            raise Refused(f"there is no store at {server or home}, so {lacking}")
        given = load_config({"home": settings.home, **config})
        embedder = settings.embedder
        if embedder is None and embeds and was_there:
            from memgraph.embedding import default_embedder, load_in_background

            embedder = default_embedder(given)
            load_in_background(embedder)
        from memgraph.facade import MemGraph
        from memgraph.interfaces.cli.base.output import notice
        from memgraph.journal.opening import refuse_foreign
        from memgraph.store import AgentMemoryStore

        context = click.get_current_context(silent=True)
        reads = reads or (context is not None and isinstance(context.command, ReadingCommand))
        with ExitStack() as views:
            if reads and not was_there:
                from pathlib import Path
                from tempfile import TemporaryDirectory

                refuse_foreign(home, server)
                folder = Path(views.enter_context(TemporaryDirectory(prefix="memgraph-")))
                elsewhere = {"home": folder / "store", "keys_home": folder / "keys", "database": ""}
                given = given.model_copy(update=elsewhere)
            memory = views.enter_context(MemGraph(AgentMemoryStore(given, embedder=embedder)))
            if settings.as_of is not None:
                memory = views.enter_context(_past(settings, memory))
            if settings.agent is not None and not asks:
                memory = views.enter_context(_of_agent(settings, memory))
            yield memory
        if reads and not was_there:
            if not settings.as_json and (not asks or sys.stderr.isatty()):
                notice(f"there is no store at {server or home} yet; the first command that learns creates it")
            return
        # otherwise a mistyped name would look like an empty store; a hook's or program's log needs no such line
        if is_lasting and not was_there and not settings.as_json and sys.stderr.isatty():
            notice(f"created a new store at {server or home}")


@contextmanager
def _options_named() -> Iterator[None]:
    """Report a refused argument by its command-line option, or by a plain word if the command has none for it."""
    try:
        yield
    except InvalidInputError as error:
        name = OPTION_OF.get(error.field)
        if error.field in WORD_OF:
            parameter, word = WORD_OF[error.field]
            context = click.get_current_context(silent=True)
            known = context.command.params if context is not None else []
            name = next((one.opts[0] for one in known if isinstance(one, click.Option) and one.name == parameter), word)
        if name is None:
            raise
        value = ... if error.value is None else error.value
        raise InvalidInputError(error.problem, field=name, value=value) from None


def _past(settings: Settings, memory: MemGraph) -> MemGraph:
    from memgraph.interfaces.cli.base.output import progress

    with progress(settings, "replaying the past") as bar:
        return memory.at(settings.as_of or "", recorded=settings.is_recorded, progress=bar)


def _of_agent(settings: Settings, memory: MemGraph) -> MemGraph:
    from memgraph.interfaces.cli.base.output import progress

    with progress(settings, "reading what the agent may have") as bar:
        return memory.as_agent(settings.agent or "", justification=settings.justification, progress=bar)


@contextmanager
def logs_shown(settings: Settings) -> Iterator[None]:
    """Print the library's warnings (a repaired journal, a rebuilt graph) as notices, or its log if one was requested.

    Raises
    ------
    ConfigError
        ``MEMGRAPH_LOG`` is not a log level.
    """
    level = _level(settings)
    logger = logging.getLogger("memgraph")
    handler: logging.Handler = _Notices(logging.WARNING)
    if level is not None:
        handler = _Log()
        handler.setLevel(level)
        handler.setFormatter(
            logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%H:%M:%S")
        )
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(min(level if level is not None else logging.WARNING, before or logging.WARNING))
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _level(settings: Settings) -> int | None:
    """Return the log level, or None if no log was requested. ``-v`` takes precedence over the environment."""
    if settings.verbosity:
        return logging.INFO if settings.verbosity == 1 else logging.DEBUG
    named = os.environ.get(LOG_VARIABLE, "").strip().lower()
    if not named:
        return None
    if named not in _LEVELS:
        raise ConfigError(f"{LOG_VARIABLE} is {named!r}; it must be one of {', '.join(_LEVELS)}")
    return _LEVELS[named]


class _Log(logging.Handler):
    """Prints each record as one line without control characters."""

    def emit(self, record: logging.LogRecord) -> None:
        from memgraph.interfaces.cli.base.output import stderr_line

        stderr_line(self.format(record))


class _Notices(logging.Handler):
    """Prints each message once."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        from memgraph.interfaces.cli.base.output import notice

        if record.name == DIAGNOSTICS_LOGGER:  # meant for monitoring: the error or warning itself informs the user
            return
        message = record.getMessage()
        if message not in self._printed:
            self._printed.add(message)
            notice(message)
