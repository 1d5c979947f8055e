"""What belongs to what was found comes with it, over every kind of edge, and the explanation says from where."""

from __future__ import annotations

from typing import Any

import pytest

import memgraph
from memgraph.model.results.retrieval import Explanation

QUERY = "Who wrote the parser of the billing import?"


@pytest.fixture
def recalled(store: Any) -> Any:
    """Recall many, and return each content's explanation."""

    def recall(text: str, **config: Any) -> dict[str, Explanation]:
        many = {"max_episodic": 50, "max_semantic": 50, "max_procedural": 50, "max_tokens": 100_000}
        retrieval = memgraph.MemoryRetrieval(store, config=memgraph.RetrievalConfig(**many, **config))
        result = retrieval.retrieve({"task_description": text})
        content = {memory.id: memory.content for memory in result.memories}
        return {
            content[found.memory_id]: found for found in sorted(result.explanations, key=lambda found: -found.score)
        }

    return recall


def episode(content: str, **fields: Any) -> memgraph.EpisodicMemory:
    return memgraph.EpisodicMemory(content=content, **{"project_id": "shop", **fields})


def turns(store: Any, *contents: str, session: str = "s1") -> list[str]:
    return [store.insert_memory(episode(content, session_id=session)).id for content in contents]


def test_an_answer_is_found_by_its_question(store: Any, recalled: Any) -> None:
    asked = turns(store, "Who wrote the parser of the billing import?", "Dana did, in spring", "Let us eat")[0]

    found = recalled(QUERY)

    assert found["Dana did, in spring"].neighbour > found["Let us eat"].neighbour > 0
    hop = found["Dana did, in spring"].path[0]
    assert (hop.relation, hop.memory_id) == ("NEXT", asked)
    assert found[QUERY].question < 0, "a question tells little itself"


def test_memories_of_another_session_are_no_neighbours(store: Any, recalled: Any) -> None:
    turns(store, "the parser of the billing import")
    turns(store, "Let us eat", session="s2")

    assert recalled(QUERY)["Let us eat"].neighbour == 0


def test_words_spread_over_two_turns_are_found_together(store: Any, recalled: Any) -> None:
    turns(store, "we talked of the parser", "and of billing")
    turns(store, "a parser again", "nothing of it", session="s2")

    found = recalled("parser billing", neighbour_weight=0.0)

    assert found["we talked of the parser"].text > found["a parser again"].text


def test_named_entities_are_reached(store: Any, recalled: Any) -> None:
    film, _ = store.insert_memories(
        [
            episode("Payment On Demand was directed by Curtis Bernhardt", title="Payment On Demand"),
            episode("Something else"),
        ]
    )
    store.insert_memory(episode("He died in 1981 in California", title="Curtis Bernhardt"))

    found = recalled("When did the director of Payment On Demand die?")

    hops = found["He died in 1981 in California"].path
    assert [(hop.relation, hop.memory_id) for hop in hops] == [("MENTIONS", film.id)]
    assert found["He died in 1981 in California"].mention > 0
    assert found["Something else"].mention == 0


def test_a_name_of_one_word_learned_later_is_reached(store: Any, recalled: Any) -> None:
    store.insert_memory(episode("The seat of the county is stanley", title="Mountrail County"))
    store.insert_memory(episode("A town with a lake", title="Stanley"))

    assert recalled("Where is the seat of Mountrail County?")["A town with a lake"].mention > 0


def test_evidence_and_derived_memories_are_returned_together(store: Any, recalled: Any) -> None:
    fact = store.insert_memory(memgraph.SemanticMemory(content="Imports break on a byte order mark", project_id="shop"))
    seen = store.insert_memory(episode("the parser of the billing import met U+FEFF"))
    store.link(seen.id, "SUPPORTS", fact.id)

    found = recalled("parser billing import")
    assert found["Imports break on a byte order mark"].path[-1].memory_id == seen.id
    assert found["Imports break on a byte order mark"].evidence > 0

    assert recalled("byte order mark")["the parser of the billing import met U+FEFF"].evidence > 0


def test_a_name_that_is_a_common_word_weighs_little(store: Any, recalled: Any) -> None:
    store.insert_memory(episode("Dana wrote the parser for one run of stanley", title="billing import"))
    store.insert_memories([episode("The runner was rewritten", title="run"), episode("A town", title="Stanley")])
    store.insert_memories([episode(f"a run on day {day}", project_id="shop") for day in range(8)])

    found = recalled(QUERY)

    assert 0 < found["The runner was rewritten"].mention < found["A town"].mention / 2


def test_each_of_many_sources_gains_less(store: Any, recalled: Any) -> None:
    few = store.insert_memory(memgraph.SemanticMemory(content="apples keep for a year in straw", project_id="shop"))
    many = store.insert_memory(memgraph.SemanticMemory(content="apples keep for a year in sand", project_id="shop"))
    for fact, count in ((few, 1), (many, 9)):
        for number in range(count):
            seen = store.insert_memory(episode(f"cellar {number} of {count}"))
            store.link(seen.id, "SUPPORTS", fact.id)

    found = recalled("do apples keep for a year")

    assert found["cellar 0 of 9"].evidence == pytest.approx(found["cellar 0 of 1"].evidence / 3, rel=0.1)


def test_both_sides_of_a_contradiction_are_returned_together(store: Any, recalled: Any) -> None:
    one = store.insert_memory(episode("the queue is rabbit"))
    other = store.insert_memory(episode("no: kafka carries all messages"))
    store.insert_memories([episode(f"the queue was full on day {day}") for day in range(10)])
    store.link(other.id, "CONTRADICTS", one.id)

    found = recalled("what is the queue rabbit")

    assert list(found)[:2] == ["the queue is rabbit", "no: kafka carries all messages"]


def test_a_settled_contradiction_returns_one_side(store: Any, recalled: Any) -> None:
    one = store.insert_memory(episode("the queue is rabbit"))
    other = store.insert_memory(episode("no: kafka carries all messages"))
    store.link(other.id, "CONTRADICTS", one.id)
    store.link(other.id, "SUPERSEDES", one.id)

    found = recalled("what is the queue rabbit")

    assert list(found) == ["no: kafka carries all messages"]
    assert ("SUPERSEDES", one.id) in [
        (hop.relation, hop.memory_id) for hop in found["no: kafka carries all messages"].path
    ]


def test_a_landmark_is_returned_with_memories_that_share_its_tags(store: Any, recalled: Any) -> None:
    lost = episode("all rows were lost", outcome="negative", tags=["import", "billing"], floor=0.1)
    other = episode("a pool ran dry", outcome="negative", tags=["import", "search"], floor=0.1)
    store.insert_memories([lost, other, episode("the parser reads CSV", tags=["import", "billing"])])

    found = recalled("parser CSV")

    assert found["all rows were lost"].landmark > 0
    assert found["a pool ran dry"].landmark == 0, "one shared tag is not enough"


def test_terms_add_up_to_the_score(store: Any, recalled: Any) -> None:
    turns(store, "Who wrote the parser?", "Dana did", "of the billing import, in May 2023")
    store.insert_memory(episode("A parser is born", title="Dana", speaker="Dana"))

    for found in recalled("When did Dana write the parser of the billing import, in May 2023?").values():
        terms = found.model_dump(exclude={"memory_id", "score", "path"})
        assert sum(value for value in terms.values() if isinstance(value, float)) == pytest.approx(
            found.score, abs=1e-5
        )


def test_what_a_task_names_comes_before_what_its_memories_mention(store: Any, recalled: Any) -> None:
    rule = (
        "Who changes src/{}.py changes src/{}.py too: so did {} of the last 5 commits of 2 to 20 files that changed it"
    )

    def keep(one: str, other: str, number: int) -> None:
        entities = [{"name": f"src/{name}.py", "kind": "file", "about": name == one} for name in (one, other)]
        content = rule.format(one, other, number)
        fields = {"content": content, "entities": entities, "project_id": "shop", "source": "counting"}
        store.insert_memory(memgraph.SemanticMemory.parse(fields))

    for number, other in enumerate(("safe", "exc", "safe", "exc"), 2):
        keep("coding", other, number)
    keep("safe", "coding", 5)
    keep("exc", "coding", 5)
    store.insert_memories([episode(f"We eat at {hour}") for hour in range(10, 16)])

    first = list(recalled("change src/coding.py"))[:4]
    assert all(content.startswith("Who changes src/coding.py") for content in first)
    asked = recalled("Who maintains what changes with src/coding.py?")
    assert asked[rule.format("safe", "coding", 5, "safe")].mention > 0


def test_what_a_named_file_rests_on_is_found_over_it(store: Any, recalled: Any) -> None:
    for content, name in (
        ("src/coding.py saves each file through src/flock.py", "src/coding.py"),
        ("src/coding.py: licence header of 2019", "src/coding.py"),
        ("src/flock.py must not be used on network volumes, there saves go missing: fcntl instead", "src/flock.py"),
    ):
        entities = [{"name": name, "kind": "file", "about": True}]
        store.insert_memory(
            memgraph.SemanticMemory.parse({"content": content, "entities": entities, "project_id": "shop"})
        )
    store.insert_memories([episode(f"We eat at {hour}") for hour in range(10, 18)])

    assert next(iter(recalled("saves go missing: repair src/coding.py"))).startswith("src/flock.py")


def test_the_words_of_a_name_are_given_as_the_name_to_texts_with_all_of_it(store: Any, recalled: Any) -> None:
    store.insert_memories([episode("changes of coding.py"), episode("changes of safe.py")])

    found = recalled("change coding.py")

    assert found["changes of coding.py"].words == ["coding.py", "change"]
    assert found["changes of safe.py"].words == ["change", "py"]
