"""A PostgreSQL server for tests, in a temporary folder, run by a user who is not root."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest


def binaries() -> Path | None:
    """Return the folder of ``initdb`` and ``pg_ctl``; None if PostgreSQL is not installed."""
    found = shutil.which("initdb")
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: int(one.parts[-3]))
    return Path(found).resolve().parent if found else packaged[-1].parent if packaged else None


_RULES = """\
host all tester 127.0.0.1/32 trust
host replication tester 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
"""


class Server:
    """A server: `user` may do everything, and others log in with a password."""

    def __init__(self, folder: Path, *, of: Server | None = None) -> None:
        found = binaries()
        if found is None:
            pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
        pytest.importorskip("psycopg", reason="the extra postgres is not installed")
        self._binaries = found
        self._owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.data = folder / "data"
        self.port = _free_port()
        if self._owner:
            os.chown(folder, self._owner.pw_uid, self._owner.pw_gid)
        if of is None:
            self.run("initdb", "--username=tester", "--auth=trust", "--encoding=UTF8", "--no-sync", "--pgdata", str(self.data))  # fmt: skip
            self.write("pg_hba.conf", _RULES)
        else:
            self.run("pg_basebackup", "-R", "--checkpoint=fast", "--no-sync", "-d", of.address(), "-D", str(self.data))
        # no other server's socket or port is touched
        self.write(
            "postgresql.conf",
            f"listen_addresses = '127.0.0.1'\nport = {self.port}\nunix_socket_directories = ''\nfsync = off\nmax_connections = 60\n",
        )

    def write(self, name: str, text: str) -> None:
        """Write a file into the server's folder, as its owner."""
        path = self.data / name
        path.write_text(text)
        if self._owner:
            os.chown(path, self._owner.pw_uid, self._owner.pw_gid)

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as the server's owner."""
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/", timeout=120,
            user=self._owner.pw_uid if self._owner else None, group=self._owner.pw_gid if self._owner else None,
            extra_groups=[] if self._owner else None, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.run("pg_ctl", "start", "--wait", "--silent", "--pgdata", str(self.data), "--log", str(self.data / "log"))

    def stop(self) -> None:
        """Stop it at once; connections are lost."""
        self.run("pg_ctl", "stop", "--mode=fast", "--wait", "--silent", "--pgdata", str(self.data))

    def address(self, database: str = "postgres", user: str = "tester") -> str:
        """Return the address of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, *values: object, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement in a database."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []


@contextmanager
def running(*, standby_of: Server | None = None) -> Iterator[Server]:
    """Run a server, or a standby of another one, as long as a block."""
    folder = Path(mkdtemp(prefix="memgraph-pg-"))
    server = None
    try:
        server = Server(folder, of=standby_of)
        server.start()
        yield server
    finally:
        if server is not None and (server.data / "postmaster.pid").exists():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
