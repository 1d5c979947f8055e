"""The root command group: lists all commands with their help and imports a command's module only when it runs.

An agent's hooks run these commands many times a day, so ``memgraph --help`` imports click and nothing heavier.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from memgraph.errors import MemGraphError
from memgraph.interfaces.cli.base.commands import Entry, Group, LazyGroup, Refused
from memgraph.interfaces.cli.base.exit_codes import BROKEN_PIPE, FAILED, INTERRUPTED, OUTPUT_FAILED, TERMINATED
from memgraph.interfaces.cli.base.options import Settings, shared_options
from memgraph.interfaces.cli.base.output import documents, emit_json
from memgraph.interfaces.cli.base.streams import OutputError, open_standard_streams
from memgraph.interfaces.refusals import message_of

STOPPED = "interrupted: nothing is half done, and whatever was committed by then is kept; run the same command again to continue"
NO_DIRECTORY = "the current directory no longer exists; change to another one"


_TABLE: dict[Group, dict[str, tuple[str, str]]] = {
    "use": {
        "recall": ("memories.recall", "Print the text to put before the prompt for TASK; '-' reads standard input."),
        "prompt": ("tasks.prompt", "Print what of memory goes into a session's prompt, in sections with budgets."),
        "search": ("memories.search", "List the memories of any type that are most similar to TEXT."),
        "ask": ("memories.remember", "List the remembered episodes that are most similar to QUERY."),
        "remember": ("memories.remember", "Store TEXT as a pinned memory; '-' reads standard input."),
        "observe": ("memories.agent_input", "Store an observation, or confirm the memory that says it."),
        "episode": ("memories.agent_input", "Record what was done in SITUATION, and the outcome."),
        "feedback": ("memories.agent_input", "Record the user's feedback on an episode."),
        "outcome": ("memories.agent_input", "Record the outcome of a recall, and which of its memories were used."),
        "task": ("tasks.task", "Register tasks, switch between them, and record what is decided and open in them."),
        "pins": ("tasks.pins", "Pin texts for every task or for one: add, edit, remove in two steps, write and read."),
        "handoff": ("tasks.handoff", "Hand a task over to another agent: create, list, show, accept, withdraw."),
        "ledger": ("tasks.ledger", "Record where an agent is in its work; list or show that."),
        "continuity": (
            "tasks.handoff",
            "Print the page from which an agent continues a task: state, memories, mistakes to avoid.",
        ),
        "session": ("tasks.session", "Show or set what a session is doing; keep texts for a while."),
        "turn": ("tasks.session", "Print which task MESSAGE belongs to, and what to ask; '-' reads standard input."),
        "mcp": ("mcp", "Serve the store to an agent's client over MCP, on standard input and output."),
        "serve": ("serve", "Serve the store over HTTP until interrupted: REST under /v1, MCP under /mcp, pages at /."),
        "connect": ("connect", "Connect a coding agent, such as claude-code; without AGENT, list how each stands."),
        "disconnect": ("connect", "Remove what `connect` wrote for a coding agent."),
    },
    "look": {
        "list": ("memories.listing", "List memories, one per line."),
        "show": ("memories.listing", "Show one memory with its links."),
        "history": ("memories.history", "List every event that concerns a memory: who, when, what, why."),
        "why": ("memories.history", "Show where a memory comes from, down to its sources."),
        "stats": ("memories.listing", "Show statistics of the store."),
        "about": (
            "analysis.about",
            "Print what a history shows about NAME: a file, component, test, person, release, issue or commit.",
        ),
        "learning": (
            "analysis.about",
            "List the rules counted over a history; --check: how often such rules were right.",
        ),
        "query": ("analysis.query", "Run a named query or a Cypher statement on the graph."),
        "queries": ("analysis.queries", "List the named queries, or show one."),
        "viz": ("viz.viz", "Write what was learned as charts, an HTML page, time series or a graph file."),
        "docs": ("docs", "Print the documentation of TOPIC; without TOPIC, list the topics."),
        "format-age": ("maintenance.upkeep", "Print how long ago TIME was."),
    },
    "correct": {
        "edit": ("memories.edit", "Change a memory's text or fields, with options or in an editor."),
        "pin": ("memories.edit", "Pin memories: they do not fade."),
        "unpin": ("memories.edit", "Undo `pin`."),
        "tag": ("memories.edit", "Add tags to memories."),
        "untag": ("memories.edit", "Remove tags from memories."),
        "merge": ("memories.edit", "Merge memories into one, which supersedes the others."),
        "split": ("memories.edit", "Split a memory into parts, which supersede it."),
        "undo": ("memories.history", "Undo the last change by a user, or the commit of EVENT."),
        "forget": ("memories.remember", "Suppress memories, named by id or by a similar text."),
        "unforget": ("memories.states", "Undo `forget`, by id or by text."),
        "archive": ("memories.states", "Archive memories: lists and recall leave them out."),
        "unarchive": ("memories.states", "Undo `archive`."),
        "invalidate": ("memories.states", "Mark memories as no longer true."),
        "revalidate": ("memories.states", "Undo `invalidate`."),
        "supersede": ("memories.states", "Mark a memory as replaced by a newer one."),
        "unsupersede": ("memories.states", "Undo `supersede`."),
        "delete": ("memories.states", "Remove memories from every view; their history stays."),
        "undelete": ("memories.states", "Restore a deleted memory and its links."),
        "purge": ("privacy.purge", "Remove memories and their words for good."),
        "secrets": ("privacy.purge", "List what holds a secret, or purge it."),
        "link": ("memories.states", "Link two memories."),
        "unlink": ("memories.states", "Remove a link between two memories."),
    },
    "learn": {
        "ingest": ("learning.ingest", "Turn a git history, build logs or transcripts into memories."),
        "sleep": ("learning.sleep", "Consolidate the store: merge, generalise, learn, resolve, archive."),
        "compress": ("learning.compress", "Generalise what at least three builds have in common."),
        "proposals": ("learning.proposals", "List, approve or reject learned procedures."),
        "contradictions": (
            "learning.contradictions",
            "List contradicting memories; resolve or dismiss contradictions.",
        ),
        "distil": ("learning.distil", "List work orders for what rules cannot judge; show, answer or skip one."),
        "collect": ("learning.collect", "Archive faded memories, except those that are protected."),
        "demo": ("demo", "Learn from a real history in a temporary store, and show the result."),
    },
    "store": {
        "export": ("maintenance.transfer", "Write all memories and links as JSON to FILE or standard output."),
        "import": ("maintenance.transfer", "Import the memories of an export that the store lacks."),
        "embed": ("maintenance.embed", "Embed memories that have no vector; --repair recomputes damaged vectors."),
        "reembed": ("maintenance.reembed", "Switch the store to another embedding MODEL and embed all memories again."),
        "rebuild": ("maintenance.upkeep", "Rebuild graph and index from the journal."),
        "verify": ("maintenance.upkeep", "Verify every event, every vector and the graph."),
        "audit": ("maintenance.audit", "List what agents were refused, and what they got with a justification."),
        "doctor": ("maintenance.doctor", "Report the store's location and condition, and how to fix each problem."),
        "backup": ("recovery.backup", "Write a verified backup to FILE, while the store is in use."),
        "restore": ("recovery.backup", "Restore a store from FILE into a new directory (--home)."),
        "migrate": ("recovery.migrate", "Verify every event, and bring the store to this release's schema."),
        "move": ("recovery.migrate", "Copy the store into another directory or PostgreSQL database, and verify it."),
        "compact": ("maintenance.compact", "Make a signed baseline of the journal, and archive older events."),
        "reset": ("maintenance.reset", "Remove what was learned (--memory), or everything (--all), after listing it."),
        "repair": ("recovery.repair", "Report why the store cannot be opened; repair its journal on request."),
        "keys": ("keys", "List, check, rotate, export or import the keys that sign the store."),
        "config": ("maintenance.config", "Write a commented config.toml, or show the effective settings."),
        "worker": ("maintenance.worker", "Show, stop or run the process that keeps the store open for hooks."),
        "token": ("serve", "Make, list or revoke the tokens of those who may call `memgraph serve`."),
        "completion": ("base.completing", "Print the script that lets SHELL complete commands, options and names."),
    },
}
"""By group and name: the module in this package that has the command, and its help."""
_ATTRIBUTES = {"list": "list_", "import": "import_", "format-age": "format_age"}
"""The command objects that are not called as their commands."""
COMMANDS = {
    name: Entry(module, _ATTRIBUTES.get(name, name), about, group)
    for group, commands in _TABLE.items()
    for name, (module, about) in commands.items()
}


class _Root(LazyGroup):
    """The group of all commands, which ends the process with their exit code."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run a command line and exit: 0 done, 1 refused or failed, 2 usage, 74 output not written, 130 interrupted, 143 terminated."""
        extra["standalone_mode"] = False
        given = sys.argv[1:] if args is None else args
        sys.exit(_exit_code(lambda: super(_Root, self).main(args, prog_name, **extra), as_json="--json" in given))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; raise on an interruption before click prints a line of its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _Interrupted from None


class _Interrupted(click.ClickException):
    exit_code = INTERRUPTED

    def __init__(self) -> None:
        super().__init__(STOPPED)

    def show(self, file: Any = None) -> None:
        click.echo(f"memgraph: {self.message}", file=file, err=file is None)


def _exit_code(run: Any, *, as_json: bool) -> int:
    documents.clear()
    try:
        code = run()
        sys.stdout.flush()
    except click.ClickException as error:
        return _refuse(error, type(error).__name__.lstrip("_"), as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return _refuse(_Interrupted(), "Interrupted", as_json=as_json)
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except OutputError as error:
        reason = error.strerror or str(error)
        Refused(
            f"the command is done and its changes are kept, but standard output could not be written: {reason}"
        ).show()
        _discard_stdout()
        return OUTPUT_FAILED
    except (MemGraphError, OSError) as error:
        is_lost = isinstance(error, OSError) and _is_lost()
        reason = NO_DIRECTORY if is_lost else message_of(error)
        return _refuse(Refused(reason), type(error).__name__, as_json=as_json)
    except SystemExit as exit_:  # click raises it when a pipe breaks, `main` when the process is terminated
        if exit_.code == TERMINATED:
            _Interrupted().show()
        _discard_stdout()
        return exit_.code if isinstance(exit_.code, int) else FAILED
    return code if isinstance(code, int) else 0


def _refuse(error: click.ClickException, kind: str, *, as_json: bool) -> int:
    """Say on stderr why a command failed, and with --json in a document on stdout, unless it printed one before. Return the exit code."""
    error.show()
    if as_json and not documents:
        refusal = {"type": kind, "message": error.format_message(), "exit_code": error.exit_code}
        with suppress(OSError, OutputError):
            emit_json({"error": refusal})
    return error.exit_code


def _is_lost() -> bool:
    """Return whether the current directory was deleted, so that relative paths cannot be resolved."""
    try:
        Path.cwd()
    except OSError:
        return True
    return False


def _discard_stdout() -> None:
    """Redirect stdout to the null device: otherwise Python reports the broken pipe when it flushes at exit."""
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, ValueError, io.UnsupportedOperation):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def _alone() -> None:
    """Print the overview if no command is given."""
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is None:
        from memgraph.interfaces.cli.memories.overview import overview

        overview(ctx.ensure_object(Settings))


cli = _Root(
    name="memgraph",
    table=COMMANDS,
    callback=_alone,
    invoke_without_command=True,
    help="Long-term memory for AI agents, kept as a graph in one directory. Without a command: what is in the store, and what to do "
    "next.",
    epilog="Exit codes: 0 done, 1 refused or failed (one line on stderr says why), 2 usage error, 74 done, but the output could "
    'not be written, 130 interrupted (Ctrl-C), 143 terminated. With --json a refusal is a document, too: {"error": …}.',
    params=[*shared_options()],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> NoReturn:
    """Run the ``memgraph`` command."""
    open_standard_streams()
    interrupted: list[int] = []

    def interrupt(number: int, frame: Any) -> None:  # noqa: ARG001 (a signal handler's signature)
        interrupted.append(INTERRUPTED)
        raise KeyboardInterrupt

    def terminate(number: int, frame: Any) -> None:  # noqa: ARG001
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
        interrupted.append(TERMINATED)
        raise SystemExit(TERMINATED)

    for kind, handler in ((signal.SIGINT, interrupt), (signal.SIGTERM, terminate)):
        if signal.getsignal(kind) is not signal.SIG_IGN:
            signal.signal(kind, handler)
    try:
        cli.main(prog_name="memgraph")
    except Exception:
        if not interrupted:
            raise
        # a library that was being imported turned the interruption into an error of its own
        _Interrupted().show()
        sys.exit(interrupted[-1])
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the message is printed: no traceback on exit
        gc.freeze()  # Python would look for garbage once more
