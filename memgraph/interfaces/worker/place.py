"""What worker and clients share: where the socket is, who may use it, and how a line is read. Standard library only."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import struct
import sys
import time
from typing import Any, NamedTuple

from memgraph.disk.glance import stated_in

RELEASE = "0.2.0"
"""The package's version: `importlib.metadata` takes longer to read it than the whole client. A test compares the two."""
PROTOCOL = 1
"""Version of the messages, and of the operations behind them."""
MAX_REQUEST_BYTES = 8 << 20
MAX_ANSWER_BYTES = 32 << 20
RETIRING = "WorkerRetiringError"
"""Type of the answer of a worker that is about to end and has done nothing."""
OTHER_SETTINGS = "OtherSettingsError"
"""Type of the answer of a worker that was started with other settings in its environment, and has done nothing."""
INTERNAL = "InternalError"
"""Type of the answer to a request at which the worker failed."""
DEFAULT_HOME = "~/.memgraph"
FOLDER_VARIABLE = "MEMGRAPH_WORKER_DIR"
IDLE_VARIABLE = "MEMGRAPH_WORKER_IDLE_S"
USE_VARIABLE = "MEMGRAPH_WORKER"
_OF_THE_PROCESS = {"MEMGRAPH_HOME", "MEMGRAPH_LOG", FOLDER_VARIABLE, IDLE_VARIABLE, USE_VARIABLE}
_MAX_PATH_BYTES = 99
"""The address of a Unix socket has room for 104 bytes on macOS, 108 on Linux."""
_CHUNK_BYTES = 1 << 16
_MAC_LOCAL_PEERCRED = 0x001
_MAC_XUCRED = "=IIh16I"


class Place(NamedTuple):
    """Where the worker of a store is reached.

    Attributes
    ----------
    home, store_id : str
        The store: its directory without symbolic links, and its identifier.
    socket, lock, log : str
        Paths of the socket; of the file whose lock decides which process serves; and of the log.
    """

    home: str
    store_id: str
    socket: str
    lock: str
    log: str

    @property
    def folder(self) -> str:
        """The directory of the three files."""
        return os.path.dirname(self.socket)


def place_of(home: str | None = None) -> Place | None:
    """Return the place of a store's worker; None if there is no store.

    Parameters
    ----------
    home : str, optional
        The store's directory. Default: ``MEMGRAPH_HOME``, else ``~/.memgraph``.
    """
    named = home or os.environ.get("MEMGRAPH_HOME") or DEFAULT_HOME
    try:
        path = os.path.expanduser(named)
        path = "" if path.startswith("~") else os.path.realpath(path)  # an unknown home directory
    except (OSError, ValueError):  # no path at all, or one relative to a directory that is gone
        return None
    store_id = store_id_of(path)
    if store_id is None:
        return None
    name = hashlib.sha256(os.fsencode(path) + b"\0" + store_id.encode()).hexdigest()[:20]
    folder = _folder(name)
    return Place(path, store_id, *(os.path.join(folder, name + end) for end in (".sock", ".lock", ".log")))


def store_id_of(home: str) -> str | None:
    """Return the identifier of the store in a directory; None if it holds none."""
    found = stated_in(home, "SELECT store_id FROM tenant") or _earlier(home)
    return found[0] if found and isinstance(found[0], str) and found[0] else None


def _earlier(home: str) -> tuple[Any, ...] | None:
    """Return the identifier of a store of release 0.2 or before, which the worker is still to move into a database."""
    try:
        with open(os.path.join(home, "journal", "manifest.json"), "rb") as file:
            return (json.loads(file.read(_CHUNK_BYTES))["store_id"],)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _folder(name: str) -> str:
    """Return the directory of sockets.

    It depends on the user's home directory alone: agents start hooks without most variables, and hooks and commands must find the
    same worker.
    """
    caches = "~/Library/Caches/memgraph/worker" if sys.platform == "darwin" else "~/.cache/memgraph/worker"
    folder = os.path.expanduser(os.environ.get(FOLDER_VARIABLE) or caches)
    is_unknown, folder = folder.startswith("~"), os.path.abspath(folder)
    if is_unknown or len(os.fsencode(os.path.join(folder, name + ".sock"))) > _MAX_PATH_BYTES:
        return f"/tmp/memgraph-{os.geteuid()}"  # noqa: S108 - used only if it belongs to this user, see `check_folder`
    return folder


def make_folder(folder: str) -> None:
    """Make the directory of sockets, for its owner alone.

    Raises
    ------
    OSError
        It cannot be made, or it belongs to somebody else.
    """
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        check_folder(folder)
        os.chmod(folder, 0o700)


def check_folder(folder: str) -> None:
    """Refuse a directory of sockets that another user could have prepared.

    Raises
    ------
    OSError
        There is none, it is a link, or it does not belong to this user.
    """
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not a directory of this user")


def peer_uid(connection: socket.socket) -> int:
    """Return the user at the other end of a Unix socket, as the system knows it.

    Raises
    ------
    OSError
        The system does not say.
    """
    if hasattr(socket, "SO_PEERCRED"):  # Linux: pid, uid, gid
        size = struct.calcsize("3i")
        found: int = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1]
        return found
    # macOS and BSD: struct xucred {version, uid, number of groups, groups}; the level SOL_LOCAL is 0
    option = getattr(socket, "LOCAL_PEERCRED", _MAC_LOCAL_PEERCRED)
    return int(struct.unpack_from("=II", connection.getsockopt(0, option, struct.calcsize(_MAC_XUCRED)))[1])


def is_own(uid: int) -> bool:
    """Return whether a peer is this process's user: nobody else is served or asked, not even root."""
    return uid == os.geteuid()


def settings_mark() -> str:
    """Return a hash of the settings in the environment: a worker that was started with others would answer otherwise."""
    names = ("MEMGRAPH_", "OLLAMA_")
    given = {name: os.environ[name] for name in os.environ if name.startswith(names) and name not in _OF_THE_PROCESS}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()


def release_key(protocol: object, version: object) -> tuple[int, tuple[int, ...]]:
    """Return what orders releases: the protocol, then the numbers of the version. Anything else is the oldest."""
    numbers = [part for part in str(version).replace("+", ".").split(".") if part.isdecimal()]
    return (protocol if isinstance(protocol, int) else 0, tuple(map(int, numbers)))


def line_of(message: Any) -> bytes:
    """Return a message as one line of JSON."""
    return json.dumps(message).encode() + b"\n"


def send_line(connection: socket.socket, line: bytes, deadline: float) -> None:
    """Send one message.

    Raises
    ------
    TimeoutError
        The other end does not read.
    OSError
        It is gone.
    """
    connection.settimeout(_left(deadline))
    connection.sendall(line)


def read_line(connection: socket.socket, limit: int, deadline: float) -> Any:
    """Read one message.

    Raises
    ------
    TimeoutError
        It did not arrive in time.
    ConnectionError
        The other end closed the connection before it had sent a whole line.
    ValueError
        It is longer than `limit` bytes, or not JSON.
    """
    chunks: list[bytes] = []
    size = 0
    while not (chunks and chunks[-1].endswith(b"\n")):
        connection.settimeout(_left(deadline))
        chunk = connection.recv(_CHUNK_BYTES)
        if not chunk:
            raise ConnectionResetError("the connection was closed")
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise ValueError(f"a message has more than {limit:,} bytes")
    try:
        return json.loads(b"".join(chunks))
    except RecursionError:
        raise ValueError("a message is nested too deeply") from None


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left
