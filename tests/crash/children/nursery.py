"""A process that has everything imported and forks children: a child starts in about 10 ms instead of half a second.

Orders come as JSON lines on standard input, answers go as JSON lines to standard output. ``{"script", "arguments", "out",
"err", "environment"}`` starts a child and answers its pid; ``{"pid"}`` answers its exit code, or null while it runs.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import memgraph
import memgraph.interfaces.cli.group
import memgraph.lifecycle
import memgraph.retrieval
import memgraph.store.backups
import memgraph.store.store
import memgraph.testing
from memgraph.testing import FakeClock, FakeEmbedder


def run(order: dict[str, Any]) -> int:
    """Run a script as a separate program would run, and return its exit code."""
    for name, descriptor in (("out", 1), ("err", 2)):
        opened = os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(order["environment"])
    sys.argv = [order["script"], *order["arguments"]]
    try:
        runpy.run_path(order["script"], run_name="__main__")
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
        return 1
    return 0


def live(folder: Path) -> None:
    """Use a store, so that what is made at first use is made once and not by each child."""
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock()) as store:
        given = {"tags": ["t"], "project_id": "P", "agents_involved": ["A"], "session_id": "s"}
        one = store.insert_memory({"type": "episodic", "content": "one", **given})
        two = store.insert_memory({"type": "semantic", "content": "two", "supporting_memory_ids": [one.id]})
        store.link(one.id, "RELATED_TO", two.id)
        store.update_memory(one.id, title="first")
        store.record_access(one.id)
        store.flush()
        store.rebuild()
        store.verify()
        store.backup(folder / "backup.tar.gz")
        store.delete_memory(two.id)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the tests' terminal is theirs
    with TemporaryDirectory(prefix="memgraph-nursery-") as folder:
        live(Path(folder))
    gc.freeze()  # a collection in a child would copy every page that it looks at
    for line in sys.stdin:
        order = json.loads(line)
        if "pid" in order:
            pid, status = os.waitpid(order["pid"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                code = 1
                try:
                    code = run(order)
                    sys.stdout.flush()
                    sys.stderr.flush()
                finally:
                    os._exit(code)
        print(json.dumps(answer), flush=True)


main()
