"""What connecting a client wrote, kept in the user's configuration directory: disconnecting takes back exactly that."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pydantic import Field, ValidationError

from memgraph.disk.files import make_private_folder, write_private
from memgraph.model.base import Model

_FOLDER = "connected"


class Options(Model):
    """What was chosen when a client was connected.

    Attributes
    ----------
    home : str
        The store's directory.
    is_default_home : bool
        It need not be named: clients find it.
    scripts : str
        The directory of the commands ``memgraph`` and ``memgraph-hook``.
    answer_orders : bool
        Ask the agent, once in a session, to answer the work orders that the session caused.
    """

    home: str
    is_default_home: bool = True
    scripts: str
    answer_orders: bool = False


class Receipt(Model):
    """What was written for a client.

    Attributes
    ----------
    release : str
        The version that wrote it.
    files : dict of str to str
        SHA-256 of each file as it was written, by its absolute path.
    folders : list of str
        Directories that did not exist before, outermost first.
    """

    release: str
    options: Options
    files: dict[str, str] = Field(default_factory=dict)
    folders: list[str] = Field(default_factory=list)


def sha256_of(data: bytes) -> str:
    """Return the digest that a receipt holds of a file."""
    return hashlib.sha256(data).hexdigest()


def read_receipt(place: Path, client: str) -> Receipt | None:
    """Return the receipt of a client; None if it is not connected, or the receipt cannot be read.

    Parameters
    ----------
    place : Path
        The user's configuration directory (``keys_home``).
    """
    try:
        return Receipt.model_validate_json(_path(place, client).read_bytes())
    except (OSError, ValidationError, ValueError):
        return None


def keep_receipt(place: Path, client: str, receipt: Receipt) -> None:
    """Keep the receipt of a client.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    make_private_folder(_path(place, client).parent)
    write_private(_path(place, client), receipt.model_dump_json(indent=2).encode())


def drop_receipt(place: Path, client: str) -> None:
    """Remove the receipt of a client."""
    path = _path(place, client)
    path.unlink(missing_ok=True)
    if path.parent.is_dir() and not any(path.parent.iterdir()):
        path.parent.rmdir()


def _path(place: Path, client: str) -> Path:
    return place / _FOLDER / f"{client}.json"
