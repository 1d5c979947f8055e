"""Prometheus' text format, version 0.0.4: what `memgraph stats --prometheus` prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class Metric(NamedTuple):
    """One metric: its samples, by the values of its labels.

    Attributes
    ----------
    name : str
        In base units; that of a counter ends with ``_total``.
    meaning : str
        One line.
    samples : mapping
        From tuples of the labels' values, in the order of `labels`, to numbers. Without labels: from the empty tuple.
    """

    name: str
    kind: Literal["counter", "gauge"]
    meaning: str
    samples: Mapping[tuple[str, ...], float]
    labels: tuple[str, ...] = ()


def exposition(metrics: Iterable[Metric]) -> str:
    """Return metrics as text; those without samples are left out.

    Raises
    ------
    ValueError
        A name is not valid, occurs twice, or does not say whether it is a counter; or a sample has other labels than its metric.
    """
    lines: list[str] = []
    seen: set[str] = set()
    for metric in metrics:
        _check(metric, seen)
        if not metric.samples:
            continue
        lines.append(f"# HELP {metric.name} {_escaped(metric.meaning)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        lines += [
            f"{metric.name}{_labels(metric, values)} {_number(value)}" for values, value in metric.samples.items()
        ]
    return "".join(f"{line}\n" for line in lines)


def _check(metric: Metric, seen: set[str]) -> None:
    if not _NAME.fullmatch(metric.name) or metric.name in seen or not all(map(_LABEL.fullmatch, metric.labels)):
        raise ValueError(f"{metric.name}: the name or a label is not valid, or occurs twice")
    if metric.name.endswith("_total") != (metric.kind == "counter"):
        raise ValueError(f"{metric.name}: counters, and only they, end with _total")
    if any(len(values) != len(metric.labels) for values in metric.samples):
        raise ValueError(f"{metric.name}: a sample has other labels than {metric.labels}")
    seen.add(metric.name)


def _labels(metric: Metric, values: tuple[str, ...]) -> str:
    pairs = [f'{name}="{_quoted(value)}"' for name, value in zip(metric.labels, values, strict=True)]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
