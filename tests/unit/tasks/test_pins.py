"""Pins: immutable but for an explicit edit, removed in two steps, first in a recall of their task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph import InvalidInputError, MemGraph, MemGraphError, NotFoundError, SemanticMemory
from memgraph.errors import ScopeError, UndoError
from memgraph.lifecycle import sleep
from memgraph.model.events.tasks import PinAdded, PinEdited, PinRemoved
from memgraph.model.ids import new_id
from memgraph.tasks.pins import Pins, as_markdown, read_markdown

RULE = "Never deploy on Fridays"


class Uptime:
    """The machine's monotonic time, as a test sets it."""

    def __init__(self) -> None:
        self.seconds = 5_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def uptime() -> Uptime:
    return Uptime()


@pytest.fixture
def pins(tasks: Any, uptime: Uptime) -> Pins:
    return Pins(tasks.store, uptime)


@pytest.fixture
def pass_seconds(clock: Any, uptime: Uptime) -> Callable[[float], None]:
    def advance(seconds: float) -> None:
        clock.advance(seconds=seconds)
        uptime.seconds += seconds

    return advance


def state(pins: Pins, pin_id: str) -> Any:
    memory = pins.store.get_memory(pin_id)
    return pins.get(pin_id), memory and memory.model_dump(exclude={"embedding", "access_count", "last_accessed_at"})


class TestUpsert:
    def test_a_duplicate_returns_the_pin_unchanged(self, pins: Pins, bytes_of: Callable[[], bytes]) -> None:
        made = pins.upsert(RULE, kind="constraint")
        before, journal = state(pins, made.pin.id), bytes_of()
        again = pins.upsert("  never deploy  on FRIDAYS ", kind="preference")
        assert (again.pin, again.is_new, made.is_new) == (made.pin, False, True)
        assert state(pins, made.pin.id) == before
        assert bytes_of() == journal

    def test_scopes_have_their_own_pins(self, pins: Pins) -> None:
        everywhere = pins.upsert(RULE).pin
        login, docs = (pins.upsert(RULE, task_id=name).pin for name in ("login", "docs"))
        assert len({everywhere.id, login.id, docs.id}) == 3
        assert pins.list() == [everywhere]
        assert pins.list(task_id="docs") == [everywhere, docs]
        assert pins.list(all_tasks=True) == [everywhere, login, docs]

    def test_a_temporary_pin_ends_by_itself(self, pins: Pins, clock: Any) -> None:
        pin = pins.upsert("Ann is away", kind="temporary", expires_at="2026-02-03").pin
        assert pins.list(kind="temporary") == [pin]
        clock.advance(days=3)
        assert pins.list() == []
        assert pins.store.list_memories(ids=[pin.id]) == []
        assert pins.upsert("Ann is away", kind="temporary", expires_at="2026-03-03").is_new

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({"text": "  "}, "must not be empty"),
            ({"text": "x" * 10_000}, "at most 800 characters"),
            ({"text": "x", "kind": "rule"}, "kind"),
            ({"text": "x", "kind": "temporary"}, "when does the temporary pin end"),
            ({"text": "x", "kind": "temporary", "expires_at": "2020-01-01"}, "is in the past"),
            ({"text": "x", "kind": "temporary", "expires_at": "soon"}, "is not a date"),
            ({"text": "x", "expires_at": "2030-01-01"}, "only temporary pins end"),
            ({"text": "x", "task_id": "nowhere"}, "no task with id 'nowhere'"),
            ({"text": "x", "task_id": "old"}, "is closed"),
        ],
    )
    def test_what_is_no_pin_is_refused(
        self, pins: Pins, tasks: Any, given: Any, says: str, bytes_of: Callable[[], bytes]
    ) -> None:
        tasks.upsert("Old", task_id="old")
        tasks.set_status("old", "closed")
        before = bytes_of()
        with pytest.raises(MemGraphError, match=says):
            pins.upsert(**given)
        assert bytes_of() == before


class TestImmutable:
    def test_no_other_door_changes_a_pin(self, pins: Pins, memory: MemGraph, bytes_of: Callable[[], bytes]) -> None:
        pin = pins.upsert(RULE, kind="constraint").pin
        other = memory.store.insert_memory(SemanticMemory(content="Deploy whenever you like"))
        before, journal = state(pins, pin.id), bytes_of()
        store, curation = memory.store, memory.curation
        doors: list[Callable[[], Any]] = [
            lambda: store.update_memory(pin.id, content="Deploy on Fridays"),
            lambda: store.update_memory(pin.id, is_pinned=False),
            lambda: store.suppress(pin.id),
            lambda: store.archive(pin.id),
            lambda: store.invalidate(pin.id),
            lambda: store.delete_memory(pin.id),
            lambda: store.supersede(pin.id, by=other.id),
            lambda: store.rewrite(delete=[pin.id]),
            lambda: curation.edit(pin.id, {"project_id": "elsewhere"}),
            lambda: curation.edit(pin.id, {"content": "Deploy on Fridays"}),
            lambda: curation.edit(pin.id, {"privacy_tier": "private"}),
            lambda: curation.edit([other.id, pin.id], {"domain": "health"}),
            lambda: store.update_memory(pin.id, privacy_tier="sensitive"),
            lambda: store.update_memory(pin.id, trust_class="web"),
            lambda: curation.edit(pin.id, {"content": "Deploy on Fridays"}, as_new=True),
            lambda: curation.unpin(pin.id),
            lambda: curation.untag(pin.id, ["constraint"]),
            lambda: curation.forget([other.id, pin.id]),
            lambda: curation.delete(pin.id),
            lambda: curation.merge([other.id, pin.id]),
            lambda: curation.split(pin.id, ["Never deploy", "Fridays are off"]),
            lambda: memory.commands.forget(pin.id),
        ]
        for door in doors:
            with pytest.raises(InvalidInputError, match="is a pin, which only `memgraph pins edit` changes"):
                door()
        assert state(pins, pin.id) == before
        assert bytes_of() == journal

    def test_nothing_that_is_learned_replaces_or_takes_over_a_pin(
        self, pins: Pins, memory: MemGraph, clock: Any
    ) -> None:
        pin = pins.upsert("The port of the API is 8000", kind="constraint").pin
        before = state(pins, pin.id)
        clock.advance(days=2)
        memory.commands.remember("The port of the API is 9000")
        memory.commands.remember("The port of the API is 8000")
        memory.save_observation("The port of the API is 8000")
        memory.store.insert_memory(SemanticMemory(content="The port of the API is 8000", is_pinned=True))
        sleep(memory.store)
        memory.contradictions.find()
        assert state(pins, pin.id) == before
        assert pin.id in [one.id for one in memory.store.list_memories()]
        assert not pins.store.reader.superseded()[pins.store.reader.index.slot(pin.id)]

    def test_a_copy_that_was_remembered_before_does_not_take_its_place(self, pins: Pins, memory: MemGraph) -> None:
        memory.commands.remember(RULE)
        pin = pins.upsert(RULE, kind="constraint").pin
        before = state(pins, pin.id)
        sleep(memory.store)
        assert state(pins, pin.id) == before
        assert not memory.store.reader.superseded().any()

    def test_a_use_is_no_change(self, pins: Pins, memory: MemGraph) -> None:
        pin = pins.upsert(RULE, kind="constraint").pin
        before = state(pins, pin.id)
        memory.store.record_access(pin.id)
        memory.curation.tag(pin.id, ["deploy"])
        assert pins.get(pin.id) == before[0]

    def test_an_explicit_edit_changes_it(self, pins: Pins, memory: MemGraph) -> None:
        pin = pins.upsert(RULE).pin
        edited = pins.edit(pin.id, text="Never deploy on Mondays", kind="constraint")
        assert (edited.id, edited.content, edited.kind) == (pin.id, "Never deploy on Mondays", "constraint")
        known = memory.store.get_memory(pin.id)
        assert known is not None
        assert (known.tags, known.content, known.embedding is not None) == (["constraint"], edited.content, True)
        assert pins.edit(pin.id, text=edited.content) == edited
        temporary = pins.edit(pin.id, kind="temporary", expires_at="2026-03-01")
        assert temporary.expires_at == "2026-03-01T23:59:59.999Z"
        assert pins.edit(pin.id, kind="fact").expires_at is None
        with pytest.raises(InvalidInputError, match="when does the temporary pin end"):
            pins.edit(pin.id, kind="temporary")
        other = pins.upsert("Another").pin
        with pytest.raises(InvalidInputError, match=f"is that of the pin {other.id} already"):
            pins.edit(pin.id, text="another")

    def test_an_explicit_edit_says_who_may_have_it(self, pins: Pins, memory: MemGraph) -> None:
        pin = pins.upsert(RULE, kind="constraint").pin
        pins.edit(pin.id, privacy_tier="private", domain="work")
        known = memory.store.get_memory(pin.id)
        assert known is not None
        assert (known.privacy_tier, known.domain, known.content, known.tags) == (
            "private",
            "work",
            RULE,
            ["constraint"],
        )
        pins.edit(pin.id, domain="", privacy_tier="public")
        known = memory.store.get_memory(pin.id)
        assert known is not None
        assert (known.privacy_tier, known.domain) == ("public", None)
        with pytest.raises(InvalidInputError, match="privacy_tier"):
            pins.edit(pin.id, privacy_tier="secret")  # type: ignore[arg-type]

    @pytest.mark.parametrize("status", ["archived", "closed"])
    def test_pins_of_a_task_that_is_over_do_not_change(
        self, pins: Pins, tasks: Any, memory: MemGraph, status: Any, bytes_of: Callable[[], bytes]
    ) -> None:
        pin = pins.upsert(RULE, task_id="login").pin
        asked, other = pins.request_removal(pin.id), pins.request_removal(pin.id)
        loose = pins.upsert("Of no task").pin
        tasks.set_status("login", status)
        before, journal = state(pins, pin.id), bytes_of()
        doors: list[Callable[[], Any]] = [
            lambda: pins.edit(pin.id, text="Never deploy on Mondays"),
            lambda: pins.edit(pin.id, privacy_tier="private"),
            lambda: pins.request_removal(pin.id),
            lambda: pins.confirm_removal(pin.id, asked.token),
            lambda: pins.forget([loose.id, pin.id]),
            lambda: memory.commands.forget(pin.id, pins=True),
        ]
        for door in doors:
            with pytest.raises(InvalidInputError, match=f"is {status}, so it does not change"):
                door()
        assert state(pins, pin.id) == before
        assert bytes_of() == journal
        pins.cancel_removal(pin.id, other.token)
        tasks.set_status("login", "active")
        assert pins.confirm_removal(pin.id, asked.token).removed_at

    def test_a_pins_events_stay_in_its_scope(self, pins: Pins) -> None:
        pin, loose = pins.upsert(RULE, task_id="login").pin, pins.store.insert_memory(SemanticMemory(content="x"))
        for scope, task_id in (("global", None), ("task", "docs")):
            with pytest.raises(ScopeError):
                pins.store.commit(scope, [PinRemoved(id=pin.id)], task_id=task_id)
        with pytest.raises(InvalidInputError, match="must be a pinned memory of the same commit"):
            pins.store.commit("global", [PinAdded(id=loose.id, kind="fact")])
        with pytest.raises(NotFoundError, match="no pin with id"):
            pins.store.commit("global", [PinEdited(id=loose.id, kind="fact")])
        unknown = PinRemoved(id=pin.id, request_id=new_id())
        with pytest.raises(NotFoundError, match="no open request"):
            pins.store.commit("task", [unknown], task_id="login")


class TestRemoval:
    def test_it_takes_two_steps(self, pins: Pins, bytes_of: Callable[[], bytes]) -> None:
        pin = pins.upsert(RULE).pin
        asked = pins.request_removal(pin.id)
        assert pins.list() == [pin]
        assert asked.token.isalnum(), "an argument of a command may not begin with a dash"
        assert asked.token.encode() not in bytes_of()
        removed = pins.confirm_removal(pin.id, asked.token)
        assert removed.removed_at is not None
        assert pins.list() == []
        known, journal = pins.store.get_memory(pin.id), bytes_of()
        assert known is not None
        assert (known.is_pinned, known.archive_reason) == (False, "the pin was removed")
        assert pins.confirm_removal(pin.id, asked.token) == removed, "confirming again changes nothing"
        assert bytes_of() == journal
        with pytest.raises(InvalidInputError, match="was confirmed"):
            pins.cancel_removal(pin.id, asked.token)
        with pytest.raises(InvalidInputError, match="was removed"):
            pins.request_removal(pin.id)
        assert pins.upsert(RULE).is_new, "it can be pinned again"

    def test_cancelling_is_idempotent_and_final(self, pins: Pins, bytes_of: Callable[[], bytes]) -> None:
        pin = pins.upsert(RULE).pin
        asked, other = pins.request_removal(pin.id), pins.request_removal(pin.id)
        assert pins.cancel_removal(pin.id, asked.token) == pin
        journal = bytes_of()
        assert pins.cancel_removal(pin.id, asked.token) == pin
        assert bytes_of() == journal
        with pytest.raises(InvalidInputError, match="was cancelled"):
            pins.confirm_removal(pin.id, asked.token)
        assert pins.confirm_removal(pin.id, other.token).removed_at, "another request is not cancelled"

    def test_a_token_lives_three_minutes(self, pins: Pins, pass_seconds: Callable[[float], None]) -> None:
        pin = pins.upsert(RULE).pin
        asked = pins.request_removal(pin.id)
        pass_seconds(180)
        late = pins.request_removal(pin.id)
        pass_seconds(0.001)
        with pytest.raises(InvalidInputError, match="has expired, after 3 minutes"):
            pins.confirm_removal(pin.id, asked.token)
        assert pins.list() == [pin]
        assert pins.confirm_removal(pin.id, late.token).removed_at

    @pytest.mark.parametrize("back_s", [1, 170, 3_600, 86_400 * 365])
    def test_a_clock_set_back_does_not_prolong_it(
        self, pins: Pins, clock: Any, uptime: Uptime, pass_seconds: Callable[[float], None], back_s: int
    ) -> None:
        pin = pins.upsert(RULE).pin
        asked = pins.request_removal(pin.id)
        pass_seconds(179)
        clock.advance(seconds=-back_s)
        uptime.seconds += 2
        with pytest.raises(InvalidInputError, match="has expired"):
            pins.confirm_removal(pin.id, asked.token)

    def test_a_machine_that_sleeps_does_not_prolong_it(self, pins: Pins, clock: Any) -> None:
        """Its uptime may stand still meanwhile."""
        pin = pins.upsert(RULE).pin
        asked = pins.request_removal(pin.id)
        clock.advance(seconds=181)
        with pytest.raises(InvalidInputError, match="has expired"):
            pins.confirm_removal(pin.id, asked.token)

    def test_a_token_does_not_outlive_the_machine(self, pins: Pins, uptime: Uptime) -> None:
        pin = pins.upsert(RULE).pin
        asked = pins.request_removal(pin.id)
        uptime.seconds = 30.0
        with pytest.raises(InvalidInputError, match="has expired"):
            pins.confirm_removal(pin.id, asked.token)

    def test_foreign_tokens_are_refused(self, pins: Pins, open_store: Any) -> None:
        pin, other = pins.upsert(RULE).pin, pins.upsert("Another").pin
        elsewhere = MemGraph(open_store("elsewhere")).tasks.pins
        foreign = elsewhere.request_removal(elsewhere.upsert(RULE).pin.id).token
        for token in (pins.request_removal(other.id).token, foreign, "guessed", "x" * 300):
            for step in (pins.confirm_removal, pins.cancel_removal):
                with pytest.raises(InvalidInputError, match="none of this pin"):
                    step(pin.id, token)
        with pytest.raises(InvalidInputError, match="must not be empty"):
            pins.confirm_removal(pin.id, " ")
        with pytest.raises(NotFoundError, match="no pin"):
            pins.confirm_removal(new_id(), foreign)
        assert pins.list() == [pin, other]

    def test_forget_removes_pins_only_when_told_to(self, pins: Pins, memory: MemGraph) -> None:
        pin = pins.upsert(RULE).pin
        with pytest.raises(InvalidInputError, match="is a pin"):
            memory.commands.forget(RULE)
        assert memory.commands.forget(RULE, dry_run=True, pins=True).success
        assert pins.list() == [pin]
        assert memory.commands.forget(RULE, pins=True).success
        assert pins.list() == []
        known = memory.store.get_memory(pin.id)
        assert known is not None
        assert known.is_suppressed


def test_undo_neither_changes_nor_passes_over_them(pins: Pins, memory: MemGraph) -> None:
    memory.commands.remember("An earlier change by the user")
    pin = pins.upsert(RULE).pin
    before = state(pins, pin.id)
    with pytest.raises(UndoError, match="is not reversible"):
        memory.curation.undo()
    with pytest.raises(UndoError, match="belongs to the record of a task or a pin"):
        memory.curation.undo(memory.curation.history(pin.id)[-1].event)
    memory.tasks.decide("login", "Use tokens")
    with pytest.raises(UndoError, match=r"event \d+ \(DECISION_MADE by the user"):
        memory.curation.undo()
    assert state(pins, pin.id) == before
    assert [entry.what for entry in memory.curation.history(pin.id)][-1] == "made a pin"


def test_a_constraint_comes_first_in_recalls_of_its_task_alone(pins: Pins, memory: MemGraph) -> None:
    rule = pins.upsert(RULE, kind="constraint").pin
    mine = pins.upsert("No new tables", kind="constraint", task_id="login").pin
    theirs = pins.upsert("Write in plain English", kind="constraint", task_id="docs").pin
    memory.store.insert_memory(SemanticMemory(content="The login form posts to /session", task_id="login"))
    ids = [one.id for one in memory.recall("Fix the login form", task_id="login").memories]
    assert set(ids[:2]) == {rule.id, mine.id}
    assert theirs.id not in ids
    assert [one.id for one in memory.recall("Fix the login form").memories] == [rule.id]
    memory.tasks.pins.forget([rule.id])
    assert rule.id not in [one.id for one in memory.recall("Fix the login form", task_id="login").memories]


class TestMarkdown:
    def test_a_view_is_read_back(self, pins: Pins) -> None:
        rule = pins.upsert(RULE, kind="constraint").pin
        away = pins.upsert("Ann is\naway \\n", kind="temporary", expires_at="2026-03-01").pin
        pins.upsert("Of a task", task_id="login")
        text = as_markdown(pins.list(task_id="login"))
        assert text.splitlines()[:3] == ["# Pins", "", f"- [constraint] {RULE} <!-- pin {rule.id} -->"]
        assert read_markdown(pins, text).unchanged == 2
        changed = (
            text.replace("Fridays", "Mondays").replace("Ann is", "Bea is") + "- [fact] The API is at /v2\nA remark\n"
        )
        done = read_markdown(pins, changed)
        assert (done.edited, done.unchanged) == ([rule.id, away.id], 0)
        assert [one.content for one in pins.list()] == [
            "Never deploy on Mondays",
            "Bea is\naway \\n",
            "The API is at /v2",
        ]
        assert pins.get(done.added[0]).kind == "fact"
        assert read_markdown(pins, "# Pins\n").unchanged == 0
        assert len(pins.list()) == 3, "what has no line stays"

    def test_what_is_no_view_is_refused(self, pins: Pins) -> None:
        pin = pins.upsert("Of a task", task_id="login").pin
        for text, says in (
            ("- A rule", "is no pin in line 1"),
            ("\n- [rule] A rule", "is no pin in line 2"),
            (f"- [fact] Of none <!-- pin {pin.id} -->", "names a pin of the task login"),
            (f"- [fact] Of none <!-- pin {new_id()} -->", "no pin with id"),
            ("- [fact]  ", "is no pin in line 1"),
        ):
            with pytest.raises(MemGraphError, match=says):
                read_markdown(pins, text)
        assert pins.get(pin.id) == pin
        with pytest.raises(MemGraphError, match="is no pin in line 2"):
            read_markdown(pins, f"- [fact] Edited <!-- pin {pin.id} -->\n- A rule", task_id="login")
        assert pins.get(pin.id) == pin, "nothing of a view is done that has a line which is no pin"

    @settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(content=st.text(min_size=1, max_size=60).filter(lambda text: text.strip() and "\x00" not in text))
    def test_every_text_survives(self, pins: Pins, content: str) -> None:
        made = pins.upsert(content)
        assert read_markdown(pins, as_markdown([made.pin])).unchanged == 1
