"""The memory part of a prompt: standing rules first, what is known, recent notes, and what belongs to the session (seed 1).

Each section is within its own budget, whatever the texts are; an empty one is absent. Texts are hostile: each is escaped, on one line and behind a
marker, as in `memgraph.retrieval.context.notes`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Name, checked
from memgraph.model.memory import StoredMemory
from memgraph.model.results.retrieval import (
    SECTIONS,
    AgentContext,
    Prompt,
    PromptSection,
    RetrievalQuery,
    RetrievalResult,
    Rules,
    SectionName,
)
from memgraph.model.results.tasks import WorkingMemory
from memgraph.model.timestamps import age
from memgraph.ports import TokenCounter
from memgraph.retrieval.context.budget import count_tokens
from memgraph.retrieval.context.context import agent_context, beside_rules
from memgraph.retrieval.context.markdown import inline, item
from memgraph.retrieval.context.notes import by_rank, entries_of, notes_in_parts, rules_notice
from memgraph.retrieval.overview import project_overview, recent_memories, session_memories, with_rules
from memgraph.retrieval.retrieval import MemoryRetrieval
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope, scope_of, task_of
from memgraph.tasks.sessions import Working, find_task, has_task
from memgraph.text.cutting import cut
from memgraph.text.safe import visible_line

_MOST_READ = 100
"""Memories of a section that are read: none of its budgets holds more by far."""
_LEAST_CHARS = 20
"""A text is only cut to at least so many characters."""


def prompt_for(
    store: AgentMemoryStore,
    text: str,
    *,
    session: str | None = None,
    task_id: str | None = None,
    agent: str = UNNAMED,
    justification: str | None = None,
    project: str | None = None,
    sections: Iterable[SectionName] = SECTIONS,
    recalled: RetrievalResult | None = None,
    known: Iterable[str] = (),
    with_ids: bool = False,
    token_counter: TokenCounter = count_tokens,
) -> Prompt:
    """Return what of memory goes into a prompt, in sections, each within its own budget (the settings ``prompt_budget``).

    Standing rules come first: all of them, or, with `recalled`, those that match and the pinned constraints. Then follows what is known of
    the task, or without a text the overview of the project; what happened or was learned in the last days; and of the session what its chat
    is about, what is only told in it, and what it is doing.

    Parameters
    ----------
    text : str
        What is to be done: it is recalled, as by `MemGraph.recall`, which records the recall.
    session : str, optional
        Without one, its sections are absent.
    task_id : str, optional
        The task whose own memories are in it. Default: the one that the session works on.
    agent, justification : str, optional
        Who asks, as in `RetrievalQuery`.
    project : str, optional
        Its memories and those of none. Default: the project of the task; without one, every project.
    sections : iterable of str
        Those that are wanted. The standing rules (``constraints``) come with ``long_term``.
    recalled : RetrievalResult, optional
        The result of a recall, instead of a new one.
    known : iterable of str
        Ids of memories that the agent has in its context: they are left out.
    with_ids : bool
        Put the beginning of its memory's id behind each entry, so that an agent can refer to it.
    token_counter : callable
        Default: four characters per token.
    """
    wanted = set(checked(list[SectionName], list(sections), "sections"))
    task_id = task_of(store.reader, task_id, checked(Name | None, session, "session"))
    if project is None and task_id is not None and has_task(store, task_id):
        project = find_task(store, task_id).project_id
    asked = RetrievalQuery.parse(
        {
            "task_description": text,
            "agent_name": agent,
            "justification": justification,
            "project_id": project,
            "session_id": session,
            "task_id": task_id,
        }
    )
    scope = scope_of(asked, store.access_of(agent, justification), task_id=task_id)
    composer = Composer(store, scope, frozenset(known), with_ids, token_counter)
    if not wanted & {"constraints", "long_term"}:
        return composer.compose(None, wanted)
    found = MemoryRetrieval(store).retrieve(asked) if recalled is None and text.strip() else recalled
    if found is not None:
        prompt = composer.compose(agent_context(found), wanted, rules="all" if recalled is None else "matching")
        return prompt.model_copy(update={"query_id": found.query_id})
    overview = project_overview(store, project, agent=agent, justification=justification, task_id=task_id)
    return composer.compose(overview, wanted)


@dataclass(frozen=True)
class Composer:
    """Composes the prompt of one call."""

    store: AgentMemoryStore
    scope: Scope
    known: Collection[str] = frozenset()
    with_ids: bool = False
    counter: TokenCounter = count_tokens
    _given: set[str] = field(default_factory=set)

    def compose(
        self, context: AgentContext | None, sections: Collection[SectionName] = SECTIONS, *, rules: Rules = "all"
    ) -> Prompt:
        """Return the prompt."""
        composed: list[PromptSection | None] = []
        if context is not None:
            new = _only(context, lambda one: one.id not in self.known)
            new = with_rules(self.store, new, self.scope, rules, known=self.known, counter=self.counter)
            composed += [self._constraints(new)]
            composed += [self._long_term(new)] if "long_term" in sections else []
        if "recent_notes" in sections:
            composed.append(self._recent())
        if self.scope.asking_session is not None:
            working = Working(self.store)
            composed += [self._chat_context(working)] if "chat_context" in sections else []
            composed += [self._chat_memory()] if "chat_memory" in sections else []
            composed += [self._working_memory(working)] if "working_memory" in sections else []
        kept = [one for one in composed if one is not None and one.text]
        return Prompt(
            text="\n\n".join(one.text for one in kept),
            sections=kept,
            session_id=self.scope.asking_session,
            task_id=self.scope.task_id,
            notice=self._notice(context, composed),
        )

    def _notice(self, context: AgentContext | None, composed: Iterable[PromptSection | None]) -> str | None:
        """Return the recall's notice, and that standing rules do not fit, which the text may have no place for."""
        left_out = sum(one.left_out for one in composed if one is not None and one.name == "constraints")
        notices = (rules_notice(left_out), None if context is None else context.notice)
        return "; ".join(filter(None, notices)) or None

    def _constraints(self, context: AgentContext) -> PromptSection | None:
        """Return the standing rules that fit, and how many do not."""
        held, left_out = context.rules or [], context.rules_left_out
        if not held and not left_out:
            return None
        text = notes_in_parts(_only(context, lambda _: False), with_ids=self.with_ids).constraints
        if self.counter(text) > self._budget("constraints"):
            text = ""  # even the line that counts what is missing
        heading, _, body = text.partition("\n")
        return self._section("constraints", heading, body, held, left_out)

    def _long_term(self, context: AgentContext) -> PromptSection | None:
        """Return what is known: the best memories that fit. What a standing rule says is not said again."""
        others = beside_rules(context, by_rank(context))

        def rendered(number: int) -> str:
            kept = {one.id for one in others[:number]}
            return notes_in_parts(_only(context, lambda one: one.id in kept), with_ids=self.with_ids).others

        number, text = self._most(len(others), "long_term", rendered)
        return self._section("long_term", "", text, others[:number], len(others) - number) if text else None

    def _recent(self) -> PromptSection | None:
        days = self.store.config.prompt_budget.recent_days
        memories = recent_memories(self.store, self.scope, days=days, most=_MOST_READ) if days else []
        return self._listed("recent_notes", f"## Recent notes (last {days} {'day' if days == 1 else 'days'})", memories)

    def _chat_memory(self) -> PromptSection | None:
        return self._listed("chat_memory", "## Chat memory", session_memories(self.store, self.scope, most=_MOST_READ))

    def _chat_context(self, working: Working) -> PromptSection | None:
        known = working.context(self.scope.asking_session or "")
        lines = [_line(text) for text in known.context.splitlines() if text.strip()] if known else []
        return self._cut("chat_context", "## Chat context", lines)

    def _working_memory(self, working: Working) -> PromptSection | None:
        known = working.get(self.scope.asking_session or "")
        if known is None:
            return None
        heading = f"## Working memory (updated {age(known.updated_at, self.store.now())})"
        return self._cut("working_memory", heading, _working_lines(known))

    def _listed(self, name: SectionName, heading: str, memories: Sequence[StoredMemory]) -> PromptSection | None:
        """Return a section of the first memories that fit; an earlier section's are left out."""
        now = self.store.now()
        new = [one for one in memories if one.id not in self.known and one.id not in self._given]
        entries = [(one, lines) for one in new if (lines := entries_of(one, now=now, with_ids=self.with_ids))]

        def rendered(number: int) -> str:
            return "\n".join([heading, *(line for _, lines in entries[:number] for line in lines)]) if number else ""

        number, text = self._most(len(entries), name, rendered)
        shown = [one for one, _ in entries[:number]]
        if not text:
            return None
        self.store.auditing.record_disclosure(self.scope.access, "read", shown)
        return self._section(name, heading, text.partition("\n")[2], shown, len(entries) - number)

    def _cut(self, name: SectionName, heading: str, lines: Sequence[str]) -> PromptSection | None:
        """Return a section of the first lines that fit, and the beginning of the next one."""
        number, text = self._most(len(lines), name, lambda count: "\n".join([heading, *lines[:count]]) if count else "")
        if number < len(lines):
            before, line = text or heading, lines[number]
            _, longer = self._most(
                len(line), name, lambda count: f"{before}\n{cut(line, count)}" if count >= _LEAST_CHARS else ""
            )
            text, number = (longer, number + 1) if longer else (text, number)
        body = text.partition("\n")[2]
        return self._section(name, heading, body, [], len(lines) - number) if text else None

    def _most(self, most: int, name: SectionName, rendered: Callable[[int], str]) -> tuple[int, str]:
        """Return the greatest number of entries with which a section is within its budget, and its text then; empty if nothing fits."""
        budget = self._budget(name)
        if self.counter(text := rendered(most)) <= budget:
            return most, text
        lowest, highest = 0, most
        while lowest < highest:
            middle = (lowest + highest + 1) // 2
            if self.counter(rendered(middle)) <= budget:
                lowest = middle
            else:
                highest = middle - 1
        while lowest and self.counter(rendered(lowest)) > budget:  # a counter need not be monotonic
            lowest -= 1
        text = rendered(lowest)
        return (lowest, text) if self.counter(text) <= budget else (lowest, "")

    def _section(
        self, name: SectionName, heading: str, body: str, memories: Iterable[StoredMemory], left_out: int
    ) -> PromptSection:
        ids = [one.id for one in memories]
        self._given.update(ids)
        section = PromptSection(
            name=name,
            heading=heading,
            body=body,
            tokens=0,
            budget=self._budget(name),
            memory_ids=ids,
            left_out=left_out,
        )
        return section.model_copy(update={"tokens": self.counter(section.text)})

    def _budget(self, name: SectionName) -> int:
        return int(getattr(self.store.config.prompt_budget, name))


def _only(context: AgentContext, is_kept: Callable[[StoredMemory], bool]) -> AgentContext:
    names = ("semantic_memories", "similar_episodes", "procedural_rules")
    return context.model_copy(update={name: [one for one in getattr(context, name) if is_kept(one)] for name in names})


def _working_lines(working: WorkingMemory) -> list[str]:
    texts = [
        ("Doing", [working.task] if working.task else []),
        ("Context", working.context),
        ("Pending", working.pending),
        ("Notes", [working.notes] if working.notes else []),
    ]
    return [_line(text, f"{label}: ") for label, given in texts for text in given]


def _line(text: str, label: str = "") -> str:
    line = inline(visible_line(text))
    return f"- {label}{line}" if label else f"- {item(line)}"
