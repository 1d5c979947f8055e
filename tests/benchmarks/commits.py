"""Which commits' messages are memories, by the rule of the package and by other counts, against labels of public histories.

``python -m tests.benchmarks.commits MIRRORS`` reads the messages that `quality/commits.jsonl` names out of bare repositories
(``MIRRORS/owner+name/repo``) and prints precision, recall and F1. `quality/commits.md` has the criteria of the two readers, who saw neither
rules nor each other's labels and agreed on 98 of 100 messages (Cohen's kappa .96); where they did not, the message is none.

Of each history 60 messages were drawn at random (``natural``) and 60 among those with a body (``body``). Parts by history: ``train`` chose
the number of words, ``test`` only measured. On these labels 1,000 lines of rules over English, deleted since, had .81 / .52 / .64 on
``test``; logistic regressions over words, vectors or both came to an F1 of .75 to .77.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from memgraph.extraction.readers.commits import parted, without_trailers
from memgraph.extraction.rules.findings import LEAST_WORDS, prose_of
from tests.benchmarks.sentences import measured

LABELS = Path(__file__).with_name("quality") / "commits.jsonl"


class Message(NamedTuple):
    """A labelled message."""

    body: str
    part: str
    is_natural: bool
    is_kept: bool


def labelled(mirrors: Path) -> Iterator[Message]:
    """Yield the labelled messages of the histories that are there."""
    for history in map(json.loads, LABELS.read_text().splitlines()):
        git = ["git", "-C", str(mirrors / history["repo"].replace("/", "+") / "repo")]
        for where in ("natural", "body"):
            for sha, kind in history[where].items():
                shown = subprocess.run([*git, "show", "-s", "--format=%B", sha], capture_output=True, check=False)
                if shown.returncode == 0:
                    body = without_trailers(parted(shown.stdout.decode(errors="replace"))[1])
                    yield Message(body, history["part"], where == "natural", kind != "not")


def main(mirrors: Path) -> None:
    """Print the table."""
    messages = list(labelled(mirrors))
    kept = np.array([one.is_kept for one in messages])
    parts = {
        "train": [one.part == "train" for one in messages],
        "test": [one.part == "test" for one in messages],
        "test, natural": [one.part == "test" and one.is_natural for one in messages],
    }
    words = np.array([prose_of(one.body)[1] for one in messages])
    length = np.array([len(one.body.split()) for one in messages])
    print(f"{len(messages)} messages, {kept.sum()} that state something; {LEAST_WORDS} words are asked for")
    print("| at least |" + "".join(f" {part}: P / R / F1 |" for part in parts))
    for name, counts in (("words of prose", words), ("words of any kind", length)):
        for least in (10, 15, 20, 25, 30, 40):
            rows = [measured(counts[of] >= least, kept[of]) for of in map(np.array, parts.values())]
            print(f"| {least} {name} |" + "".join(" {:.2f} / {:.2f} / {:.2f} |".format(*row) for row in rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
