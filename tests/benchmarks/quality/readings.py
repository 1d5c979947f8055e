"""Compare two independent readings of a sample, list what a third reader decides, and print the table. See README.md.

python tests/benchmarks/quality/readings.py FOLDER

The folder holds ``sample.jsonl`` and the readers' ``a.jsonl`` and ``b.jsonl``; ``third.jsonl`` decides where they differ. Without it the
differing items are written to ``disputed.jsonl``, and the table gives the range that the decisions leave open.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LABELS = {
    "memory": ("useful", "harmless", "junk", "wrong"),
    "generalisation": ("signable", "not signable"),
    "procedure": ("usable", "not usable"),
    "merge": ("equal", "different"),
    "contradiction": ("right", "wrong"),
    "resolution": ("right", "wrong"),
    "dropped": ("rightly", "wrongly"),
    "user turn": ("kept", "lost", "none"),
}


def read_sample(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the items of a sample by id."""
    return {item["item"]: item for item in _lines(folder / "sample.jsonl")}


def read_labels(path: Path, sample: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return a reader's labels by item.

    Raises
    ------
    SystemExit
        An item is unknown, labelled twice, or has a label that its kind does not have.
    """
    labels: dict[str, str] = {}
    for line in _lines(path):
        item, label = line["item"], line["label"]
        if item not in sample or item in labels or label not in LABELS[sample[item]["kind"]]:
            raise SystemExit(f"{path}: {item} {label!r} is not one label of an item of the sample")
        labels[item] = label
    return labels


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of two readers' labels (Cohen 1960); None without items, or if both used a single label."""
    if not pairs:
        return None
    observed = sum(one == other for one, other in pairs) / len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    expected = sum(first[label] * second[label] for label in first) / len(pairs) ** 2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def table(
    sample: Mapping[str, Mapping[str, Any]], one: Mapping[str, str], other: Mapping[str, str], third: Mapping[str, str]
) -> list[str]:
    """Return the lines of the table: per kind the number of items, kappa, and each label's share.

    A share is a range where disputed items are undecided: at least those on which both agree, at most all that one of them gave it.
    """
    lines = []
    for kind, labels in LABELS.items():
        items = [item for item, given in sample.items() if given["kind"] == kind and item in one and item in other]
        if not items:
            continue
        agreement = kappa([(one[item], other[item]) for item in items])
        shares = []
        for label in labels:
            least = sum(
                (third.get(item) or one[item]) == label for item in items if _is_decided(item, one, other, third)
            )
            open_ = sum(label in {one[item], other[item]} for item in items if not _is_decided(item, one, other, third))
            share = f"{least / len(items):.0%}" + (f"–{(least + open_) / len(items):.0%}" if open_ else "")
            shares.append(f"{label} {share} ({least})")
        shown = "–" if agreement is None else f"{agreement:.2f}"
        lines.append(f"{kind:<16}{len(items):>5}  κ {shown:<6} {', '.join(shares)}")
    return lines


def _is_decided(item: str, one: Mapping[str, str], other: Mapping[str, str], third: Mapping[str, str]) -> bool:
    return item in third or one[item] == other[item]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    sample = read_sample(folder)
    one, other = (read_labels(folder / name, sample) for name in ("a.jsonl", "b.jsonl"))
    third = read_labels(folder / "third.jsonl", sample) if (folder / "third.jsonl").exists() else {}
    missing = [item for item in sample if item not in one or item not in other]
    disputed = [item for item in sample if item not in missing and not _is_decided(item, one, other, third)]
    if disputed:
        text = "".join(json.dumps(sample[item], ensure_ascii=False) + "\n" for item in disputed)
        (folder / "disputed.jsonl").write_text(text)
    print("\n".join(table(sample, one, other, third)))
    print(f"{len(sample)} items; read by one reader only: {len(missing)}; disputed and undecided: {len(disputed)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
