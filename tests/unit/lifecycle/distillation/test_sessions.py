"""Long sessions of which little was kept become work orders at the end of an ingest."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.errors import NotFoundError
from memgraph.extraction.readers import BuildLogReader
from memgraph.lifecycle.orders import FIRST_PARTS, LONG_EVENTS
from memgraph.testing import FakeExtractor

TOKEN = "ghp_" + "a1B2" * 9
FOUND = [{"type": "semantic", "content": f"Fact number {number} of the build"} for number in range(3)]


def session(name: str, events: int, **fields: Any) -> dict[str, Any]:
    """Return a session with one intervention, which counts as six events, and so many tasks that it has `events`."""
    tasks = [
        {"task_id": f"t{number}", "agent_name": "A", "description": f"Look at file {number}", "outcome": "success"}
        for number in range(events - 6)
    ]
    said = [
        {"timestamp": "2026-01-05T10:00:00Z", "action": "Keep the answers short", "context": f"with the key {TOKEN}"}
    ]
    known = {
        "build_id": name,
        "project_id": "shop",
        "build_outcome": "success",
        "tasks": tasks,
        "user_interventions": said,
    }
    return {**known, "started_at": "2026-01-05", "completed_at": "2026-01-06", **fields}


@pytest.fixture
def ingested(open_store: Any, tmp_path: Path) -> Any:
    def run(logs: list[dict[str, Any]], found: Any = (), **config: Any) -> Any:
        path = tmp_path / "builds.jsonl"
        path.write_text("\n".join(map(json.dumps, logs)))
        memory = MemGraph(open_store(**config), extractor=FakeExtractor(found))
        memory.ingest(BuildLogReader(path, project_id="shop"))
        return memory.distillation.list(state=None)

    return run


def test_the_longest_session_comes_first_with_what_the_user_said_and_no_secret(ingested: Any) -> None:
    orders = ingested([session("short", LONG_EVENTS - 1), session("long", LONG_EVENTS), session("longer", 200)])
    assert [order.build_id for order in orders] == ["longer", "long"]
    order = orders[0]
    assert (order.kind, order.project_id, order.source_event_ids) == ("long session", "shop", ["longer"])
    assert "user_did: Keep the answers short" in order.excerpt
    assert "task: Look at file 3" in order.excerpt
    assert TOKEN not in order.excerpt
    assert len(order.excerpt) <= 8_000
    assert order.source_at == "2026-01-06T00:00:00.000Z"


def test_a_conversation_without_tasks_is_a_long_session_if_the_user_spoke_often(ingested: Any) -> None:
    said = [{"timestamp": f"2026-01-05T10:0{number}:00Z", "action": f"Point {number}"} for number in range(5)]
    talks = [session(f"talk{many}", 6, user_interventions=said[:many]) for many in (4, 5)]
    assert [order.build_id for order in ingested(talks)] == ["talk5"]


def test_an_excerpt_is_in_the_order_of_the_session(ingested: Any) -> None:
    log = session("long", 40)
    for number, task in enumerate(log["tasks"]):
        task["occurred_at"] = f"2026-01-05T09:{40 + number if number < 20 else 59}:{number:02}Z"
    [order] = ingested(
        [log | {"user_interventions": [{"timestamp": "2026-01-05T09:42:30Z", "action": "Keep it short"}]}]
    )
    said = order.excerpt.index("Keep it short")
    assert order.excerpt.index("Look at file 2\n") < said < order.excerpt.index("Look at file 3\n")


@pytest.mark.parametrize("hidden", [{"is_suppressed": True}, {"privacy_tier": "private"}])
def test_a_session_is_withheld_while_its_excerpt_has_what_was_hidden(
    ingested: Any, store: Any, hidden: dict[str, Any]
) -> None:
    [order] = ingested([session("long", 40)])
    told = MemGraph(store).distillation
    known = {"type": "semantic", "content": "keep the  answers short", "project_id": "shop"}
    store.insert_memory({**known, "build_id": "another", **hidden})
    kept = store.insert_memory({**known, "build_id": "long"})
    assert told.list() == [order]
    store.update_memory(kept.id, **hidden)
    assert told.list() == []
    with pytest.raises(NotFoundError):
        told.show(order.id)


QUESTION = "Which colour?\n\n1. Ochre\n2. Rust, because the clay is red\n3. Slate"


def turn(number: int, action: str, context: str = "") -> dict[str, str]:
    return {"timestamp": f"2026-01-05T10:{number:02}:00Z", "action": action, "context": context}


def test_a_short_answer_stands_with_the_whole_question_and_its_choices(ingested: Any) -> None:
    said = [turn(1, "2", f"{'Some words on glazes. ' * 120}\n\n{QUESTION}")]
    [order] = ingested([session("long", 40, user_interventions=said)])
    assert (
        "user_did: 2\ncontext: Which colour?\n 1. Ochre\n 2. Rust, because the clay is red\n 3. Slate" in order.excerpt
    )
    assert "Some words" not in order.excerpt


def test_a_conclusion_is_whole_and_what_it_asks_is_not_shown_twice(ingested: Any) -> None:
    conclusion = f"### Root Cause\n{'The lid bends. ' * 150}Its hinge is of tin.\n"
    asked = turn(1, "Why does it leak?") | {"reply": conclusion + QUESTION, "replied_at": "2026-01-05T10:58:00Z"}
    log = session("long", 40, user_interventions=[asked, turn(59, "2", QUESTION)])
    log["tasks"][3]["reasoning"] = f"Let me see. {'x' * 500}\n\n## Findings\nThe fuse was wet.\n\n## Next\nI look on."
    [order] = ingested([log])
    assert "Its hinge is of tin." in order.excerpt
    assert order.excerpt.count("Rust, because the clay is red") == 1
    assert "The fuse was wet." in order.excerpt
    assert "I look on." not in order.excerpt


def test_a_reply_stands_after_its_question_and_the_work_and_before_the_next_turn(ingested: Any) -> None:
    first = turn(1, "Why does the kiln fail?") | {"reply": "The fuse was wet.", "replied_at": "2026-01-05T10:20:00Z"}
    last = turn(30, "And now?") | {"reply": "It burns.", "replied_at": "2026-01-05T10:31:00Z"}
    log = session("long", 40, user_interventions=[first, last])
    for number, task in enumerate(log["tasks"]):
        task["occurred_at"] = f"2026-01-05T10:10:{number:02}Z"
    [order] = ingested([log])
    places = [order.excerpt.index(one) for one in ("Why does", "Look at file 33", "wet.", "And now?", "It burns.")]
    assert places == sorted(places)
    assert "agent_said: The fuse was wet." in order.excerpt


def test_what_ended_a_failure_stands_with_the_command_that_worked(ingested: Any) -> None:
    log = session("long", 40, source="transcript")
    change = "Edit Kiln.toml\n- heat = 5\n+ heat = 900"
    steps = [
        {"command": "make pots", "outcome": "failure", "output": "KeyError: 'heat'"},
        {"command": change, "description": "Edit Kiln.toml", "files_changed": ["Kiln.toml"]},
        {"command": "make pots", "output": "3 pots"},
    ]
    log["tasks"][:3] = [task | step for task, step in zip(log["tasks"][:3], steps, strict=True)]
    [order] = ingested([log])
    told = "`make pots` failed (KeyError: 'heat'); it worked after Kiln.toml had been edited."
    assert f"lesson: {told} In Kiln.toml, `heat = 5` became `heat = 900`." in order.excerpt


def test_a_success_that_another_command_hides_is_not_told_as_one(ingested: Any) -> None:
    log = session("long", 40)
    hidden = {"command": "which kiln || echo none", "output": "command not found: kiln\nnone"}
    log["tasks"][0] |= {"description": "Look for the kiln", **hidden}
    [order] = ingested([log])
    assert order.excerpt.count("outcome: success") == len(log["tasks"]) - 1
    assert "command not found: kiln" in order.excerpt


def test_a_failure_stands_with_its_cause_nothing_stands_twice_and_no_word_is_cut(ingested: Any) -> None:
    line = "─" * 45
    told = [f"The {name} is at fault.\n{line}" for name in ("router", "resolver")]
    tasks = [
        {"task_id": f"f{number}", "agent_name": "A", "description": "Run ps", "outcome": outcome, **given}
        for number, (outcome, given) in enumerate(
            [
                ("failure", {"output": "Exit code 1\nps: unrecognized option: a"}),
                ("failure", {"output": f"FAIL src/total.test.ts\n  expected 3, received 4\n{'x ' * 300}"}),
                ("success", {"reasoning": "because " * 90}),
                ("success", {"lesson": told[0]}),
                ("success", {"lesson": f"{told[1]}\nI shall look on."}),
            ]
        )
    ]
    turns = [
        {"timestamp": f"2026-01-05T1{number}:00:00Z", "action": action, "context": context}
        for number, (action, context) in enumerate(
            [("Go on", told[0]), ("Do it now", told[1]), ("Do it at once", told[1])]
        )
    ]
    (order,) = ingested([session("s", LONG_EVENTS, tasks=tasks, user_interventions=turns * 2)])
    assert "unrecognized option: a" in order.excerpt
    assert "expected 3, received 4" in order.excerpt
    assert [order.excerpt.count(name) for name in ("router is", "resolver is", "I shall look on.")] == [1, 1, 1]
    assert re.search(r"reasoning: (?:because )+because…$", order.excerpt, re.MULTILINE)


def test_a_long_session_is_asked_about_in_several_orders_instead_of_being_cut(ingested: Any) -> None:
    said = [turn(number, f"Point {number}: {'clay ' * 150}") for number in range(30)]
    orders = ingested([session("long", 40, user_interventions=said)])
    assert 3 <= len(orders) <= 4
    shown = [f"Point {number}:" for order in orders for number in range(30) if f"Point {number}:" in order.excerpt]
    assert sorted(shown) == sorted(f"Point {number}:" for number in range(30))
    assert all("…" not in order.excerpt and order.build_id == "long" for order in orders)
    assert len({order.id for order in orders}) == len(orders)


def test_what_explains_an_edit_or_a_failure_is_asked_about_in_a_session_that_does_not_fit(ingested: Any) -> None:
    log = session("long", 150)
    for number, task in enumerate(log["tasks"]):
        task |= {"reasoning": f"Now let me look at pot {number}.", "output": "clay " * 60}
    log["tasks"][90]["reasoning"] = "The lid caches the heat; so the fix goes into the fan. Let me read it:"
    log["tasks"][92] |= {"reasoning": "Now the fan:", "files_changed": ["fan.py"]}
    orders = ingested([log])
    assert "reasoning: The lid caches the heat; so the fix goes into the fan." in "".join(one.excerpt for one in orders)
    assert sum(len(one.excerpt) for one in orders) <= 8_000


def of_failures(name: str, events: int) -> dict[str, Any]:
    """Return a session of which all matters."""
    log = session(name, events)
    for task in log["tasks"]:
        task |= {"outcome": "failure", "output": f"Error: {name}-{task['task_id']}. {'bad clay ' * 40}"}
    return log


def failures_in(orders: Any, name: str) -> list[str]:
    return sorted(one for order in orders for one in re.findall(rf"{name}-t\d+\.", order.excerpt))


def test_all_of_a_very_long_session_is_asked_about_on_the_days_after_too(ingested: Any, clock: Any) -> None:
    orders = ingested([of_failures("first", 250), session("second", 40)], distil_orders_a_day=20)
    assert failures_in(orders, "first") == sorted(f"first-t{number}." for number in range(244)), "each of them once"
    days = Counter(order.requested_at[:10] for order in orders)
    today, *after = sorted(days)
    assert days[today] == FIRST_PARTS + 1, "others have room on the same day"
    assert all(0 < days[day] <= 5 for day in after)
    assert len(after) > 1


def test_each_part_of_a_session_is_dated_by_what_stands_in_it(ingested: Any) -> None:
    log = of_failures("long", 250)
    for number, task in enumerate(log["tasks"]):
        task["occurred_at"] = f"2026-01-05T10:{number // 60:02}:{number % 60:02}Z"
    orders = ingested([log])
    last = [max(int(one) for one in re.findall(r"long-t(\d+)\.", order.excerpt)) for order in orders]
    assert [order.source_at for order in orders] == [f"2026-01-05T10:{one // 60:02}:{one % 60:02}.000Z" for one in last]


def test_the_end_of_a_session_is_asked_about_on_its_day(ingested: Any) -> None:
    orders = ingested([of_failures("long", 250)], distil_orders_a_day=20)
    first = min(one.requested_at for one in orders)
    assert "long-t243." in "".join(one.excerpt for one in orders if one.requested_at == first)


def test_a_session_that_is_read_last_is_asked_about_on_the_same_day(ingested: Any) -> None:
    for number in range(6):
        orders = ingested([of_failures(f"kiln{number}", 250 - number)], distil_orders_a_day=20)
    today = Counter(one.build_id for one in orders if one.requested_at == min(order.requested_at for order in orders))
    of_first = {f"kiln{number}": FIRST_PARTS for number in range(3)}
    assert today == of_first | {f"kiln{number}": 1 for number in range(3, 6)}, (
        "15 of 20, a quarter of them first orders"
    )


def test_the_first_order_of_each_session_comes_before_the_second_of_any(ingested: Any) -> None:
    logs = [of_failures("long", 250), *(session(f"short{number}", 30) for number in range(4))]
    orders = ingested(logs, distil_orders_a_day=8)
    today = [one.build_id for one in orders if one.requested_at == min(order.requested_at for order in orders)]
    assert len(today) == len(set(today)) == 5


def test_what_waits_is_open_when_its_day_has_come(ingested: Any, open_store: Any, clock: Any) -> None:
    all_of_it = ingested([of_failures("long", 250)], distil_orders_a_day=20)
    told = MemGraph(open_store()).distillation
    assert len(told.list()) == FIRST_PARTS < len(all_of_it)
    assert len(told.list(state=None)) == len(all_of_it)
    clock.advance(days=1)
    assert len(told.list()) == FIRST_PARTS + 5
    clock.advance(days=14)
    assert len(told.list()) == len(all_of_it)


def test_of_a_session_that_has_grown_what_is_new_is_asked_about(ingested: Any) -> None:
    first = ingested([of_failures("long", 40)])
    again = ingested([of_failures("long", 46)])
    assert again == first, "too little is new"
    more = ingested([of_failures("long", 90)])
    assert [order.id for order in more if order in first] == [order.id for order in first]
    found = failures_in(more, "long")
    assert len(found) == len(set(found)) > 70
    assert ingested([of_failures("long", 90)]) == more


def test_a_session_that_is_read_again_is_not_asked_about_again(ingested: Any) -> None:
    first = ingested([session("long", 40)])
    assert ingested([session("long", 40)]) == first
    assert ingested([session("long", 80)]) == first


def test_a_session_is_asked_about_whatever_rules_kept_of_it(ingested: Any) -> None:
    assert len(ingested([session("s", 40)], FOUND[:3])) == 1


def test_builds_are_no_sessions_and_sessions_have_three_quarters_of_a_day_s_budget(ingested: Any) -> None:
    assert ingested([session("git", 50, source="git"), session("ci", 50, source="ci log")]) == []
    orders = ingested([session(f"s{number}", 40 + number) for number in range(5)], distil_orders_a_day=4)
    today, *after = sorted({order.requested_at for order in orders})
    assert [order.build_id for order in orders if order.requested_at == today] == ["s4", "s3", "s2"]
    assert len(after) == 1, "the fourth one of the four that were noted waits"


def test_of_several_sources_the_longest_sessions_come_first(open_store: Any, tmp_path: Path) -> None:
    memory = MemGraph(open_store(distil_orders_a_day=2), extractor=FakeExtractor())
    for name, events in (("short", 40), ("long", 90), ("middle", 60)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(session(name, events)))
        memory.ingest(BuildLogReader(path, project_id="shop"), compress=False)
        assert memory.distillation.list() == []
    assert memory.distillation.request().requested == 2
    assert [order.build_id for order in memory.distillation.list()] == ["long"]
    assert memory.distillation.request().candidates == 0


def test_what_is_answered_belongs_to_the_session(ingested: Any, open_store: Any) -> None:
    [order] = ingested([session("long", 40)])
    memory = MemGraph(open_store())
    rule = {"type": "semantic", "content": "Keep the answers short.", "outcome": "neutral", "confidence": 0.9}
    result = memory.distillation.answer(order.id, {"statements": [{**rule, "evidence": ["Keep the answers short"]}]})
    [kept] = memory.store.read_memories(result.new_memory_ids)
    assert (kept.build_id, kept.evidence_build_ids, kept.source_event_ids) == ("long", ["long"], ["long"])
    assert memory.recall("how long should the answers be", project="shop").memories[0].id == kept.id


RULE = "never paint the pier green. The boats hide behind it."
HATES = "What the kiln hates is green pots."


@pytest.fixture
def answered(open_store: Any, tmp_path: Path) -> Any:
    """Answer the order about a session of which a rule was kept; return the memory, the id of the rule and the result."""

    def answer(said: str, quoted: str, **fields: Any) -> Any:
        log = session("long", 40, user_interventions=[turn(1, RULE), turn(2, HATES)], source="transcript")
        path = tmp_path / "session.jsonl"
        path.write_text(json.dumps(log))
        memory = MemGraph(open_store())
        memory.ingest(BuildLogReader(path, project_id="shop"))
        [rule], [order] = memory.store.get_all_memories(), memory.distillation.list()
        given = {"type": "semantic", "content": said, "outcome": "neutral", "confidence": 0.9, "evidence": [quoted]}
        return memory, rule.id, memory.distillation.answer(order.id, {"statements": [given | fields]})

    return answer


@pytest.mark.parametrize("said", ["Never paint the pier green.", "The user wants the pier in any colour but green."])
@pytest.mark.parametrize("is_rule", [True, False])
def test_an_answer_that_quotes_a_kept_rule_adds_to_it(answered: Any, said: str, is_rule: bool) -> None:
    memory, rule, result = answered(said, "never paint the pier green.", is_rule=is_rule, cues=["colour of a pier"])
    assert (result.new_memory_ids, result.merged_memory_ids) == ([], [rule])
    [kept] = memory.store.get_all_memories()
    assert (kept.content, kept.cues) == ("Instruction by the user: Never paint the pier green.", ["colour of a pier"])


def test_an_answer_that_quotes_more_than_a_kept_rule_is_supported_by_it(answered: Any) -> None:
    memory, rule, result = answered("Never paint it green: the boats hide behind it.", RULE, is_rule=True)
    [more] = memory.store.read_memories(result.new_memory_ids)
    assert more.supporting_memory_ids == [rule]
    memory.store.suppress(rule)
    assert [one.memory.id for one in memory.search_memories("paint the pier") if one.memory.id == more.id] == []


def test_an_answer_that_quotes_a_forgotten_rule_and_more_is_left_out(open_store: Any, tmp_path: Path) -> None:
    memory = MemGraph(open_store())
    for name, said in (("first", ["never paint the pier green."]), ("second", [RULE, HATES])):
        turns = [turn(number, one) for number, one in enumerate(said)]
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(session(name, 40, user_interventions=turns, source="transcript")))
        memory.ingest(BuildLogReader(path, project_id="shop"))
        for one in memory.store.get_all_memories():
            memory.store.suppress(one.id)
    [order] = [one for one in memory.distillation.list() if one.build_id == "second"]
    more = {"type": "semantic", "content": "Never paint it green: the boats hide behind it.", "outcome": "neutral"}
    given = {"statements": [more | {"confidence": 0.9, "evidence": [RULE], "is_rule": True}]}
    assert memory.distillation.answer(order.id, given).new_memory_ids == []


def test_an_answer_that_quotes_something_else_stands_by_itself(answered: Any) -> None:
    memory, _, result = answered("The kiln hates green.", HATES, is_rule=True)
    [other] = memory.store.read_memories(result.new_memory_ids)
    assert (other.supporting_memory_ids, result.merged_memory_ids) == ([], [])
