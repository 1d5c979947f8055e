"""Options of commands that change several memories: ids, ``--match TEXT`` or ``--query NAME-OR-CYPHER``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memgraph.errors import NotFoundError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.output import count, plain, stderr_line
from memgraph.text.cutting import preview

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.results.rows import Rows

F = TypeVar("F", bound=Callable[..., Any])
_MOST = 1_000
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LIKE_AN_ID = re.compile(r"[0-9a-fA-F]{8}[0-9a-fA-F-]*")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which memories a command changes.

    Attributes
    ----------
    is_confirmed : bool
        Whether what `match` or `query` finds may be changed without being listed first.
    """

    match: str | None
    query: str | None
    limit: int
    is_confirmed: bool

    @property
    def is_search(self) -> bool:
        """Whether the memories are searched for instead of named."""
        return self.match is not None or self.query is not None

    def ids(self, memory: MemGraph, named: Sequence[str], *, what: str, is_preview: bool = False) -> list[str]:
        """Return the ids of the selected memories.

        Parameters
        ----------
        what : str
            What the command does, as in "to pin them".
        is_preview : bool
            Nothing will be changed, so no confirmation is needed.

        Raises
        ------
        Refused
            Nothing was found, or more than `limit`; or the search is not confirmed: what it found is listed on standard error.
        """
        if not self.is_search:
            return list(dict.fromkeys(memory.store.find_id(one) for one in named))
        found = self._matching(memory) if self.match is not None else self._queried(memory)
        if not found:
            raise Refused("no memory matches")
        shown = found[: self.limit]
        is_cut = len(found) > len(shown)
        if self.is_confirmed and is_cut and not is_preview:
            raise Refused(
                f"{_number(found)} match, more than --limit {self.limit:,}, so nothing was changed; {_more(found)}"
            )
        if is_preview:
            if is_cut:
                stderr_line(f"{len(shown):,} of {_number(found)} matches; {_more(found)}")
        elif not self.is_confirmed:
            for one in memory.store.read_memories(shown):
                stderr_line(f"{one.id}  {preview(one.content)}")
            if is_cut:
                raise Refused(f"these are {len(shown):,} of {_number(found)} matches; {_more(found)}")
            what = what.replace(" them", " it") if len(found) == 1 else what
            raise Refused(f"found {count(len(found), 'memory', 'memories')}; add --yes {what}")
        return shown

    def _matching(self, memory: MemGraph) -> list[str]:
        return [found.id for found in memory.curation.matching(self.match or "", limit=_MOST + 1)]

    def _queried(self, memory: MemGraph) -> list[str]:
        text = self.query or ""
        rows: Rows = memory.store.query(text) if _NAME.fullmatch(text) else memory.store.cypher(text)
        if rows and "id" not in rows[0]:
            names = ", ".join(plain(column.name) for column in rows.columns)
            raise Refused(f"the query must return the memories' ids in a column `id`; it returns {names}")
        ids = list(dict.fromkeys(str(row["id"]) for row in rows))
        if len(ids) > _MOST:
            return ids
        known = {one.id for one in memory.store.read_memories(ids)}
        if missing := [one for one in ids if one not in known]:
            raise NotFoundError("memory", missing[0])
        return ids


def _number(found: Sequence[str]) -> str:
    return f"{len(found):,}" if len(found) <= _MOST else f"more than {_MOST:,}"


def _more(found: Sequence[str]) -> str:
    if len(found) <= _MOST:
        return f"--limit {len(found)} takes all of them"
    return f"one command changes at most {_MOST:,}: search for less"


def selecting(command: F) -> F:
    """Add the options to a command, which receives them as one argument, ``selection``."""

    @wraps(command)
    def wrapped(*args: Any, match: str | None, query: str | None, limit: int, yes: bool, **kwargs: Any) -> Any:
        if match is not None and query is not None:
            raise click.UsageError("--match and --query cannot be combined")
        return command(*args, selection=Selection(match, query, limit, yes), **kwargs)

    options = (
        click.option("--match", metavar="TEXT", help="Instead of ids: the memories that match TEXT closely."),
        click.option(
            "--query",
            metavar="NAME|CYPHER",
            help="Instead of ids: the `id` column of a named query or a read-only Cypher statement.",
        ),
        click.option(
            "--limit",
            type=click.IntRange(1, _MOST),
            default=10,
            show_default=True,
            help="Maximum number of memories that --match or --query may select; if there are more, nothing is changed.",
        ),
        click.option("--yes", is_flag=True, help="Change what --match or --query selects; without it, only list it."),
    )
    decorated: Any = wrapped
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def check_named(named: Sequence[str], selection: Selection, *, what: str = "ID") -> None:
    """Refuse ids together with a search, and neither of them."""
    if selection.is_search and named:
        raise click.UsageError(f"give either {what}, --match or --query")
    if not selection.is_search and not named:
        raise click.UsageError(f"give {what}, --match TEXT or --query NAME")


def ids_first(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide words into the ids that come first, and the rest: at least one id, and at least one other word if there are two."""
    if not words:
        return [], []
    place = 1
    while place < len(words) - 1 and _LIKE_AN_ID.fullmatch(words[place]):
        place += 1
    return list(words[:place]), list(words[place:])
