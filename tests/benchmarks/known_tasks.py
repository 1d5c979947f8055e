"""Whether recall finds the commit that helps with a task, in public histories ingested whole.

``python -m tests.benchmarks.known_tasks MIRRORS`` reads bare repositories (``MIRRORS/owner+name/repo``) into one store each and prints for each
part of `quality/known_tasks.jsonl` how often a right commit is the first line, or among the first three, and how many unrelated tasks get a line.

A reader chose the commits at random, and wrote the tasks without their distinctive words; another, who saw the tasks and the projects' names
alone, wrote the phrases. The ranking of phrases was chosen on ``chosen``; on ``test`` it was only measured, once. `README.md` has the figures.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from memgraph import MemGraph, MemoryRetrieval
from memgraph.extraction.readers import GitReader

TASKS = Path(__file__).with_name("quality") / "known_tasks.jsonl"
FORMS: dict[str, dict[str, Any]] = {
    "words alone": {},
    "with phrases": {"also": True},
    "with phrases, no floor": {"also": True, "floor": "off"},
}


def place_of(retrieval: MemoryRetrieval, task: dict[str, Any], form: dict[str, Any]) -> tuple[int, int]:
    """Return at which place a right commit is in a recall, 0 for none, and the number of lines."""
    asked = {**form, "also": task["also"] if form.get("also") else []}
    lines = retrieval.retrieve({"task_description": task["task"], **asked}).memories
    found = (
        place for place, one in enumerate(lines, 1) if (getattr(one, "git_commit", None) or "")[:16] in task["right"]
    )
    return next(found, 0), len(lines)


def main(mirrors: Path) -> None:
    """Ingest each history that is there, ask, and print one line for each part and form."""
    tasks = [json.loads(line) for line in TASKS.read_text("utf-8").splitlines()]
    found: Counter[tuple[str, str, str]] = Counter()
    for repo in dict.fromkeys(task["repo"] for task in tasks if "repo" in task):
        git = mirrors / repo.replace("/", "+") / "repo"
        if not git.is_dir():
            print(f"{repo} is not there")
            continue
        with tempfile.TemporaryDirectory() as folder, MemGraph.open(folder) as memory:
            memory.ingest(GitReader(git), compress=False)
            part = next(task["part"] for task in tasks if task.get("repo") == repo)
            for task in tasks:
                if task.get("repo", repo) != repo or task["part"] != part:
                    continue
                for name, form in FORMS.items():
                    place, lines = place_of(memory.retrieval, task, form)
                    if task["right"]:
                        found.update(
                            {
                                (part, name, "asked"): 1,
                                (part, name, "first"): place == 1,
                                (part, name, "among three"): 0 < place <= 3,
                            }
                        )
                    else:
                        found.update({(part, name, "unrelated"): 1, (part, name, "with a line"): lines > 0})
    for part, name in dict.fromkeys(key[:2] for key in found):
        counts = {
            what: found[part, name, what] for what in ("first", "among three", "asked", "with a line", "unrelated")
        }
        print(
            f"{part:7} {name:24} first {counts['first']}, among three {counts['among three']} of {counts['asked']}; "
            f"unrelated with a line {counts['with a line']} of {counts['unrelated']}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
