"""The overview that a session begins with: kept from the last time its sources were read, else rendered now."""

from __future__ import annotations

from collections.abc import Callable

from memgraph.facade import MemGraph
from memgraph.interfaces.agents.clients.catalogue import AGENTS
from memgraph.interfaces.agents.kept import Overview, keep_overview, kept_overview, state_of
from memgraph.model.ids import MIN_ID_CHARS
from memgraph.model.results.retrieval import WANTED_PHRASES

_HINT = f"More is known: before planning, call `recall` with the task and, in `also`, {WANTED_PHRASES}."


def overview_of(memory: MemGraph, project: str | None, *, agent: str, fits: Callable[[str], bool]) -> Overview:
    """Return the overview of a project for an agent, without the last lines if they do not fit. It needs no model."""
    kept = kept_overview(memory.store.config.home, project or "", agent)
    overview = render_overview(memory, project, agent=agent) if kept is None else kept
    text = overview.text
    while text and not fits(text):
        text = text[: text.rstrip().rfind("\n")] if "\n" in text.rstrip() else ""
    return Overview(text, tuple(one for one in overview.memory_ids if one[:MIN_ID_CHARS] in text))


def render_overview(memory: MemGraph, project: str | None, *, agent: str) -> Overview:
    """Render the overview of a project, and keep it for the next session."""
    home = memory.store.config.home
    memory.store.reader.settle()
    state = state_of(home)
    found = memory.overview(project, agent=agent)
    text = memory.format_context_for_prompt(found, format="notes", when_nothing="empty", with_ids=True)
    text = f"{text}\n\n{_HINT}" if text else ""
    memories = (*(found.rules or ()), *found.semantic_memories, *found.similar_episodes, *found.procedural_rules)
    overview = Overview(text, tuple(one.id for one in memories), _printed(agent, text))
    keep_overview(home, project or "", agent, overview, state=state)
    return overview


def _printed(agent: str, text: str) -> str:
    """Return what an agent's hook prints to give it an overview, if it does so without a worker and the text fits."""
    known = AGENTS.get(agent)
    if known is None or known.shape is None or not known.start_event or not text or not known.shape.fits(text):
        return ""
    return known.shape.answer({"hook_event_name": known.start_event}, text)
