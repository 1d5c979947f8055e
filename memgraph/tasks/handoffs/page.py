"""The continuity page as Markdown: untrusted texts are on one line each and form no structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memgraph.model.ids import MIN_ID_CHARS
from memgraph.model.results.retrieval import Warned
from memgraph.model.results.tasks import ContinuityPage, GitState, Handoff, Ledger, TaskItem, TaskSnapshot
from memgraph.retrieval.context.budget import count_tokens
from memgraph.retrieval.context.markdown import inline, item
from memgraph.retrieval.context.task_labels import source_label
from memgraph.text.cutting import whole_sentences
from memgraph.text.safe import visible_line

_CHARS_A_TOKEN = 4
_REMARK_CHARS = 120
"""Kept free for the line that says what was left out."""
_CONSTRAINTS = "Constraints (pinned: keep to them)"
_TITLE_CHARS, _NAME_CHARS = 120, 80
_SHOWN_FILES = 20


class _Section(NamedTuple):
    """A part of the page.

    Attributes
    ----------
    rank : int
        The order in which sections get their share of the budget.
    """

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
