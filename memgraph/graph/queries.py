"""Named queries: the files in ``queries/``, whose headers follow a strict grammar.

A file is a header of comment lines, then one read-only statement::

    // name: failures_by_file
    // purpose: which files fail most often, worst first; continued
    //   on lines that begin like this
    // parameter: project STRING = '': a project's name; '' for all projects
    // parameter: limit INT64 = 20, at least 0: maximum number of rows
    // column: file STRING
    // column: failures INT64: number of memories with a bad outcome that mention it
    // example: memgraph query failures_by_file --param project=shop
    // cost: only if it may take more than a second on 100,000 memories

A parameter without a default must be given. A default is a literal of the parameter's type, ``null`` (no time
restriction), or ``now`` (the store's clock). The allowed values may follow it: for a number ``, at least 0`` or ``, at most 36500``
or both, for a text ``, one of 'episodic' 'semantic' ''``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from typing import Any

from memgraph import assets
from memgraph.errors import InvalidInputError, MemGraphError, QueryError
from memgraph.model.results.rows import Column
from memgraph.model.timestamps import from_iso, to_iso

TYPES = ("STRING", "INT64", "DOUBLE", "BOOLEAN", "TIMESTAMP")
REQUIRED = None
_KINDS = ("name", "purpose", "parameter", "column", "example", "cost")
_ENTRY = re.compile(rf"// ({'|'.join(_KINDS)}): (\S.*)")
_MORE = re.compile(r"//   (\S.*)")
_PARAMETER = re.compile(
    rf"(?P<name>[a-z]\w*) (?P<type>{'|'.join(TYPES)})(?: = (?P<default>'[^']*'|[^\s':]\S*?))?"
    r"(?:, at least (?P<least>-?[0-9]{1,15}))?(?:, at most (?P<most>-?[0-9]{1,15}))?"
    r"(?:, one of (?P<allowed>'[^']*'(?: '[^']*')+))?: (?P<about>\S.*)",
    re.ASCII,
)
_COLUMN = re.compile(rf"([a-z]\w*) ((?:{'|'.join(TYPES)})(?:\[\])?)(?:: (\S.*))?", re.ASCII)
_INT64 = range(-(2**63), 2**63)
_INT64_DIGITS = 19
_HALF = re.compile("[\ud800-\udfff]")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a named query: its type is one of `TYPES`, its default as written in the header, None if it must be given."""

    name: str
    type: str
    default: str | None
    about: str
    at_least: int | None = None
    at_most: int | None = None
    one_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query from ``queries/``: what its header says (`notes` describe columns), and the text of the whole file."""

    name: str
    purpose: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    notes: Mapping[str, str]
    example: str
    cost: str | None
    text: str

    def values(self, given: Mapping[str, Any], *, now: str) -> dict[str, Any]:
        """Return a value for each parameter: the given one or else the default, of which ``now`` stands for the time `now`."""
        known = [one.name for one in self.parameters]
        if unknown := sorted(set(given) - set(known)):
            raise QueryError(f"the query {self.name} has no parameter {unknown[0]!a}; {_takes(known)}")
        values: dict[str, Any] = {}
        for one in self.parameters:
            if one.name in given:
                values[one.name] = _typed(one, given[one.name], now)
            elif one.default is REQUIRED:
                raise QueryError(f"the query {self.name} needs {one.name} ({one.about}): give {one.name}=…")
            else:
                values[one.name] = _default(one, now)
        return values


@cache
def named_queries() -> dict[str, NamedQuery]:
    """Return all named queries, sorted by name."""
    return {name: parse_query(name, text) for name, text in assets.texts("queries", ".cypher").items()}


def named_query(name: str) -> NamedQuery:
    """Return a named query; the `QueryError` for an unknown name suggests similar ones."""
    if not isinstance(name, str):
        raise InvalidInputError("must be the name of a query", field="name", value=name)
    queries = named_queries()
    if name in queries:
        return queries[name]
    asked = name.lower().replace("-", "_")
    words = set(asked.split("_"))
    alike = [one for one in queries if words & set(one.split("_"))]
    near = list(dict.fromkeys([*get_close_matches(asked, queries, n=_SHOWN), *alike]))[:_SHOWN]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    if len(name.split()) > 1:
        hint = "a Cypher statement is given as --cypher TEXT; "
    raise QueryError(f"there is no query {name[:80]!a}; {hint}`memgraph queries` lists them")


def parse_query(name: str, text: str) -> NamedQuery:
    """Parse a file of ``queries/``; an error names a line of its header that does not follow the grammar."""
    found: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    kind = ""
    for line in text.splitlines():
        if entry := _ENTRY.fullmatch(line):
            kind = entry[1]
            found[kind].append(entry[2])
        elif kind and (more := _MORE.fullmatch(line)):
            found[kind][-1] += f" {more[1]}"
        elif line.startswith("//"):
            raise _ill_formed(name, line)
        else:
            break
    columns = [_matched(name, _COLUMN, one) for one in found["column"]]
    return NamedQuery(
        name=name,
        purpose=found["purpose"][0],
        parameters=tuple(_parameter(_matched(name, _PARAMETER, one)) for one in found["parameter"]),
        columns=tuple(Column(one[1], one[2]) for one in columns),
        notes={one[1]: one[3] for one in columns if one[3]},
        example=found["example"][0],
        cost=next(iter(found["cost"]), None),
        text=text,
    )


def _matched(name: str, pattern: re.Pattern[str], said: str) -> re.Match[str]:
    if (match := pattern.fullmatch(said)) is None:
        raise _ill_formed(name, said)
    return match


def _ill_formed(name: str, said: str) -> MemGraphError:
    return MemGraphError(f"queries/{name}.cypher: {said!r} does not follow the grammar of headers")


def _parameter(match: re.Match[str]) -> Parameter:
    least, most = (None if match[bound] is None else int(match[bound]) for bound in ("least", "most"))
    allowed = tuple(re.findall("'([^']*)'", match["allowed"] or ""))
    return Parameter(match["name"], match["type"], match["default"], match["about"], least, most, allowed)


def value_of(type_: str, text: str) -> Any:
    """Convert a text from the command line to a value of a parameter's type (a time stays text), or raise a `ValueError` that says what it must be."""
    match type_:
        case "INT64":
            text = text.strip()
            if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) is None:
                raise ValueError("must be an integer")
            is_negative, digits = text[0] == "-", text.lstrip("+-0") or "0"
            if len(digits) > _INT64_DIGITS:
                raise ValueError(f"is too {'small' if is_negative else 'large'}: must be {_MUST_BE[type_]}")
            return -int(digits) if is_negative else int(digits)
        case "DOUBLE":
            try:
                return float(text)
            except ValueError:
                raise ValueError("must be a number") from None
        case "BOOLEAN":
            if text.strip().lower() not in _TRUTH:
                raise ValueError("must be true or false")
            return _TRUTH[text.strip().lower()]
        case "TIMESTAMP":
            return None if text.strip().lower() in {"", "null"} else text
        case _:
            return text


def _default(parameter: Parameter, now: str) -> Any:
    text = str(parameter.default)
    is_quoted = text.startswith("'")
    if is_quoted != (parameter.type == "STRING"):
        raise InvalidInputError(f"is not a {parameter.type}", field=parameter.name, value=text)
    try:
        value = value_of(parameter.type, text[1:-1] if is_quoted else text)
    except ValueError as error:
        raise InvalidInputError(str(error), field=parameter.name, value=text) from None
    return _typed(parameter, value, now)


def _typed(parameter: Parameter, value: Any, now: str) -> Any:
    """Return a value as the engine expects it, if the parameter allows it."""
    typed = _of_type(parameter, value, now)
    if parameter.one_of and typed not in parameter.one_of:
        allowed = ", ".join(map(repr, parameter.one_of))
        raise InvalidInputError(f"must be one of {allowed}", field=parameter.name, value=value)
    least, most = parameter.at_least, parameter.at_most
    if (least is not None and typed < least) or (most is not None and typed > most):
        bounds = [f"at {word} {bound:,}" for word, bound in (("least", least), ("most", most)) if bound is not None]
        raise InvalidInputError(f"must be {' and '.join(bounds)}", field=parameter.name, value=value)
    return typed


def _of_type(parameter: Parameter, value: Any, now: str) -> Any:
    match parameter.type, value:
        case "STRING", str():
            if _HALF.search(value):
                raise InvalidInputError("is not UTF-8 text", field=parameter.name, value=value)
            return value
        case "BOOLEAN", bool():
            return value
        case "INT64", int() if not isinstance(value, bool) and value in _INT64:
            return value
        case "DOUBLE", int() | float() if not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        case "TIMESTAMP", None if parameter.default == "null":
            return None
        case "TIMESTAMP", "now":
            return from_iso(now)
        case "TIMESTAMP", str() | datetime():
            try:
                return from_iso(to_iso(value))
            except ValueError:
                pass
    raise InvalidInputError(f"must be {_MUST_BE[parameter.type]}", field=parameter.name, value=value)


_MUST_BE = {
    "STRING": "text",
    "INT64": "a 64-bit integer",
    "DOUBLE": "a finite number",
    "BOOLEAN": "true or false",
    "TIMESTAMP": "a time, such as 2026-02-19 or 2026-02-19T08:30:00Z",
}


def _takes(names: list[str]) -> str:
    return f"it takes {', '.join(names)}" if names else "it takes none"
