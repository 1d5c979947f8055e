"""Recall in tasks: whatever the store holds and whatever is asked, no task is shown another's items or memories but for labelled links."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memgraph
from memgraph import MemGraph
from memgraph.config import AgentMemoryConfig
from memgraph.retrieval.context.task_labels import related_label, task_label
from memgraph.testing import FakeClock, FakeEmbedder
from tests.engines import examples

TASKS = ("t1", "t2", "t3", "t4")
SESSIONS = ("s1", "s2")
WORDS = ("tokens", "the login", "docs of t2", "t3", "Ann", "deploy failed", "why?")
FORMATS = ("notes", "sections", "prefix", "delimited", "context")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
tasks = st.sampled_from(TASKS)
opened = st.tuples(
    st.sampled_from(["decide", "constrain", "plan", "ask", "add_artifact", "confirm", "set_goal", "state"]),
    tasks,
    texts,
)
saved = st.fixed_dictionaries(
    {
        "content": texts,
        "task_id": st.sampled_from([None, *TASKS]),
        "session_id": st.sampled_from([None, *SESSIONS]),
        "source": st.sampled_from([None, "turn", "remember"]),
    }
)
pins = st.tuples(st.sampled_from(["fact", "constraint"]), st.sampled_from([None, *TASKS]), texts)
linked = st.lists(st.tuples(tasks, tasks), max_size=5)
asked = st.fixed_dictionaries(
    {
        "task_id": st.sampled_from([None, *TASKS, "t"]),
        "session_id": st.sampled_from([None, *SESSIONS]),
        "all_tasks": st.sampled_from([False, False, False, True]),
        "global_fallback": st.booleans(),
        "floor": st.sampled_from(["off", 0.0, 0.4]),
    }
)


@settings(max_examples=examples(12, at_length=60), suppress_health_check=[HealthCheck.too_slow])
@given(
    items=st.lists(opened, max_size=10),
    memories=st.lists(saved, min_size=1, max_size=10),
    pinned=st.lists(pins, max_size=4),
    links=linked,
    working=st.fixed_dictionaries({name: st.sampled_from([None, *TASKS]) for name in SESSIONS}),
    queries=st.lists(st.tuples(texts, asked), min_size=4, max_size=6),
)
def test_no_task_is_shown_what_belongs_to_another(
    tmp_path_factory: Any, items: Any, memories: Any, pinned: Any, links: Any, working: Any, queries: Any
) -> None:
    folder = tmp_path_factory.mktemp("tasks")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with ExitStack() as stack:
        store = stack.enter_context(
            memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(dimension=16), clock=FakeClock())
        )
        memory = MemGraph(store)
        owner = {store.insert_memory(memgraph.EpisodicMemory(**one)).id: one["task_id"] for one in memories}
        bound = {
            one: fields["session_id"] for one, fields in zip(owner, memories, strict=True) if fields["source"] == "turn"
        }
        for name in TASKS:
            memory.tasks.upsert(f"Title {name}", task_id=name)
        for kind, name, text in items:
            if kind == "state":
                memory.tasks.patch_state(name, {"value": text})
            else:
                getattr(memory.tasks, kind)(name, text)
        for kind, name, text in pinned:
            owner[memory.tasks.pins.upsert(text, kind=kind, task_id=name).pin.id] = name
        for source, target in links:
            if source != target and len(memory.tasks.snapshot(source).links) < config.max_task_links:
                memory.tasks.link(source, target)
        for session, name in working.items():
            if name is not None:
                memory.tasks.sessions.switch(session, name)
        owner |= {row["id"]: row["task_id"] for row in store.reader.every_record("TaskItem")}

        for text, scope in queries:
            result = memory.recall(text, **scope)
            own = scope["task_id"] or (None if scope["all_tasks"] else working.get(scope["session_id"]))
            allowed = {own} if own in TASKS else set()
            may_link = [] if scope["all_tasks"] or own not in TASKS else memory.tasks.snapshot(own).links
            assert result.task_id == own
            assert len(result.related_ids) <= config.retrieval_budget.related
            for one in result.memories:
                belongs = owner[one.id]
                assert one.task_id == belongs
                assert bound.get(one.id) in (None, scope["session_id"]), "what was said stays in its session"
                if one.id in result.related_ids:
                    assert belongs in may_link
                    assert result.labels[one.id] == related_label(belongs)
                elif scope["all_tasks"]:
                    assert result.labels.get(one.id) == (None if belongs in (None, own) else task_label(belongs))
                else:
                    assert belongs in {*allowed, None}
                    assert one.id not in result.labels
                    is_constraint = one.is_pinned and "constraint" in one.tags
                    assert belongs is not None or own is None or scope["global_fallback"] or is_constraint
            places = [one.id in result.related_ids for one in result.memories]
            assert places == sorted(places), "the task first, then the linked ones"
            for form in FORMATS:
                shown = memory.format_context_for_prompt(result, format=form)
                assert all(related_label(name) not in shown for name in TASKS if name not in may_link), (
                    "no label of a task that may not be read"
                )
            found = memory.search_memories(
                text, **{name: value for name, value in scope.items() if name != "floor"}, limit=50
            )
            for hit in found:
                belongs = owner[hit.memory.id]
                assert belongs in {*allowed, None, *may_link} or scope["all_tasks"]
                assert belongs not in may_link or belongs in allowed or hit.label == related_label(belongs)
