"""Scope: the memories that are asked about, by project, session, task, agents, domain, privacy tier and trust class; the tasks that may be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memgraph.fold.tasks import HAS_ITEM, ITEM, SESSION, TASK, session_key, task_key
from memgraph.index.columns import CONSTRAINT_TAG, TIERS, TRUST
from memgraph.index.index import Index, name_in_scope, scope_name
from memgraph.model.memory import MEMORY_TYPES, MemoryType, TrustClass
from memgraph.model.results.retrieval import RetrievalQuery
from memgraph.ports import Row
from memgraph.privacy import Access
from memgraph.store.query import Mask, Reader

Slots = NDArray[np.int64]
_UNKNOWN = -2
"""Code of an unknown project: only shared knowledge is visible then."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a retrieval."""

    access: Access
    """Who asks: admits what that agent may have (`memgraph.store.access.visibility`)."""
    project_id: str | None = None
    """Admits that project's memories and those without a project."""
    asking_session: str | None = None
    """The session in which it is asked: what is only told in it is admitted (`memgraph.index.columns.SESSION_SOURCES`)."""
    session: str | None = None
    """Admits that session's memories and those without a session. None: every session's, but for what is only told in one."""
    task_id: str | None = None
    """Admits that task's own memories. None: no task's memories."""
    all_tasks: bool = False
    """Admits every task's own memories."""
    global_fallback: bool = True
    """With a task: admits the memories of no task beside its own. Pinned constraints of no task are admitted in any case."""
    linked: Sequence[str] | None = None
    """Admits only the own memories of these tasks, to which the asking one is linked; then `task_id`, `all_tasks` and pins do not count."""
    agents: Sequence[str] | None = None
    privacy_tiers: Sequence[str] | None = None
    trust_classes: Sequence[str] | None = None
    domain: str | None = None
    types: Sequence[MemoryType] | None = None
    include_archived: bool = False
    include_ended: bool = False
    among: Sequence[str] | None = None
    """Admits only memories with these ids."""


def scope_of(query: RetrievalQuery, access: Access, *, task_id: str | None) -> Scope:
    """Return the scope of a query; `task_id` is the one it names, or that of its session (`task_of`)."""
    return Scope(
        access,
        project_id=query.project_id,
        asking_session=query.session_id,
        session=query.session,
        task_id=task_id,
        all_tasks=query.all_tasks,
        global_fallback=query.global_fallback,
        agents=query.agents,
        privacy_tiers=query.privacy_tiers,
        trust_classes=query.trust_classes,
    )


def admitted(index: Index, scope: Scope, now_days: float) -> Mask:
    """Return which slots may be scored. Superseded ones may, since they hand their score on."""
    mask: Mask = index.column("is_live") & ~index.column("is_suppressed")
    if not scope.include_ended:
        mask &= index.column("invalid_days") > now_days
    if not scope.include_archived:
        mask &= ~index.column("is_archived")
    if scope.project_id is not None:
        mask &= of_or_none(index, "project", scope.project_id)
    mask &= _of_tasks(index, scope)
    bound = index.column("is_session_bound")
    if bound.any():
        mask &= ~bound | of_session(index, scope.session if scope.session is not None else scope.asking_session)
    if scope.session is not None:
        mask &= of_session(index, scope.session) | (index.column("session") == -1)
    if scope.domain is not None:
        general = index.scopes.find(scope_name("domain", "general"))
        mask &= of_or_none(index, "domain", scope.domain) | (index.column("domain") == general)
    if scope.types is not None:
        mask &= np.isin(index.column("type"), [MEMORY_TYPES.index(kind) for kind in scope.types])
    return mask & concerning(
        index,
        agents=scope.agents,
        privacy_tiers=scope.privacy_tiers,
        trust_classes=scope.trust_classes,
        ids=scope.among,
    )


def told_in(index: Index, session: str | None, task_ids: Sequence[str]) -> Mask:
    """Return which slots are of no task or of one of these, and not only told in another session than this one."""
    task = index.column("task")
    mask: Mask = np.isin(task, [-1, *(_code(index, "task", one) for one in task_ids)])
    bound = index.column("is_session_bound")
    return mask & (~bound | of_session(index, session)) if bound.any() else mask


def _of_tasks(index: Index, scope: Scope) -> Mask:
    """Return which slots belong to the tasks asked about, and which belong to none as far as these are asked about too."""
    task = index.column("task")
    if scope.linked is not None:
        linked: Mask = np.isin(task, [_code(index, "task", one) for one in scope.linked])
        return linked
    if scope.all_tasks:
        return np.ones(len(index), dtype=np.bool_)
    mask = of_or_none(index, "task", scope.task_id)
    if scope.task_id is not None and not scope.global_fallback:
        own = task != -1
        own[pinned_constraints(index)] = True
        mask &= own
    return mask


def pinned_constraints(index: Index) -> Slots:
    """Return the slots of the pinned memories with the tag ``constraint``, but for those from outside: nobody is bound by them."""
    code = index.tag_names.find(CONSTRAINT_TAG)
    tagged = index.tags.get(code)[0] if code >= 0 else np.empty(0, dtype=np.int64)
    is_held = index.column("is_pinned")[tagged] & (index.column("trust")[tagged] <= TRUST.index("agent"))
    slots: Slots = tagged[is_held].astype(np.int64)
    return slots


def concerning(
    index: Index,
    *,
    agents: Sequence[str] | None = None,
    privacy_tiers: Sequence[str] | None = None,
    trust_classes: Sequence[str] | None = None,
    session: str | None = None,
    task_id: str | None = None,
    domain: str | None = None,
    ids: Sequence[str] | None = None,
) -> Mask:
    """Return which slots have exactly these properties; None: any."""
    mask: Mask = np.ones(len(index), dtype=np.bool_)
    if ids is not None:
        mask = np.zeros(len(index), dtype=np.bool_)
        mask[[slot for one in ids if (slot := index.slot(one)) >= 0]] = True
    if privacy_tiers is not None:
        mask &= np.isin(index.column("tier"), [TIERS.index(tier) for tier in privacy_tiers])
    if trust_classes is not None:
        mask &= np.isin(index.column("trust"), [TRUST.index(trust) for trust in trust_classes])
    if agents is not None:
        involved = np.zeros(len(index), dtype=np.bool_)
        for agent in agents:
            involved[index.agents.get(index.agent_names.find(agent))[0]] = True
        mask &= involved
    if session is not None:
        mask &= of_session(index, session)
    for column, name in (("task", task_id), ("domain", domain)):
        if name is not None:
            mask &= index.column(column) == _code(index, column, name)
    return mask


def of_session(index: Index, session: str | None) -> Mask:
    """Return which slots belong to a session of this name, in whatever project; None: to none."""
    column = index.column("session")
    if session is None:
        return np.zeros(len(index), dtype=np.bool_)
    names = index.scopes.names
    codes = [code for code in np.unique(column).tolist() if code >= 0 and name_in_scope(names[code]) == session]
    return np.isin(column, codes)


def trusted(least: TrustClass) -> list[TrustClass]:
    """Return a trust class and those above it."""
    return list(TRUST[: TRUST.index(least) + 1])


def projects_of(index: Index, among: Mask | None = None) -> list[str]:
    """Return the names of projects with at least one memory that is not deleted, of all or of some slots, in alphabetical order."""
    live = index.column("is_live") if among is None else index.column("is_live") & among
    codes = np.unique(index.column("project")[live]).tolist()
    prefix = scope_name("project", "")
    return sorted(index.scopes.names[code].removeprefix(prefix) for code in codes if code >= 0)


def of_or_none(index: Index, column: str, name: str | None) -> Mask:
    """Return which slots belong to this project, task or domain, or to none; None: to none."""
    values = index.column(column)
    found: Mask = values == -1
    return found if name is None else found | (values == _code(index, column, name))


def _code(index: Index, column: str, name: str) -> int:
    code = index.scopes.find(scope_name(column, name))
    return code if code >= 0 else _UNKNOWN


def of_project(index: Index, project_id: str) -> Mask:
    """Return which slots belong to this project."""
    found: Mask = index.column("project") == _code(index, "project", project_id)
    return found


def task_of(reader: Reader, task_id: str | None, *sessions: str | None, all_tasks: bool = False) -> str | None:
    """Return the task in whose scope it is asked: the one named, else the current one of the first session with one, unless all are searched."""
    if task_id is not None or all_tasks:
        return task_id
    for session in dict.fromkeys(one for one in sessions if one is not None):
        stack = (reader.record(SESSION, session_key(session)) or {}).get("stack", [])
        if stack:
            return str(stack[-1])
    return None


def is_known(reader: Reader, task_id: str) -> bool:
    """Return whether a task is registered, or a memory names it."""
    if reader.record(TASK, task_key(task_id)) is not None:
        return True
    with reader.frozen():
        index = reader.index
        return bool((index.column("is_live") & (index.column("task") == _code(index, "task", task_id))).any())


def tasks_read_by(reader: Reader, task_id: str | None, session: str | None) -> list[str]:
    """Return the tasks whose memories may be read where a session works on a task: that task, and those that it is linked to."""
    name = task_of(reader, task_id, session)
    return [] if name is None else [name, *links_in(items_of(reader, name))]


def items_of(reader: Reader, task_id: str) -> list[Row]:
    """Return what holds in a task, each with the task's project, oldest first. Costs a look-up, and one query of its items."""
    task = reader.record(TASK, task_key(task_id)) or {}
    return _in_order(reader.held(HAS_ITEM, task_key(task_id), None), {task_id: task.get("project_id")})


def every_item(reader: Reader) -> list[Row]:
    """Return what holds in any task, each with its task's project, oldest first. Costs one pass over all tasks and their items."""
    project_of = {row["name"]: row.get("project_id") for row in reader.every_record(TASK)}
    return _in_order((row for row in reader.every_record(ITEM) if "closed_seq" not in row), project_of)


def links_in(items: Iterable[Row]) -> list[str]:
    """Return the ids of the tasks to which the task of these items is linked, in the order of the links."""
    return [str(row["content"]) for row in items if row["kind"] == "link"]


def _in_order(rows: Iterable[Row], project_of: Mapping[str, str | None]) -> list[Row]:
    with_project = ({**row, "project_id": project_of.get(row["task_id"])} for row in rows)
    return sorted(with_project, key=lambda row: (row["seq"], row["id"]))
