"""Readers of a git history: of a live repository, by running git (never through a shell, a hook, a pager or a network), with its releases; and of a saved log."""

from __future__ import annotations

import os
import subprocess
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO

from memgraph.disk.glance import work_tree_name
from memgraph.errors import SourceError
from memgraph.extraction.components import abbreviated, is_sha
from memgraph.extraction.readers.commits import (
    RECENT_COMMITS,
    Commit,
    FileChange,
    RecentCommits,
    Spelling,
    grouped,
    persons,
    respelled,
)
from memgraph.extraction.readers.source import FileReader, SourceRecord, opened, project_of, text_lines, without_ansi
from memgraph.model.base import MAX_NAME_CHARS
from memgraph.model.results.tasks import MAX_FILES, GitState
from memgraph.text import lazy_re as re
from memgraph.text.cutting import cut

# No code configured by a repository or user may run, and no answer may depend on such configuration.
_SAFE = (
    *("-c", "core.fsmonitor="),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.diffMerges=off"),
    *("-c", "core.bigFileThreshold=512k"),
    *("-c", "protocol.allow=never"),
    "--no-pager",
)
_FORMAT = "--format=%H %P%n%aN%n%aE%n%at %ct%n%B"
_TAG = "%(objecttype)%09%(objectname)%09%(*objecttype)%09%(*objectname)%09%(refname:lstrip=2)"
_LOG = ("-z", "--no-ext-diff", "--no-textconv", "--no-color", "--encoding=UTF-8")
_KEPT_VARIABLES = tuple(f"GIT_CONFIG_{name}" for name in "COUNT KEY_ VALUE_ GLOBAL SYSTEM NOSYSTEM".split())
"""How the variables begin that name the user's settings, such as which repositories of others are safe."""
_SUBMODULE = "160000"
_FILES = ("--raw", "--no-abbrev", "--diff-algorithm=myers")
_OF_ALL = (*_FILES, "--numstat", "--find-renames=50%")
_OF_NAMES = (*_FILES, "--find-renames=50%")
_WITHOUT_CONTENTS = (*_FILES, "--find-renames=100%")
_REMOTE = re.compile(r"(?:\w+://)?(?:[^@/\s]+@)?[^:/\s]+(?::\d+)?[:/]([^\s]+?)(?:\.git)?/?")
_MAX_COMPLAINT_CHARS = 600
_MAX_READ_ALONE = 500
"""Commits with missing objects that are read one by one, some 20 ms each; those after them are all read without contents."""
_UNREAD = (
    "the lines or renames of {} could not be read, because the repository lacks objects: to have them, clone the whole history anew "
    "(without --filter) and read it into a new store"
)
_TAGS_SHOWN = 10
_MAX_TOKEN_BYTES = 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_FIELDS_BEFORE_PATH = {"1": 8, "2": 9, "u": 10, "?": 1}
"""In the second format of git status, by the kind of an entry."""


def work_tree_state(path: str | Path) -> GitState | None:
    """Return the state of the git work tree that a folder is in; None if it is in none."""
    folder = Path(path).resolve()
    if not folder.is_dir():
        raise SourceError("is not a folder", path=folder)
    return None if work_tree_name(str(folder)) is None else GitReader(folder).state()


@dataclass(frozen=True, slots=True)
class _Span:
    """The commits reachable from `head` and not from `base`, oldest first, after `done`. Empty strings: all, none."""

    base: str
    head: str
    done: str = ""

    def cursor(self, sha: str) -> str:
        return f"{self.base}:{self.head}:{sha}"

    @property
    def revisions(self) -> tuple[str, ...]:
        return (self.head, f"^{self.base}") if self.base else (self.head,)


class GitReader:
    """Reads the history of a repository's checked-out branch.

    A first run reads all of ``HEAD``, oldest first by commit date; a later run reads the rest of that, then what HEAD
    has gained, with the last group, which may have grown; nothing if HEAD is as it was. So commits of a branch that is merged
    later come at the end, whatever their dates, and earlier ones keep their places. If the cursor's commits are missing or no longer in HEAD's history (a rebase, another branch, a
    shallow clone with another depth), all of it is read again: consolidation is idempotent.
    The path is that of a work tree, a directory inside one, or a bare repository, whose directory names the project.
    """

    kind = "git"

    def __init__(self, path: str | Path, *, project_id: str | None = None) -> None:
        self._path = Path(path).resolve()
        self._given_project = project_id
        self._root: str | None = None

    @property
    def locator(self) -> str:
        """Absolute path of the repository's top directory."""
        return str(self._top)

    @property
    def project_id(self) -> str:
        """Project of the builds: the repository's name, in a linked work tree too."""
        is_linked = self._given_project is None and (self._top / ".git").is_file()
        return project_of(self._top, work_tree_name(str(self._top)) if is_linked else self._given_project)

    @property
    def source_id(self) -> str:
        """``git:`` and the sha of the branch's first commit: equal for every clone."""
        if self._root is None and self._head():
            self._root = self._asked("rev-list", "--max-parents=0", "--first-parent", "HEAD", "--")
        return f"git:{self._root or self._top}"

    def count(self) -> int | None:
        """Return the number of commits reachable from HEAD."""
        return int(self._asked("rev-list", "--count", "HEAD", "--") or 0) if self._head() else 0

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per group of commits; see `Reader.records`."""
        head = self._head()
        if head is None:
            return
        spans = self._spans(cursor or "", head)
        resumed = len(spans) > 1
        start = spans[0].cursor(spans[0].done) if resumed else ""
        is_read = (cursor or "") == f"{start}:{head}"
        releases, others = self._releases(head)
        if releases:
            yield SourceRecord(None, cursor if is_read and cursor else start, 0, releases=releases)
        if is_read:
            return
        if others and not cursor:
            shown = ", ".join([*others[:_TAGS_SHOWN], *(["…"] if others[_TAGS_SHOWN:] else [])])
            yield SourceRecord(None, start, 0, f"of the tags, these name no version and count as no release: {shown}")
        people = _people(chain(self._authors(spans[0].head), *(self._authors(*span.revisions) for span in spans[1:])))
        recent = RecentCommits()
        if cursor and (names := respelled(people)):
            yield SourceRecord(None, start, 0, people=names)
        if resumed and spans[0].done:
            self._recall(spans[0].done, recent, people)
        last: SourceRecord | None = None
        unread: list[str] = []
        for record in grouped(
            chain.from_iterable(self._commits(span, releases, people, unread) for span in spans),
            project_id=self.project_id,
            cursor=start,
            recent=recent,
            repositories=self._names(),
        ):
            if last:
                yield last
            last = record
        if last:  # there is nothing to read until the branch has another head
            yield replace(last, cursor=f"{last.cursor}:{head}")
            if unread:
                what = "1 commit" if len(unread) == 1 else f"{len(unread):,} commits"
                yield SourceRecord(None, f"{last.cursor}:{head}", 0, _UNREAD.format(what))

    def _spans(self, cursor: str, head: str) -> list[_Span]:
        """Return the rest of the cursor's span, and what HEAD has gained since; otherwise everything."""
        parts = cursor.split(":")[:3]
        if len(parts) == 3 and all(not part or is_sha(part) for part in parts) and parts[1] and parts[2]:
            span = _Span(*parts)
            if self._is_ancestor(span.head, head) and self._is_ancestor(span.done, span.head):
                return [span, _Span(span.head, head)]
        return [_Span("", head)]

    def _authors(self, *revisions: str) -> Iterator[tuple[Spelling, Spelling]]:
        """Yield the authors of commits, the oldest first: as the mailmap spells them, and as the commit does."""
        pretty = "--format=%aN%n%aE%n%an%n%ae"
        with self._running("log", "--reverse", "-z", pretty, "--encoding=UTF-8", *revisions, "--") as output:
            for token in _tokens(output):
                name, address, *own = [*token.split("\n"), "", "", ""][:4]
                yield (name, address), (own[0], own[1])

    def people(self) -> dict[Spelling, str]:
        """Return the person of each spelling (name and address) of an author, those of commits before the mailmap included."""
        return _people(self._authors("HEAD"))

    def has_tag(self, name: str) -> bool:
        """Return whether the repository is there and has this tag, on whatever branch."""
        return self._asked("show-ref", "--verify", f"refs/tags/{name}", required=False) is not None

    def _names(self) -> frozenset[str]:
        """Return the names of the repository at its remotes, such as ``owner/name``, in lower case."""
        urls = (self._asked("config", "--get-regexp", r"^remote\..*\.url$", required=False) or "").splitlines()
        matches = (_REMOTE.fullmatch(url.partition(" ")[2].strip()) for url in urls)
        return frozenset(match[1].casefold() for match in matches if match)

    def _commits(
        self, span: _Span, releases: Mapping[str, str], people: Mapping[Spelling, str], unread: list[str]
    ) -> Iterator[tuple[Commit | str, str]]:
        """Yield the commits of a span, each with its cursor; `unread` is extended by those whose files were not compared."""
        if span.base == span.head:
            return

        def placed(commit: Commit | str, names: Sequence[str]) -> tuple[Commit | str, str]:
            if isinstance(commit, str):
                return commit, span.cursor("")
            unread.extend([commit.sha] if commit.files and names is not _OF_ALL else [])
            return replace(commit, release=releases.get(commit.sha, "")), span.cursor(commit.sha)

        # A cheap walk determines the order first; only commits after `done` are compared with their parents.
        with tempfile.TemporaryFile(buffering=0) as shas:  # git goes on from the place in the file
            with self._running("rev-list", "--reverse", "--date-order", *span.revisions, "--") as listing:
                passed = not span.done
                for line in listing:
                    if passed:
                        shas.write(line)
                    passed = passed or line.strip().decode() == span.done
            lacking = self._filtered()
            # what a partial clone lacks is not fetched: without contents, only equal files are seen to be renamed
            names = () if "tree:" in lacking else _WITHOUT_CONTENTS if lacking else _OF_ALL
            size, width, read = shas.tell(), len(span.head) + 1, 0
            if size and not names:
                yield (
                    "the changed files are unknown: the clone lacks its trees (made with --filter=tree)",
                    span.cursor(""),
                )
            while read * width < size:  # without an explicit commit, git would use HEAD
                shas.seek(read * width)
                last = None  # it may be incomplete if git fails
                try:
                    for commit in self._logged(names, people, "--stdin", stdin=shas):
                        if last is not None:
                            yield placed(last, names)
                            read += 1
                        last = commit
                except SourceError:
                    if names is not _OF_ALL:
                        raise
                    if len(unread) >= _MAX_READ_ALONE:
                        names = _WITHOUT_CONTENTS
                        continue
                    # contents of a file are missing: of the last commit, or of the one after it
                    for place in (read, read + 1):
                        shas.seek(place * width)
                        if sha := shas.read(width).decode().strip():
                            commit, compared = self._alone(sha, people)
                            yield placed(commit, compared)
                            read += 1
                            if compared is not _OF_ALL:
                                break
                else:
                    if last is not None:
                        yield placed(last, names)
                    break

    def _alone(self, sha: str, people: Mapping[Spelling, str]) -> tuple[Commit | str, Sequence[str]]:
        """Return a commit with as much of its files as can be read, and with which options."""
        for names in (_OF_ALL, _OF_NAMES):
            with suppress(SourceError):
                (commit,) = self._logged(names, people, sha)
                return commit, names
        (commit,) = self._logged(_WITHOUT_CONTENTS, people, sha)
        return commit, _WITHOUT_CONTENTS

    def _logged(
        self, names: Sequence[str], people: Mapping[Spelling, str], which: str, stdin: IO[bytes] | None = None
    ) -> Iterator[Commit | str]:
        with self._running("log", "--no-walk=unsorted", which, *_LOG, *names, _FORMAT, stdin=stdin) as output:
            yield from _parsed(_tokens(output), people)

    def _releases(self, head: str) -> tuple[dict[str, str], list[str]]:
        """Return the first release that contains each commit, and the tags that name no release. Tags on other branches count, too."""
        order = ("--sort=version:refname", "--sort=creatordate")
        with self._running("for-each-ref", *order, f"--format={_TAG}", "refs/tags") as output:
            releases, others = tagged(_lines(output))
        if not releases:
            return {}, others
        with tempfile.TemporaryFile() as tips:
            tips.writelines(f"{tip}\n".encode() for tip in (head, *releases))
            tips.seek(0)
            arguments = ("rev-list", "--date-order", "--parents", "--ignore-missing", "--stdin")
            with self._running(*arguments, stdin=tips) as output:
                return first_releases(_lines(output), releases), others

    def state(self) -> GitState:
        """Return the branch, the last commit and the changed files of the work tree. No filter that is configured is run."""
        arguments = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=all")
        headers, files = dict[str, str](), list[str]()
        with self._running(*arguments, unset=self._filters()) as output:
            tokens = _tokens(output)
            for token in tokens:
                if token.startswith("# "):
                    name, _, value = token[2:].partition(" ")
                    headers[name] = value
                    continue
                kind, *_, path = token.split(" ", _FIELDS_BEFORE_PATH.get(token[:1], 1))
                if kind == "2":  # the next token is the former path
                    next(tokens, "")
                if len(files) <= MAX_FILES and path.strip():
                    files.append(cut(path, MAX_NAME_CHARS))
        branch, commit = headers.get("branch.head", ""), headers.get("branch.oid", "")
        return GitState(
            branch=cut(branch, MAX_NAME_CHARS) if branch not in ("", "(detached)") else None,
            last_git_commit=commit if is_sha(commit) else None,
            uncommitted_changes=bool(files),
            files_modified=files[:MAX_FILES],
            has_more_files=len(files) > MAX_FILES,
        )

    def _filters(self) -> list[str]:
        """Return the settings of filters, which git would run to compare a file with what is committed."""
        pattern = r"^filter\..*\.(clean|process|required)$"
        found = self._asked("config", "-z", "--name-only", "--get-regexp", pattern, required=False) or ""
        return list(dict.fromkeys(filter(None, found.split("\0"))))

    def _filtered(self) -> str:
        """Return what a partial clone was made without, such as ``blob:none``; "" for a complete one."""
        return self._asked("config", "--get-regexp", r"^remote\..*\.partialclonefilter$", required=False) or ""

    def _recall(self, done: str, recent: RecentCommits, people: Mapping[Spelling, str]) -> None:
        """Add the commits up to `done` to `recent`, without reading the contents of their files."""
        limit = f"--max-count={RECENT_COMMITS}"
        names = () if "tree:" in self._filtered() else _WITHOUT_CONTENTS
        with self._running("log", limit, "--date-order", *_LOG, *names, _FORMAT, done, "--") as output:
            earlier = list(_parsed(_tokens(output), people))
        for commit in reversed(earlier):
            if isinstance(commit, Commit):
                recent.add(commit.sha, recent.read(commit))

    @cached_property
    def _top(self) -> Path:
        top = self._asked("rev-parse", "--show-toplevel", required=False)
        if top is None:  # a bare repository has no work tree
            top = self._asked("rev-parse", "--absolute-git-dir")
        return Path(top or self._path)

    def _head(self) -> str | None:
        self._asked("rev-parse", "--git-dir")
        return self._asked("rev-parse", "--verify", "--quiet", "HEAD^{commit}", required=False)

    def _is_ancestor(self, sha: str, head: str) -> bool:
        return self._asked("merge-base", "--is-ancestor", sha, head, required=False) is not None

    def _asked(self, *arguments: str, required: bool = True) -> str | None:
        """Return git's answer; None for an expected negative one."""
        try:
            with self._running(*arguments) as output:
                return output.read().decode("utf-8", errors="replace").strip()
        except SourceError:
            if required:
                raise
            return None

    @contextmanager
    def _running(
        self, *arguments: str, stdin: IO[bytes] | None = None, unset: Sequence[str] = ()
    ) -> Iterator[IO[bytes]]:
        """Run git and yield its output; it is stopped when the consumer stops early. The settings `unset` count as empty."""
        # variables such as GIT_DIR, which hooks set, would make git read another repository
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("GIT_") or name.startswith(_KEPT_VARIABLES)
        }
        environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
        known = environment.get("GIT_CONFIG_COUNT", "")
        first = int(known) if known.isdecimal() else 0
        for number, name in enumerate(unset, first):
            environment |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": ""}
        environment |= {"GIT_CONFIG_COUNT": str(first + len(unset))}
        with tempfile.TemporaryFile() as complaints:
            try:
                process = subprocess.Popen(
                    ["git", *_SAFE, "-C", str(self._path), *arguments],  # noqa: S607 (git is where PATH says)
                    stdin=stdin or subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    env=environment,
                )
            except OSError as error:
                raise SourceError(f"git cannot be run: {error.strerror}", path=self._path) from None
            assert process.stdout is not None  # noqa: S101 (a pipe was asked for)
            finished = False
            try:
                yield process.stdout
                finished = not process.stdout.read(1)
            finally:
                if not finished:
                    process.kill()
                process.stdout.close()
                status = process.wait()
            if status != 0:
                complaints.seek(0)
                said = " ".join(complaints.read(4096).decode("utf-8", errors="replace").split())
                # warnings come first, a remedy last
                said = cut(said[max(said.find("fatal: "), 0) :], _MAX_COMPLAINT_CHARS)
                raise SourceError(f"git {arguments[0]} failed: {said or f'status {status}'}", path=self._path)


def _people(authors: Iterable[tuple[Spelling, Spelling]]) -> dict[Spelling, str]:
    """Return the person of each spelling, given those of the mailmap with those of the commits."""
    spelled: dict[Spelling, Spelling] = {}

    def mapped() -> Iterator[Spelling]:
        for one, own in authors:
            spelled[own] = one
            yield one

    people = persons(mapped())
    return {own: people[one] for own, one in spelled.items()} | people


def _lines(output: IO[bytes]) -> Iterator[str]:
    return (line.decode("utf-8", errors="replace").rstrip("\n") for line in output)


def _tokens(output: IO[bytes]) -> Iterator[str]:
    """Yield the NUL-separated tokens, each truncated to a limit."""
    held = b""
    while chunk := output.read(_CHUNK_BYTES):
        *whole, rest = chunk.split(b"\0")
        for token in whole:
            yield (held + token)[:_MAX_TOKEN_BYTES].decode("utf-8", errors="replace")
            held = b""
        held = (held + rest)[:_MAX_TOKEN_BYTES]
    if held:
        yield held.decode("utf-8", errors="replace")


def _parsed(tokens: Iterator[str], people: Mapping[Spelling, str]) -> Iterator[Commit | str]:
    """Group tokens: no header looks like a status or a count of lines. A status is followed by a path, or by two."""
    header: str | None = None
    files: dict[str, FileChange] = {}
    for token in tokens:
        said = token.lstrip("\n")
        counts = said.split("\t", 2)
        if header is not None and said[:1] == ":":
            *modes, old, new, status = said[1:].split(" ")
            path = next(tokens, "")
            was = path if status[0] in "RC" else ""
            path = next(tokens, path) if was else path
            files[path] = FileChange(status[0], path, was, blobs=("", "") if _SUBMODULE in modes else (old, new))
        elif header is not None and len(counts) == 3 and (counts[0] == "-" or counts[0].isdecimal()):
            path = counts[2] or (next(tokens, ""), next(tokens, ""))[1]
            if counts[0] != "-" and path in files and any(files[path].blobs):
                files[path] = files[path]._replace(added=int(counts[0]), removed=int(counts[1]))
        else:
            if header is not None:
                yield _commit(header, files, people)
            header, files = said, {}
    if header is not None:
        yield _commit(header, files, people)


def _commit(header: str, files: Mapping[str, FileChange], people: Mapping[Spelling, str]) -> Commit | str:
    ids, name, address, date, message = [*header.split("\n", 4), "", "", "", ""][:5]
    sha, *parents = ids.split() or [""]
    for seconds in date.split():  # its author's, else its committer's
        with suppress(ValueError, OverflowError, OSError):
            when = datetime.fromtimestamp(int(seconds), UTC)
            author = people.get((name, address), name)
            return Commit(sha, author, when, message, tuple(files.values()), parents=tuple(parents))
    return f"commit {abbreviated(sha)}: no date that can be read"


_MAX_LINE_BYTES = 64 * 1024
_MAX_COMMIT_CHARS = 4 * 1024 * 1024
_COMMIT = re.compile(r"commit (?:[-<>=+^] )?([0-9a-f]{7,64})((?: [0-9a-f]{7,64})*)(?:\s|$)")
"""A commit's first line; after its id may stand parents, children, the ref that led to it, and its names."""
_AUTHOR = re.compile(r"[Aa]uthor:?\s+([^<]{0,1000})(?:<([^>]{0,1000})>(?: (\d{1,19} [+-]\d{4,6}))?)?")
_ESCAPE = re.compile(rb'\\(?:[abfnrtv"\\]|[0-3][0-7]{2})')
_SAVED_STATUS = re.compile(r"(?::\d{6} \d{6} [0-9a-f]+(?:\.\.\.)? [0-9a-f]+(?:\.\.\.)? )?([ACDMRTUXB])\d{0,3}\t(.+)")


class SavedGitLogReader(FileReader):
    """Reads the text of ``git log --name-status``, in git's default or ISO dates.

    Parents, children, refs, notes, colours and changes (``-p``) may be in it; messages and paths are held in memory. A log saved with
    ``--reverse`` is recognised by its dates.
    """

    kind = "gitlog"
    _oldest = ""

    @property
    def source_id(self) -> str:
        """``gitlog:``, project and the oldest commit's sha: it is stable when the log grows at its top or is moved.

        A log saved with a limit (``-n``) begins at a different commit each time and counts as another source.
        """
        if not self._oldest:
            with opened(self.path) as (stream, _):
                self._oldest = next((one.sha for one in self._saved(stream)), "")
        return f"gitlog:{self.project_id}:{self._oldest or 'empty'}"

    def count(self) -> int | None:
        """Return the number of commits."""
        with opened(self.path) as (stream, _):
            return len(self._saved(stream))

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per group of commits; see `Reader.records`.

        A cursor holds the last final commit and the number of commits before it; if these no longer match, the history
        was rewritten, and all of it is read again.
        """
        with opened(self.path) as (stream, problem):
            saved = self._saved(stream)
        sha, _, number = (cursor or "").partition("@")
        last = int(number) if number.isdecimal() and len(number) < 13 else len(saved)
        done = last + 1 if last < len(saved) and saved[last].sha == sha else 0
        start = (cursor or "") if done else ""
        if problem:
            yield SourceRecord(None, start, 0, problem)
        people = persons((one.author, one.address) for one in saved)
        if cursor and (names := respelled(people)):
            yield SourceRecord(None, start, 0, people=names)
        recent = RecentCommits()
        for one in saved[max(0, done - RECENT_COMMITS) : done]:
            if isinstance(earlier := one.commit(people), Commit):
                recent.add(earlier.sha, recent.read(earlier))
        commits = ((one.commit(people), f"{one.sha}@{index}") for index, one in enumerate(saved[done:], start=done))
        yield from grouped(commits, project_id=self.project_id, cursor=start, recent=recent)

    def _saved(self, stream: IO[bytes]) -> list[_Saved]:
        """Return the commits of a log, oldest first."""
        saved: list[_Saved] = []
        has_content = False
        for line in map(without_ansi, text_lines(stream, _MAX_LINE_BYTES)):
            if match := _COMMIT.match(line):
                saved.append(_Saved(match[1], beside=tuple(match[2].split())))
            elif saved:
                saved[-1].add(line)
            has_content = has_content or bool(line.strip())
        if has_content and not saved:
            problem = "contains no line 'commit <sha>': not the output of `git log --name-status`"
            raise SourceError(problem, path=self.path)
        first, last = (_date(saved[place].date) for place in (0, -1)) if saved else (None, None)
        saved = saved if first and last and first < last else saved[::-1]
        places = {one.sha: place for place, one in enumerate(saved)}
        shas = sorted(places)

        def whole(sha: str) -> str:  # git shortens the parents of a merge
            at = bisect_left(shas, sha)
            return shas[at] if at < len(shas) and shas[at].startswith(sha) else sha

        for place, one in enumerate(saved):
            beside = (sha for sha in map(whole, one.beside) if places.get(sha, -1) < place)  # what is newer is a child
            one.parents = tuple(map(whole, one.parents)) or tuple(beside)
        return saved


@dataclass(slots=True)
class _Saved:
    """A commit of a saved log, while its lines are read."""

    sha: str
    author: str = ""
    address: str = ""
    date: str = ""
    message: list[str] = field(default_factory=list)
    files: list[FileChange] = field(default_factory=list)
    beside: tuple[str, ...] = ()
    """The ids behind its own: its parents, or its children."""
    parents: tuple[str, ...] = ()
    is_head: bool = True
    is_message: bool = False
    left: int = _MAX_COMMIT_CHARS

    def add(self, line: str) -> None:
        """Add the next line."""
        is_blank = not line.strip()
        self.left -= len(line)
        if self.is_head:
            self.is_head, self.is_message = not is_blank, is_blank
            if match := _AUTHOR.match(line):
                self.author, self.address, self.date = match[1].strip(), match[2] or "", match[3] or self.date
            elif line.startswith(("Date:", "AuthorDate:")):
                self.date = line.partition(":")[2].strip()
            elif line.startswith("Merge: "):
                self.parents = tuple(line.split()[1:])
        elif self.is_message and (is_blank or line.startswith("    ")):
            self.message += [line[4:]] if self.left > 0 else []
        else:  # notes and changes may be indented, too
            self.is_message = False
            if self.left > 0 and (match := _SAVED_STATUS.fullmatch(line)):
                paths = [_unquoted(path) for path in match[2].split("\t", 1)]
                self.files.append(FileChange(match[1], paths[-1], paths[0] if match[1] in "RC" else ""))

    def commit(self, people: Mapping[Spelling, str]) -> Commit | str:
        """Return the commit, or the reason why it cannot be read."""
        if (when := _date(self.date)) is None:
            said = f" “{self.date[:60]}”" if self.date else ""
            return f"commit {abbreviated(self.sha)}: its date{said} cannot be read: save `git log --name-status --date=iso`"
        author = people.get((self.author, self.address), self.author)
        return Commit(self.sha, author, when, "\n".join(self.message), tuple(self.files), parents=self.parents)


def _date(text: str) -> datetime | None:
    """Return a date in one of git's forms. A time zone is hours and minutes, however many, as git takes it."""
    try:
        seconds, _, zone = text.partition(" ")
        if seconds.isdecimal() and zone.lstrip("+-").isdecimal() == bool(zone):
            return datetime.fromtimestamp(int(seconds), UTC)
        if read := parsedate_tz(text):
            return datetime(*read[:6], tzinfo=UTC) - timedelta(seconds=read[9] or 0)
        moment = datetime.fromisoformat(text.replace(" +", "+").replace(" -", "-"))
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _unquoted(path: str) -> str:
    """Undo git's C-style quoting of unusual paths."""
    if not (len(path) > 1 and path.startswith('"') and path.endswith('"')):
        return path
    plain = _ESCAPE.sub(lambda one: one[0].decode("unicode_escape").encode("latin-1"), path[1:-1].encode())
    return plain.decode("utf-8", "replace")


_MAX_RELEASED = 200_000
"""Commits beyond these, which are the oldest, get no release."""
_MAX_TAGS = 20_000
_VERSION = re.compile(
    r"(?:(?:[\w.@/-]{1,60}[-_/@])?[A-Za-z]?\d{1,8}(?:[._]\d{1,8}){1,3}|(?P<single>(?:[A-Za-z@/_-]{1,60}[-_/@])?[vV]?\d{1,4}))"
    r"(?:[.+-]\d{1,4}|[.+-]?(?:[A-Za-z]{1,12}[.-]?\d{1,4}|a|b|c|rc|alpha|beta|pre|preview|post|final|m))?"
)
"""A tag that names a version: ``v2.1``, ``r4.12``, ``2.1.0rc1``, ``REL_2_1``, ``parser-2.1``, ``@shop/cart@2.1.0``; or one number: ``v2``."""


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
