"""Tables in Markdown, aligned so that they can be read as they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; the first column is text, the others are figures."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    yield _line(heads, widths)
    yield "|".join(["", *("-" * (width + 2) for width in widths), ""])
    for row in rows:
        yield _line(row, widths)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return f"| {' | '.join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])} |"
