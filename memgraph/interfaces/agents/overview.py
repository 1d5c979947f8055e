"""The overview that a session begins with: kept from the last time its sources were read, else rendered now."""

from __future__ import annotations

from collections.abc import Callable

from memgraph.facade import MemGraph
from memgraph.interfaces.agents.kept import keep_overview, kept_overview, state_of


def overview_of(memory: MemGraph, project: str | None, *, agent: str, fits: Callable[[str], bool]) -> str:
    """Return the overview of a project for an agent. It needs no model."""
    text = kept_overview(memory.store.config.home, project or "", agent)
    text = render_overview(memory, project, agent=agent) if text is None else text
    while text and not fits(text):
        text = text[: text.rstrip().rfind("\n")] if "\n" in text.rstrip() else ""
    return text


def render_overview(memory: MemGraph, project: str | None, *, agent: str) -> str:
    """Render the overview of a project, and keep it for the next session."""
    home = memory.store.config.home
    memory.store.reader.settle()
    state = state_of(home)
    found = memory.overview(project, agent=agent)
    text = memory.format_context_for_prompt(found, format="notes", when_nothing="empty", with_ids=True)
    keep_overview(home, project or "", agent, text, state=state)
    return text
