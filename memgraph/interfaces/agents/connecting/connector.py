"""Connectors: what connects one agent program each, and how it stands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import Field

from memgraph.errors import MemGraphError, StorageError
from memgraph.interfaces.agents.connecting.change import Change, Part
from memgraph.interfaces.agents.connecting.programs import commands, scripts_folder
from memgraph.interfaces.agents.connecting.receipt import (
    Options,
    Receipt,
    drop_receipt,
    keep_receipt,
    read_receipt,
)
from memgraph.model.base import Model

MCP_EXTRA = "memgraph-kuzu[mcp]"
"""What has to be installed for `memgraph mcp`."""
State = Literal["connected", "not connected", "outdated", "incomplete", "needs approval", "broken"]
"""``broken``: a file of the program cannot be read."""


@dataclass(frozen=True)
class Connector:
    """An agent program and what connects it.

    Attributes
    ----------
    name, title : str
        As in ``memgraph connect NAME``, and as its makers write it.
    binaries : sequence of str
        Commands by which it is found on PATH.
    folder : callable
        Returns the user's directory of the program, which need not exist.
    changes : callable
        Returns what connecting writes.
    hint : str
        What the user has to do after connecting.
    unapproved : callable, optional
        Called with the program's path, returns the events whose hooks the program skips until the user has approved
        them; None if it does not answer.
    how_to_approve : str
    """

    name: str
    title: str
    binaries: Sequence[str]
    folder: Callable[[], Path]
    changes: Callable[[Options], Sequence[Change]]
    hint: str = ""
    unapproved: Callable[[str], Sequence[str] | None] | None = None
    how_to_approve: str = ""


class Standing(Model):
    """How an agent program stands.

    Attributes
    ----------
    binary, folder : str or None
        Where it was found; the directory only if something is in it that connecting did not write.
    written, merged : list of str
        All files that are written, or, of a dry run, those that would be; those of the user's that entries are merged into.
    changed, edited, extra, in_the_way : list of str
        Files that the user changed after they were written; files whose entries the user changed, but are memgraph's still; files that the
        user added; files that stood there before.
    unapproved : list of str or None
        Events whose hooks the program skips until the user has approved them; None if it did not say.
    how_to_approve : str
    problem : str or None
        Why a file of the program cannot be read.
    missing, missing_extras : list of str
        Files and commands of memgraph that should be there; what should be installed.
    """

    name: str
    title: str
    state: State
    binary: str | None = None
    folder: str | None = None
    home: str | None = None
    answer_orders: bool = False
    written: list[str] = Field(default_factory=list)
    merged: list[str] = Field(default_factory=list)
    changed: list[str] = Field(default_factory=list)
    edited: list[str] = Field(default_factory=list)
    extra: list[str] = Field(default_factory=list)
    in_the_way: list[str] = Field(default_factory=list)
    missing: list[str] = Field(default_factory=list)
    missing_extras: list[str] = Field(default_factory=list)
    unapproved: list[str] | None = Field(default_factory=list)
    how_to_approve: str = ""
    problem: str | None = None


def standing(connector: Connector, place: Path) -> Standing:
    """Return how a program stands. The program itself is asked which hooks it skips, which takes up to some seconds.

    Parameters
    ----------
    place : Path
        The user's configuration directory, in which receipts are kept.
    """
    try:
        receipt = _receipt_of(connector, place)
        stands = _compared(connector, receipt)
    except StorageError as error:
        return _standing(connector, None, []).model_copy(update={"state": "broken", "problem": str(error)})
    if receipt is None or stands.binary is None or connector.unapproved is None:
        return stands
    unapproved = connector.unapproved(stands.binary)
    state = "needs approval" if unapproved and stands.state == "connected" else stands.state
    how = "" if unapproved == [] else connector.how_to_approve
    return stands.model_copy(update={"state": state, "unapproved": unapproved, "how_to_approve": how})


def connect(connector: Connector, place: Path, options: Options, *, release: str, dry_run: bool = False) -> Standing:
    """Write what connects a program, and return how it stands then. Idempotent.

    What the user changed since it was written stays as it is.

    Raises
    ------
    MemGraphError
        Files that are not memgraph's stand in the way. Nothing is written.
    StorageError
        A file of the user's is not valid: nothing is written. Or something cannot be written.
    """
    before = _receipt_of(connector, place)
    changes = connector.changes(options)
    parts = [part for change in changes for part in change.parts(before)]
    blocked = [part.path for part in parts if part.state == "in the way"]
    if blocked:
        raise MemGraphError(f"{blocked[0]} was not written by `memgraph connect`; move it away, then connect again")
    receipt = before.model_copy(deep=True) if before else Receipt(release=release, options=options)
    receipt = receipt.model_copy(update={"release": release, "options": options})
    if dry_run:
        unwritten = [part.path for part in parts if part.state in {"missing", "outdated"}]
        return _standing(connector, receipt, parts).model_copy(update={"written": unwritten})
    try:
        for change in changes:
            change.apply(receipt)
    finally:
        if receipt.files or receipt.merged or receipt.folders:
            keep_receipt(place, connector.name, receipt)
    return standing(connector, place)


def disconnect(connector: Connector, place: Path, options: Options, *, dry_run: bool = False) -> Standing:
    """Remove what connecting wrote, and return what stays because the user changed or added it. Idempotent.

    Parameters
    ----------
    options : Options
        If there is no receipt, what was written with these is recognised, whatever they say of work orders; so are memgraph's entries in
        files of the user's.

    Raises
    ------
    StorageError
        A file of the user's is not valid, and was left as it is; the receipt is damaged; or something cannot be written.
    """
    receipt = read_receipt(place, connector.name) or _recognised(connector, options)
    before = _compared(connector, receipt)
    if receipt is None or dry_run:
        return before
    try:
        for change in connector.changes(receipt.options):
            change.undo(receipt)
    except StorageError:
        keep_receipt(place, connector.name, receipt)  # of what is still written
        raise
    if receipt.merged:  # of another directory, which an environment variable named then
        keep_receipt(place, connector.name, receipt)
        elsewhere = min(receipt.merged)
        raise MemGraphError(
            f"{elsewhere} was connected while another directory of {connector.title} was set in the environment, and still has memgraph's "
            "entries; set that directory again, then disconnect"
        )
    drop_receipt(place, connector.name)
    return before


def _receipt_of(connector: Connector, place: Path) -> Receipt | None:
    """Return the receipt of a program. If it was lost, one is made up where everything stands as it would be written now."""
    receipt = read_receipt(place, connector.name)
    if receipt is not None:
        return receipt
    options = Options(home="", scripts=str(scripts_folder()))
    found = Receipt(release="", options=options)
    is_complete = [change.recover(found) for change in connector.changes(options)]
    return found if all(is_complete) else None


def _recognised(connector: Connector, options: Options) -> Receipt | None:
    """Return a receipt of what stands there as connecting writes it, complete or not; None if nothing does."""
    found = Receipt(release="", options=options)
    for answer_orders in (False, True):
        for change in connector.changes(options.model_copy(update={"answer_orders": answer_orders})):
            change.recover(found)
    return found if found.files or found.merged else None


def _compared(connector: Connector, receipt: Receipt | None) -> Standing:
    """Return how what was written stands, without asking the program."""
    options = receipt.options if receipt else Options(home="", scripts=str(scripts_folder()))
    parts = [part for change in connector.changes(options) for part in change.parts(receipt)]
    if receipt is None:
        return _standing(connector, None, parts)
    missing = [part.path for part in parts if part.state == "missing"]
    missing += [path for path in commands(receipt.options) if not os.access(path, os.X_OK)]
    return _standing(connector, receipt, parts, missing, () if find_spec("mcp") else (MCP_EXTRA,))


def _standing(
    connector: Connector,
    receipt: Receipt | None,
    parts: Sequence[Part],
    missing: Sequence[str] = (),
    missing_extras: Sequence[str] = (),
) -> Standing:
    found: dict[str, list[str]] = {}
    for part in parts:
        found.setdefault(part.state, []).append(part.path)
    state: State = "connected"
    if receipt is None:
        state = "not connected"
    elif missing or missing_extras:
        state = "incomplete"
    elif "outdated" in found:
        state = "outdated"
    binary = next(filter(None, map(shutil.which, connector.binaries)), None)
    folder = connector.folder()
    made = {*receipt.folders, *receipt.files, *receipt.merged} if receipt else set()
    is_own = folder.is_dir() and str(folder) in made and made.issuperset(map(str, folder.iterdir()))
    return Standing(
        name=connector.name,
        title=connector.title,
        state=state,
        binary=binary,
        folder=str(folder) if folder.is_dir() and not is_own else None,
        home=(receipt.options.home or None) if receipt else None,
        answer_orders=receipt.options.answer_orders if receipt else False,
        written=[part.path for part in parts if part.state in {"missing", "outdated", "edited", "current"}]
        if receipt
        else [],
        merged=sorted(receipt.merged) if receipt else [],
        changed=found.get("changed", []),
        edited=found.get("edited", []),
        extra=found.get("extra", []),
        in_the_way=found.get("in the way", []),
        missing=list(missing),
        missing_extras=list(missing_extras),
    )
