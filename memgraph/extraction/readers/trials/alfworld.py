"""Reader of Reflexion on ALFWorld (``env_results_trial_<n>.json``): a trial of an environment is a build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memgraph.errors import InvalidInputError, SourceError
from memgraph.extraction.readers.documents import JsonSource, Part, part_of, reason, run_id
from memgraph.extraction.readers.source import MAX_SAID_CHARS, SourceRecord, cleaned, named, undated
from memgraph.extraction.readers.trials.trial_reader import AGENT, TrialReader, trial_fields, with_unread
from memgraph.model.build import BuildTask
from memgraph.text import lazy_re as re

_TRIAL = re.compile(r"trial_(\d{1,6})")


class AlfworldReader(TrialReader):
    """Reads the environments of one trial: name, reflections so far, and whether it was solved.

    A failure's lesson is its last reflection; earlier reflections belong to earlier trials, and the last of those is
    what this trial acted on (its reasoning). Tasks are named ``env_<i>`` in every trial.

    Parameters
    ----------
    path : path-like
        Its name gives the trial's number (``…trial_<n>``); otherwise it is trial 0.
    project_id : str, optional
        Default: ``alfworld``.
    """

    kind = "alfworld"

    def __init__(self, path: str | Path, *, project_id: str | None = None) -> None:
        super().__init__(path, project_id=project_id)
        match = _TRIAL.search(self._path.name)
        self._trial = int(match[1]) if match else 0

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per environment; see `Reader.records`."""
        return JsonSource(self._path).documents(cursor, self._parts)

    def _parts(self, document: Any, _: str) -> Iterator[Part]:
        if not isinstance(document, list):
            raise SourceError("contains no array of environments", path=self._path)
        for index, environment in enumerate(document):
            try:
                task = self._task(index, environment)
                build_id = run_id(f"alfworld-{task.task_id}-trial-{self._trial}", environment)
            except (InvalidInputError, ValueError, RecursionError) as error:
                yield Part(None, 1, f"environment {index}: {reason(error)}")
                continue
            fields = trial_fields(build_id, self.project_id, [task], first=self._trial)
            yield with_unread(part_of(f"environment {index}", fields), f"environment {index}", environment, "memory")

    def _task(self, index: int, environment: object) -> BuildTask:
        if not isinstance(environment, dict) or not isinstance(environment.get("is_success"), bool):
            raise ValueError("not an object with is_success")
        name = named(environment.get("name"), f"env_{index}")
        is_solved = environment["is_success"]
        given = environment.get("memory")
        given = given if isinstance(given, list) else []
        reflections = [cleaned(text, MAX_SAID_CHARS) for text in given[-2:]]
        lesson = reflections.pop() if reflections and not is_solved else ""
        # solved environments are not repeated: fewer reflections than trials before mean that an earlier trial solved it
        acted_on = reflections[-1] if reflections and (not is_solved or len(given) >= self._trial) else ""
        return BuildTask(
            task_id=name,
            agent_name=AGENT,
            description=f"ALFWorld {name}",
            outcome="success" if is_solved else "failure",
            reasoning=acted_on,
            lesson=lesson,
            occurred_at=undated(self._trial),
            attempt=self._trial,
        )
