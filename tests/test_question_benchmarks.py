"""The benchmarks of recall: documents become memories, questions are scored by whoever brings the harness, certainty is told apart."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memgraph import RetrievalConfig
from memgraph.testing import FakeEmbedder
from tests.benchmarks import ablation, abstention, floor, latency, retrieval
from tests.benchmarks.corpus import moment, parts_of
from tests.benchmarks.embeddings import CachedEmbedder
from tests.benchmarks.questions import Harness
from tests.benchmarks.retrieval import MemGraphSystem, compared
from tests.benchmarks.retrieval_peers import Bm25, Dense
from tests.benchmarks.stories import Storyteller

ROOT = Path(__file__).parents[1]
HARNESS = """
import json, pathlib
DATA = ""
def load(name, half):
    rows = [json.loads(line) for line in (pathlib.Path(DATA) / f"{name}_{half}.jsonl").read_text().splitlines()]
    stores = {}
    for row in rows:
        if row["t"] == "doc":
            stores.setdefault(row["store"], []).append(row)
    return stores, [row for row in rows if row["t"] == "q"]
def evaluate(system, name, half):
    stores, questions = load(name, half)
    per = [{"R@10": float(q["gold"][0] in system(stores[q["store"]], q["text"], 1))} for q in questions]
    mean = {"R@10": sum(one["R@10"] for one in per) / len(per)}
    return {"per": per, "agg": {"ALL": mean, "multi-hop": mean}}
def paired(one, other, metric):
    return other["agg"]["ALL"][metric] - one["agg"]["ALL"][metric], -1.0, 1.0
def report(result):
    return str(result["agg"])
"""
TURNS = [
    ("a", "Ann: The parrot learned to whistle.", "1:56 pm on 8 May, 2023"),
    ("a", "Bo: My bicycle has a flat tyre.", "2:00 pm on 8 May, 2023"),
    ("b", "Cy: We painted the barn green.", "9:05 am on 1 June, 2023"),
    ("b", "Di: Rain ruined the harvest festival.", "a day in spring"),
]
QUESTIONS = [("a", "Who whistles, the parrot of Ann?", 0), ("b", "Which colour has the barn, Cy?", 2)]


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Make a folder of a harness and a set, as third parties bring them."""
    folder = tmp_path / "bench"
    (folder / "data").mkdir(parents=True)
    (folder / "harness.py").write_text(HARNESS)
    docs = [
        {
            "t": "doc",
            "store": store,
            "id": str(n),
            "text": text,
            "date": date,
            "session": 1,
            "speaker": text.split(":")[0],
        }
        for n, (store, text, date) in enumerate(TURNS)
    ]
    asked = [
        {"t": "q", "store": s, "qid": s, "text": text, "gold": [str(n)], "cat": "multi-hop"} for s, text, n in QUESTIONS
    ]
    asked.append(asked[0] | {"cat": "adversarial", "text": "Nobody knows this"})
    (folder / "data" / "locomo_dev.jsonl").write_text("\n".join(map(json.dumps, docs + asked)))
    return folder


@pytest.fixture
def system() -> Iterator[MemGraphSystem]:
    made = MemGraphSystem(FakeEmbedder())
    yield made
    made.close()


def docs_of(*texts: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"id": f"d{n}", "text": text, **fields} for n, text in enumerate(texts)]


def test_a_document_is_found_by_its_id(system: MemGraphSystem) -> None:
    docs = docs_of("The parrot learned to whistle.", "My bicycle has a flat tyre.", title="Things")
    system.prepare(docs)
    assert system(docs, "flat bicycle tyre", 1) == ["d1"]
    assert set(system(docs, "flat bicycle tyre", 20)) == {"d0", "d1"}


def test_documents_that_nobody_prepared_are_filled_once(system: MemGraphSystem) -> None:
    docs = docs_of("The parrot learned to whistle.", "My bicycle has a flat tyre.")
    graph = system.graph_of(docs)
    again, other = docs_of(*(doc["text"] for doc in docs)), docs_of("Another text.")
    assert system.graph_of(again) is graph, "equal documents are one store"
    assert system(other, "text", 5) == ["d0"]
    assert system.graph_of(other) is not graph


def test_a_long_document_is_found_once(system: MemGraphSystem) -> None:
    long = " ".join(f"The parrot number {n} learned to whistle a song." for n in range(60))
    docs = docs_of(long, "Parrots eat seeds.", "A parrot is a bird.", "The parrot sleeps.")
    assert len(parts_of(docs)) > len(docs) + 1
    found = system(docs, "parrot", 4)
    assert sorted(found) == ["d0", "d1", "d2", "d3"], "parts of one document leave room for the others"


def test_a_recall_benchmark_records_no_access(system: MemGraphSystem) -> None:
    docs = docs_of("The parrot learned to whistle.")
    system(docs, "parrot", 1)
    assert [memory.access_count for memory in system.graph_of(docs).store.get_all_memories()] == [0]


def test_a_turn_keeps_when_and_by_whom_it_was_said(system: MemGraphSystem) -> None:
    docs = docs_of("Ann: Hello.", "Ann: Bye.", date="1:56 pm on 8 May, 2023", session=3, speaker="Ann")
    first, second = sorted(system.graph_of(docs).store.get_all_memories(), key=lambda memory: len(memory.content))[::-1]
    assert (first.content, first.speaker, first.session_id) == ("Ann: Hello.", "Ann", "3")
    assert first.occurred_at == "2023-05-08T13:56:00.000Z"
    assert second.previous_id == first.id


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("2023-05-08T15:56:00+02:00", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("31 February, 2023", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("some day", None),
        (12, None),
        ("", None),
        (None, None),
    ],
)
def test_a_date_is_understood_or_left_out(date: object, expected: datetime | None) -> None:
    assert moment(date) == expected


def test_odd_documents_are_taken(system: MemGraphSystem) -> None:
    odd = docs_of("", "   ", "A parrot.", title=None, date="the day after", session=None, speaker="")
    odd.append({"id": "long", "text": "x", "title": "word " * 400, "speaker": "y" * 3_000, "date": "99:99 pm"})
    assert "d2" in system(odd, "parrot", 4)


def test_peers_receive_date_and_title() -> None:
    part = parts_of([{"id": 1, "text": "He was born in Ulm.", "title": "Einstein", "date": "8 May, 2023"}])[0]
    assert part.told == "8 May, 2023\nEinstein\nHe was born in Ulm."
    assert parts_of([{"id": 1, "text": "Ulm\nA city.", "title": "Ulm"}])[0].told == "Ulm\nA city."


def test_vectors_are_kept_and_texts_are_not(tmp_path: Path) -> None:
    class Counting(FakeEmbedder):
        asked = 0

        def embed(self, texts: Any) -> Any:
            self.asked += len(texts)
            return super().embed(texts)

    inner = Counting()
    first = CachedEmbedder(inner, folder=tmp_path / "cache")
    wanted = FakeEmbedder().embed(["a secret parrot", "b"])
    assert np.array_equal(first.embed(["a secret parrot", "b", "a secret parrot"]), wanted[[0, 1, 0]])
    first.close()
    second = CachedEmbedder(inner, folder=tmp_path / "cache")
    assert np.array_equal(second.embed(["b", "a secret parrot"]), wanted[[1, 0]])
    assert np.array_equal(second.embed_query("b"), FakeEmbedder().embed_query("b"))
    assert inner.asked == 2
    assert second.embed([]).shape == (0, inner.dimension)
    second.close()
    assert not any(b"parrot" in file.read_bytes() for file in (tmp_path / "cache").iterdir())


def test_baselines_find_by_word_and_by_vector(tmp_path: Path) -> None:
    docs = docs_of("The parrot learned to whistle.", "My bicycle has a flat tyre.", "A parrot and a parrot.")
    assert Bm25()(docs, "PARROT whistle", 2) == ["d0", "d2"]
    dense = Dense(CachedEmbedder(FakeEmbedder(), folder=tmp_path))
    assert dense(docs, docs[1]["text"], 1) == ["d1"]


def test_systems_are_compared_with_memgraph(bench: Path) -> None:
    harness = Harness(bench)
    results = {
        name: {"locomo": {"agg": {kind: {"R@10": share} for kind in ("ALL", "multi-hop")}}}
        for name, share in (("memgraph", 0.75), ("bm25", 0.5))
    }
    lines = "\n".join(compared(harness, {"systems": results}, ["locomo"]))
    assert "75.0" in lines
    assert "bm25: locomo +25.0 [-100.0, 100.0]" in lines


def test_every_weight_of_retrieval_is_ablated() -> None:
    weights = {name for name in RetrievalConfig.model_fields if name.endswith("_weight")}
    switched = {name for settings in ablation.WITHOUT.values() for name in settings}
    assert weights - switched == set()
    for part, settings in ablation.WITHOUT.items():
        assert RetrievalConfig(**settings) != RetrievalConfig(), part


def test_an_ablation_reports_the_effect_of_each_part(
    bench: Path, system: MemGraphSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    text_alone = {"dense_weight": 0.0}
    monkeypatch.setattr(ablation, "WITHOUT", {"words": {"dense_weight": 1.0}, "vectors": text_alone})
    said: list[str] = []
    harness, settings = Harness(bench), []
    evaluate = harness.evaluate
    monkeypatch.setattr(harness, "evaluate", lambda *asked: (settings.append(asked[0].config), evaluate(*asked))[1])
    found = ablation.measure(system, harness, ["locomo"], "dev", said.append)
    assert settings == [None, RetrievalConfig(dense_weight=1.0), RetrievalConfig(**text_alone)]
    assert [(one["without"], one["set"]) for one in found] == [("words", "locomo"), ("vectors", "locomo")]
    assert all(-100 <= one["points"] <= 0 for one in found)
    assert any(line.startswith("| (nothing)") for line in said)
    assert system.config is None


def test_abstention_asks_own_and_foreign_stores(bench: Path, system: MemGraphSystem) -> None:
    said: list[str] = []
    masked, plain = abstention.measure(system, Harness(bench), "dev", said.append)
    assert masked["questions"] == len(QUESTIONS), "adversarial questions are left out"
    assert plain["auroc"] == 1.0
    assert sum(masked["own"].values()) == pytest.approx(1.0)
    assert said[0].startswith("names masked: 2 questions")


def test_the_floor_is_measured_against_no_floor(bench: Path, system: MemGraphSystem) -> None:
    found = floor.at_default(system, Harness(bench), "locomo", "dev")
    assert found["questions"] == len(QUESTIONS)
    assert found["lost"] == found["off"] - found["auto"] == 0.0, "the test's embedder is not calibrated"
    assert (found["own_nothing"], found["foreign_nothing"]) == (0.0, 0.0)


def test_names_are_masked_and_parts_of_words_are_not() -> None:
    assert (
        abstention.masked("Does Ann know Annabel, or Mary Ann?", {"Ann", "Mary Ann"})
        == "Does they know Annabel, or they?"
    )


def test_the_area_under_the_curve() -> None:
    assert abstention.auroc([2.0, 3.0], [0.0, 1.0]) == 1.0
    assert abstention.auroc([0.0], [0.0]) == 0.5
    assert abstention.auroc([1.0, 3.0], [2.0, 2.0]) == 0.5
    assert abstention.auroc([0.0], [1.0]) == 0.0


def test_stories_are_the_same_for_everybody() -> None:
    one, other = Storyteller(), Storyteller()
    first, second = one.memories(40), other.memories(40)
    assert [memory["content"] for memory in first] == [memory["content"] for memory in second]
    assert one.question()[0] == other.question()[0]
    assert len({memory["content"] for memory in first}) == 40
    assert {"title", "occurred_at"} <= first[4].keys()


def test_latency_is_summed_up() -> None:
    values = {"search": [4.0, 6.0, 8.0], "product": [2.0, 2.0, 2.0], "recording_ratio": [1.05, 1.1, 9.0]}
    figures = latency.summary({"values": values})
    assert figures["over_product"] == 3.0
    assert figures["recording"] == pytest.approx(0.1)
    assert figures["search"]["p50"] == 6.0


def test_a_peer_that_is_not_installed_is_named(
    bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(retrieval, "installed", lambda distribution: None)
    asked = [
        "--bench",
        str(bench),
        "--sets",
        "locomo",
        "--systems",
        "chromadb,mem0",
        "--cache",
        str(tmp_path / "cache"),
    ]
    assert retrieval.main(asked) == 0
    assert "Not installed, so not measured: chromadb, mem0" in capsys.readouterr().out
    assert not retrieval.is_missing("memgraph")


@pytest.mark.long
def test_a_quick_latency_run_measures_everything(tmp_path: Path) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    command = [sys.executable, str(ROOT / "tests" / "benchmarks" / "latency.py"), "--quick", "--no-peers", "--json"]
    environment = {"TMPDIR": str(temporary)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    figures = json.loads(ran.stdout)["sizes"]["200"]["memgraph"]
    assert set(latency.MEANINGS) <= figures.keys()
    assert {"stage:filter", "stage:rank", "stage:certainty"} <= figures.keys()
    assert list(temporary.iterdir()) == [], "the run left something behind"


@pytest.mark.long
def test_a_quality_run_measures_each_system_by_itself(bench: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tests" / "benchmarks" / "retrieval.py"), "--json", "--bench", str(bench)]
    command += ["--sets", "locomo", "--systems", "memgraph,bm25", "--cache", str(tmp_path / "cache")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert document["failed"] == {}
    assert document["systems"]["memgraph"]["locomo"]["agg"]["ALL"]["R@10"] > 0.5
    assert "memgraph's distance from each" in ran.stderr
