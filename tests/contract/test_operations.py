"""The same cases through every door: the same answers, the same refusals. A door is a function from a call to a text or an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.errors import InvalidInputError, MemGraphError, NotFoundError, PermissionDeniedError, ReadOnlyError
from memgraph.interfaces.operations import OPERATIONS, Answer, Caller, Operation, offered, perform
from memgraph.interfaces.operations.operation import Arguments, Call
from memgraph.model.memory import EpisodicMemory, SemanticMemory
from memgraph.testing import FakeClock, FakeEmbedder, FakeKeys
from tests.doors import DOORS, Door, RefusedError

CORE = [
    "recall",
    "search_memories",
    "get_memory",
    "record_outcome",
    "save_observation",
    "save_episode",
    "invalidate_memory",
]


@pytest.fixture
def memory(tmp_path):
    with MemGraph.open(
        tmp_path / "store",
        keys_home=tmp_path / "keys",
        embedder=FakeEmbedder(),
        clock=FakeClock(),
        keys=FakeKeys(),
        agents={"coach": {"domain": "health", "write": ["health"]}},
    ) as opened:
        yield opened


@pytest.fixture(params=DOORS)
def door_for(request, memory) -> Iterator[Callable[[Caller], Door]]:
    """Open one of the doors for callers."""
    with ExitStack() as opened:
        yield lambda caller: opened.enter_context(DOORS[request.param](memory, caller))


@pytest.fixture
def door(door_for) -> Door:
    return door_for(Caller(project="shop", session="s1"))


def saved_by(answer: Answer) -> str:
    """Return the id in the answer of an operation that saved something."""
    return answer.text.splitlines()[0].removeprefix("Saved: ")


def test_the_core_tools_are_seven_and_every_description_fits():
    assert [one.name for one in offered("core")] == CORE
    assert all(len(one.description) <= 2048 and one.description.endswith(".") for one in OPERATIONS.values())


def test_the_schemas_are_short_and_name_the_arguments_as_the_texts_do():
    assert OPERATIONS["record_outcome"].schema["required"] == ["query_id", "outcome"]
    for one in OPERATIONS.values():
        schema = one.schema
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        assert schema["properties"].keys() == one.arguments.model_fields.keys()
        assert not [word for word in ("$ref", "$defs", "anyOf", "null", "title") if f'"{word}"' in json.dumps(schema)]


def test_what_is_saved_is_recalled_with_the_id_that_its_outcome_needs(door, memory):
    saved = saved_by(door("save_episode", EPISODE))
    found = door("recall", {"task": "run the checkout migration again"}).text
    assert saved[:8] in found
    query_id = found.splitlines()[-1].removeprefix("query_id: ")
    done = door("record_outcome", {"query_id": query_id, "outcome": "success", "used": [saved[:8]]})
    assert done.text == "Recorded: success, 1 used, 0 overridden."
    kept = memory.store.get_memory(saved)
    assert (kept.project_id, kept.session_id) == ("shop", "s1")


def test_phrases_find_what_the_words_of_the_task_do_not(door, memory):
    saved = memory.save_observation("Rate limit the login attempts of an account").memory_id
    for place in ("gate", "cellar", "tower", "harbour", "attic"):
        memory.save_observation(f"Nobody may guess the colour of the {place}")
    task = {"task": "nobody may guess passwords"}
    assert saved[:8] not in door("recall", task).text
    assert saved[:8] in door("recall", {**task, "also": ["rate limit login attempts", "lock account"]}).text


def test_a_session_that_works_on_a_task_reads_it_and_no_other_does(door_for, memory):
    for name in ("login", "docs", "other"):
        memory.tasks.upsert(name.title(), task_id=name)
        memory.tasks.decide(name, f"The checkout signs tokens, says {name}")
        memory.store.insert_memory(EpisodicMemory(content=f"The checkout was signed for {name}", task_id=name))
    memory.tasks.link("login", "docs")
    memory.tasks.sessions.switch("s1", "login")
    asked = {
        "recall": {"task": "how does the checkout sign tokens?"},
        "search_memories": {"query": "checkout tokens"},
        "ask": {"question": "checkout signed"},
    }
    for caller, is_inside in ((Caller(session="s1"), True), (Caller(session="s2"), False), (Caller(), False)):
        door = door_for(caller)
        for name, arguments in asked.items():
            text = door(name, arguments).text
            assert "other" not in text, name
            assert ("says login" in text or "signed for login" in text) == is_inside, (name, text)
            related = [line for line in text.splitlines() if "docs" in line.lower()]
            assert all("[related task: docs] " in line for line in related), (name, text)
            assert bool(related) == (is_inside and name != "ask"), (name, text)


def test_an_id_gives_no_more_than_a_recall_of_the_session_could(door_for, memory):
    ids = {}
    for name in ("login", "docs", "other"):
        memory.tasks.upsert(name.title(), task_id=name)
        text = f"The checkout was signed for {name}"
        ids[name] = memory.store.insert_memory(EpisodicMemory(content=text, task_id=name, source="test")).id
    memory.tasks.link("login", "docs")
    memory.tasks.sessions.switch("s1", "login")
    memory.tasks.absorb("s1", "<chat-memory>The chat is about cookies</chat-memory>")
    [ids["chat"]] = [one.id for one in memory.store.list_memories(session="s1")]
    missing = "00000000-0000-4000-8000-000000000000"
    own, others = door_for(Caller(session="s1")), [door_for(Caller(session="s2")), door_for(Caller())]
    for name, one in ids.items():
        for door in (own, *others):
            if door is own and name != "other":
                for given in (one, one[:8]):
                    assert door("get_memory", {"id": given}).text.splitlines()[0].endswith((name, "cookies"))
                continue
            for given in (one, one[:8]):
                for operation, more in (
                    ("get_memory", {}),
                    ("invalidate_memory", {"reason": "no"}),
                    ("feedback", {"feedback": "meh"}),
                    ("forget", {}),
                ):
                    with pytest.raises(RefusedError) as refused:
                        door(operation, {"id": given, **more})
                    with pytest.raises(RefusedError) as unknown:
                        door(operation, {"id": missing, **more})
                    assert str(refused.value).replace(given, missing) == str(unknown.value)
    kept = memory.store.list_memories()
    assert {one.id for one in kept} >= set(ids.values())
    assert {one.user_feedback for one in kept if isinstance(one, EpisodicMemory)} == {None}


def test_what_was_recalled_can_be_said_to_be_used_after_the_session_has_switched(door_for, memory):
    for name in ("login", "docs"):
        memory.tasks.upsert(name.title(), task_id=name)
    memory.tasks.sessions.switch("s1", "login")
    text = "The checkout signs tokens for the login"
    one = memory.store.insert_memory(EpisodicMemory(content=text, task_id="login", source="test")).id
    door = door_for(Caller(session="s1"))
    query_id = door("recall", {"task": "checkout signs tokens"}).text.splitlines()[-1].removeprefix("query_id: ")
    memory.tasks.sessions.switch("s1", "docs")
    for given in (one, one[:8]):
        done = door("record_outcome", {"query_id": query_id, "outcome": "success", "used": [given]})
        assert done.text == "Recorded: success, 1 used, 0 overridden."
        with pytest.raises(RefusedError, match="no memory"):
            door("get_memory", {"id": given})


def test_a_list_holds_what_a_recall_of_the_session_could_find(door_for, memory):
    memory.tasks.upsert("Login", task_id="login")
    memory.tasks.sessions.switch("s1", "login")
    memory.tasks.pins.upsert("Keep the tokens of the login", task_id="login")
    memory.tasks.absorb("s1", "<chat-memory>The chat is about cookies</chat-memory><memory>The port is 8443</memory>")
    for caller, is_inside in ((Caller(session="s1"), True), (Caller(session="s2"), False), (Caller(), False)):
        text = door_for(caller)("list_memories", {}).text
        assert "8443" in text
        assert ("tokens" in text, "cookies" in text) == (is_inside, is_inside), caller


def test_no_answer_holds_a_vector(memory):
    def door(name: str, arguments: dict[str, Any]) -> Any:
        return perform(memory, Caller(), name, arguments)

    saved = door("save_observation", {"text": "The shop runs on port 8080."}).data["memory_id"]
    for answer in (
        door("get_memory", {"id": saved[:8]}),
        door("search_memories", {"query": "port"}),
        door("recall", {"task": "which port does the shop run on"}),
        door("list_memories", {}),
    ):
        assert "8080" in answer.text
        assert "embedding'" not in str(answer.data)


def test_a_search_can_be_for_one_type(door):
    door("save_observation", {"text": "The checkout migration locks the orders table."})
    door("save_episode", EPISODE)
    found = door("search_memories", {"query": "migration", "type": "semantic"})
    assert [line.partition(") ")[0][-8:] for line in found.text.splitlines()] == ["semantic"]


def test_what_is_found_of_a_commit_says_which(door, memory):
    for sha in ("0a" * 20, "release"):
        memory.store.insert_memory(EpisodicMemory(content=f"Lock the cart of {sha[:2]}", git_commit=sha))
    found = door("search_memories", {"query": "Lock the cart"}).text.splitlines()
    assert sorted(line.partition("] ")[2] for line in found) == [
        "(episodic) Lock the cart of re",
        "(episodic, commit 0a0a0a0a) Lock the cart of 0a",
    ]


def test_a_memory_that_is_invalidated_is_no_longer_recalled(door):
    saved = saved_by(door("save_observation", {"text": "The shop runs on port 8080."}))
    door("invalidate_memory", {"id": saved, "reason": "It moved to 9090."})
    assert "8080" not in door("recall", {"task": "which port does the shop run on"}).text


@pytest.mark.parametrize(
    ("name", "arguments", "error", "said"),
    [
        ("recall", {}, InvalidInputError, "task"),
        ("recall", {"task": ""}, InvalidInputError, "task"),
        ("recall", {"task": "x", "agent": "owner"}, InvalidInputError, "agent"),
        ("recall", {"task": "x", "also": ["a"] * 6}, InvalidInputError, "also: must have at most 5 items"),
        ("recall", {"task": "x", "also": ["a", " "]}, InvalidInputError, "also.1: must not be empty"),
        ("recall", {"task": "x", "also": ["a" * 201]}, InvalidInputError, "also.0: must have at most 200 characters"),
        ("recall", {"task": "x", "also": "a phrase"}, InvalidInputError, "also: must be a valid list"),
        ("search_memories", {"query": "x", "limit": 1000}, InvalidInputError, "limit"),
        ("get_memory", {"id": "1234"}, InvalidInputError, "id"),
        ("get_memory", {"id": "00000000-0000-4000-8000-000000000000"}, NotFoundError, "no memory"),
        (
            "save_episode",
            {"task": "x", "action": "y", "reasoning": "z", "outcome": "won"},
            InvalidInputError,
            "outcome",
        ),
        ("save_observation", {"text": "a\x00b"}, InvalidInputError, "text"),
        ("record_outcome", {"query_id": "none", "outcome": "success"}, MemGraphError, "none"),
        ("query", {}, InvalidInputError, "cypher"),
        ("query", {"cypher": "MATCH (m:Memory) DELETE m"}, MemGraphError, "DELETE"),
        ("no_such", {}, NotFoundError, "operation"),
    ],
)
def test_a_bad_call_is_refused_with_what_to_do(memory, name, arguments, error, said):
    before, refusals = memory.store.digest(), set()
    with pytest.raises(error, match=said):
        perform(memory, Caller(), name, arguments)
    for open_door in DOORS.values():
        with open_door(memory, Caller()) as door, pytest.raises(RefusedError, match=said) as caught:
            door(name, arguments)
        refusals.add(str(caught.value))
    assert len(refusals) == 1, "each door says it otherwise"
    assert memory.store.digest() == before


def test_a_work_order_is_found_by_its_id(door, memory):
    for thing in ("importer", "exporter"):
        memory.save_observation(f"The {thing} handles empty files.")
        memory.save_observation(f"The {thing} does not handle empty files.")
    memory.maintenance.sleep(phases=["work-orders"])
    orders = [one.id for one in memory.distillation.list()]
    assert len(orders) >= 2
    for one in orders:
        assert f"order_id: {one}" in door("next_work_order", {"order_id": one}).text
    assert "order_id" not in door("next_work_order", {"order_id": "another"}).text


def test_only_a_caller_of_its_task_can_skip_a_work_order(memory):
    for text in ("The importer handles empty files.", "The importer does not handle empty files."):
        memory.store.insert_memory(SemanticMemory(content=text, task_id="T-1", source="test"))
    memory.maintenance.sleep()
    (order,) = memory.distillation.list()
    assert order.task_id == "T-1"
    with pytest.raises(NotFoundError):
        perform(memory, Caller(task="T-2"), "answer_work_order", {"order_id": order.id})
    assert [one.id for one in memory.distillation.list()] == [order.id]
    assert perform(memory, Caller(task="T-1"), "answer_work_order", {"order_id": order.id}).data["is_skipped"]
    assert memory.distillation.list() == []


def test_a_turn_concerns_the_callers_session_and_the_tasks_of_its_project(door_for, memory):
    memory.tasks.upsert("Fix the checkout", task_id="checkout", project="shop")
    memory.tasks.upsert("Pay the salaries", task_id="salaries", project="hr")
    memory.tasks.sessions.switch("s1", "checkout")
    memory.tasks.sessions.control("s1", autoswitch=True, guidance="supportive")
    door = door_for(Caller(project="shop", session="s1"))
    for message in ("Pay the salaries", "Switch to task salaries"):
        answer = door("begin_turn", {"message": message})
        assert "salaries" not in f"{answer.text}{answer.data}"
    assert "Confirmed in checkout: yes" in door("begin_turn", {"message": "yes", "asked": "Ship it?"}).text
    confirmation = memory.tasks.snapshot("checkout").confirmation
    assert (confirmation.reason, confirmation.actor) == ("Ship it?", "agent")
    assert memory.tasks.sessions.get("s1").active == "checkout"
    with pytest.raises(RefusedError, match="session"):
        door_for(Caller(project="shop"))("begin_turn", {"message": "hello"})


def test_an_operation_outside_the_toolset_does_not_exist(memory):
    with pytest.raises(NotFoundError, match="recall, search_memories"):
        perform(memory, Caller(), "forget", {"id": "x"}, toolset="core")


def test_an_operation_that_reads_writes_nothing_but_records_of_it(memory):
    def write(call: Call, _given: Arguments) -> Answer:
        call.memory.save_observation("The shop is blue.")
        return Answer(text="", data={})

    one = Operation(name="x", description="Writes.", arguments=Arguments, run=write, effect="read")
    before = memory.store.digest()
    with pytest.raises(ReadOnlyError, match=r"memory\.added"):
        one.perform(Call(memory), {})
    assert memory.store.digest() == before
    replace(one, effect="write").perform(Call(memory), {})
    assert memory.store.digest() != before
    saved = memory.store.list_memories()[0].id
    arguments: dict[str, dict[str, Any]] = {
        "recall": {"task": "which colour has the shop"},
        "search_memories": {"query": "shop"},
        "get_memory": {"id": saved},
        "ask": {"question": "which colour has the shop"},
        "list_memories": {},
        "query": {"cypher": "MATCH (m:Memory) RETURN m.id"},
        "stats": {},
        "next_work_order": {},
        "prompt": {"task": "which colour has the shop"},
        "list_handoffs": {},
        "show_handoff": {"id": handed_over(memory, [])},
    }
    assert arguments.keys() == {one.name for one in OPERATIONS.values() if one.effect == "read"}
    before_seq = max(event.seq for event in memory.store.reader.events_after(0))
    for name, given in arguments.items():
        perform(memory, Caller(agent="coach"), name, given)
    memory.store.flush()
    written = [event.payload for event in memory.store.reader.events_after(before_seq)]
    assert written
    assert all(one.POLICY.is_of_reading for one in written)


def test_what_an_answer_says_in_tags_is_in_the_prompt_of_its_session(door_for, memory):
    door, other = (door_for(Caller(project="shop", session=session)) for session in ("s1", "s2"))
    memory.tasks.pins.upsert("Never deploy on Fridays", kind="constraint")
    said = door(
        "absorb",
        {
            "output": "Done. <memory>Till: it needs a coin</memory><chat-memory>Be terse here</chat-memory>"
            "<working-memory>Task: Count the coins</working-memory>"
        },
    )
    assert said.text == "Done."
    mine, theirs = door("prompt", {"task": "open the till"}).text, other("prompt", {"task": "open the till"}).text
    assert mine.startswith("## Standing rules\n- Rule: Never deploy on Fridays.")
    assert theirs.startswith("## Standing rules\n- Rule: Never deploy on Fridays.")
    assert "needs a coin" in mine
    assert "needs a coin" in theirs
    for told in ("Be terse here", "Count the coins"):
        assert told in mine
        assert told not in theirs
    assert other("prompt", {"sections": ["chat_memory", "working_memory"]}).text == ""


def test_a_session_is_needed_to_store_what_it_says_and_one_project_is_too_little(door_for, memory):
    with pytest.raises(RefusedError, match="session"):
        door_for(Caller())("absorb", {"output": "<memory>A: b</memory>"})
    fixed = Caller(project="shop", session="s1", is_project_fixed=True)
    for name, arguments in (("prompt", {}), ("absorb", {"output": "<memory>A: b</memory>"})):
        with pytest.raises(PermissionDeniedError, match="alone"):
            perform(memory, fixed, name, arguments)


def handed_over(memory: MemGraph, carried: list[str]) -> str:
    """Hand a task over to any agent, with what only the coach may have; the session s1 works on it. Return the handoff's id."""
    memory.tasks.upsert("Care for the patient", task_id="care")
    memory.tasks.sessions.switch("s1", "care")
    memory.tasks.plan("care", "Take the temperature")
    memory.tasks.decide("care", "She was diagnosed with the SECRETWORD disease")
    memory.tasks.pins.upsert("Ann's insulin has the SECRETWORD dose", kind="constraint", task_id="care")
    made = memory.tasks.handoffs.create(
        "care",
        "Measured the blood",
        from_agent="coach",
        known_issues=["My diabetes has the SECRETWORD form"],
        memories=carried,
    )
    memory.tasks.ledgers.checkpoint("coach", current_task="care", goal="Her SECRETWORD insulin is right")
    assert made.memory_ids == carried
    return made.id


class TestHandoffs:
    @pytest.fixture(autouse=True)
    def _task(self, memory) -> None:
        memory.tasks.upsert("Fix the till", task_id="till", project="shop")
        memory.tasks.decide("till", "Use coins")
        memory.tasks.sessions.switch("s1", "till")

    def test_one_agent_hands_over_and_another_continues(self, door_for, memory):
        giver, taker = door_for(Caller(agent="eng", session="s1")), door_for(Caller(agent="qa", session="s2"))
        made = giver(
            "create_handoff", {"what_was_done": "The till takes coins", "to_agent": "qa", "known_issues": ["slow"]}
        )
        [handoff] = memory.tasks.handoffs.list()
        assert (handoff.task_id, handoff.from_agent) == ("till", "eng")
        assert handoff.id[:8] in made.text
        assert handoff.id[:8] in taker("list_handoffs", {}).text
        assert "Use coins" in taker("show_handoff", {"id": handoff.id[:8]}).text
        for _ in range(2):
            accepted = taker("accept_handoff", {"id": handoff.id}).text
            assert accepted.startswith("# Continuity: Fix the till")
            assert "`memgraph task switch till`" in accepted
        assert memory.tasks.sessions.get("s2").active is None
        assert taker("list_handoffs", {}).text == "There are no handoffs."
        assert "accepted" in taker("list_handoffs", {"include_closed": True}).text

    def test_what_is_for_another_agent_does_not_exist(self, door_for, memory):
        made = memory.tasks.handoffs.create("till", "Done", from_agent="eng", to_agent="qa")
        other, errors = door_for(Caller(agent="other")), set()
        for one in (made.id, "00000000-0000-4000-8000-000000000000"):
            for name in ("show_handoff", "accept_handoff"):
                with pytest.raises(RefusedError) as caught:
                    other(name, {"id": one})
                errors.add(str(caught.value).replace(one, "ID"))
        assert len(errors) == 1
        assert memory.tasks.handoffs.get(made.id).state == "open"

    def test_a_caller_hands_over_only_the_task_of_its_session(self, door_for, memory):
        with pytest.raises(RefusedError, match="works on no task"):
            door_for(Caller(agent="eng", session="idle"))("create_handoff", {"what_was_done": "x"})
        with pytest.raises(InvalidInputError, match="own name"):
            perform(memory, Caller(session="s1"), "create_handoff", {"what_was_done": "x"})
        assert memory.tasks.handoffs.list() == []

    def test_a_caller_of_one_project_has_handoffs_and_memories_of_it_alone(self, memory):
        for project in ("shop", "mill", None):
            text = f"The till of {project} takes coins"
            memory.store.insert_memory(SemanticMemory(content=text, source="test", project_id=project))
        memory.tasks.upsert("The till of all", task_id="all")
        wide = memory.tasks.handoffs.create("all", "The till takes coins", from_agent="eng")
        narrow = memory.tasks.handoffs.create("till", "The till takes coins", from_agent="eng")
        mill = Caller(agent="qa", project="mill", is_project_fixed=True)
        assert [one["id"] for one in perform(memory, mill, "list_handoffs", {}).data["handoffs"]] == [wide.id]
        with pytest.raises(NotFoundError):
            perform(memory, mill, "accept_handoff", {"id": narrow.id})
        shown = perform(memory, mill, "accept_handoff", {"id": wide.id})
        assert "of mill takes" in shown.text
        assert "of shop takes" not in f"{shown.text}{shown.data}"
        with pytest.raises(NotFoundError, match="task"):
            perform(memory, mill.model_copy(update={"session": "s1"}), "create_handoff", {"what_was_done": "x"})


class TestPrivacy:
    @pytest.fixture
    def private(self, memory) -> str:
        return memory.store.insert_memory(
            EpisodicMemory(content="Took the SECRETWORD dose of insulin", domain="health", source="test")
        ).id

    @pytest.mark.parametrize("agent", ["agent", "planner"])
    def test_no_operation_shows_an_agent_what_it_may_not_have(self, door_for, memory, private, agent):
        handoff = handed_over(memory, [private])
        door, seen = door_for(Caller(agent=agent, session="s1")), []
        rule = "Never take the dose of insulin at noon, says the SECRETWORD"
        memory.store.insert_memory(SemanticMemory(content=rule, domain="health", is_pinned=True, source="test"))
        turn = "Take the dose of insulin at noon"
        assert "SECRETWORD" in memory.tasks.begin_turn("owner", turn).nudge.question
        missing = "00000000-0000-4000-8000-000000000000"
        calls: dict[str, list[dict[str, Any]]] = {
            "recall": [{"task": "Took the SECRETWORD dose of insulin"[5:]}],
            "search_memories": [{"query": "dose of insulin"}],
            "get_memory": [{"id": private}, {"id": private[:8]}],
            "ask": [{"question": "dose of insulin"}],
            "list_memories": [{}],
            "record_outcome": [{"query_id": missing, "outcome": "success", "used": [private]}],
            "save_observation": [{"text": "An apple a day"}],
            "save_episode": [EPISODE],
            "invalidate_memory": [{"id": private, "reason": "no"}],
            "feedback": [{"id": private, "feedback": "meh"}],
            "remember": [{"text": "Lunch is at noon"}],
            "forget": [{"id": private}],
            "begin_turn": [{"message": turn}, {"message": "yes"}],
            "query": [{"cypher": "MATCH (m:Memory) RETURN m.id, m.content"}],
            "stats": [{}],
            "sleep": [{}],
            "next_work_order": [{}],
            "answer_work_order": [{"order_id": missing}],
            "prompt": [{"task": "dose of insulin"}, {}, {"sections": ["recent_notes", "chat_memory"]}],
            "absorb": [{"output": "<memory>Pears are ripe in June</memory>"}],
            "create_handoff": [{"what_was_done": "An apple was given"}],
            "list_handoffs": [{}, {"include_closed": True}],
            "show_handoff": [{"id": handoff}, {"id": handoff[:8]}],
            "accept_handoff": [{"id": handoff}],
        }
        assert calls.keys() == OPERATIONS.keys()  # a new operation fails here until it is tried
        for name, tried in calls.items():
            for arguments in tried:
                try:
                    answer = door(name, arguments)
                    seen.append(f"{answer.text}{answer.data}")
                except RefusedError as error:
                    seen.append(str(error))
        told = "\n".join(seen)
        assert "An apple" in told
        assert "Take the temperature" in told  # the page was shown
        assert "SECRETWORD" not in told.replace(str(calls["recall"]), "")
        kept = memory.store.get_memory(private)
        assert not kept.is_suppressed
        assert kept.invalid_at is None
        assert kept.user_feedback is None

    def test_what_repeats_a_forgotten_memory_does_not_exist_for_an_agent(self, door, memory):
        told = memory.store.insert_memory(
            EpisodicMemory(content="The FORGOTTENWORD is in the cellar", source="test")
        ).id
        derived = SemanticMemory(
            content="Keep the FORGOTTENWORD in the cellar", source="compression", supporting_memory_ids=[told]
        )
        repeats = memory.store.insert_memory(derived).id
        memory.commands.forget(told)
        calls = {
            "get_memory": [{"id": repeats}, {"id": repeats[:8]}],
            "record_outcome": [{"query_id": told, "outcome": "success", "used": [repeats]}],
            "invalidate_memory": [{"id": repeats, "reason": "no"}],
            "feedback": [{"id": repeats, "feedback": "meh"}],
            "forget": [{"id": repeats}],
        }
        for name, tried in calls.items():
            for arguments in tried:
                with pytest.raises(RefusedError, match="no memory") as caught:
                    door(name, arguments)
                assert "FORGOTTENWORD" not in str(caught.value)
        for name, arguments in (
            ("list_memories", {}),
            ("search_memories", {"query": "cellar"}),
            ("recall", {"task": "where is the cellar"}),
            ("query", {"cypher": f"MATCH (m:Memory) WHERE m.id = '{repeats}' RETURN m.content"}),
        ):
            answer = door(name, arguments)
            assert "FORGOTTENWORD" not in f"{answer.text}{answer.data}", name
        kept = memory.store.get_memory(repeats)  # the owner
        assert (kept.is_suppressed, kept.invalid_at) == (False, None)
        memory.commands.unforget(told)
        assert "FORGOTTENWORD" in door("get_memory", {"id": repeats}).text

    def test_an_unknown_and_a_hidden_id_are_refused_alike(self, door, private):
        errors = set()
        for one in (private, "00000000-0000-4000-8000-000000000000"):
            for given in (one, one[:8]):
                with pytest.raises(RefusedError) as caught:
                    door("get_memory", {"id": given})
                errors.add(str(caught.value).replace(given, "ID"))
        assert len(errors) == 1, errors

    def test_its_own_agent_has_it_and_writes_no_other_domain(self, door_for, memory, private):
        door = door_for(Caller(agent="coach"))
        assert "SECRETWORD" in door("get_memory", {"id": private}).text
        for name, arguments in (("remember", {"text": "Lunch is at noon"}), ("save_episode", EPISODE)):
            with pytest.raises(RefusedError, match="general"):
                door(name, arguments)
        with pytest.raises(PermissionDeniedError, match="general"):
            perform(memory, Caller(agent="coach"), "save_episode", EPISODE)

    def test_what_an_agent_remembers_is_not_said_by_the_user(self, door, memory):
        door("remember", {"text": "Lunch is at noon"})
        [found] = memory.store.list_memories()
        assert isinstance(found, SemanticMemory)
        assert (found.trust_class, found.is_pinned) == ("agent", True)


EPISODE = {
    "task": "Run the checkout migration",
    "action": "Ran it with a lock timeout of five seconds",
    "reasoning": "The orders table is busy",
    "outcome": "success",
}


def test_a_justification_that_is_too_short_is_refused(door_for, memory):
    saved = memory.save_observation("The till needs a coin.").memory_id
    door = door_for(Caller(agent="coach", justification="treatment"))
    for name, arguments in (("get_memory", {"id": saved}), ("recall", {"task": "open the till"})):
        with pytest.raises(RefusedError, match="more than 20 characters"):
            door(name, arguments)


def test_a_page_of_a_list_discloses_only_what_it_shows(door_for, memory):
    for bill in ("rent", "tax", "water"):
        memory.store.insert_memory(
            SemanticMemory(content=f"The {bill} is due in May", domain="financial", source="test")
        )
    door = door_for(Caller(agent="coach", justification="she asked me to plan her payments"))
    shown = door("list_memories", {"limit": 1, "offset": 1})
    [audited] = memory.audit()
    assert [one[:8] in shown.text for one in audited.disclosed_ids] == [True]
    assert shown.text.splitlines()[-1] == "next_offset: 2"
    assert "next_offset" not in door("list_memories", {"limit": 1, "offset": 2}).text


def test_lists_and_records_may_come_as_their_json_text_and_an_empty_project_is_none(door, memory):
    saved = saved_by(door("save_episode", {**EPISODE, "tags": '["checkout", "migration"]', "project": ""}))
    kept = memory.store.get_memory(saved)
    assert (kept.tags, kept.project_id) == (["checkout", "migration"], "shop")
    found = door("recall", {"task": "run the checkout migration again"}).text
    query_id = found.splitlines()[-1].removeprefix("query_id: ")
    done = door("record_outcome", {"query_id": query_id, "outcome": "success", "used": json.dumps([saved[:8]])})
    assert done.text == "Recorded: success, 1 used, 0 overridden."
    asked = {"cypher": "MATCH (m:Memory) WHERE m.id = $id RETURN m.id AS id", "params": json.dumps({"id": saved})}
    assert saved in door("query", asked).text
    with pytest.raises((RefusedError, InvalidInputError), match="used"):
        door("record_outcome", {"query_id": query_id, "outcome": "success", "used": "[not json"})
