r"""Admits a user's Cypher only if it is one read-only statement, by its tokens, before the engine sees it.

A read-only transaction is not enough: the engine would still export, load files and install extensions in one. The
guard must therefore split a text into tokens exactly as the engine does. Where the two might differ (a number next to a letter,
a comment, an escape other than ``\\``, ``\'`` and ``\"``, any unknown character outside of quotes) it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from memgraph.errors import InvalidInputError, QueryError
from memgraph.graph.schema import tables
from memgraph.graph.wire import encoded

MAX_QUERY_CHARS = 20_000
MAX_BRACKET_DEPTH = 64
"""The engine's parser overflows its stack at about 500."""
MAX_CASE_DEPTH = 8
"""The engine's time is exponential in the depth."""
MAX_LAMBDA_DEPTH = 3
"""The same."""
MAX_RANGE = 10_000
"""Items that a `range` may have: the engine takes 540 bytes for each, outside of its buffer pool, before it checks the timeout."""
_STARTS = frozenset({"MATCH", "OPTIONAL", "UNWIND", "WITH", "RETURN"})
_REFUSED = frozenset(
    "CREATE MERGE SET DELETE DETACH REMOVE DROP ALTER COPY LOAD EXPORT IMPORT ATTACH USE INSTALL UNINSTALL UPDATE CALL "
    "PROFILE EXPLAIN BEGIN COMMIT ROLLBACK CHECKPOINT COMMENT MACRO FOREACH NEXTVAL".split()
)
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n]++)
    | (?P<quoted>'(?:[^'\\]|\\['"\\])*+' | "(?:[^"\\]|\\['"\\])*+" | `[^`\\]++`)
    | (?P<parameter>\$[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<range>\.\.)
    | (?P<number>(?:[0-9]++(?:\.[0-9]++)?+|\.[0-9]++)(?:[eE]-?+[0-9]++)?+)
    | (?P<mark>[()\[\]{},.:=<>+\-*/%^|&!~])
    """,
    re.VERBOSE,
)
_HEADER = re.compile(r"(?:[ \t\r\n]*+//[^\n]*+(?:\n|\Z))*+")
_END = re.compile(r"[ \t\r\n]*;[ \t\r\n]*\Z")
_FUNCTION = re.compile(r"[ \t\r\n]*+\(")
_RANGE = re.compile(r"\s*+\(\s*+(-?[0-9]{1,18})\s*+,\s*+(-?[0-9]{1,18})\s*+(?:,\s*+(-?[0-9]{1,18})\s*+)?+\)", re.ASCII)
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|`[^`]*+`""")
_CLAUSE = re.compile(r"\b(?:RETURN|WITH)\b", re.IGNORECASE)
_AGGREGATE = re.compile(r"\b(?:COUNT|SUM|AVG|MIN|MAX|COLLECT)\s*+\(\s*+(DISTINCT\b)?+", re.IGNORECASE)
_CLAUSES = frozenset("MATCH OPTIONAL UNWIND WITH RETURN WHERE UNION ORDER LIMIT SKIP".split())
_NO_NAMES = frozenset("NOT IS NULL TRUE FALSE AND OR XOR IN STARTS ENDS WITH CONTAINS CASE WHEN THEN ELSE END".split())
_LAMBDA = ">"
_NO_FUNCTION = re.compile(r"function (\w+) does not exist", re.IGNORECASE)
_NO_TABLE = re.compile(r"Table \S+ does not exist")
_NO_PROPERTY = re.compile(r"Cannot find property")
_FUNCTIONS_OF_OTHERS = {
    "type": "label(r) for the relation of an edge",
    "elementid": "id(n)",
    "labels": "label(n)",
    "split": "string_split(text, separator)",
    "datetime": "timestamp(text)",
    "tointeger": "CAST(x AS INT64)",
    "tofloat": "CAST(x AS DOUBLE)",
    "tostring": "CAST(x AS STRING)",
}
"""What this engine calls the functions of other dialects of Cypher."""
_CLOSERS = {"(": ")", "[": "]", "{": "}", "CASE": "END"}


def check_read_only(query: str) -> str:
    """Return the query to run, without leading comments and final semicolon; refuse, saying what and where, what is not one plain read-only statement."""
    if not isinstance(query, str):
        raise InvalidInputError("must be a Cypher statement (str)", field="query", value=query)
    if len(query) > MAX_QUERY_CHARS:
        raise QueryError(f"the query has {len(query):,} characters, the limit is {MAX_QUERY_CHARS:,}")
    if re.search("[\0\ud800-\udfff]", query):
        raise QueryError("the query contains a NUL or an unpaired surrogate")
    header = _HEADER.match(query)
    start = header.end() if header else 0
    query = _END.sub("", query)
    _check_tokens(query, start)
    _check_distinct(query[start:])
    _check_conditions(query[start:])
    return query[start:]


def schema_hint() -> str:
    """Return which labels and relations the graph has, and how to see their properties."""
    shown = tables()
    labels = ", ".join(name for name, one in shown.items() if one.ends is None)
    relations = ", ".join(name for name, one in shown.items() if one.ends is not None)
    return f"there are the labels {labels}, and the relations {relations}; `memgraph queries schema` lists their properties"


@contextmanager
def explaining() -> Iterator[None]:
    """Add to the engine's refusal of a query what to write instead, where that is known."""
    try:
        yield
    except QueryError as error:
        refusal, hint = str(error), ""
        if found := _NO_FUNCTION.search(refusal):
            hint = f" Use {use}." if (use := _FUNCTIONS_OF_OTHERS.get(found[1].lower())) else ""
        elif _NO_TABLE.search(refusal):
            hint = f" In this graph {schema_hint()}."
        elif _NO_PROPERTY.search(refusal):
            hint = " `memgraph queries schema` lists the properties of each label and relation."
        if hint:
            raise QueryError(refusal + hint) from None
        raise


def check_parameters(query: str, given: Collection[str]) -> None:
    """Refuse a checked query whose parameters are not those given: the engine would treat a missing one as null."""
    named = {match[0][1:] for match in _TOKEN.finditer(query) if match.lastgroup == "parameter"}
    if lacking := sorted(named - set(given)):
        raise QueryError(f"the query uses ${', $'.join(lacking)}, but no value is given")
    if unknown := sorted(set(given) - named):
        raise QueryError(f"{', '.join(unknown)!a} is given, but the query does not use it")


def check_values(values: Mapping[str, Any]) -> None:
    """Refuse parameters whose values the engine does not accept: its own message would not name the parameter."""
    for name, value in values.items():
        try:
            encoded(value)
        except (TypeError, ValueError) as error:
            problem = "is not UTF-8 text" if "UTF-8" in str(error) else str(error)
            raise QueryError(f"the parameter {name!a} {problem}") from None
        if not _fits(value):
            raise QueryError(f"the parameter {name!a} is too large: integers have at most 64 bits")


def _fits(value: Any) -> bool:
    match value:
        case int():
            return -(2**63) <= value < 2**63
        case list():
            return all(map(_fits, value))
        case dict():
            return all(map(_fits, value.values()))
        case _:
            return True


def _check_tokens(query: str, position: int) -> None:
    first, previous, was_atom = "", "", False
    open_ones: list[str] = []
    while position < len(query):
        match = _TOKEN.match(query, position)
        if match is None or query.startswith(("//", "/*"), position):
            raise QueryError(_not_understood(query, position))
        kind, token = str(match.lastgroup), match[0]
        is_atom = kind in {"quoted", "parameter", "word", "number"}
        if is_atom and was_atom:
            raise QueryError(
                f"`{token[:20]}` at position {position} must be separated by a space from what precedes it"
            )
        is_refused = kind == "word" and token.upper() in _REFUSED and not (previous == ":" and token in tables())
        if is_refused and previous == ":":
            raise QueryError(f"there is no label or relation {token}; {schema_hint()}")
        if is_refused:
            raise QueryError(
                f"the query contains {token.upper()}; only read-only statements are allowed (quote a name with backticks)"
            )
        if kind in {"quoted", "word"} and _FUNCTION.match(query, match.end()):
            _check_function(query, token, match.end())
        if kind in {"word", "mark"}:
            _nest(token.upper(), open_ones, position, is_name=previous in {".", ":"})
        if query.startswith("->", position) and previous not in {"-", "]"}:
            _nest_lambda(open_ones, position)
        if kind != "space":
            if not first:
                first = token.upper()
                if first not in _STARTS:
                    raise QueryError(f"the query starts with {token[:20]}; it must start with {_starts()}")
            if (previous in {".", ".."} and token[0] == ".") or (previous == "." and kind == "number"):
                raise QueryError(_not_understood(query, position))
            previous = token
        was_atom = is_atom
        position = match.end()
    if open_ones:
        raise QueryError(f"the query ends before its {open_ones[-1].rstrip(_LAMBDA)} is closed")
    if not first:
        raise QueryError(f"the query is empty; it must start with {_starts()}")


def _check_distinct(query: str) -> None:
    """Refuse queries that the engine answers wrongly: after an aggregate with DISTINCT it leaves those without at 0 or null."""
    for clause in _CLAUSE.split(_QUOTED.sub("''", query)):
        are_distinct = [found[1] is not None for found in _AGGREGATE.finditer(clause)]
        if any(are_distinct) and are_distinct != sorted(are_distinct):
            raise QueryError(
                "the query has an aggregate after one with DISTINCT, which the engine would leave at 0 or null: "
                "put those with DISTINCT last"
            )


def _check_conditions(query: str) -> None:
    """Refuse queries that the engine answers wrongly: it ignores a condition joined by AND that names only parameters."""
    depth, previous = 0, ""
    open_ones: dict[int, list[set[str]]] = {}  # for each bracket depth with a WHERE: what its conditions name
    for match in _TOKEN.finditer(query):
        kind, said = str(match.lastgroup), match[0].upper()
        if kind == "space":
            continue
        closes = said in _CLOSERS.values() and previous not in {".", ":"}
        is_clause = said in _CLAUSES and not (said == "WITH" and previous in {"STARTS", "ENDS"})
        if closes or is_clause:
            _check_named(open_ones.pop(depth, []))
        depth += (said in _CLOSERS) - closes
        if said == "WHERE":
            open_ones[depth] = [set()]
        elif said == "AND" and depth in open_ones:
            open_ones[depth] += [set()] if "OR" not in open_ones[depth][-1] else []
        elif (
            said in {"OR", "XOR"} and depth in open_ones
        ):  # a disjunction is one condition, including the ANDs within it
            open_ones[depth] = [{"OR"}.union(*open_ones[depth])]
        elif what := _named(kind, said, is_function=_FUNCTION.match(query, match.end()) is not None):
            for conditions in open_ones.values():
                conditions[-1].add(what)
        previous = said
    for conditions in open_ones.values():
        _check_named(conditions)


def _named(kind: str, token: str, *, is_function: bool) -> str | None:
    """Return what kind of thing a token names: a parameter or something else; None if it names nothing."""
    if kind == "parameter":
        return "$"
    is_name = token[0] == "`" or (kind == "word" and token not in _NO_NAMES and not is_function)
    return "name" if is_name else None


def _check_named(conditions: list[set[str]]) -> None:
    if {"$"} in [names - {"OR"} for names in conditions]:
        raise QueryError(
            "the query has a condition that names only parameters, which the engine would ignore: "
            "name a column in it, too"
        )


def _nest_lambda(open_ones: list[str], position: int) -> None:
    """Record a lambda in the innermost bracket: any `->` that is not the end of an edge."""
    if open_ones and not open_ones[-1].endswith(_LAMBDA):
        open_ones[-1] += _LAMBDA
    if sum(one.endswith(_LAMBDA) for one in open_ones) > MAX_LAMBDA_DEPTH:
        raise QueryError(f"the query nests more than {MAX_LAMBDA_DEPTH} lambdas at position {position}")


def _check_function(query: str, name: str, position: int) -> None:
    if name[0] in "'\"`":
        raise QueryError(f"the query contains {name[:20]} before a bracket; a function name must not be quoted")
    if name.upper() == "RANGE":
        found = _RANGE.match(query, position)
        low, high, step = (int(part or 1) for part in found.groups()) if found else (0, 0, 0)
        if not step or (high - low) // step >= MAX_RANGE:  # both ends are items
            raise QueryError(f"range takes literal integers and returns at most {MAX_RANGE:,} items")


def _nest(token: str, open_ones: list[str], position: int, *, is_name: bool) -> None:
    """Open or close a bracket or a CASE."""
    if token in _CLOSERS:
        open_ones.append(token)
        cases = open_ones.count("CASE")
        if cases > MAX_CASE_DEPTH or len(open_ones) - cases > MAX_BRACKET_DEPTH:
            raise QueryError(
                f"the query nests too deep at position {position}: {MAX_BRACKET_DEPTH} brackets and {MAX_CASE_DEPTH} CASEs "
                "may be nested"
            )
    elif token in _CLOSERS.values() and (
        is_name or not open_ones or _CLOSERS[open_ones.pop().rstrip(_LAMBDA)] != token
    ):
        raise QueryError(f"the query contains {token} at position {position} without an opening counterpart")


def _not_understood(query: str, position: int) -> str:
    char = query[position]
    if query.startswith(("//", "/*"), position):
        return (
            f"the query holds a comment at position {position}; comments are allowed only on lines before the statement"
        )
    if char in "'\"`":
        return (
            f"the text in quotes at position {position} does not end, or has a backslash that is not part of "
            "\\\\, \\' or \\\" (the engine knows no others; a parameter may hold any text)"
        )
    return f"the query holds {char!a} at position {position}; only one plain statement is run"


def _starts() -> str:
    return ", ".join(sorted(_STARTS))
