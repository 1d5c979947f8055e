"""What an agent needs to continue a task, as far as it may have it: its state, relevant memories, mistakes to avoid, as a page.

Untrusted texts are on one line each and form no structure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import Field

from memgraph.errors import NotFoundError
from memgraph.model.base import Name, checked
from memgraph.model.ids import MIN_ID_CHARS, stored_form
from memgraph.model.memory import StoredMemory, StoredSemanticMemory
from memgraph.model.results.retrieval import Warned
from memgraph.model.results.tasks import (
    CarriedMemory,
    ContinuityPage,
    GitState,
    Handoff,
    Ledger,
    Pin,
    TaskItem,
    TaskSnapshot,
)
from memgraph.ports import Row
from memgraph.privacy import OWNER, Access
from memgraph.retrieval import MemoryRetrieval
from memgraph.retrieval.context.budget import count_tokens, within_tokens
from memgraph.retrieval.context.context import failed, is_constraint, known_errors, solved_since
from memgraph.retrieval.context.markdown import inline, item
from memgraph.retrieval.context.task_labels import source_label
from memgraph.retrieval.overview import rules_in
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope
from memgraph.store.access.visibility import visible
from memgraph.store.query import Mask
from memgraph.tasks.registry import LISTS, snapshot
from memgraph.text.cutting import whole_sentences
from memgraph.text.safe import visible_line

_GIT = ("branch", "last_git_commit", "uncommitted_changes", "files_modified", "has_more_files")


@dataclass(frozen=True)
class TaskReader:
    """Who reads about a task."""

    store: AgentMemoryStore
    access: Access
    task_id: str | None = None
    project_id: str | None = None

    def scope(self, among: Sequence[str] | None = None) -> Scope:
        """Return the scope of what is read, of all memories or of some."""
        return Scope(self.access, project_id=self.project_id, task_id=self.task_id, among=among)

    def mask(self, among: Sequence[str] | None = None) -> Mask:
        """Return which slots may be shown, in force and not superseded. Call it, and use the result, in one frozen block."""
        reader = self.store.reader
        return visible(reader, self.access, "read", "search", scope=self.scope(among)) & ~reader.superseded()

    def ids(self, memory_ids: Sequence[str]) -> list[str]:
        """Return those of some memories that may be shown, in their order."""
        if not memory_ids:
            return []
        reader = self.store.reader
        with reader.frozen():
            may, slot_of = self.mask(memory_ids), reader.index.slot
            return [one for one in memory_ids if (slot := slot_of(one)) >= 0 and may[slot]]

    def memories(self, memory_ids: Sequence[str]) -> list[StoredMemory]:
        """Return those of some memories that may be shown, in their order, and record that sensitive ones were."""
        memories = self.store.read_memories(self.ids(memory_ids))
        self.store.auditing.record_disclosure(self.access, "read", memories)
        return memories

    def known(self, memory_ids: Iterable[str]) -> list[str]:
        """Return ids in their stored form, each once; refuse one of a memory that may not be shown as if it did not exist."""
        wanted = {one: stored_form(checked(Name, one, "memories")) for one in memory_ids}
        visible_ids = set(self.ids(list(filter(None, wanted.values()))))
        for given, one in wanted.items():
            if one not in visible_ids:
                raise NotFoundError("memory that the agent may have in this task", given)
        return list(dict.fromkeys(wanted.values()))

    def may_read(self, *texts: str | None) -> bool:
        """Return whether texts that are no memories may be shown; see `Access.may_read_text`."""
        return self.access.may_read_text(*texts)

    def lines(self, texts: Iterable[str]) -> list[str]:
        """Return those of some texts that may be shown."""
        return [one for one in texts if self.may_read(one)]

    def git(self, row: Row) -> GitState | None:
        """Return the state of a work tree from a row, with the names that may be shown."""
        state = git_of(row)
        if state is None or self.access.is_owner:
            return state
        files, branch = self.lines(state.files_modified), state.branch
        return state.model_copy(update={"files_modified": files, "branch": branch if self.may_read(branch) else None})

    def snapshot(self, task: TaskSnapshot) -> TaskSnapshot:
        """Return the state of a task with the texts that may be shown."""
        if self.access.is_owner:
            return task

        def items(among: Sequence[TaskItem]) -> list[TaskItem]:
            return [one for one in among if self.may_read(one.content, one.reason)]

        shown = {
            name: items(getattr(task, name))
            for name in ("decisions", "constraints", "open_questions", "next_actions", "artifacts")
        }
        return task.model_copy(
            update={
                **shown,
                "title": task.title if self.may_read(task.title) else task.task_id,
                "goal": task.goal if self.may_read(task.goal) else None,
                "state": {name: value for name, value in task.state.items() if self.may_read(name, value)},
                "confirmation": next(iter(items([task.confirmation] if task.confirmation else [])), None),
            }
        )


def reader_of(
    store: AgentMemoryStore,
    agent: str | None,
    justification: str | None = None,
    *,
    task_id: str | None = None,
    project_id: str | None = None,
) -> TaskReader:
    """Return the reader for an agent; None: the owner."""
    access = OWNER if agent is None else store.access_of(agent, justification)
    return TaskReader(store, access, task_id=task_id, project_id=project_id)


def git_of(row: Row) -> GitState | None:
    """Return the state of a work tree from a row of a ledger or handoff; None if it has none."""
    return GitState.parse({name: row[name] for name in _GIT if name in row}) if "uncommitted_changes" in row else None


_CHARS_A_TOKEN = 4
_REMARK_CHARS = 120
"""Kept free for the line that says what was left out."""
_CONSTRAINTS = "Constraints (pinned: keep to them)"
_TITLE_CHARS, _NAME_CHARS = 120, 80
_SHOWN_FILES = 20


class _Section(NamedTuple):
    """A part of the page."""

    heading: str
    rank: int
    lines: list[str]


def rendered(page: ContinuityPage, *, max_tokens: int) -> ContinuityPage:
    """Return a page with its text, of at most `max_tokens` estimated tokens.

    Sections are filled in the order of what is worst to miss: pinned constraints, the handoff, the state of the task, mistakes, then
    memories. The last line says how many entries were left out. A text that takes more than a quarter of the budget is shortened.
    """
    most = max_tokens * _CHARS_A_TOKEN
    longest = most // 4
    head = _head(page)
    sections = list(_sections(page, longest))
    left = most - len(head) - _REMARK_CHARS
    kept: dict[str, list[str]] = {}
    omitted = 0
    for section in sorted(sections, key=lambda one: one.rank):
        cost = len(section.heading) + 5  # "\n## " and a line end
        for line in section.lines:
            needed = len(line) + 1 + (0 if section.heading in kept else cost)
            if needed > left:
                omitted += 1
                continue
            left -= needed
            kept.setdefault(section.heading, []).append(line)
    headings = [section.heading for section in sections if section.heading in kept]
    blocks = [head, *("\n".join([f"## {heading}", *kept[heading]]) for heading in headings)]
    if omitted:
        entries = "entry was" if omitted == 1 else "entries were"
        pinned = len(page.constraints) - len(kept.get(_CONSTRAINTS, ()))
        which = f" ({pinned} of them pinned constraints)" if pinned else ""
        blocks.append(f"{omitted} {entries} left out{which} to keep within {max_tokens} tokens.")
    text = "\n\n".join(blocks)
    return page.model_copy(update={"text": text, "total_tokens": count_tokens(text), "is_cut": omitted > 0})


def _head(page: ContinuityPage) -> str:
    task = page.task
    title = _text(task.title, _TITLE_CHARS)
    who = f" for {_name(page.agent)}" if page.agent else ""
    return (
        f"# Continuity: {title}\n\nTask {_name(task.task_id)} ({task.status}){who}, {_minute(page.generated_at)} UTC."
    )


def _sections(page: ContinuityPage, longest: int) -> Iterator[_Section]:
    """Yield the sections in the order of the page."""
    yield _Section(_CONSTRAINTS, 0, [f"- {_item(one.content, longest)}" for one in page.constraints])
    if page.handoff is not None:
        yield _Section("Handoff", 1, list(_handoff_lines(page.handoff, longest)))
    yield _Section("State", 2, list(_state_lines(page.task, longest)))
    yield _Section("Since the handoff", 3, [f"- {_item(one, longest)}" for one in page.since])
    if page.ledger is not None:
        has_git = page.handoff is not None and page.handoff.git_state is not None
        yield _Section("Last checkpoint", 6, list(_ledger_lines(page.ledger, longest, with_git=not has_git)))
    memories = [
        f"- {one.type.capitalize()}: {source_label(one.trust_class)}{_text(one.text, longest)} ({_short(one.id)})"
        for one in page.memories
    ]
    yield _Section("Relevant memories", 5, memories)
    yield _Section("Mistakes to avoid", 4, [_mistake(one, longest) for one in page.mistakes])


def _handoff_lines(handoff: Handoff, longest: int) -> Iterator[str]:
    to = _name(handoff.to_agent) if handoff.to_agent else "any agent"
    state = f"{handoff.state} by {_name(handoff.accepted_by)}" if handoff.accepted_by else handoff.state
    yield f"- From {_name(handoff.from_agent)} to {to}, {_minute(handoff.created_at)} UTC, {state} ({_short(handoff.id)})"
    if handoff.what_was_done:
        yield f"- Done: {_text(handoff.what_was_done, longest)}"
    yield from _labelled("Artifact", handoff.artifacts, longest)
    if handoff.git_state is not None:
        yield from _git_lines(handoff.git_state, longest)
    yield from _labelled("Needs testing", handoff.needs_testing, longest)
    yield from _labelled("Known issue", handoff.known_issues, longest)


def _state_lines(task: TaskSnapshot, longest: int) -> Iterator[str]:
    if task.goal:
        yield f"- Goal: {_text(task.goal, longest)}"
    kinds: tuple[tuple[str, Sequence[TaskItem]], ...] = (
        ("Constraint", task.constraints),
        ("Decision", task.decisions),
        ("Next action", task.next_actions),
        ("Open question", task.open_questions),
        ("Artifact", task.artifacts),
    )
    for label, items in kinds:
        for one in items:
            reason = f" ({'because ' if label == 'Decision' else ''}{_text(one.reason, longest)})" if one.reason else ""
            yield f"- {label}: {_text(one.content, longest)}{reason}"
    for name, value in sorted(task.state.items()):
        yield f"- {_text(name, longest)} = {_text(value, longest)}"
    if task.links:
        yield f"- May read the tasks: {', '.join(map(_name, task.links))}"


def _ledger_lines(ledger: Ledger, longest: int, *, with_git: bool) -> Iterator[str]:
    completed = f", {ledger.tasks_completed} tasks completed" if ledger.tasks_completed else ""
    yield f"- {_name(ledger.agent_id)}, {_minute(ledger.last_checkpoint)} UTC{completed}"
    if ledger.context.current_goal:
        yield f"- Goal: {_text(ledger.context.current_goal, longest)}"
    if ledger.context.tech_stack:
        yield f"- Stack: {_text(', '.join(ledger.context.tech_stack), longest)}"
    if ledger.state is not None and with_git:
        yield from _git_lines(ledger.state, longest)


def _git_lines(git: GitState, longest: int) -> Iterator[str]:
    commit = f"commit {_name(git.last_git_commit[:12])}" if git.last_git_commit else "no commit yet"
    branch = f" on {_name(git.branch)}" if git.branch else ""
    changes = "uncommitted changes" if git.uncommitted_changes else "no uncommitted changes"
    yield f"- Git: {commit}{branch}, {changes}"
    if git.files_modified:
        more = " and more" if git.has_more_files or len(git.files_modified) > _SHOWN_FILES else ""
        yield f"- Changed files: {_text(', '.join(git.files_modified[:_SHOWN_FILES]), longest)}{more}"


def _mistake(one: Warned, longest: int) -> str:
    why = f": {_text(one.why, longest)}" if one.why else ""
    prevention = f" Instead: {_text(one.prevention, longest)}" if one.prevention else ""
    label = source_label(one.trust_class)
    what = f"{label}{_text(one.what_fails, longest)}" if label else _item(one.what_fails, longest)
    return f"- {what}{why}{prevention} ({_short(one.memory_id)})"


def _labelled(label: str, texts: Sequence[str], longest: int) -> Iterator[str]:
    return (f"- {label}: {_text(one, longest)}" for one in texts)


def _text(text: str, longest: int) -> str:
    return inline(whole_sentences(visible_line(text), longest))


def _item(text: str, longest: int) -> str:
    """Return a text that begins a list item."""
    return item(_text(text, longest))


def _name(text: str) -> str:
    return _text(text, _NAME_CHARS)


def _short(memory_id: str) -> str:
    return memory_id[:MIN_ID_CHARS]


def _minute(timestamp: str) -> str:
    return timestamp[:16].replace("T", " ")


Tokens = Annotated[int, Field(ge=200, le=100_000)]
_SEARCHED = 30
"""Memories among which relevant ones and mistakes are looked for."""
_MOST_RELEVANT, _MOST_MISTAKES = 12, 8
_QUERY_CHARS = 4_000
_NEGATIVE_READ = 20
"""Failures that are read in order of relevance, whether or not they match the task."""


@dataclass(frozen=True)
class Continuity:
    """The pages for one reader."""

    reader: TaskReader

    def page(self, task_id: str, handoff: Handoff | None, ledger: Ledger | None, *, max_tokens: int) -> ContinuityPage:
        """Return the page of a task: in the state of the handoff if there is one, else in the present one."""
        budget = checked(Tokens, max_tokens, "max_tokens")
        reader, store = self.reader, self.reader.store
        now = reader.snapshot(snapshot(store, task_id))
        then = now if handoff is None else reader.snapshot(snapshot(store, task_id, as_of=handoff.seq))
        what_was_done = "" if handoff is None else handoff.what_was_done
        matching = self._found(then, what_was_done)
        if handoff is None:
            memories = self._within(matching, max_tokens=budget // 2)
        else:
            memories = reader.memories(handoff.memory_ids)
        mistakes = self._mistakes([*memories, *matching])
        warned_ids = {one.memory_id for one in mistakes}
        memories = [one for one in memories if one.outcome != "negative" or one.id not in warned_ids]
        page = ContinuityPage(
            agent=reader.access.agent,
            generated_at=store.now(),
            constraints=self._constraints(),
            task=then,
            handoff=handoff,
            since=list(_since(then, now)),
            ledger=ledger,
            memories=[
                CarriedMemory(id=one.id, type=one.type, text=visible_line(one.content), trust_class=one.trust_class)
                for one in memories
            ],
            mistakes=mistakes,
        )
        return rendered(page, max_tokens=budget)

    def relevant(self, task: TaskSnapshot, what_was_done: str, *, max_tokens: int) -> list[StoredMemory]:
        """Return the memories that a task and what was done in it recall, best first, within a budget of tokens.

        What a page shows anyway is not among them: pinned constraints.
        """
        return self._within(self._found(task, what_was_done), max_tokens=max_tokens)

    def _within(self, memories: Sequence[StoredMemory], *, max_tokens: int) -> list[StoredMemory]:
        chosen = [one for one in memories if not is_constraint(one)][:_MOST_RELEVANT]
        return chosen[: within_tokens([count_tokens(one.content) for one in chosen], max_tokens)]

    def _found(self, task: TaskSnapshot, what_was_done: str) -> list[StoredMemory]:
        """Return the memories with evidence that they belong to the task, best first."""
        reader = self.reader
        parts = [what_was_done, task.title, task.goal or "", *(one.content for one in task.next_actions)]
        text = "\n".join(filter(None, parts))[:_QUERY_CHARS]
        scored = MemoryRetrieval(reader.store, access=reader.access).search_memories(
            text, limit=_SEARCHED, task_id=reader.task_id, project_id=reader.project_id
        )
        matching = [one.memory for one in scored if one.has_evidence]
        shown = set(reader.ids([one.id for one in matching]))
        return [one for one in matching if one.id in shown]

    def _mistakes(self, memories: Sequence[StoredMemory]) -> list[Warned]:
        """Return the failures among the memories found, then the most relevant other ones of the task's scope."""
        known = list({one.id: one for one in [*memories, *self._failures()]}.values())
        solved = solved_since(known)
        warned = (
            one for memory in known if memory.id not in solved for one in (*failed(memory), *known_errors(memory))
        )
        by_text: dict[str, Warned] = {}
        for one in warned:
            by_text.setdefault(one.what_fails, one)
        return list(by_text.values())[:_MOST_MISTAKES]

    def _failures(self) -> list[StoredMemory]:
        """Return failures and anti-patterns of the task and its project, the most relevant first."""
        store = self.reader.store
        with store.reader.frozen():
            mask = self.reader.mask() & store.reader.listed()
            ids = store.reader.ranked_ids(mask, limit=None)
            ranked = self._of_scope(store.read_memories(ids[: 10 * _NEGATIVE_READ]))
        warnings = [one for one in ranked if _warns(one)][:_NEGATIVE_READ]
        return self.reader.memories([one.id for one in warnings])

    def _of_scope(self, memories: Sequence[StoredMemory]) -> list[StoredMemory]:
        """Return the memories of the task, and those of its project if it has one."""
        task, project = self.reader.task_id, self.reader.project_id
        return [
            one
            for one in memories
            if one.task_id == task or (project is not None and one.project_id in (project, None))
        ]

    def _constraints(self) -> list[Pin]:
        """Return the constraints that a prompt of the task has: pins, and other pinned memories that are constraints."""
        reader = self.reader
        memories = [one for one in rules_in(reader.store, reader.scope()) if is_constraint(one)]
        reader.store.auditing.record_disclosure(reader.access, "read", memories)
        return [
            Pin(id=one.id, kind="constraint", content=one.content, task_id=one.task_id, created_at=one.created_at)
            for one in memories
        ]


def _warns(memory: StoredMemory) -> bool:
    return memory.outcome == "negative" or (
        isinstance(memory, StoredSemanticMemory) and bool(memory.incorrect_approach)
    )


def _since(then: TaskSnapshot, now: TaskSnapshot) -> Iterator[str]:
    """Yield what was added to a task, or closed in it, between two of its states."""
    if then.status != now.status:
        yield f"status: {now.status}"
    if then.goal != now.goal and now.goal:
        yield f"goal: {now.goal}"
    for kind, field in LISTS.items():
        name = kind.replace("_", " ")
        before, after = ({one.id: one for one in getattr(state, field)} for state in (then, now))
        for one in after.values():
            if one.id not in before:
                yield f"{name}: {one.content}"
        for one in before.values():
            if one.id not in after:
                yield f"no longer open or in force: {name} {one.content}"
    for name, value in now.state.items():
        if then.state.get(name) != value:
            yield f"{name} = {value}"
