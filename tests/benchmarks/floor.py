"""What the floor of a recall keeps and lets in: evidence, what other conversations hold, and notes that have nothing to do with a task."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memgraph import MemGraph
from memgraph.retrieval.stages.floor import AUTO
from tests.benchmarks.abstention import UNANSWERABLE, masked
from tests.benchmarks.corpus import Doc
from tests.benchmarks.data import SEED
from tests.benchmarks.floor_notes import KNOWN, NO_MATTER, NOTES, OTHER_LANGUAGES, OTHER_MATTERS, PREFERENCES
from tests.benchmarks.memgraph_system import MemGraphSystem
from tests.benchmarks.questions import Harness, Question
from tests.benchmarks.tables import table

FLOORS = ("off", 0.3, 0.5, 0.6, AUTO, 0.8, 0.9)
_CONVERSATIONS = "locomo"
_PASSAGES = ("hotpot", "musique", "2wiki")
_MOST_TURNS, _MOST_PASSAGES = 10, 5
"""Lines recalled: as many as the headlines of the sets count."""
_FIRST = 3
Say = Callable[[str], None]
Floor = str | float
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question put to a store: its evidence there (none in another store), and the documents recalled, each once."""

    evidence: frozenset[str]
    found: tuple[str, ...]

    @property
    def hits(self) -> int:
        """How many pieces of evidence were found."""
        return len(self.evidence.intersection(self.found))


def measure(system: MemGraphSystem, harness: Harness, half: str, say: Say) -> Figures:
    """Print and return the curve over `FLOORS`, the figures of the default, and what it does in small stores of notes."""
    stores, questions = harness.load(_CONVERSATIONS, half)
    answerable = [question for question in questions if question["cat"] != UNANSWERABLE]
    document: Figures = {"auto": AUTO, "curve": list(_curve(system, stores, answerable, say))}
    document["sets"] = [at_default(system, harness, name, half) for name in (_CONVERSATIONS, *_PASSAGES)]
    rows = [
        [
            one["set"],
            str(one["questions"]),
            *(f"{one[name]:.1f}" for name in ("off", "auto")),
            f"{one['lost']:.2f}",
            *_shown(one),
        ]
        for one in document["sets"]
    ]
    heads = ["set", "questions", "recall without a floor, %", "with auto", "points lost", "answerable with nothing, %"]
    for line in table([*heads, "put to another store: nothing, %"], rows):
        say(line)
    document["notes"] = _notes(system, say)
    return document


def _shown(figures: Figures) -> list[str]:
    return [f"{figures[name]:.1f}" if name in figures else "–" for name in ("own_nothing", "foreign_nothing")]


def _curve(
    system: MemGraphSystem, stores: dict[str, list[Doc]], questions: Sequence[Question], say: Say
) -> Iterator[Figures]:
    names = {str(doc["speaker"]) for docs in stores.values() for doc in docs}
    heads = ["evidence kept, %", "lines let in from another store, %", "own with nothing, %", "others with nothing, %"]
    for how in ("as they stand", "masked"):
        texts = [masked(one["text"], names) if how == "masked" else str(one["text"]) for one in questions]
        rows, full = [], (0, 0)
        for floor in FLOORS:
            own, foreign = _both(system, stores, questions, texts, floor)
            counts = sum(one.hits for one in own), sum(len(one.found) for one in foreign)
            full = counts if floor == "off" else full
            figures = {
                "names": how,
                "floor": floor,
                "kept": 100 * counts[0] / full[0],
                "let_in": 100 * counts[1] / full[1],
                "own_nothing": _nothing(own),
                "foreign_nothing": _nothing(foreign),
            }
            yield figures
            rows.append([str(floor), *(f"{value:.1f}" for value in list(figures.values())[2:])])
        for line in table([f"floor, names {how}", *heads], rows):
            say(line)


def at_default(system: MemGraphSystem, harness: Harness, name: str, half: str) -> Figures:
    """Return the recall of a set's evidence without a floor and with the default, and how many questions got nothing."""
    stores, questions = harness.load(name, half)
    questions = [question for question in questions if question["cat"] != UNANSWERABLE]
    texts = [str(one["text"]) for one in questions]
    (full, _), (own, foreign) = (_both(system, stores, questions, texts, floor) for floor in ("off", "auto"))
    recalls = [100 * sum(one.hits / len(one.evidence) for one in asked) / len(asked) for asked in (full, own)]
    found = {
        "set": name,
        "questions": len(questions),
        "off": recalls[0],
        "auto": recalls[1],
        "lost": recalls[0] - recalls[1],
    }
    return found | {"own_nothing": _nothing(own)} | ({"foreign_nothing": _nothing(foreign)} if foreign else {})


def _both(
    system: MemGraphSystem,
    stores: dict[str, list[Doc]],
    questions: Sequence[Question],
    texts: Sequence[str],
    floor: Floor,
) -> tuple[list[Asked], list[Asked]]:
    """Put each question to its own store, and to another one where each store has its own questions."""
    chance, lines = random.Random(SEED), _MOST_TURNS if len(stores) > 1 else _MOST_PASSAGES
    own, foreign = list[Asked](), list[Asked]()
    for question, text in zip(questions, texts, strict=True):
        name = question["store"] if question["store"] in stores else next(iter(stores))
        own.append(Asked(frozenset(map(str, question["gold"])), _recalled(system, stores[name], text, lines, floor)))
        if len(stores) > 1:
            other = chance.choice([store for store in stores if store != name])
            foreign.append(Asked(frozenset(), _recalled(system, stores[other], text, lines, floor)))
    return own, foreign


def _recalled(system: MemGraphSystem, docs: Sequence[Doc], text: str, lines: int, floor: Floor) -> tuple[str, ...]:
    result = system.graph_of(docs).recall(text, floor=floor, max_episodic=lines, max_tokens=1_000_000)
    return tuple(dict.fromkeys(system.doc_of(docs, memory.id) for memory in result.memories))


def _nothing(asked: Sequence[Asked]) -> float:
    return 100 * sum(not one.found for one in asked) / len(asked) if asked else 0.0


def _notes(system: MemGraphSystem, say: Say) -> Figures:
    """Put tasks to small invented stores: of other matters, of theirs, and of preferences in other words."""
    found: Figures = {}
    rows = []
    every = [note for notes in NOTES.values() for note in notes]
    tasks = [(task, name) for name in KNOWN for task in KNOWN[name]]
    contents = NOTES | {"preferences": (), "all of them": tuple(every)}
    for name, notes in contents.items():
        graph = system.opened()
        graph.store.insert_memories([{"type": "episodic", "content": note, "project_id": "notes"} for note in notes])
        preferences = PREFERENCES if name in {"preferences", "all of them"} else ()
        for preference, _ in preferences:
            graph.commands.remember(preference)
        other = [task for task in OTHER_MATTERS if graph.recall(task).memories]
        nothing = [task for task in (*NO_MATTER, *OTHER_LANGUAGES) if graph.recall(task).memories]
        strange = [task for task, of in tasks if notes and name not in {of, "all of them"}]
        strange_answered = [task for task in strange if graph.recall(task).memories]
        known = [(_contents(graph, task), of) for task, of in tasks if name in {of, "all of them"}]
        lines = [(line, of) for found_, of in known for line in found_]
        wrong = [line for line, of in lines if line not in NOTES[of]]
        preferred = [preference for preference, task in preferences if preference in _contents(graph, task)[:_FIRST]]
        found[name] = {
            "other_matters": other,
            "no_matter_or_another_language": nothing,
            "tasks_of_other_notes": strange_answered,
            "known_answered": sum(any(line in NOTES[of] for line in found_) for found_, of in known),
            "known": len(known),
            "lines": len(lines),
            "wrong_lines": len(wrong),
            "preferences_first": len(preferred),
            "preferences_missed": [preference for preference, _ in preferences if preference not in preferred],
        }
        answered = f"{found[name]['known_answered']} of {len(known)}" if known else "–"
        rows.append([
            name,
            f"{len(other)} of {len(OTHER_MATTERS)}",
            f"{len(nothing)} of {len(NO_MATTER) + len(OTHER_LANGUAGES)}",
            f"{len(strange_answered)} of {len(strange)}" if strange else "–",
            answered,
            f"{len(wrong)} of {len(lines)}" if lines else "–",
            f"{len(preferred)} of {len(preferences)}" if preferences else "–",
        ])  # fmt: skip
    heads = [
        "notes",
        "tasks of other matters with a line",
        "of no matter, or in another language",
        "tasks of other notes with a line",
        "own tasks answered",
        "their lines from other notes",
    ]
    for line in table([*heads, f"preferences in the first {_FIRST}"], rows):
        say(line)
    return found


def _contents(graph: MemGraph, task: str) -> list[str]:
    return [memory.content for memory in graph.recall(task).memories]
