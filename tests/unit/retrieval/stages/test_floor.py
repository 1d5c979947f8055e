"""The floor: a recall returns only what has evidence that it belongs to the task; a search marks the rest."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.embedding.onnx import MODEL_NAME
from memgraph.retrieval.version import settings_version
from memgraph.testing import FakeEmbedder
from memgraph.text.sentences import is_question

DEPLOY = "The deploy to production failed because the disk of the build host was full"
ROLLBACK = "Rolling back the release needed the database migration reverted first"
BREAD = "bake sourdough bread with a crispy crust"


def episode(content: str, **fields: Any) -> memgraph.EpisodicMemory:
    return memgraph.EpisodicMemory(content=content, **fields)


def saved(content: str, **fields: Any) -> memgraph.SemanticMemory:
    return memgraph.SemanticMemory(content=content, source="remember", is_pinned=True, **fields)


@pytest.fixture
def notes(open_store: Any) -> Any:
    """Return a store of two notes, its cosines taken for those of the calibrated model."""
    store = open_store(embedder=FakeEmbedder(dimension=384, name=MODEL_NAME))
    store.insert_memories([episode(DEPLOY), episode(ROLLBACK)])
    return store


def recalled(store: Any, task: str, **query: Any) -> list[str]:
    result = memgraph.MemoryRetrieval(store).retrieve({"task_description": task, **query})
    assert bool(result.memories) == bool(result.injected_prompt_prefix)
    return [memory.content for memory in result.memories]


def test_a_recall_of_other_matters_is_empty(notes: Any) -> None:
    assert recalled(notes, BREAD) == []
    assert sorted(recalled(notes, BREAD, floor="off")) == [ROLLBACK, DEPLOY]


def test_only_lines_with_evidence_are_recalled(notes: Any) -> None:
    assert recalled(notes, "the disk of the build host is full") == [DEPLOY]
    assert recalled(notes, "revert the database migration") == [ROLLBACK]


def test_a_search_returns_the_nearest_and_marks_them(notes: Any) -> None:
    found = memgraph.MemoryRetrieval(notes).search_memories("the disk of the build host is full")

    assert [(one.memory.content, one.has_evidence) for one in found] == [(DEPLOY, True), (ROLLBACK, False)]
    assert [one.has_evidence for one in memgraph.MemoryRetrieval(notes).search_memories(BREAD)] == [False, False]


def test_an_answer_marks_what_is_only_similar(notes: Any) -> None:
    answer = memgraph.MemoryCommands(notes).ask("the disk of the build host is full")

    known, other = answer.message.splitlines()
    assert known.startswith("I have a clear memory of this (")
    assert other.startswith("This is only similar; nothing shows that it belongs to the question (")
    assert answer.data["with_evidence"] == answer.data["ids"][:1]


def test_higher_floors_let_in_less(notes: Any) -> None:
    task = "a full disk"
    counts = [len(recalled(notes, task, floor=floor)) for floor in (0.0, 0.5, 1.0)]

    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 2
    assert counts[-1] == 0


def test_names_that_the_store_does_not_know_are_evidence_against_it(notes: Any) -> None:
    assert recalled(notes, "why was the disk of the host full again")
    assert recalled(notes, "why was the disk of Caroline and Melanie full again") == []


def test_a_saved_fact_is_judged_by_its_own_rule_and_comes_first(notes: Any) -> None:
    notes.insert_memory(saved("Prefer tabs"))
    notes.insert_memory(saved("Deploy to production on Mondays"))
    result = memgraph.MemoryRetrieval(notes).retrieve({"task_description": "deploy to production, disk of the host"})

    assert [memory.content for memory in result.memories] == ["Deploy to production on Mondays", DEPLOY]
    first = result.explanations[0]
    terms = first.model_dump(exclude={"memory_id", "score", "path"})
    assert first.saved > 0
    assert sum(value for value in terms.values() if isinstance(value, float)) == pytest.approx(first.score, abs=1e-5)


def test_a_saved_fact_alone_raises_the_certainty(open_store: Any) -> None:
    store = open_store(embedder=FakeEmbedder(dimension=384, name=MODEL_NAME))
    store.insert_memory(saved("Prefer pnpm to npm"))
    result = memgraph.MemoryRetrieval(store).retrieve(
        {"task_description": "which of pnpm and yarn installs the web client"}
    )

    assert [memory.content for memory in result.memories] == ["Prefer pnpm to npm"]
    assert result.certainty != "none"
    assert recalled(store, BREAD) == []


def test_common_verbs_are_no_evidence_for_a_saved_fact(notes: Any) -> None:
    notes.insert_memory(saved("Write commit messages in the imperative mood"))

    assert recalled(notes, "write my grandmother a long and very funny poem about summer") == []


def test_pinned_constraints_hold_for_every_task(notes: Any) -> None:
    rule = notes.insert_memory(saved("Never print secrets", tags=["constraint"]))
    notes.insert_memory(episode("Nobody pinned it", tags=["constraint"]))
    result = memgraph.MemoryRetrieval(notes).retrieve({"task_description": BREAD})

    assert [memory.id for memory in result.memories] == [rule.id]
    assert result.certainty == "none"


def test_constraints_come_first_and_take_no_other_place(notes: Any) -> None:
    facts = [notes.insert_memory(saved(f"The disk of build host {n} is full")).content for n in range(4)]
    rules = [notes.insert_memory(saved(rule, tags=["Constraint"])).content for rule in ("No secrets", "Be terse")]

    found = recalled(notes, "is the disk of the build host full", max_semantic=2)

    assert set(found[:2]) == set(rules)
    assert set(found[2:4]) < set(facts)
    assert set(recalled(notes, "is the disk of the build host full", max_tokens=7)) == set(rules)
    assert set(rules) < set(recalled(notes, "is the disk of the build host full", max_semantic=0, floor="off"))


def test_a_constraint_of_a_project_holds_for_that_project(notes: Any) -> None:
    notes.insert_memory(saved("Never print secrets", tags=["constraint"], project_id="shop"))
    notes.insert_memory(saved("Be terse", tags=["constraint"]))

    assert recalled(notes, BREAD) == ["Be terse"]
    assert set(recalled(notes, BREAD, project_id="shop")) == {"Be terse", "Never print secrets"}
    assert recalled(notes, BREAD, project_id="bank") == ["Be terse"]


def test_a_constraint_that_was_replaced_no_longer_holds(notes: Any) -> None:
    old, new = (notes.insert_memory(saved(rule, tags=["constraint"])) for rule in ("Be terse", "Be thorough"))
    notes.supersede(old.id, by=new.id)

    assert recalled(notes, BREAD) == ["Be thorough"]


def test_a_link_from_a_memory_with_evidence_is_evidence(notes: Any) -> None:
    lesson, unlinked = notes.insert_memories([
        memgraph.SemanticMemory(content="Prune images nightly"),
        memgraph.SemanticMemory(content="Rotate passwords yearly"),
    ])  # fmt: skip
    source = next(memory for memory in notes.get_all_memories() if memory.content == DEPLOY)
    notes.link(source.id, "SUPPORTS", lesson.id)

    found = recalled(notes, "the disk of the build host is full")

    assert lesson.content in found
    assert unlinked.content not in found


def test_lines_are_ordered_by_score_and_without_a_floor_by_type(notes: Any) -> None:
    notes.insert_memory(memgraph.SemanticMemory(content="The disk of the build host is full on Fridays"))
    task = "is the disk of the build host full on Fridays"

    assert recalled(notes, task)[0].endswith("Fridays")
    assert recalled(notes, task, floor="off")[0] == DEPLOY


def test_words_alone_have_a_floor(open_store: Any) -> None:
    store = open_store(embedder=None, embedding_model="none")
    store.insert_memories([episode(DEPLOY), episode(ROLLBACK)])

    assert recalled(store, "the disk of the build host is full") == [DEPLOY]
    assert recalled(store, BREAD) == []


def test_cosines_of_another_model_have_no_calibrated_floor(open_store: Any) -> None:
    store = open_store(embedder=FakeEmbedder(name="of another scale"))
    store.insert_memory(episode(DEPLOY))

    assert recalled(store, BREAD) == [DEPLOY]
    assert recalled(store, BREAD, floor=0.7) == []


def test_a_task_reaches_what_happened_in_the_time_that_it_names(notes: Any) -> None:
    notes.insert_memory(episode("Ann painted the fence", occurred_at="2025-01-14"))

    assert recalled(notes, "what happened in January 2025?") == ["Ann painted the fence"]


def test_the_stores_setting_applies_unless_a_query_says_otherwise(open_store: Any) -> None:
    store = open_store(embedder=FakeEmbedder(dimension=384, name=MODEL_NAME), retrieval_floor="off")
    store.insert_memory(episode(DEPLOY))

    assert recalled(store, BREAD) == [DEPLOY]
    assert recalled(store, BREAD, floor="auto") == []


@pytest.mark.parametrize("name", ["retrieval_floor", "min_similarity", "minSimilarity"])
def test_the_setting_has_seed_4s_name_too(name: str, tmp_path: Any) -> None:
    assert memgraph.AgentMemoryConfig(**{"home": tmp_path, name: 0.4}).retrieval_floor == 0.4


@pytest.mark.parametrize("floor", ["high", "2", 1.5, -0.1, float("nan"), True, []])
def test_a_floor_is_auto_off_or_a_probability(notes: Any, floor: object, tmp_path: Any) -> None:
    with pytest.raises(memgraph.InvalidInputError, match="floor: must be auto, off or a number from 0 to 1"):
        recalled(notes, DEPLOY, floor=floor)
    with pytest.raises(memgraph.InvalidInputError):
        memgraph.AgentMemoryConfig(home=tmp_path, retrieval_floor=floor)


def test_the_recorded_settings_name_the_floor(notes: Any) -> None:
    def version(**query: Any) -> str:
        result = memgraph.MemoryRetrieval(notes).retrieve({"task_description": DEPLOY, **query})
        return result.versions["settings"]

    assert version(floor="off") == settings_version(memgraph.RetrievalConfig(dense_weight=0.75))
    assert len({version(), version(floor="off"), version(floor=0.5)}) == 3


def test_a_budget_without_room_is_not_called_ignorance(notes: Any) -> None:
    for budget, said in (
        ({"max_tokens": 0}, "takes 19 tokens: raise max_tokens"),
        ({"max_episodic": 0}, "has no place for the types"),
    ):
        result = memgraph.MemoryRetrieval(notes).retrieve(
            {"task_description": "the disk of the build host is full", **budget}
        )
        assert (result.memories, result.is_over_budget) == ([], True)
        told = memgraph.format_context_for_prompt(result, format="notes", when_nothing="say")
        assert told.startswith("What memory holds on this task does not fit the budget (")
        assert said in told
    assert not memgraph.MemoryRetrieval(notes).retrieve({"task_description": BREAD, "max_tokens": 0}).is_over_budget


NO_MATTER = ("1", "2", "42", "y", "...", "explain", "continue", "Stop!", "fix it", "ok, go on", "what is this?")


@pytest.mark.parametrize("model", ["minilm", "none"])
def test_a_task_that_names_no_matter_gets_nothing(model: str, open_store: Any) -> None:
    embedder = FakeEmbedder(dimension=384, name=MODEL_NAME) if model == "minilm" else None
    store = open_store(embedder=embedder, embedding_model=model)
    store.insert_memories(
        [episode(" ".join(NO_MATTER)), *map(episode, NO_MATTER), saved("Explain 1 2 42 y: go on, fix it, stop")]
    )
    retrieval = memgraph.MemoryRetrieval(store)

    for task in NO_MATTER:
        result = retrieval.retrieve({"task_description": task})
        assert (result.memories, result.certainty) == ([], "none"), task
        assert not any(one.has_evidence for one in retrieval.search_memories(task)), task


FOREIGN = (
    "Schreibe ein Gedicht über den Herbst für meine Großmutter",
    "Wie backe ich ein Sauerteigbrot mit knuspriger Kruste?",
    "写一首关于秋天的诗",
    "如何烤面包",
    "Напиши стихотворение об осени",
)


def test_cosines_of_a_text_that_the_model_does_not_cover_are_no_evidence(open_store: Any) -> None:
    english = "write a poem about autumn for my grandmother"
    meant = {text: [1.0] + 383 * [0.0] for text in (*FOREIGN, english, DEPLOY, "Prefer tabs")}
    store = open_store(embedder=FakeEmbedder(dimension=384, name=MODEL_NAME, vectors=meant))
    store.insert_memories([episode(DEPLOY), saved("Prefer tabs")])

    assert sorted(recalled(store, english)) == sorted([DEPLOY, "Prefer tabs"])
    for task in FOREIGN:
        assert recalled(store, task) == []
        assert memgraph.MemoryRetrieval(store).retrieve({"task_description": task}).certainty == "none"


def test_words_of_a_language_that_the_model_does_not_cover_are_evidence(notes: Any) -> None:
    german = "Der Sauerteig braucht über Nacht einen warmen Platz, sonst wird die Kruste nicht knusprig"
    notes.insert_memory(episode(german))

    assert recalled(notes, "Wie gelingt eine knusprige Kruste mit Sauerteig über Nacht?") == [german]


def test_another_models_cosines_count_in_every_language(open_store: Any) -> None:
    meant = {text: [1.0] + 383 * [0.0] for text in (FOREIGN[0], DEPLOY)}
    store = open_store(embedder=FakeEmbedder(dimension=384, name="multilingual", vectors=meant))
    store.insert_memory(episode(DEPLOY))

    assert recalled(store, FOREIGN[0], floor=0.7) == [DEPLOY]


OTHER_WORDS = "give every parcel that our couriers bring twice one single label before anybody prints their receipts"
NUMBERS = "thirteen two three four five six seven eight nine ten eleven twelve".split()


def beside(cosine: float, place: int) -> list[float]:
    """Return a unit vector with this cosine with the first axis, and nothing in common with other places."""
    vector = 384 * [0.0]
    vector[0], vector[place] = cosine, (1 - cosine**2) ** 0.5
    return vector


@pytest.fixture
def many(open_store: Any) -> Any:
    """Return a function that opens a store of 60 other memories and these, by their cosines with a task."""

    def opened(cosines: dict[str, float], others: float = 0.0, task: str = OTHER_WORDS) -> Any:
        rest = {f"Note {number}: the kettle hums": others + 0.05 * (number % 3 - 1) for number in range(60)}
        texts = enumerate((rest | cosines).items(), 1)
        vectors = {text: beside(cosine, place) for place, (text, cosine) in texts} | {task: beside(1.0, 1)}
        store = open_store(embedder=FakeEmbedder(dimension=384, name=MODEL_NAME, vectors=vectors))
        store.insert_memories([episode(text) for text in rest])
        return store

    return opened


def test_of_a_task_in_other_words_only_the_best_three_lines_are_kept(many: Any) -> None:
    cosines = {
        f"Entry {word}: {' '.join(NUMBERS[:8])} sheep jumped over dry stone walls": 0.8 - 0.01 * number
        for number, word in enumerate("abcde")
    }
    store = many(cosines)
    store.insert_memories([episode(text) for text in cosines])

    assert recalled(store, OTHER_WORDS) == list(cosines)[:3]
    assert len(recalled(store, OTHER_WORDS, floor="off")) == 5


CABLE = "The signal cable of the eastern crane broke in the frost"
CRANES = {
    CABLE: 0.8,
    "The signal cable of the eastern crane broke again": 0.75,
    "The eastern crane has a new driver since spring": 0.3,
}


def test_a_task_gets_no_line_with_far_less_evidence_than_its_best_one(many: Any) -> None:
    store = many(CRANES, task=(task := "Replace the signal cable of the eastern crane that broke"))
    store.insert_memories([episode(text) for text in CRANES])

    assert recalled(store, task) == list(CRANES)[:2]
    assert len(recalled(store, task, floor="off")) == 5


def test_a_question_gets_every_line_with_evidence(many: Any) -> None:
    store = many(CRANES, task=(question := "What of the signal cable of the eastern crane broke?"))
    store.insert_memories([episode(text) for text in CRANES])

    assert recalled(store, question) == list(CRANES)


FULL, BROKEN = (
    "The agent concluded: the pump stops because its tank is full",
    "The agent concluded: the pump stops because its float is broken, the tank was not full",
)
"""What was concluded first has more of the words of the task."""


@pytest.mark.parametrize(
    ("fields", "is_turned"),
    [
        pytest.param({}, True, id="said later"),
        pytest.param({"occurred_at": "2026-01-05T09:00:00Z"}, False, id="said at the same time"),
        pytest.param({"occurred_at": "2026-01-05T08:00:00Z"}, False, id="said earlier"),
        pytest.param({"session_id": "other"}, False, id="of another session"),
        pytest.param({"session_id": None}, False, id="of no session"),
        pytest.param({"source": "transcript"}, False, id="no record"),
    ],
)
@pytest.mark.parametrize("task", ["pump stops because tank full", "Why does the pump stop, is the tank full?"])
def test_of_two_leading_records_of_a_session_the_later_comes_first(
    task: str, fields: dict[str, Any], is_turned: bool, open_store: Any
) -> None:
    store = open_store(embedder=FakeEmbedder(dimension=384, name=MODEL_NAME))
    turn = {"source": "session turn", "session_id": "pumps", "occurred_at": "2026-01-05T09:00:00Z"}
    later = {**turn, "occurred_at": "2026-01-05T10:00:00Z", **fields}
    store.insert_memories([episode(FULL, **turn), episode(BROKEN, **later)])

    assert recalled(store, task) == ([BROKEN, FULL] if is_turned else [FULL, BROKEN])


def test_records_of_no_session_stay_in_the_order_of_their_scores(open_store: Any) -> None:
    store = open_store(embedder=FakeEmbedder(dimension=384, name=MODEL_NAME))
    days = {FULL: "2026-01-05T09:00:00Z", BROKEN: "2026-01-05T10:00:00Z"}
    store.insert_memories([episode(text, source="commit", occurred_at=day) for text, day in days.items()])

    assert recalled(store, "pump stops because tank full") == [FULL, BROKEN]


def test_the_explanation_says_before_what_a_later_record_was_put(open_store: Any) -> None:
    store = open_store(embedder=FakeEmbedder(dimension=384, name=MODEL_NAME))
    days = {FULL: "2026-01-05T09:00:00Z", BROKEN: "2026-01-05T10:00:00Z"}
    turns = [episode(text, source="session turn", session_id="pumps", occurred_at=day) for text, day in days.items()]
    earlier, later = store.insert_memories(turns)
    result = memgraph.MemoryRetrieval(store).retrieve({"task_description": "pump stops because tank full"})
    first, second = result.explanations

    assert [first.memory_id, second.memory_id] == [later.id, earlier.id]
    assert first.succession > 0.0
    assert first.score == pytest.approx(second.score, abs=1e-6)
    assert [(hop.relation, hop.memory_id) for hop in first.path if hop.relation == "NEXT"] == [("NEXT", earlier.id)]


def test_after_two_lines_a_task_gets_those_with_as_much_evidence_alone(many: Any) -> None:
    cosines = {
        f"The signal cable of crane {name} broke": cosine
        for name, cosine in zip("abcd", (0.8, 0.75, 0.7, 0.79), strict=True)
    }
    store = many(cosines, task=(task := "Replace the signal cable of the crane that broke"))
    store.insert_memories([episode(text) for text in cosines])

    assert recalled(store, task) == [list(cosines)[place] for place in (0, 3)]


@pytest.mark.parametrize(
    ("text", "is_asked"),
    [
        ("Where does the parser read dates?", True),
        ("who owns the release script", True),
        ("¿Dónde está la clave?", True),
        ("Was Mrs. Hall the owner of the script?", True),
        ("When I run the parser, it drops dates. Repair it.", False),
        ("When I run the parser, it drops dates", False),
        ("Can we drop the old parser?", False),
        ("The parser drops dates. Could that be the locale?", False),
        ("Drop the old parser", False),
        ("", False),
    ],
)
def test_what_a_question_is(text: str, is_asked: bool) -> None:
    assert is_question(text) is is_asked


@pytest.mark.parametrize(("others", "is_recalled"), [(0.0, True), (0.68, False)])
def test_a_line_in_other_words_must_stand_out_from_the_stores_memories(
    others: float, is_recalled: bool, many: Any
) -> None:
    text = f"{' '.join(NUMBERS[:8])} sheep jumped over dry stone walls"

    store = many({text: 0.7}, others)
    store.insert_memory(episode(text))

    assert (text in recalled(store, OTHER_WORDS)) is is_recalled


def test_the_words_of_a_long_task_count_by_their_amount(many: Any) -> None:
    text = "Couriers bring a parcel again if the label is lost, so the depot keeps the ledger of every street"
    store = many({text: 0.15})
    store.insert_memory(episode(text))

    assert recalled(store, OTHER_WORDS) == [text]


@pytest.mark.parametrize(
    ("cosine", "others", "is_recalled"), [(0.3, 0.0, True), (0.3, 0.25, False), (0.24, 0.0, False)]
)
def test_among_many_memories_a_saved_fact_must_stand_out(
    cosine: float, others: float, is_recalled: bool, many: Any
) -> None:
    store = many({"My wife is vegetarian": cosine}, others)
    store.insert_memory(saved("My wife is vegetarian"))

    assert ("My wife is vegetarian" in recalled(store, OTHER_WORDS)) is is_recalled


def test_a_saved_fact_opens_the_store_to_no_other_memory(many: Any) -> None:
    fact, other = (
        "Couriers bring every parcel once, with one single label",
        f"{' '.join(NUMBERS)} sheep jumped over dry stone walls",
    )
    store = many({fact: 0.6, other: 0.45})
    store.insert_memories([saved(fact), episode(other)])

    assert recalled(store, OTHER_WORDS) == [fact]


@pytest.mark.parametrize(("sources", "is_recalled"), [(1, True), (4, False)])
def test_one_of_many_sources_is_no_evidence_for_their_generalisation(
    notes: Any, sources: int, is_recalled: bool
) -> None:
    (lesson,) = notes.insert_memories([memgraph.SemanticMemory(content="Expect overflows")])
    source = next(memory for memory in notes.get_all_memories() if memory.content == DEPLOY)
    others = notes.insert_memories([episode(f"The {word} boiled over") for word in NUMBERS[: sources - 1]])
    for one in (source, *others):
        notes.link(one.id, "SUPPORTS", lesson.id)
    found = recalled(notes, "the disk of the build host is full")

    assert DEPLOY in found
    assert (lesson.content in found) is is_recalled
