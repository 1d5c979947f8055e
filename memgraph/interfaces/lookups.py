"""What the reading commands `recall`, `prompt`, `search` and `ask` print, as JSON values: computed in the command's process or in the worker.

Each function takes the store and the command's arguments and returns what the command prints. Importing this module imports nothing
of the library: a command that asks the worker needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.results.retrieval import RetrievalResult, ScoredMemory

_SHOWN_PROJECTS = 8
_VECTOR = {"embedding"}


def recall(memory: MemGraph, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recall: its text, its notices, and, as the arguments ask, the whole result and the scores."""
    from memgraph.retrieval.context.notes import rules_notice

    agent = _agent(given)
    _check_task(memory, given["scope"]["task_id"])
    result = memory.recall(
        given["task"],
        given["also"],
        agent=agent,
        justification=given["justification"],
        project=given["project"],
        **tasks_given(**given["tasks"]),
        **{name: given[name] for name in ("max_tokens", "max_episodic", "max_semantic", "max_procedural", "floor")},
        rules=given["rules"],
        **scope_given(**given["scope"]),
    )
    text = memory.format_context_for_prompt(result, format=given["form"], when_nothing=given["when_nothing"])
    left_out = result.constraints_left_out + result.rules_left_out
    found: dict[str, Any] = {
        "project_hint": project_hint(memory, given["project"], agent=agent),
        "notice": "; ".join(filter(None, (rules_notice(left_out), result.notice))) or None,
        "contradictions": _contradictions(result) if given["form"] == "prefix" else [],
        "formatted": text,
        "is_empty": not result.memories,
        "certainty": result.certainty,
        "has_guesses": any("constraint" not in one.tags for one in result.memories),
        "explanation": explanation(result) if given["explain"] else [],
    }
    if given["as_json"]:
        document = result.model_dump(mode="json", exclude={"memories", "rules"})
        document["memories"] = [without_vectors(one) for one in result.memories]
        document["rules"] = [without_vectors(one) for one in result.rules or []]
        found["document"] = {**document, "formatted": text}
    return found


def prompt(memory: MemGraph, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the prompt of a session, in sections."""
    agent = _agent(given)
    _check_task(memory, given["task_id"])
    found = memory.tasks.prompt(
        given["text"],
        session=given["session"],
        task_id=given["task_id"],
        agent=agent,
        justification=given["justification"],
        project=given["project"],
        **({"sections": given["sections"]} if given["sections"] else {}),
    )
    return {
        "project_hint": project_hint(memory, given["project"], agent=agent),
        "document": found.model_dump(mode="json"),
    }


def search(memory: MemGraph, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the memories that a search finds, as rows or with all their fields."""
    agent = _agent(given)
    _check_task(memory, given["scope"]["task_id"])
    found = memory.search_memories(
        given["text"],
        agent=agent,
        justification=given["justification"],
        limit=given["limit"],
        project_id=given["project"],
        domain=given["domain"],
        include_archived=given["include_archived"],
        **tasks_given(**given["tasks"]),
        **scope_given(**given["scope"]),
    )
    return {
        "project_hint": project_hint(memory, given["project"], agent=agent),
        "rows": [(_said(one), (one.memory.id, one.memory.type, *_cells(one))) for one in found],
        "document": [_details(one) for one in found] if given["as_json"] else None,
    }


def ask(memory: MemGraph, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the episodes that match a question."""
    _check_task(memory, given["scope"]["task_id"])
    result = memory.commands.ask(
        given["query"],
        agent=_agent(given),
        justification=given["justification"],
        project_id=given["project"],
        **tasks_given(**given["tasks"]),
        **scope_given(**given["scope"]),
    )
    return {"document": result.model_dump(mode="json"), "message": result.message}


LOOKUPS: Mapping[str, Callable[[MemGraph, Mapping[str, Any]], dict[str, Any]]] = {
    "recall": recall,
    "prompt": prompt,
    "search": search,
    "ask": ask,
}


def _check_task(memory: MemGraph, task_id: str | None) -> None:
    """Reject a task that is neither registered nor named by a memory: it is a slip, and would be answered as no task.

    Raises
    ------
    NotFoundError
    """
    from memgraph.errors import NotFoundError
    from memgraph.store.access.scope import is_known

    if task_id is not None and not is_known(memory.store.reader, task_id):
        raise NotFoundError("task", task_id, listed_by="memgraph task list")


def scope_given(*, session: str | None, task_id: str | None, tiers: tuple[str, ...], min_trust: Any) -> dict[str, Any]:
    """Return the options of a scope that were given, as the library's arguments."""
    from memgraph.store.access.scope import trusted

    given: dict[str, Any] = {"session": session, "task_id": task_id}
    if tiers:
        given["privacy_tiers"] = list(tiers)
    if min_trust:
        given["trust_classes"] = trusted(min_trust)
    return {name: value for name, value in given.items() if value is not None}


def tasks_given(*, all_tasks: bool, task_only: bool, asking_session: str | None) -> dict[str, Any]:
    """Return the options of tasks, and the session of the environment, as the library's arguments."""
    asked: dict[str, Any] = {"all_tasks": all_tasks, "global_fallback": not task_only}
    return asked if asking_session is None else {**asked, "session_id": asking_session}


def project_hint(memory: MemGraph, project: str | None, *, agent: str | None = None) -> str | None:
    """Return a notice with the known projects if `project` has no memory; for an agent, those of memories that it may have."""
    if project is None:
        return None
    from memgraph.privacy import OWNER
    from memgraph.store.access.scope import projects_of
    from memgraph.store.access.visibility import visible

    reader = memory.store.reader
    access = OWNER if agent is None else memory.store.access_of(agent)
    with reader.frozen():
        known = projects_of(reader.index, visible(reader, access, "search"))
    if project in known:
        return None
    more = f" and {len(known) - _SHOWN_PROJECTS:,} more" if len(known) > _SHOWN_PROJECTS else ""
    hint = f"known projects: {', '.join(known[:_SHOWN_PROJECTS])}{more}" if known else "no memory has a project"
    return f"no memory belongs to project {project!r}; {hint}"


def without_vectors(memory: Any) -> dict[str, Any]:
    """Return a memory's JSON fields without its embedding."""
    fields: dict[str, Any] = memory.model_dump(mode="json", exclude=_VECTOR)
    return fields


def _agent(given: Mapping[str, Any]) -> str:
    from memgraph.model.agent_input import UNNAMED

    return given["agent"] or UNNAMED


def _contradictions(result: RetrievalResult) -> list[str]:
    """Return which memories contradict each other: the ``prefix`` format does not show it."""
    from memgraph.text.cutting import preview

    content_of = {memory.id: preview(memory.content) for memory in result.memories}
    return [
        f"'{content_of[one.newer_id]}' contradicts the older '{content_of[one.older_id]}'"
        for one in result.contradictions
    ]


def explanation(result: RetrievalResult) -> list[str]:
    """Return the recall's certainty, each stage's counts, and each memory's score with its non-zero terms."""
    certainty = f"certainty {result.certainty} ({result.certainty_score:.2f})"
    versions = [f"{name} {version}" for name, version in result.versions.items()]
    lines = [", ".join([f"query {result.query_id}", f"{result.total_tokens_used} tokens", certainty, *versions])]
    for report in result.stages:
        counts = ", ".join(f"{name} {number:,}" for name, number in report.counts.items())
        lines.append(f"  {report.stage}: {counts}")
    for scored in result.explanations:
        fields = scored.model_dump(exclude={"score", "path", "words"})
        terms = [f"{name} {value:.3f}" for name, value in fields.items() if isinstance(value, float) and value]
        path = ", ".join(f"{hop.memory_id} via {hop.relation}" for hop in scored.path)
        over = ", ".join(f"{one.memory_id} by {one.reason}, {one.lead:+.6f}" for one in scored.overrode)
        parts = [f"{scored.memory_id}  {scored.score:.3f} =", *terms, *([f"from {path}"] if path else [])]
        parts += [scored.authority] if scored.authority != "memory" else []
        parts += [f"before {over}"] if over else []
        parts += [f"by the words {', '.join(scored.words)}"] if scored.words else []
        lines.append("  ".join(parts))
    return lines


def _details(found: ScoredMemory) -> dict[str, Any]:
    """Return all fields of a result: its score, how it was found, and the memory."""
    fields: dict[str, Any] = found.model_dump(mode="json", exclude={"memory"})
    return {**fields, "memory": without_vectors(found.memory)}


def _said(found: ScoredMemory) -> str:
    from memgraph.retrieval.context.task_labels import before, labelled

    return labelled(found.memory.content, found.memory.trust_class, before(found.label, found.task_item))


def _cells(found: ScoredMemory) -> list[str]:
    from memgraph.retrieval.context.context import commit_of

    marks = filter(None, (commit_of(found.memory), "" if found.has_evidence else "only similar"))
    return [f"{found.score:.3f}", found.match_type, *marks]
