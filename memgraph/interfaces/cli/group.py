"""The group of commands: knows their names and help, imports a command's module only when it is run.

An agent's hooks run these commands many times a day, so ``memgraph --help`` imports click and nothing heavier.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from memgraph.errors import MemGraphError
from memgraph.interfaces.cli.base.commands import EXIT_FAILED, Entry, LazyGroup, Refused
from memgraph.interfaces.cli.base.options import shared_options
from memgraph.interfaces.cli.base.streams import OutputError, open_standard_streams

STOPPED = "stopped: what was committed is kept; run the same command again to go on"
NO_DIRECTORY = "the current directory is no longer there; change to another one"
_EXIT_UNTOLD = 74
"""The command has done what it was asked, but its answer could not be written (``EX_IOERR`` of ``sysexits.h``)."""
_EXIT_INTERRUPTED = 130
_EXIT_BROKEN_PIPE = 141
_EXIT_TERMINATED = 143


COMMANDS: dict[str, Entry] = {
    "ingest": Entry("learning.ingest", "ingest", "Turn a git history or build logs into memories."),
    "recall": Entry(
        "memories.recall", "recall", "Print what to put before the prompt of TASK; TASK '-' reads standard input."
    ),
    "search": Entry("memories.search", "search", "List the memories nearest to TEXT, of whatever type."),
    "remember": Entry("memories.remember", "remember", "Keep TEXT for good; TEXT '-' reads standard input."),
    "forget": Entry("memories.remember", "forget", "Suppress the memory with this id, or nearest to QUERY."),
    "unforget": Entry("memories.states", "unforget", "Take `forget` back, by id or by text."),
    "ask": Entry("memories.remember", "ask", "Tell what is remembered of what happened."),
    "observe": Entry("memories.agent_input", "observe", "Keep what was learned, or confirm what is known."),
    "episode": Entry("memories.agent_input", "episode", "Keep what was done about SITUATION and what came of it."),
    "feedback": Entry("memories.agent_input", "feedback", "Say what the user thought of an episode."),
    "outcome": Entry(
        "memories.agent_input", "outcome", "Say what became of a recall, and which of its memories were used."
    ),
    "list": Entry("memories.listing", "list_", "List memories, one a line."),
    "show": Entry("memories.listing", "show", "Show one memory with its links."),
    "stats": Entry("memories.listing", "stats", "Count what is in the store."),
    "query": Entry("analysis.query", "query", "Ask the graph: a named query, or Cypher."),
    "queries": Entry("analysis.queries", "queries", "List the named queries, or show one."),
    "compress": Entry(
        "learning.compress", "compress", "Make generalisations of what was seen in three builds or more."
    ),
    "proposals": Entry("learning.proposals", "proposals", "List, approve or reject procedures that were learned."),
    "contradictions": Entry(
        "learning.contradictions", "contradictions", "Show what contradicts each other, and decide it."
    ),
    "sleep": Entry("learning.sleep", "sleep", "Let the store sleep: merge, generalise, learn, resolve, put away."),
    "collect": Entry("learning.collect", "collect", "Put away what has faded, but for what must not be forgotten."),
    "archive": Entry("memories.states", "archive", "Put a memory away, out of lists and recall."),
    "unarchive": Entry("memories.states", "unarchive", "Take `archive` back."),
    "invalidate": Entry("memories.states", "invalidate", "Say that a memory is no longer true."),
    "revalidate": Entry("memories.states", "revalidate", "Take `invalidate` back."),
    "supersede": Entry("memories.states", "supersede", "Say that a memory is replaced by a newer one."),
    "unsupersede": Entry("memories.states", "unsupersede", "Take `supersede` back."),
    "delete": Entry("memories.states", "delete", "Remove a memory from every view; its history stays."),
    "undelete": Entry("memories.states", "undelete", "Bring a deleted memory back, with its links."),
    "link": Entry("memories.states", "link", "Link two memories."),
    "unlink": Entry("memories.states", "unlink", "Remove a link between two memories."),
    "export": Entry(
        "maintenance.transfer", "export", "Write all memories and links as JSON to FILE, or to standard output."
    ),
    "import": Entry("maintenance.transfer", "import_", "Add the memories of an export that are not known yet."),
    "embed": Entry(
        "maintenance.embed", "embed", "Embed what was kept without vectors; --repair: make damaged vectors again."
    ),
    "reembed": Entry(
        "maintenance.reembed", "reembed", "Change the store to another embedding MODEL, with all its memories."
    ),
    "format-age": Entry("maintenance.upkeep", "format_age", "Say how long ago TIME was."),
    "rebuild": Entry("maintenance.upkeep", "rebuild", "Make graph and index anew from the journal."),
    "verify": Entry("maintenance.upkeep", "verify", "Check every event, every vector and the graph."),
    "doctor": Entry(
        "maintenance.doctor", "doctor", "Say where the store is, how it is, and what to do where something is wrong."
    ),
    "repair": Entry(
        "maintenance.repair", "repair", "Say what keeps the store from being opened, and accept its journal as it is."
    ),
    "viz": Entry("viz.viz", "viz", "Write what was learned as pictures, a page, series over time, or a graph's file."),
    "config": Entry("maintenance.config", "config", "Write a commented config.toml, or show the settings in force."),
    "docs": Entry("docs", "docs", "Print the documentation of TOPIC; without TOPIC, list the topics."),
    "demo": Entry("demo", "demo", "Learn from a real history in a throw-away store and show what comes of it."),
}


class _Root(LazyGroup):
    """The group of all commands, which ends the process with their exit code."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run a command line and exit: 0 done, 1 refused or failed, 2 usage, 74 done but not told, 130 interrupted, 143 terminated."""
        extra["standalone_mode"] = False
        sys.exit(_exit_code(lambda: super(_Root, self).main(args, prog_name, **extra)))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an interruption leaves here before click prints a line of its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted from None


class _Interrupted(click.ClickException):
    exit_code = _EXIT_INTERRUPTED

    def __init__(self) -> None:
        super().__init__(STOPPED)

    def show(self, file: Any = None) -> None:
        click.echo(f"memgraph: {self.message}", file=file, err=file is None)


def _exit_code(run: Any) -> int:
    try:
        code = run()
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _Interrupted().show()
        return _EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return _EXIT_BROKEN_PIPE
    except OutputError as error:
        reason = error.strerror or str(error)
        Refused(f"what was committed is kept, but the answer could not be written to standard output: {reason}").show()
        _discard_stdout()
        return _EXIT_UNTOLD
    except MemGraphError as error:
        Refused(str(error)).show()
        return EXIT_FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        Refused(NO_DIRECTORY if _is_lost() else f"{where}{error.strerror or error}").show()
        return EXIT_FAILED
    except SystemExit as exit_:  # click leaves so when a pipe breaks, and `main` when the process is to end
        if exit_.code == _EXIT_TERMINATED:
            _Interrupted().show()
        _discard_stdout()
        return exit_.code if isinstance(exit_.code, int) else EXIT_FAILED
    return code if isinstance(code, int) else 0


def _is_lost() -> bool:
    """Whether the current directory was deleted, so that no relative path means anything."""
    try:
        Path.cwd()
    except OSError:
        return True
    return False


def _discard_stdout() -> None:
    """Send what is left in the buffer nowhere, or Python complains about the broken pipe at its end."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, ValueError, io.UnsupportedOperation):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


cli = _Root(
    name="memgraph",
    table=COMMANDS,
    help="Long-term memory for AI agents, kept as a graph in one directory.",
    epilog="Exit codes: 0 done, 1 refused or failed (one line on stderr says why), 2 usage, 74 done, but the answer could not "
    "be written.",
    params=[*shared_options()],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> NoReturn:
    """Run the ``memgraph`` command."""
    open_standard_streams()
    interrupted: list[int] = []

    def interrupt(number: int, frame: Any) -> None:  # noqa: ARG001 (what a signal's handler is given)
        interrupted.append(_EXIT_INTERRUPTED)
        raise KeyboardInterrupt

    def terminate(number: int, frame: Any) -> None:  # noqa: ARG001
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # one is enough, and what is cleared away now shall be
        interrupted.append(_EXIT_TERMINATED)
        raise SystemExit(_EXIT_TERMINATED)

    for kind, handler in ((signal.SIGINT, interrupt), (signal.SIGTERM, terminate)):
        if signal.getsignal(kind) is not signal.SIG_IGN:
            signal.signal(kind, handler)
    try:
        cli.main(prog_name="memgraph")
    except Exception:
        if not interrupted:
            raise
        # a library in the midst of whose loading it came has made an error of its own of it
        _Interrupted().show()
        sys.exit(interrupted[-1])
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said: it shall not end in a traceback
