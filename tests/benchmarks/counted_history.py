"""What is counted over git histories, held against their last fifth and against the fixes of the next years. See README.md.

python tests/benchmarks/counted_history.py REPOSITORY … [--years N] [--rules N]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

if __package__ in {None, ""}:  # run as a script: find `tests` from the checkout
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from memgraph.lifecycle.counting.counting import Counting, check, measured
from memgraph.lifecycle.counting.records import HOT_SPOT, TOGETHER, Change, FileChange, Question
from tests.benchmarks.tables import table

_REPAIRS = frozenset("fix fixes fixed fixing bug bugs bugfix hotfix regression regressions".split())
_CLOSING = frozenset("close closes closed fix fixes fixed resolve resolves resolved".split())
_NAMED = re.compile(r"This reverts commit ([0-9a-f]{7,40})")
_MENDED = re.compile(
    r"^Fixes: ([0-9a-f]{7,40})\b|\b(?:introduced|broken|caused|regress\w+) (?:in|by) (?:commit )?([0-9a-f]{7,40})\b",
    re.MULTILINE,
)
_YEAR_S = 365 * 86_400


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
    mended, undone = _MENDED.search(message), _NAMED.search(message)
    return Change(
        sha,
        sha,
        at,
        "" if person.endswith("[bot]") else person,
        tuple(files),
        is_fix=_is_fix(message),
        mends=(mended[1] or mended[2]) if mended else None,
        reverts=undone[1] if undone else None,
    )


def _is_fix(message: str) -> bool:
    """Say what the caller of the rules would: a word of the title, or an issue that the message closes."""
    title = "".join(letter if letter.isalnum() else " " for letter in message.partition("\n")[0].casefold())
    if _REPAIRS & set(title.split()):
        return True
    words = message.casefold().replace(":", " ").split()
    return any(one.strip("(,.[") in _CLOSING and "#" in two for one, two in pairwise(words))


def as_measured(history: list[Change], least: float) -> tuple[int, int, int]:
    """Return how many were asked in the last fifth, answered, and right, of what changes together, if only those rules answer that are
    as often right as `least` in a check of the four fifths before."""
    before = int(0.8 * len(history))
    held, counting, answers, asked = check(history[:before]), Counting(), list[Question](), 0
    for place, change in enumerate(history):
        for question in counting.questions(change) if place >= before else ():
            if question.kind == TOGETHER:
                asked += 1
                if question.share is not None and (measured(TOGETHER, question.share, held) or 0.0) >= least:
                    answers.append(question)
        counting.learn(change)
    return asked, len(answers), sum(counting.was_hit(one, one.object) for one in answers)


class Judged(NamedTuple):
    """A commit as the judge reads it, with nothing from the rules: its time, whether it is a fix, earlier and later path of each file."""

    at: int
    is_fix: bool
    files: tuple[tuple[str, str], ...]


_FIX = re.compile(r"\b(?:fix(?:e[sd])?|bug(?:s|fix(?:es)?)?|regressions?)\b", re.IGNORECASE)
_CLOSES = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:[\w.-]+/[\w.-]+)?#\d+", re.IGNORECASE)


def judged(repository: Path, detect: str) -> list[Judged]:
    """Return the commits without merges, oldest first."""
    shown = ("--no-merges", detect, "--name-status", "-z", "--format=%x01%ct%x02%s%x02%B%x03")
    found = []
    for entry in git(repository, "log", "--reverse", "--date-order", *shown).split("\x01")[1:]:
        head, _, names = entry.partition("\x03")
        seconds, title, message = head.split("\x02", 2)
        tokens, files = iter(names.replace("\n", "").split("\0")), []
        for status in filter(None, tokens):
            first = next(tokens)
            later = next(tokens) if status[0] in "RC" else first
            files.append((first if status[0] == "R" else later, later))
        found.append(Judged(int(seconds), bool(_FIX.search(title) or _CLOSES.search(message)), tuple(files)))
    return found


def most_changed(past: list[Judged], there: set[str]) -> frozenset[str]:
    """Return the ten files with the most changes, under whatever names: read backwards, from their last names."""
    last, often = dict[str, str](), Counter[str]()
    for one in reversed(past):
        names = {was: last.get(path, path) for was, path in one.files}
        often.update(names.values())
        last |= names
    return frozenset(sorted(often.keys() & there, key=lambda path: (-often[path], path))[:10])


def fixes_of(year: list[Judged]) -> list[frozenset[str]]:
    """Return the files of each fix, by the names that they had when the year began."""
    first, found = dict[str, str](), []
    for one in year:
        names = {path: first.get(was, was) for was, path in one.files}
        first |= names
        if one.is_fix and names:
            found.append(frozenset(names.values()))
    return found


class Shares(NamedTuple):
    """Where fixes fell.

    Their number; the sum of the parts of each that fell in a named file, a fix of n files falling to 1/n in each; their changes of files,
    and those of named files; and those that touch a named file at all.
    """

    fixes: int = 0
    parts: float = 0.0
    changed: int = 0
    inside: int = 0
    touching: int = 0

    def plus(self, fixes: list[frozenset[str]], named: frozenset[str]) -> Shares:
        """Return these with more fixes."""
        inside = [len(one & named) for one in fixes]
        return Shares(
            self.fixes + len(fixes),
            self.parts + sum(many / len(one) for many, one in zip(inside, fixes, strict=True)),
            self.changed + sum(map(len, fixes)),
            self.inside + sum(inside),
            self.touching + sum(map(bool, inside)),
        )

    def __str__(self) -> str:
        shares = (self.parts / self.fixes, self.inside / self.changed, self.touching / self.fixes)
        return " / ".join(f"{100 * share:.1f}" for share in shares) + " %"


def next_years(repository: Path, history: list[Change], years: int, detect: str) -> tuple[Shares, Shares]:
    """Return where the fixes of each of the last years fell: in the hot spots named before it, in the ten most changed files."""
    log = judged(repository, detect)
    end, spots, changed = max(one.at for one in log), Shares(), Shares()
    for back in range(years, 0, -1):
        start, until = end - back * _YEAR_S, end - (back - 1) * _YEAR_S
        counting = Counting()
        for change in history:
            if change.at.timestamp() < start:
                counting.learn(change)
        named = frozenset(rule.subject for rule in counting.rules() if rule.kind == HOT_SPOT)
        tip = git(repository, "rev-list", "-1", f"--before={start}", "HEAD").strip()
        there = set(git(repository, "ls-tree", "-r", "-z", "--name-only", tip).split("\0"))
        fixes = fixes_of([one for one in log if start <= one.at < until])
        spots = spots.plus(fixes, named)
        changed = changed.plus(fixes, most_changed([one for one in log if one.at < start], there))
    return spots, changed


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
        asked, answered, right = as_measured(history, 0.6)
        print(
            f"changes together, rules measured as right in 60 % before: {100 * right / max(1, answered):.0f} % right, "
            f"{100 * answered / max(1, asked):.0f} % answered"
        )
        for years in options.years:
            spots, changed = next_years(repository, history, years, detect)
            print(
                f"{spots.fixes} fixes of the last {years} years, each year asked before it (parts of fixes / changed files / fixes "
                f"touching one): hot spots {spots}, most changed files {changed}"
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
