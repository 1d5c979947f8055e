"""What is counted over git histories, held against their last fifth and against the fixes of the next years. See README.md.

python tests/benchmarks/counted_history.py REPOSITORY … [--years N] [--rules N]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from memgraph.lifecycle.counting.counting import Counting, check
from memgraph.lifecycle.counting.records import HOT_SPOT, Change, FileChange
from tests.benchmarks.tables import table

_REPAIRS = frozenset("fix fixes fixed fixing bug bugs bugfix hotfix regression regressions".split())
_CLOSING = frozenset("close closes closed fix fixes fixed resolve resolves resolved".split())
_NAMED = re.compile(r"This reverts commit ([0-9a-f]{7,40})")
_MENDED = re.compile(
    r"^Fixes: ([0-9a-f]{7,40})\b|\b(?:introduced|broken|caused|regress\w+) (?:in|by) (?:commit )?([0-9a-f]{7,40})\b",
    re.MULTILINE,
)
_YEAR = timedelta(days=365)


def git(repository: Path, *arguments: str) -> str:
    """Return what git says about a repository."""
    command = ["git", "-C", str(repository), "-c", "diff.renameLimit=2000", *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", errors="replace")


def changes(repository: Path, detect: str) -> list[Change]:
    """Return the changes of a history, oldest first, without merges."""
    log = (
        "log",
        "--reverse",
        "--date-order",
        "--no-merges",
        "-z",
        "--raw",
        detect,
        "--format=%x01%H%x02%ct%x02%aN%x02%B",
    )
    return [_change(part.split("\0")) for part in git(repository, *log).split("\x01")[1:]]


def _change(tokens: list[str]) -> Change:
    sha, seconds, person, message = tokens[0].split("\x02", 3)
    files, rest = [], iter(tokens[1:])
    for token in rest:
        if not token.strip("\n").startswith(":"):
            continue
        status, path = token.split(" ")[4][0], next(rest)
        was, path = (path, next(rest)) if status in "RC" else ("", path)
        kind = {"C": "A", "T": "M"}.get(status, status)
        files.append(FileChange(path, kind, was=was if kind == "R" else ""))
    at = datetime.fromtimestamp(int(seconds), UTC)
    subject = message.partition("\n")[0]
    mended, undone = _MENDED.search(message), _NAMED.search(message)
    return Change(
        sha,
        sha,
        at,
        person,
        tuple(files),
        is_fix=_is_fix(message),
        mends=(mended[1] or mended[2]) if mended else None,
        reverts=undone[1] if undone else None,
        subject=subject,
    )


def _is_fix(message: str) -> bool:
    """Say what the caller of the rules would: a word of the title, or an issue that the message closes."""
    title = "".join(letter if letter.isalnum() else " " for letter in message.partition("\n")[0].casefold())
    if _REPAIRS & set(title.split()):
        return True
    words = message.casefold().replace(":", " ").split()
    return any(one.strip("(,.[") in _CLOSING and "#" in two for one, two in pairwise(words))


class Judged(NamedTuple):
    """A commit as the judge reads it, with nothing from the rules: its time, its paths, whether it is a fix."""

    at: int
    paths: frozenset[str]
    is_fix: bool


_FIX = re.compile(r"\b(?:fix(?:e[sd])?|bug(?:s|fix(?:es)?)?|regressions?)\b", re.IGNORECASE)
_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:[\w.-]+/[\w.-]+)?#\d+", re.IGNORECASE)


def judged(repository: Path) -> Iterator[Judged]:
    """Yield the commits without merges, oldest first: paths as they are, renames are a removed and an added path."""
    log = git(
        repository,
        "log",
        "--reverse",
        "--date-order",
        "--no-merges",
        "--no-renames",
        "--name-only",
        "-z",
        "--format=%x01%ct%x02%s%x02%B%x03",
    )
    for entry in log.split("\x01")[1:]:
        head, _, names = entry.partition("\x03")
        seconds, title, message = head.split("\x02", 2)
        paths = frozenset(name.strip("\n") for name in names.split("\0") if name.strip("\n"))
        yield Judged(int(seconds), paths, bool(_FIX.search(title) or _CLOSES.search(message)))


class Shares(NamedTuple):
    """Of the judged fixes: their number, those that touch a named file, the file changes in named files and all, the sum of the shares of each."""

    fixes: int = 0
    touching: int = 0
    inside: int = 0
    changed: int = 0
    portions: float = 0.0

    def plus(self, fixes: list[frozenset[str]], named: frozenset[str]) -> Shares:
        """Return these with more fixes."""
        inside = [len(one & named) for one in fixes]
        return Shares(
            self.fixes + len(fixes),
            self.touching + sum(map(bool, inside)),
            self.inside + sum(inside),
            self.changed + sum(map(len, fixes)),
            self.portions + sum(many / len(one) for many, one in zip(inside, fixes, strict=True)),
        )

    def __str__(self) -> str:
        return f"{100 * self.inside / self.changed:.1f} %, {100 * self.portions / self.fixes:.1f} %, {100 * self.touching / self.fixes:.1f} %"


def next_years(repository: Path, history: list[Change], years: int, detect: str) -> tuple[Shares, Shares]:
    """Return where the fixes of each of the last years fell: in the hot spots named before it, in the ten most changed files."""
    log = list(judged(repository))
    end, spots, changed = max(one.at for one in log), Shares(), Shares()
    for back in range(years, 0, -1):
        start = end - back * _YEAR.days * 86_400
        until = start + _YEAR.days * 86_400
        counting = Counting()
        for change in history:
            if change.at.timestamp() < start:
                counting.learn(change)
        named = frozenset(rule.subject for rule in counting.rules() if rule.kind == HOT_SPOT)
        most = most_changed(repository, git(repository, "rev-list", "-1", f"--before={start}", "HEAD").strip(), detect)
        fixes = [one.paths for one in log if start <= one.at < until and one.is_fix and one.paths]
        spots, changed = spots.plus(fixes, named), changed.plus(fixes, frozenset(most))
    return spots, changed


def most_changed(repository: Path, tip: str, detect: str) -> list[str]:
    """Return the ten files of a commit that have changed most often, under whatever names: read backwards, from their present names."""
    log = git(repository, "log", "--date-order", "--no-merges", detect, "--name-status", "-z", "--format=%x01", tip)
    present, often = dict[str, str](), Counter[str]()
    for entry in log.split("\x01")[1:]:
        tokens = iter(entry.replace("\n", "").split("\0"))
        earlier = dict[str, str]()
        for token in tokens:
            if re.fullmatch(r"[AMDTRC]\d*", token):
                path = next(tokens)
                was, path = (path, next(tokens)) if token[0] in "RC" else ("", path)
                often[present.get(path, path)] += 1
                if token[0] == "R":
                    earlier[was] = present.get(path, path)
        present |= earlier
    there = set(git(repository, "ls-tree", "-r", "-z", "--name-only", tip).split("\0"))
    return sorted((path for path in often if path in there), key=lambda path: (-often[path], path))[:10]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--years", type=int, nargs="*", default=[1, 5])
    parser.add_argument("--rules", type=int, default=0)
    parser.add_argument("--exact-renames", action="store_true", help="for a copy that lacks the contents of some files")
    options = parser.parse_args()
    for repository in options.repositories:
        detect = "-M100%" if options.exact_renames else "-M"
        history = changes(repository, detect)
        print(f"\n{repository}: {len(history)} commits, {git(repository, 'rev-parse', 'HEAD').strip()[:12]}")
        held = check(history)
        rows = [
            (
                kind,
                str(one.asked),
                str(one.answered),
                f"{100 * one.right / max(1, one.answered):.0f} %",
                f"{100 * one.answered / max(1, one.asked):.0f} %",
                f"{100 * one.usual / max(1, one.asked):.1f} %",
                " ".join(
                    f".{int(10 * level.least)}: {100 * level.right / level.answered:.0f} % of {level.answered}"
                    for level in one.levels
                    if level.answered
                ),
            )
            for kind, one in held.items()
            if one.asked
        ]
        print(*table(("kind", "asked", "answered", "right", "of asked", "usual", "by share"), rows), sep="\n")
        for years in options.years:
            spots, changed = next_years(repository, history, years, detect)
            print(
                f"fixes of the next year, last {years} years ({spots.fixes} fixes): hot spots {spots}; most changed files {changed}"
            )
        if options.rules:
            counting = Counting()
            for change in history:
                counting.learn(change)
            shown = Counter[str]()
            for rule in counting.rules(held):
                if shown[rule.kind] < options.rules:
                    shown[rule.kind] += 1
                    print(f"  {rule.confidence:.2f} {rule.text}")


if __name__ == "__main__":
    main()
