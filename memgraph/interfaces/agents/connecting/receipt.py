"""What connecting a client wrote, kept in the user's configuration directory: disconnecting takes back exactly that."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from pydantic import Field

from memgraph.disk.files import make_private_folder, write_private
from memgraph.errors import StorageError
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
    keys_home : str
        The user's configuration directory if it is not the default: programs that start servers without the environment need it. Else "".
    scripts : str
        The directory of the commands ``memgraph`` and ``memgraph-hook``.
    answer_orders : bool
        Ask the agent, once in a session, to answer the work orders that the session caused.
    was_asked : bool
        The user has said whether.
    """

    home: str
    is_default_home: bool = True
    keys_home: str = ""
    scripts: str
    answer_orders: bool = False
    was_asked: bool = False


class Insertion(Model):
    """A value that was inserted into a file of the user's.

    Attributes
    ----------
    keys : list of str
        Where it is: the path of keys to it, or to the list that it was added to.
    is_item : bool
        It was added to a list.
    value : object
    depth : int
        How many of the keys existed before.
    offset : int
        Place in the text, in characters; -1 if it is not known.
    text : str
        What was inserted, with the parents that did not exist.
    tail : str
        The end of `text` that only moves the closing bracket to a line of its own.
    """

    keys: list[str]
    is_item: bool = False
    value: Any
    depth: int = 0
    offset: int = -1
    text: str = ""
    tail: str = ""


class Merged(Model):
    """What was inserted into one file.

    Attributes
    ----------
    sha256 : str
        Digest of the file as it was written.
    before : str or None
        What the file held if that was only white space; None if it held more. "" if there was no file.
    is_new : bool
        There was no file.
    insertions : list of Insertion
        In the order in which they were made; offsets are those of the text at that time.
    """

    sha256: str
    before: str | None = None
    is_new: bool = False
    insertions: list[Insertion] = Field(default_factory=list)


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
    merged : dict of str to Merged
        What was inserted into files of the user's, by their absolute paths.
    """

    release: str
    options: Options
    files: dict[str, str] = Field(default_factory=dict)
    folders: list[str] = Field(default_factory=list)
    merged: dict[str, Merged] = Field(default_factory=dict)


def sha256_of(data: bytes) -> str:
    """Return the digest that a receipt holds of a file."""
    return hashlib.sha256(data).hexdigest()


def read_receipt(place: Path, client: str) -> Receipt | None:
    """Return the receipt of a client; None if there is none.

    Parameters
    ----------
    place : Path
        The user's configuration directory (``keys_home``).

    Raises
    ------
    StorageError
        It cannot be read, or it is damaged.
    """
    path = _path(place, client)
    try:
        return Receipt.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
    except ValueError:  # pydantic's error is one
        raise StorageError(
            f"is damaged: move it away; `memgraph disconnect {client}` then removes what it recognises", path=path
        ) from None


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
