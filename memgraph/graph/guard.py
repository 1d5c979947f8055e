"""Which Cypher may come from outside: one reading statement, decided on its tokens, before the engine sees it.

A read-only transaction is not enough: the engine would still export, load files and install extensions in one.
"""

from __future__ import annotations

import re

from memgraph.errors import QueryError

MAX_QUERY_CHARS = 20_000
_STARTS = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN"})
_REFUSED = frozenset(
    "CREATE MERGE SET DELETE DETACH REMOVE DROP ALTER COPY LOAD EXPORT IMPORT ATTACH USE INSTALL UNINSTALL UPDATE CALL "
    "PROFILE EXPLAIN BEGIN COMMIT ROLLBACK CHECKPOINT COMMENT MACRO FOREACH".split()
)
_TOKEN = re.compile(
    r"""
    '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`   # quoted
    | //[^\n]* | /\*.*?\*/                            # comments
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<other>.)
    """,
    re.DOTALL | re.VERBOSE,
)


def check_read_only(query: str) -> None:
    """Refuse a query that is not one plain reading statement.

    Raises
    ------
    QueryError
        Says which word is refused.
    """
    if len(query) > MAX_QUERY_CHARS:
        raise QueryError(f"the query has {len(query):,} characters, the limit is {MAX_QUERY_CHARS:,}")
    first, previous = None, ""
    for match in _TOKEN.finditer(query):
        word, other = match["word"], match["other"]
        if other and not other.isspace():
            if other in ";'\"`" or (not other.isascii()):
                raise QueryError(
                    f"the query holds {other!r} at position {match.start()}; only one plain statement is run"
                )
            previous = other
        if word is None:
            continue
        first = first or word.upper()
        if word.upper() in _REFUSED and previous not in {".", ":", "$"}:
            raise QueryError(f"the query holds {word.upper()}; only reading statements are run")
        previous = word
    if first not in _STARTS:
        raise QueryError(f"the query starts with {first or 'nothing'}; it must start with {', '.join(sorted(_STARTS))}")
