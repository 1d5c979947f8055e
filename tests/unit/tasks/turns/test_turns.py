"""Turns: the task changes only as the user allowed, questions are explicit, and each decision is on record (seed 4, invariants 5 to 7)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from memgraph import InvalidInputError, MemGraph, MemGraphError
from memgraph.fold.tasks import BACK_AND_FORTH_MINUTES
from memgraph.model.events.registry import PAYLOADS
from memgraph.model.events.tasks import TurnControlled, UserConfirmed
from memgraph.model.memory import SemanticMemory
from memgraph.model.results.tasks import Nudge, TurnControl
from tests.growth import assert_grows_linearly

TO_DOCS = "Let us write the docs now"
TO_LOGIN = "Let us fix the login now"
NONE_CHOSEN = "That chooses none of the options: name one by its number, or run its command."
UNSURE = "The docs are old-fashioned"


@pytest.fixture
def session(tasks: Any) -> Any:
    """A session `s` that works on `login`."""
    tasks.sessions.switch("s", "login")
    return tasks


@pytest.fixture
def begin(session: Any) -> Callable[..., TurnControl]:
    return lambda message, **given: session.begin_turn("s", message, **given)


@pytest.fixture
def events(memory: MemGraph) -> Callable[..., list[Any]]:
    return lambda kind: [event for event in memory.store.reader.events_after(0) if isinstance(event.payload, kind)]


def active(tasks: Any, name: str = "s") -> str | None:
    found: str | None = tasks.sessions.get(name).active
    return found


class TestNothingSwitchesSilently:
    """Invariant 5."""

    def test_autoswitch_is_off_and_then_a_certain_message_is_advice_only(self, begin: Any, session: Any) -> None:
        for _ in range(3):
            turn = begin(TO_DOCS)
            assert (turn.inferred_task, turn.confidence, turn.ambiguous) == ("docs", 0.95, [])
            assert (turn.autoswitch, turn.decision) == (False, "autoswitch_off")
            assert (turn.active_task, turn.resolved_task, active(session)) == ("login", "login", "login")
        assert session.sessions.get("s").last_switch.to_task == "login"

    def test_it_switches_where_its_user_allowed_it_and_the_message_is_certain(self, begin: Any, session: Any) -> None:
        session.sessions.control("s", autoswitch=True)
        turn = begin(TO_DOCS)
        assert (turn.decision, turn.active_task, turn.resolved_task, active(session)) == (
            "switched",
            "login",
            "docs",
            "docs",
        )
        last = session.sessions.get("s").last_switch
        assert (last.from_task, last.to_task) == ("login", "docs")

    def test_one_session_opts_in_for_itself_alone(self, session: Any) -> None:
        session.sessions.switch("other", "login")
        session.sessions.control("other", autoswitch=True)
        assert session.begin_turn("s", TO_DOCS).decision == "autoswitch_off"
        assert session.begin_turn("other", TO_DOCS).decision == "switched"

    def test_no_setting_opts_in(self) -> None:
        from memgraph.config import default_settings

        assert [one.name for one in default_settings() if "autoswitch" in one.name] == []

    def test_what_is_not_sure_does_not_switch(self, begin: Any, session: Any) -> None:
        session.sessions.control("s", autoswitch=True)
        turn = begin("There is an endpoint to write about in the manual or the docs/index")
        assert turn.inferred_task == "docs"
        assert turn.confidence < 0.75
        assert (turn.decision, active(session)) == ("low_confidence", "login")

    def test_what_is_ambiguous_does_not_switch(self, begin: Any, session: Any) -> None:
        session.upsert("Write the docs of the API", task_id="api")
        session.sessions.control("s", autoswitch=True)
        turn = begin("Write the docs of the API")
        assert turn.confidence >= 0.75
        assert [one.task_id for one in turn.ambiguous] == ["api", "docs"]
        assert (turn.decision, active(session)) == ("ambiguous", "login")

    def test_closed_and_archived_tasks_are_never_inferred(self, begin: Any, session: Any) -> None:
        session.sessions.control("s", autoswitch=True)
        for status in ("archived", "closed"):
            session.set_status("docs", status)
            turn = begin("Switch to task docs: write the docs")
            assert (turn.inferred_task, turn.decision, active(session)) == (None, "nothing_inferred", "login")
        session.set_status("docs", "suspended")
        assert begin(TO_DOCS).decision == "switched"

    def test_a_session_without_a_task_may_get_one(self, tasks: Any) -> None:
        assert tasks.begin_turn("new", TO_DOCS).resolved_task is None
        tasks.sessions.control("new", autoswitch=True)
        assert tasks.begin_turn("new", TO_DOCS).resolved_task == "docs"
        assert tasks.sessions.get("new").stack == ["docs"]

    def test_interrupted_tasks_stay_interrupted(self, begin: Any, session: Any) -> None:
        session.upsert("Payroll", task_id="payroll-1")
        session.sessions.switch("s", "payroll-1", push=True)
        session.sessions.control("s", autoswitch=True)
        assert begin(TO_DOCS).decision == "switched"
        assert session.sessions.get("s").stack == ["login", "docs"]


class TestGuards:
    def to_and_fro(self, begin: Any, clock: Any, *, minutes: float) -> list[str]:
        found = []
        for message in (TO_DOCS, TO_LOGIN, TO_DOCS, TO_LOGIN, TO_DOCS):
            clock.advance(seconds=60 * minutes)
            found.append(begin(message).decision)
        return found

    def test_a_session_that_goes_to_and_fro_is_held_back(self, begin: Any, session: Any, clock: Any) -> None:
        session.sessions.control("s", autoswitch=True)
        assert self.to_and_fro(begin, clock, minutes=1) == ["switched"] * 4 + ["guarded"]
        assert session.sessions.get("s").switches_back == 3
        assert active(session) == "login"

    def test_slow_switches_are_no_to_and_fro(self, begin: Any, session: Any, clock: Any) -> None:
        session.sessions.control("s", autoswitch=True)
        assert self.to_and_fro(begin, clock, minutes=BACK_AND_FORTH_MINUTES + 1) == ["switched"] * 5

    def test_the_guard_ends_with_time_or_when_autoswitch_is_switched_on_again(
        self, begin: Any, session: Any, clock: Any
    ) -> None:
        session.sessions.control("s", autoswitch=True)
        self.to_and_fro(begin, clock, minutes=1)
        clock.advance(minutes=BACK_AND_FORTH_MINUTES + 1)
        assert session.sessions.get("s").switches_back == 0
        assert begin(TO_DOCS).decision == "switched"
        self.to_and_fro(begin, clock, minutes=1)
        assert begin(TO_DOCS).decision == "guarded"
        assert session.sessions.control("s", autoswitch=True).switches_back == 0
        assert begin(TO_DOCS).decision == "switched"

    def test_mismatches_in_a_row_hold_autoswitch_back(self, begin: Any, session: Any) -> None:
        session.sessions.control("s", autoswitch=True)
        assert [begin("See the docs/index of the manual").decision for _ in range(3)] == ["low_confidence"] * 3
        turn = begin(TO_DOCS)
        assert (turn.decision, turn.counters.mismatches, turn.counters.max_mismatches) == ("guarded", 4, 3)
        assert begin(TO_LOGIN).counters.mismatches == 0, "a match ends them"
        assert begin(TO_DOCS).decision == "switched"

    def test_messages_of_no_task_leave_the_mismatches(self, begin: Any) -> None:
        assert [begin(one).counters.mismatches for one in (TO_DOCS, "hello", TO_DOCS, TO_LOGIN)] == [1, 1, 2, 0]

    def test_the_limits_are_settings(self, open_store: Any) -> None:
        memory = MemGraph(open_store("other", turns={"max_mismatches": 0, "switch_confidence": 1.0}))
        memory.tasks.upsert("Write the docs", task_id="docs")
        memory.tasks.sessions.control("s", autoswitch=True)
        assert memory.tasks.begin_turn("s", TO_DOCS).decision == "low_confidence"


class TestQuestions:
    """Invariant 6."""

    def test_an_ambiguous_message_asks_with_a_command_for_each_task(self, begin: Any, session: Any) -> None:
        session.upsert("Import customers from Berlin", task_id="berlin")
        session.upsert("Import customers from Paris", task_id="paris")
        nudge = begin("Please import the customers").nudge
        assert (nudge.kind, nudge.about) == ("ambiguity", ["berlin", "paris"])
        assert [one.key for one in nudge.options] == ["1", "2", "3"]
        assert [one.command for one in nudge.options] == [
            "memgraph task switch berlin --session s",
            "memgraph task switch paris --session s",
            None,
        ]
        assert active(session) == "login"

    def test_a_message_that_fits_the_current_task_as_well_does_not_ask(self, begin: Any, session: Any) -> None:
        session.upsert("Import customers from Berlin", task_id="berlin")
        session.upsert("Import customers from Paris", task_id="paris")
        session.sessions.switch("s", "paris")
        turn = begin("Please import the customers")
        assert (turn.decision, turn.nudge) == ("same_task", None)
        assert [one.task_id for one in turn.ambiguous] == ["paris", "berlin"]

    def test_what_a_pinned_constraint_forbids_asks(self, begin: Any, session: Any) -> None:
        pin = session.pins.upsert("Never deploy on Fridays", kind="constraint").pin
        nudge = begin("Deploy it on Friday").nudge
        assert (nudge.kind, nudge.about) == ("conflict", [pin.id])
        assert "Never deploy on Fridays" in nudge.question
        assert [one.command for one in nudge.options] == [
            None,
            f"memgraph pins edit {pin.id[:8]} --text TEXT",
            f"memgraph pins remove {pin.id[:8]}",
        ]
        assert session.pins.get(pin.id) == pin, "asking changes no pin"
        assert begin("Should we deploy on Friday?").nudge is None

    def test_what_a_constraint_of_the_task_forbids_asks_in_this_task_alone(self, begin: Any, session: Any) -> None:
        item = session.constrain("login", "No cookies")
        nudge = begin("Use cookies").nudge
        assert (nudge.kind, nudge.about) == ("conflict", [item.id])
        assert nudge.options[1].command == f"memgraph task done {item.id[:8]} --task login"
        session.sessions.switch("s", "docs")
        assert begin("Use cookies").nudge is None
        session.sessions.switch("s", "login")
        session.lift("login", item.id)
        assert begin("Use cookies").nudge is None

    def test_pins_of_another_task_do_not_ask(self, begin: Any, session: Any) -> None:
        session.pins.upsert("No cookies", kind="constraint", task_id="docs")
        assert begin("Use cookies").nudge is None

    def test_an_important_memory_asks_and_an_ordinary_one_does_not(self, begin: Any, memory: MemGraph) -> None:
        memory.save_observation("Never use cookies")
        assert begin("Use cookies").nudge is None
        memory.commands.remember("Never use tabs in the code")
        nudge = begin("Use tabs in the code").nudge
        assert nudge.kind == "conflict"
        assert nudge.options[1].command == f"memgraph forget {nudge.about[0]}"

    def test_another_topic_asks_only_in_supportive_mode(self, begin: Any, session: Any) -> None:
        assert begin(TO_DOCS).nudge is None
        session.sessions.control("s", guidance="supportive")
        nudge = begin(TO_DOCS).nudge
        assert (nudge.kind, nudge.about) == ("topic_switch", ["docs"])
        assert [one.command for one in nudge.options] == [
            "memgraph task switch docs --session s",
            "memgraph task switch docs --push --session s",
            None,
        ]
        assert active(session) == "login"

    def test_a_conflict_comes_before_other_questions(self, begin: Any, session: Any) -> None:
        session.sessions.control("s", guidance="supportive")
        session.pins.upsert("Never write docs", kind="constraint")
        assert begin("Write the docs").nudge.kind == "conflict"

    def test_names_that_need_quoting_are_quoted_and_invisible_characters_left_out(self, tasks: Any) -> None:
        tasks.upsert("Harmless\u202e title", task_id="a b; rm -rf $HOME")
        tasks.sessions.control("it's", guidance="supportive")
        nudge = tasks.begin_turn("it's", "Go on with task a b; rm -rf $HOME").nudge
        assert nudge.options[0].command == "memgraph task switch 'a b; rm -rf $HOME' --session 'it'\"'\"'s'"
        assert "\u202e" not in nudge.model_dump_json()


class TestRecord:
    """Invariant 7."""

    def test_it_names_everything_that_was_decided(self, begin: Any, session: Any, memory: MemGraph, clock: Any) -> None:
        session.sessions.control("s", autoswitch=True, guidance="supportive")
        turn = begin(TO_DOCS)
        assert turn.model_dump(mode="json", exclude={"turn_id"}) == {
            "version": 1,
            "session_id": "s",
            "seq": memory.store.reader.index.offset.seq,
            "at": memory.store.now(),
            "inferred_task": "docs",
            "confidence": 0.95,
            "ambiguous": [],
            "active_task": "login",
            "resolved_task": "docs",
            "autoswitch": True,
            "guidance": "supportive",
            "decision": "switched",
            "nudge": None,
            "counters": {"switches_back": 0, "max_switches_back": 3, "mismatches": 0, "max_mismatches": 3},
            "confirmations": [],
        }
        assert TurnControl.parse(turn.model_dump(mode="json")) == turn

    @pytest.mark.parametrize(
        "change",
        [
            {"version": 2},
            {"version": "1"},
            {"version": None},
            {"more": 1},
            {"decision": "maybe"},
            {"confidence": 1.5},
            {"autoswitch": "yes"},
        ],
    )
    def test_other_versions_and_unknown_fields_are_refused(self, begin: Any, change: Any) -> None:
        document = begin(TO_DOCS).model_dump(mode="json")
        with pytest.raises(InvalidInputError):
            TurnControl.parse({**document, **change})
        without = {name: value for name, value in document.items() if name not in change}
        if "version" in change:
            with pytest.raises(InvalidInputError, match="version"):
                TurnControl.parse(without)

    def test_a_turn_that_changes_the_session_is_in_the_journal(self, begin: Any, session: Any, events: Any) -> None:
        turn = begin(TO_DOCS)
        (event,) = events(TurnControlled)
        payload = event.payload
        assert (payload.turn_id, payload.inferred_task, payload.resolved_task) == (turn.turn_id, "docs", "login")
        assert (payload.autoswitch, payload.decision, payload.confidence) == (False, "autoswitch_off", 0.95)
        assert (event.write_scope, event.task_id, event.seq) == ("system", None, turn.seq)

    def test_a_turn_that_changes_nothing_appends_nothing(
        self, begin: Any, session: Any, memory: MemGraph, bytes_of: Any
    ) -> None:
        memory.store.flush()
        before, touched = bytes_of(), session.get("login").touched_at
        for message in ("hello", TO_LOGIN, "no", "thanks"):
            begin(message)
        memory.store.flush()
        assert bytes_of() == before
        assert session.get("login").touched_at == touched

    def test_the_journal_quotes_no_memory(self, begin: Any, session: Any, bytes_of: Any) -> None:
        session.pins.upsert("Never deploy on Fridays", kind="constraint")
        before = bytes_of()
        assert begin("Deploy it on Friday").nudge.kind == "conflict"
        begin("yes")
        assert b"Fridays" not in bytes_of()[len(before) :]

    def test_every_turn_is_logged_without_its_message(self, begin: Any, caplog: Any) -> None:
        caplog.set_level(logging.DEBUG, "memgraph")
        turn = begin("hello SECRETWORD")
        assert turn.turn_id in caplog.text
        assert "nothing_inferred" in caplog.text
        assert "SECRETWORD" not in caplog.text

    def test_a_turn_of_another_version_is_refused_by_the_journal(self) -> None:
        assert ("memory.turn-control", 1) in PAYLOADS
        assert ("memory.turn-control", 2) not in PAYLOADS

    def test_questions_always_have_options(self) -> None:
        with pytest.raises(InvalidInputError, match="options"):
            Nudge.parse({"kind": "conflict", "question": "Which?", "options": [], "about": []})


class TestConfirmations:
    def test_they_are_committed_at_once_in_the_scope_of_the_current_task(
        self, begin: Any, session: Any, events: Any
    ) -> None:
        turn = begin("Yes, that's right!", asked="Tokens instead of cookies?")
        (event,) = events(UserConfirmed)
        assert (event.write_scope, event.task_id, event.actor, event.seq) == ("task", "login", "user", turn.seq)
        (done,) = turn.confirmations
        assert (done.task_id, done.message, done.confirmed, done.seq) == (
            "login",
            "Yes, that's right!",
            "Tokens instead of cookies?",
            event.seq,
        )
        assert session.snapshot("login").confirmation.reason == "Tokens instead of cookies?"
        assert session.snapshot("docs").confirmation is None

    def test_a_question_ends_with_the_next_message_or_with_its_answer(self, begin: Any, session: Any) -> None:
        session.sessions.control("s", guidance="supportive")
        begin(TO_DOCS)
        begin("hello")
        assert begin("yes").confirmations[0].confirmed is None
        begin(TO_DOCS)
        session.sessions.switch("s", "docs")
        assert begin("yes").confirmations[0].confirmed is None, "the switch answered it"

    def test_without_a_task_that_can_change_nothing_is_committed(self, begin: Any, session: Any, events: Any) -> None:
        assert session.begin_turn("none", "yes").confirmations == []
        session.set_status("login", "closed")
        turn = begin("yes")
        assert (turn.confirmations, turn.resolved_task) == ([], "login")
        assert events(UserConfirmed) == []

    def test_secrets_are_redacted(self, begin: Any) -> None:
        asked = "Is the key AKIAIOSFODNN7EXAMPLE right?"
        assert "AKIAIOSFODNN7EXAMPLE" not in begin("yes", asked=asked).confirmations[0].confirmed


class TestYesToSeveralOptions:
    """“Yes” and “no” choose none of several options, so they decide nothing."""

    @pytest.fixture
    def ask(self, begin: Any, session: Any, memory: MemGraph) -> Callable[[str], Nudge]:
        """Return a function that lets a turn ask a question of a kind."""

        def conflict() -> Nudge:
            session.constrain("login", "No cookies")
            return begin("Use cookies").nudge

        def pin() -> Nudge:
            session.pins.upsert("Never deploy on Fridays", kind="constraint")
            return begin("Deploy it on Friday").nudge

        def important() -> Nudge:
            memory.commands.remember("Never use tabs in the code")
            return begin("Use tabs in the code").nudge

        def ambiguity() -> Nudge:
            session.upsert("Import customers from Berlin", task_id="berlin")
            session.upsert("Import customers from Paris", task_id="paris")
            return begin("Please import the customers").nudge

        def topic() -> Nudge:
            session.sessions.control("s", guidance="supportive")
            return begin(TO_DOCS).nudge

        asking = {one.__name__: one for one in (conflict, pin, important, ambiguity, topic)}
        return lambda kind: asking[kind]()

    @pytest.mark.parametrize("kind", ["conflict", "pin", "important", "ambiguity", "topic"])
    def test_nothing_is_committed_and_the_number_is_asked_for(
        self, begin: Any, session: Any, ask: Any, bytes_of: Any, kind: str
    ) -> None:
        asked, before = ask(kind), bytes_of()
        for message in ("yes", "Yes, that's right!", "no", "Nein.", "no thanks"):
            turn = begin(message)
            assert turn.confirmations == []
            assert (turn.nudge.kind, turn.nudge.options, turn.nudge.about) == (asked.kind, asked.options, asked.about)
            assert turn.nudge.question == f"{NONE_CHOSEN} {asked.question}"
        assert bytes_of() == before
        assert active(session) == "login"
        assert begin("hello").nudge is None
        assert begin("yes").confirmations[0].confirmed is None, "another message ends the question"

    def test_what_was_asked_since_is_confirmed(self, begin: Any, ask: Any) -> None:
        ask("pin")
        (done,) = begin("yes", asked="Deploy on Thursday instead?").confirmations
        assert done.confirmed == "Deploy on Thursday instead?"
        assert begin("yes").confirmations[0].confirmed is None

    def test_a_rule_that_holds_no_more_asks_no_more(self, begin: Any, session: Any, ask: Any) -> None:
        session.lift("login", ask("conflict").about[0])
        assert begin("yes").confirmations[0].task_id == "login"
        session.pins.forget(ask("pin").about)
        assert begin("yes").confirmations[0].task_id == "login"
        ask("ambiguity")
        session.set_status("paris", "closed")
        assert begin("yes").confirmations[0].task_id == "login"

    def test_it_is_asked_again_only_to_whom_it_may_be_shown(self, begin: Any, session: Any) -> None:
        session.constrain("login", "Never publish my insulin dosage")
        assert begin("Publish my insulin dosage").nudge is not None
        turn = begin("yes", agent="agent")
        assert (turn.nudge, [one.confirmed for one in turn.confirmations]) == (None, [None])
        assert "insulin" not in turn.model_dump_json()

    def test_no_without_a_question_is_a_message_like_others(self, begin: Any, events: Any) -> None:
        turn = begin("no")
        assert (turn.nudge, turn.confirmations, turn.decision) == (None, [], "nothing_inferred")
        assert events(UserConfirmed) == []


class TestOthers:
    """Agents that may not have everything."""

    def test_tasks_of_other_projects_are_neither_inferred_nor_named(self, tasks: Any) -> None:
        tasks.upsert("Pay the salaries", task_id="salaries", project="hr")
        tasks.sessions.control("s", autoswitch=True, guidance="supportive")
        turn = tasks.begin_turn("s", "Pay the salaries", agent="agent", project="shop")
        assert "salaries" not in turn.model_dump_json()
        tasks.sessions.switch("s", "salaries")
        for message in (TO_DOCS, "yes"):
            turn = tasks.begin_turn("s", message, agent="agent", project="shop")
            assert "salaries" not in turn.model_dump_json()
            assert (turn.inferred_task, turn.confirmations) == (None, [])
        assert active(tasks) == "salaries", "nobody switches away from a task that they may not see"
        assert tasks.begin_turn("s", TO_DOCS, agent="agent", project="hr").decision == "switched"

    def test_an_agent_that_may_not_read_what_is_general_sees_no_task(self, open_store: Any) -> None:
        agents = {"coach": {"read": ["health"], "search": ["health"]}, "clerk": {}}
        memory = MemGraph(open_store("other", agents=agents))
        memory.tasks.upsert("Write the docs", task_id="docs")
        assert memory.tasks.begin_turn("s", TO_DOCS, agent="coach").inferred_task is None
        assert memory.tasks.begin_turn("s", TO_DOCS, agent="clerk").inferred_task == "docs"

    def test_texts_of_tasks_that_concern_private_matters_are_no_agents(self, tasks: Any) -> None:
        tasks.upsert("My insulin dosage plan", task_id="plan")
        tasks.upsert("Garden", task_id="garden")
        tasks.decide("garden", "My wife was diagnosed with epilepsy, zebrafish quokka platypus")
        tasks.constrain("login", "Never publish my insulin dosage")
        tasks.sessions.switch("s", "login")
        tasks.sessions.control("s", guidance="supportive")
        for message in ("Work on my insulin dosage plan", "zebrafish quokka platypus", "Publish my insulin dosage"):
            assert tasks.begin_turn("s", message).inferred_task is not None, "the owner's turn says so"
            turn = tasks.begin_turn("s", message, agent="agent")
            assert (turn.inferred_task in (None, "login"), turn.nudge) == (True, None)
        tasks.sessions.switch("s", "plan")
        assert "plan" not in tasks.begin_turn("s", "yes", agent="agent").model_dump_json()

    def test_an_agent_that_may_not_write_confirms_nothing(self, open_store: Any) -> None:
        memory = MemGraph(open_store("other", agents={"reader": {"write": []}, "clerk": {}}))
        memory.tasks.upsert("Write the docs", task_id="docs")
        memory.tasks.sessions.switch("s", "docs")
        assert memory.tasks.begin_turn("s", "yes", asked="Publish?", agent="reader").confirmations == []
        assert memory.tasks.snapshot("docs").confirmation is None
        assert len(memory.tasks.begin_turn("s", "yes", asked="Publish?", agent="clerk").confirmations) == 1

    def test_a_memory_that_an_agent_may_not_have_asks_nothing(self, begin: Any, memory: MemGraph) -> None:
        rule = "Never take insulin at noon"
        memory.store.insert_memory(
            SemanticMemory(content=rule, is_pinned=True, domain="health", privacy_tier="private")
        )
        assert begin("Take insulin at noon", agent="agent").nudge is None
        assert begin("Take insulin at noon").nudge.kind == "conflict"


@pytest.mark.parametrize(
    ("message", "said"), [("", "empty"), (" \n ", "empty"), ("a\x00b", "U\\+0000"), (7, "message"), (None, "message")]
)
def test_a_message_that_is_none_is_refused(begin: Any, message: Any, said: str, bytes_of: Any) -> None:
    before = bytes_of()
    with pytest.raises(InvalidInputError, match=said):
        begin(message)
    assert bytes_of() == before


def test_other_bad_input_is_refused(session: Any) -> None:
    for call in (
        lambda: session.begin_turn("", "hello"),
        lambda: session.begin_turn("s", "yes", asked="x" * 9_000),
        lambda: session.begin_turn("s", "hello", agent="agent", justification="short"),
        lambda: session.sessions.control("s", guidance="loud"),
        lambda: session.sessions.control("s", autoswitch="perhaps"),
    ):
        with pytest.raises(MemGraphError):
            call()


def test_a_message_of_a_megabyte_takes_a_moment(begin: Any) -> None:
    for piece in ("x ", "Deploy it. ", "don't, ", "login-"):
        assert_grows_linearly(lambda length, piece=piece: begin(piece * (1 + length // len(piece))), 1_000_000)


def test_equal_values_of_a_session_change_nothing(session: Any, bytes_of: Any) -> None:
    session.sessions.control("s", autoswitch=True, guidance="supportive")
    before = bytes_of()
    assert session.sessions.control("s", autoswitch=True).guidance == "supportive"
    assert session.sessions.control("s") == session.sessions.control("s", guidance="supportive")
    assert bytes_of() == before


def test_the_last_rejected_recall_is_known(session: Any, memory: MemGraph, clock: Any) -> None:
    saved = memory.save_observation("The docs are in Markdown").memory_id
    found = memory.recall("the docs are in Markdown", session_id="s")
    memory.store.flush()
    memory.record_outcome(found.query_id, "success", used=[saved])
    assert session.sessions.get("s").rejected is None
    clock.advance(seconds=5)
    memory.record_outcome(found.query_id, "failure", overridden=[saved])
    assert session.sessions.get("s").rejected.query_id == found.query_id
    assert session.sessions.get("s").rejected.rejected_at == memory.store.now()
    assert session.sessions.get("s").active == "login"
