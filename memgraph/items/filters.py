"""Filters of items by fields of their values: equality and ``$eq $ne $gt $gte $lt $lte``. Pure."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from memgraph.errors import InvalidInputError

_MISSING = object()
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDER)


def check_filter(filter: Mapping[str, Any] | None) -> None:
    """Reject an unknown operator.

    Raises
    ------
    InvalidInputError
    """
    for name, wanted in (filter or {}).items():
        if isinstance(wanted, Mapping) and (unknown := [one for one in wanted if one not in OPERATORS]):
            problem = f"must be one of {', '.join(OPERATORS)}"
            raise InvalidInputError(problem, field=f"filter.{name}", value=unknown[0])


def matches(value: Mapping[str, Any], filter: Mapping[str, Any] | None) -> bool:
    """Return whether a value meets all conditions.

    A name is that of a field, or a path of names with dots. A missing field counts as null, which is equal to null alone, and is
    neither greater nor less than anything, nor unequal to it. Numbers compare with numbers, texts with texts.
    """
    return all(_meets(_at(value, name), wanted) for name, wanted in (filter or {}).items())


def _at(value: Mapping[str, Any], name: str) -> Any:
    if name in value:
        return value[name]
    found: Any = value
    for part in name.split("."):
        found = found.get(part, _MISSING) if isinstance(found, Mapping) else _MISSING
    return None if found is _MISSING else found


def _meets(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return all(_compares(found, name, other) for name, other in wanted.items())
    return bool(found == wanted)


def _compares(found: Any, name: str, wanted: Any) -> bool:
    if name == "$eq":
        return bool(found == wanted)
    if name == "$ne":
        return found is not None and bool(found != wanted)
    numbers, texts = (all(isinstance(one, kind) for one in (found, wanted)) for kind in (int | float, str))
    return (numbers or texts) and _ORDER[name](found, wanted)
