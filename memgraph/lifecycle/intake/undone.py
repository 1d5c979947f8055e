"""What later commits do to earlier memories of a history: reverts and removals end them, renames move them.

The memory of a reverted commit, and one of code whose files were removed, is invalid from that moment; it is kept, and shown with the
reason. A revert that became a memory supersedes what it undid, and a fix is linked to the commit that it corrects. A memory whose file
was renamed follows its file, so that a later removal finds it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memgraph.extraction.components import goes_along, is_packaging
from memgraph.index.index import entity_name
from memgraph.lifecycle.intake.build_run import BuildRun
from memgraph.model.build import BuildTask
from memgraph.model.events.memories import MemoryLinked, MemoryRevised, RecordPatch
from memgraph.model.events.payload import Payload
from memgraph.model.memory import RECORD_SOURCE, AgentMemory, id_of
from memgraph.ports import is_release
from memgraph.store.query import Reader

_COMMIT_CHARS = 12
_MOST_PATHS = 2_000
_REVERTED = "its change was reverted by commit {}"
_REMOVED = "the code it concerns was removed by commit {}"


@dataclass(slots=True)
class _Subject:
    """A memory of a commit, stored or about to be stored, and the fields that change, each with the build that changes it."""

    memory_id: str
    fields: Mapping[str, Any]
    place: tuple[BuildRun, int] | None = None
    changed: dict[str, Any] = field(default_factory=dict)
    changed_by: dict[str, BuildRun | None] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        return self.changed.get(name, self.fields.get(name))

    def change(self, by: BuildRun | None, **fields: Any) -> None:
        self.changed |= fields
        self.changed_by |= dict.fromkeys(fields, by)


class Undone:
    """Applies what the commits of some builds, and releases, do to earlier memories.

    Parameters
    ----------
    reader : Reader
    builds : sequence of BuildRun
        The builds that are about to be settled, in order: their candidates are changed before they are stored.
    project, releases : str, mapping of str to str
        A project, and the first release of its commits.
    """

    def __init__(
        self, reader: Reader, builds: Sequence[BuildRun], project: str = "", releases: Mapping[str, str] | None = None
    ) -> None:
        self._reader = reader
        self._subjects: dict[str, _Subject] = {}
        self._links: dict[tuple[str, str, str, str], BuildRun] = {}
        self._new: list[_Subject] = []
        for build in builds:
            if build.log.source != "git":
                continue
            self._build, made = build, _by_commit(build)
            for task in build.log.tasks:
                own = made.get(task.task_id, [])
                self._apply(task, build.log.project_id, own)
                self._new += own
        self._change_candidates()
        for sha, release in (releases or {}).items():
            if self._mentioning("commit", sha[:_COMMIT_CHARS], project) - self._mentioning("commit", release, project):
                for subject in self._of_commit(sha, project):
                    entities = subject.get("entities") or ()
                    if not any(is_release(one["kind"], one["name"]) for one in entities):
                        released = {"name": release, "kind": "commit", "about": False}
                        subject.change(None, release=release, entities=[*entities, released])

    def events(self, known: set[str], now: str) -> Iterator[tuple[BuildRun | None, Payload]]:
        """Yield the changes of stored memories, and the links between memories that exist by then, with the build that makes them; None: a release.

        Parameters
        ----------
        known : set of str
            The new memories that are stored in the same commit.
        """
        for subject in self._subjects.values():
            for build in dict.fromkeys(subject.changed_by.values()) if subject.place is None else ():
                own = {name: value for name, value in subject.changed.items() if subject.changed_by[name] is build}
                changed = {name: value for name, value in own.items() if value is not None}
                cleared = [name for name, value in own.items() if value is None]
                patch = RecordPatch.parse({**changed, "updated_at": now})
                yield build, MemoryRevised(id=subject.memory_id, changed=patch, cleared=cleared)
        stored = known | {one.memory_id for one in self._subjects.values() if one.place is None}
        for (source, relation, target, reason), build in self._links.items():
            if {source, target} <= stored:
                ends = {"source_id": source, "relation": relation, "target_id": target}
                yield build, MemoryLinked(**ends, reason=reason, created_at=now)

    def _apply(self, task: BuildTask, project: str, own: Sequence[_Subject]) -> None:
        commit = task.task_id[:_COMMIT_CHARS]
        for sha in dict.fromkeys(filter(None, (task.reverts, *task.undoes, task.takes_back))):
            for subject in self._of_commit(sha, project):
                self._end(subject, task, _REVERTED.format(commit))
                self._link(own, "SUPERSEDES", subject, "the change was reverted")
        if task.restores:
            for subject in self._of_commit(task.restores, project):
                if str(subject.get("invalidation_reason") or "").startswith(_REVERTED.format("")):
                    subject.change(self._build, invalid_at=None, invalidation_reason=None)
        if task.mends:
            for subject in self._of_commit(task.mends, project):
                self._link(own, "RELATED_TO", subject, "corrects that change")
        gone = frozenset(task.files_removed[:_MOST_PATHS])
        for path in sorted(gone):
            for subject in self._of_file(path, project):
                if subject.get("git_commit") != task.task_id and _is_gone(subject, gone):
                    self._end(subject, task, _REMOVED.format(commit))
        for old, new in list(task.files_renamed.items())[:_MOST_PATHS]:
            for subject in self._of_file(old, project):
                self._move(subject, old, new)

    def _end(self, subject: _Subject, task: BuildTask, reason: str) -> None:
        if subject.get("invalid_at") or subject.get("is_pinned") or len(subject.get("source_event_ids") or ()) > 1:
            return  # what other sources say too, holds
        subject.change(self._build, invalid_at=task.occurred_at, invalidation_reason=reason)

    def _link(self, own: Sequence[_Subject], relation: str, subject: _Subject, said: str) -> None:
        self._links |= {(one.memory_id, relation, subject.memory_id, said): self._build for one in own}

    def _move(self, subject: _Subject, old: str, new: str) -> None:
        files = [new if file == old else file for file in subject.get("files_involved")]
        subject.change(self._build, files_involved=files)
        if subject.get("title") == old:
            subject.change(self._build, title=new)
        if old in (subject.get("location") or ""):
            subject.change(self._build, location=subject.get("location").replace(old, new)[:400])
        if subject.place is None:  # a new memory's entities are found when it is stored
            entities = [
                {**entity, "name": new[:400]} if entity["kind"] == "file" and entity["name"] == old[:400] else entity
                for entity in subject.get("entities") or []
            ]
            subject.change(self._build, entities=entities)

    def _of_commit(self, sha: str, project: str) -> list[_Subject]:
        return self._found("commit", sha[:_COMMIT_CHARS], project, lambda one: one.get("git_commit") == sha)

    def _of_file(self, path: str, project: str) -> list[_Subject]:
        return self._found("file", path[:400], project, lambda one: path in (one.get("files_involved") or ()))

    def _found(self, kind: str, name: str, project: str, is_meant: Callable[[_Subject], bool]) -> list[_Subject]:
        """Return the memories of commits of this project that the index knows by an entity, and the new ones."""
        index, slots = self._reader.index, self._mentioning(kind, name, project)
        lacking = [key for slot in slots if (key := index.ids.names[slot]) not in self._subjects]
        for row in self._reader.rows(lacking):
            self._subjects[row["id"]] = _Subject(row["id"], row)
        found = [self._subjects[key] for slot in slots if (key := index.ids.names[slot]) in self._subjects]
        moved = [one for one in self._subjects.values() if one.changed.get("files_involved")]
        # of a sitting that has grown, the first commits are stored, and read once more
        every = {one.memory_id: one for one in (*self._new, *moved, *found)}
        return [
            one
            for one in every.values()
            if one.get("source") in ("git", RECORD_SOURCE) and one.get("project_id") == project and is_meant(one)
        ]

    def _mentioning(self, kind: str, name: str, project: str) -> set[int]:
        """Return the index's slots of the memories that mention an entity."""
        code = self._reader.index.entities.find(entity_name(kind, name, project))
        return set(self._reader.index.mentions.get(code)[0].tolist()) if code >= 0 else set()

    def _change_candidates(self) -> None:
        for subject in self._new:
            if subject.place and subject.changed:
                build, place = subject.place
                candidate = build.candidates[place]
                memory: AgentMemory = candidate.memory.model_copy(update=subject.changed)
                build.candidates[place] = candidate.model_copy(update={"memory": memory})


def _by_commit(build: BuildRun) -> dict[str, list[_Subject]]:
    """Return the memories that are made of a build, by commit."""
    made: dict[str, list[_Subject]] = defaultdict(list)
    for place, candidate in enumerate(build.candidates):
        memory = candidate.memory
        made[getattr(memory, "git_commit", None) or ""].append(_Subject(id_of(memory), vars(memory), (build, place)))
    return made


def _is_gone(subject: _Subject, gone: frozenset[str]) -> bool:
    """Return whether what a change brought is gone: all its files but tests and documentation. What took more lines than it brought stands."""
    files: Sequence[str] = subject.get("files_involved") or ()
    own = [file for file in files if not goes_along(file)] or files
    if all(map(is_packaging, own)) or not gone.issuperset(own):
        return False
    changes = map(dict, subject.get("changes") or ())
    gained: int = sum(one.get("added", 0) - one.get("removed", 0) for one in changes if not goes_along(one["path"]))
    return gained >= 0
