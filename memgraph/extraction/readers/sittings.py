"""A history as builds: one author's sitting is one build. Who the authors are, and which release first contained a commit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Literal

from memgraph.extraction.readers.commits import (
    Commit,
    FileChange,
    RecentCommits,
    issues_in,
    kind_of,
    plain_text,
)
from memgraph.extraction.readers.files import beginning, shortened, storable_text
from memgraph.extraction.readers.source import SourceRecord
from memgraph.model.base import MAX_TEXT_CHARS
from memgraph.model.build import BuildEventLog, BuildTask, ChangedFile
from memgraph.model.ids import canonical_name
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re

MAX_GAP = timedelta(hours=3)
MAX_COMMITS = 20
_MAX_SUBJECT_CHARS = 2_000
_MAX_BODY_CHARS = 50_000
_MAX_PATH_CHARS = 4_096
_MAX_FILES = 10_000

_SHA = re.compile(r"[0-9a-f]{7,64}")
_PARTIAL = ("wip", "draft", "partial", "incomplete", "work in progress")

_KIND_OF_STATUS: dict[str, Literal["A", "M", "D", "R"]] = {"A": "A", "C": "A", "D": "D", "R": "R"}
_MANY = frozenset({"__init__.py", "conftest.py", "index.js", "index.ts", "mod.rs", "package.json", "Makefile"})
"""Names that many folders have a file of."""


def is_sha(text: str) -> bool:
    """Return whether `text` is a commit id that is safe to pass to git."""
    return _SHA.fullmatch(text) is not None


def grouped(
    commits: Iterable[tuple[Commit | str, str]],
    *,
    project_id: str,
    cursor: str,
    recent: RecentCommits,
    repositories: Collection[str] = (),
) -> Iterator[SourceRecord]:
    """Yield a record per build of these commits, in order.

    They are the oldest first, each with the cursor that means "done up to and including this one"; a string is the reason why
    a commit could not be read. `cursor` is before the first of them, `recent` holds the preceding commits and is extended, and
    `repositories` are the names of this one; see `issues_in`.
    """
    group: list[Commit] = []
    settled = reached = cursor
    for commit, at in commits:
        if isinstance(commit, str):
            yield SourceRecord(None, settled, 1, commit)
            continue
        if group and not _continues(group, commit):
            yield _record(group, reached, project_id, recent, repositories)
            settled, group = reached, []
        group.append(commit)
        reached = at
    if group:
        # the last group may still grow: only a full one is final
        yield _record(group, reached if len(group) == MAX_COMMITS else settled, project_id, recent, repositories)


def _continues(group: list[Commit], commit: Commit) -> bool:
    last = group[-1]
    # rebased commits keep their authors' times, which may run backwards
    return len(group) < MAX_COMMITS and commit.author == last.author and abs(commit.when - last.when) <= MAX_GAP


def _record(
    group: list[Commit], cursor: str, project_id: str, recent: RecentCommits, repositories: Collection[str]
) -> SourceRecord:
    try:
        return SourceRecord(_build(group, project_id, recent, repositories), cursor, len(group))
    except ValueError as error:  # an invalid value costs its own build, not the run
        return SourceRecord(None, cursor, len(group), f"commit {group[0].sha[:12]}: {error}")


def _build(group: list[Commit], project_id: str, recent: RecentCommits, repositories: Collection[str]) -> BuildEventLog:
    tasks = []
    for commit in group:
        tasks.append(_task(commit, recent, repositories))
        recent.add(commit)
    outcomes = {task.outcome for task in tasks}
    times = sorted(commit.when for commit in group)
    return BuildEventLog(
        build_id=f"git-{group[0].sha[:12]}",
        project_id=project_id,
        tasks=tasks,
        build_outcome=outcomes.pop() if len(outcomes) == 1 else "partial",
        started_at=to_iso(times[0]),
        completed_at=to_iso(times[-1]),
        source="git",
    )


def _task(commit: Commit, recent: RecentCommits, repositories: Collection[str]) -> BuildTask:
    subject = commit.subject
    undoing = recent.undoing(commit)
    again = undoing is not None and undoing.is_again
    mended = taken_back = None
    if undoing is None:
        mended, taken_back = recent.mended_by(commit), recent.reversed_by(commit)
    elif not again and undoing.origin != undoing.commit:
        taken_back = undoing.origin
    files = commit.files[:_MAX_FILES]
    removed, renamed = _moved(files)
    undoes = undoing is not None and not again
    mentions, closes = issues_in(commit.message[:_MAX_BODY_CHARS], repositories)
    if undoing:  # the issues in a quoted title are closed by that change
        closes = issues_in(commit.body[:_MAX_BODY_CHARS], repositories)[1]
    title = undoing.title if undoing and again and undoing.title else subject
    return BuildTask(
        task_id=commit.sha,
        agent_name=storable_text(commit.author).strip()[:400] or "unknown",
        description=beginning(storable_text(subject), _MAX_SUBJECT_CHARS),
        output=storable_text(shortened(commit.body, _MAX_BODY_CHARS)),
        outcome="partial" if subject.casefold().lstrip("[(").startswith(_PARTIAL) else "success",
        files_changed=_paths(file.path for file in files),
        files_removed=_paths(removed),
        files_renamed=dict(zip(_paths(renamed), _paths(renamed.values()), strict=False)),
        occurred_at=to_iso(commit.when),
        reverts=undoing.commit if undoing else None,
        restores=undoing.origin if undoing and again else None,
        undone_subject=beginning(storable_text(undoing.title), _MAX_SUBJECT_CHARS) if undoing else "",
        takes_back=taken_back,
        repeats=recent.repeated_by(commit),
        release=commit.release or None,
        mends=mended,
        mends_subject=beginning(storable_text(recent.subject_of(mended)), _MAX_SUBJECT_CHARS) if mended else "",
        kind=kind_of(title, [file.path for file in files], undoes=undoes, closes=bool(closes)),
        text=beginning(storable_text(plain_text(subject, commit.body)), MAX_TEXT_CHARS),
        changes=[_changed(file) for file in files if storable_text(file.path)],
        mentions=mentions,
        closes=closes,
        undoes=[undoing.commit, *undoing.others] if undoing and undoing.commit and undoing.others else [],
    )


def _changed(file: FileChange) -> ChangedFile:
    return ChangedFile.model_construct(  # what git says is valid, and there are many
        path=storable_text(file.path)[:_MAX_PATH_CHARS],
        kind=_KIND_OF_STATUS.get(file.status, "M"),
        added=file.added,
        removed=file.removed,
        was=storable_text(file.was)[:_MAX_PATH_CHARS] if file.status == "R" else None,
    )


def _moved(files: Sequence[FileChange]) -> tuple[list[str], dict[str, str]]:
    """Return the files that are gone, and the new paths of those that were renamed.

    Git takes a file that was split, joined, or moved and rewritten for one that was deleted. It moved if a new file has
    its name or is in a folder of its name; otherwise it is gone, unless files of its kind gain more than half as many lines
    as it had: these may be its own.
    """
    renamed = {file.was: file.path for file in files if file.status == "R"}
    places: dict[str, str] = {}
    brought: Counter[str] = Counter()
    for file in files:
        folder, _, name = file.path.rpartition("/")
        stem, _, suffix = file.path.rpartition(".")
        brought[suffix] += file.added or 0
        if file.status in "ACR":
            for key in (name, f"{folder}.{suffix}", f"{stem}/.{suffix}"):
                places.setdefault(key, file.path)
            brought[suffix] += file.added is None  # where lines are not counted, every new file may hold them
    removed = []
    for file in files:
        folder, _, name = file.path.rpartition("/")
        suffix = file.path.rpartition(".")[2]
        place = places.get(file.path) or places.get(f"{folder}/.{suffix}") or (name not in _MANY and places.get(name))
        if file.status == "D" and place:
            renamed[file.path] = place
        elif file.status == "D" and brought[suffix] * 2 <= (file.removed or 0):
            removed.append(file.path)
    return removed, renamed


def _paths(files: Iterable[str]) -> list[str]:
    return [path for file in files if (path := storable_text(file)[:_MAX_PATH_CHARS])]


_MOST_NAMES = 4
"""An address that more names use is that of a team or a machine."""
_NOBODYS = re.compile(
    r"(?:^|[.+_-])no-?reply@|^[^@]*$|@[^.]*$|@(?:.*\.)?(?:example|invalid|local|localhost|localdomain|test)(?:\.(?:com|net|org))?$",
    re.IGNORECASE,
)
"""Addresses of nobody: without a domain, reserved (RFC 2606 and 6761), or that nobody reads."""
_NUMBERED = re.compile(r"^\d+\+(?=.*@users\.noreply\.)")
Spelling = tuple[str, str]
"""A name and an address, as a commit has them."""


def persons(spellings: Iterable[Spelling]) -> dict[Spelling, str]:
    """Return the name of the person that each spelling means, of which the oldest come first.

    Two spellings are one person if they have the same address, or the same name of two words or more. The person's name
    is the first spelling of two words or more, else the first: so what is appended to a history changes it only for
    those who get a full name, prove to be one person, or share their address with many. Linear: a union–find with path halving.
    """
    known = list(dict.fromkeys(spellings))
    names_of: dict[str, set[str]] = defaultdict(set)
    for name, address in known:
        names_of[_address(address)].add(canonical_name(name))
    parent = list(range(len(known)))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = one = parent[parent[one]]
        return one

    first: dict[str, int] = {}
    for place, (name, address) in enumerate(known):
        mail, called = _address(address), canonical_name(name)
        keys = [f"@{mail}"] if mail and len(names_of[mail]) <= _MOST_NAMES else []
        for key in (*keys, *([called] if " " in called else [])):
            one, other = sorted((root(first.setdefault(key, place)), root(place)))
            parent[other] = one
    called_: dict[int, str] = {}
    for place, (name, _) in enumerate(known):
        one = root(place)
        if one not in called_ or (" " in name.strip() and " " not in called_[one].strip()):
            called_[one] = name
    return {spelling: called_[root(place)] for place, spelling in enumerate(known)}


def _address(address: str) -> str:
    """Return an address in the form in which it identifies a person; "" if it does not."""
    return "" if _NOBODYS.search(address) else _NUMBERED.sub("", address.strip().casefold())


_MAX_RELEASED = 200_000
"""Commits beyond these, which are the oldest, get no release."""
_MAX_TAGS = 20_000
_VERSION = re.compile(
    r"(?:(?:[\w.@/-]{1,60}[-_/@])?[vV]?\d{1,8}(?:[._]\d{1,8}){1,3}|(?P<single>(?:[A-Za-z@/_-]{1,60}[-_/@])?[vV]?\d{1,4}))"
    r"(?:[.+-]\d{1,4}|[.+-]?(?:[A-Za-z]{1,12}[.-]?\d{1,4}|a|b|c|rc|alpha|beta|pre|preview|post|final|m))?"
)
"""A tag that names a version: ``v2.1``, ``2.1.0rc1``, ``REL_2_1``, ``parser-2.1``, ``@shop/cart@2.1.0``; or one number: ``v2``."""


def tagged(lines: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the release that each tagged commit is, the first of several tags; and the tags with a number that are no release, sorted.

    A line per tag: type, id, peeled type and peeled id of its object, empty where it has none, and its name, separated by tabs. One
    number is a release only where no tag has more: ``v2`` beside ``v2.1`` moves from one release to the next.
    """
    found: dict[bool, dict[str, str]] = {True: {}, False: {}}
    others: set[str] = set()
    for line in islice(lines, _MAX_TAGS):
        kind, sha, peeled_kind, peeled_sha, name = [*line.split("\t", 4), "", "", "", ""][:5]
        commit = sha if kind == "commit" else peeled_sha if peeled_kind == "commit" else ""
        if commit and (version := _VERSION.fullmatch(name)):
            found[version["single"] is None].setdefault(commit, name)
        elif commit and any(map(str.isdigit, name)):
            others.add(name)
    single = found[False] if found[True] else {}
    return found[True] or found[False], sorted(others.union(single.values()))


def first_releases(lines: Iterable[str], releases: Mapping[str, str]) -> dict[str, str]:
    """Return the first release that contains each commit, without those that none contains.

    A line per commit with its parents, each commit after all of its children and else the newest first; `releases` by commit. A
    commit that is no release is in the last one of these that its children are in, so one pass suffices.
    """
    met: list[str] = []
    first: dict[str, int] = {}
    for line in lines:
        commit, *parents = line.split()
        if len(first) >= _MAX_RELEASED:
            break
        if commit in releases:
            met.append(releases[commit])
            first[commit] = len(met)
        if rank := first.setdefault(commit, 0):
            for parent in parents:
                first[parent] = max(first.get(parent, 0), rank)
    return {commit: met[rank - 1] for commit, rank in first.items() if rank}
