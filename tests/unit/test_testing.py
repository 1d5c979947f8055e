"""The public fakes do what users' tests will rely on."""

from __future__ import annotations

import doctest
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from memgraph import ports, testing
from memgraph.errors import InvalidInputError, MemGraphError
from memgraph.model.build import BuildEventLog, ExtractionResult
from memgraph.model.memory import parse_memory
from memgraph.testing import FakeAnnotator, FakeClock, FakeEmbedder, FakeExtractor, FakeKeys, FakeLanguageModel

MEMORY = {"type": "episodic", "content": "The deploy failed", "outcome": "negative"}


def test_every_public_name_is_documented() -> None:
    assert all(getattr(testing, name).__doc__ for name in testing.__all__)
    assert doctest.testmod(testing).failed == 0


class TestFakeEmbedder:
    def test_texts_that_share_words_are_similar(self) -> None:
        a, b, c = FakeEmbedder(dimension=4_096).embed(["deploy failed", "Deploy succeeded!", "rye bread"])
        assert a @ b == pytest.approx(0.5)
        assert a @ c == 0

    def test_similarity_is_never_negative_and_words_never_cancel(self) -> None:
        vectors = FakeEmbedder(dimension=2).embed([f"word{number} other{number}" for number in range(50)])
        assert (vectors @ vectors.T > 0).all()

    def test_texts_without_words_have_a_vector_of_their_own(self) -> None:
        empty, signs, words = FakeEmbedder().embed(["", "!? …", "words"])
        assert np.array_equal(empty, signs)
        assert empty @ empty == 1
        assert empty @ words == 0

    def test_vectors_can_be_given(self) -> None:
        embedder = FakeEmbedder(dimension=2, vectors={"a": [3.0, 4.0], "b": np.array([0.6, 0.8], dtype=np.float32)})
        assert embedder.embed_query("a") == pytest.approx([0.6, 0.8])
        assert embedder.embed_query("b").tobytes() == np.array([0.6, 0.8], dtype=np.float32).tobytes()

    @pytest.mark.parametrize("vector", [[0.0, 0.0], [1.0], [1.0, float("nan")], [[1.0, 0.0]]])
    def test_useless_vectors_are_refused(self, vector: list[float]) -> None:
        with pytest.raises(InvalidInputError, match=r"vectors\.a"):
            FakeEmbedder(dimension=2, vectors={"a": vector})

    def test_too_few_dimensions_are_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="dimension"):
            FakeEmbedder(dimension=1)

    def test_calls_are_recorded(self) -> None:
        embedder = FakeEmbedder()
        embedder.embed(["a", "b"])
        embedder.embed_query("c")
        embedder.embed([])
        assert embedder.calls == [["a", "b"], ["c"], []]

    def test_vectors_are_the_same_in_another_process(self) -> None:
        program = (
            "from memgraph.testing import FakeEmbedder; print(FakeEmbedder().embed_query('some words').tobytes().hex())"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == FakeEmbedder().embed_query("some words").tobytes().hex()


class TestFakeClock:
    def test_the_clock_is_constant_until_it_is_moved(self) -> None:
        clock = FakeClock()
        assert clock() == clock() == datetime(2026, 1, 1, tzinfo=UTC)

    def test_it_moves(self) -> None:
        clock = FakeClock("2026-03-01")
        clock.advance(days=1, hours=2, minutes=3, seconds=4, milliseconds=5)
        assert clock() == datetime(2026, 3, 2, 2, 3, 4, 5_000, tzinfo=UTC)
        clock.advance(days=-1)
        assert clock().day == 1

    def test_it_is_set(self) -> None:
        clock = FakeClock()
        clock.set(datetime(2025, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))))
        assert clock() == datetime(2025, 1, 1, 10, tzinfo=UTC)
        assert clock().utcoffset() == timedelta(0)
        with pytest.raises(ValueError, match="ISO 8601"):
            clock.set("never")


class TestFakeExtractor:
    def build_log(self, build_id: str = "b1") -> BuildEventLog:
        return BuildEventLog(
            build_id=build_id,
            project_id="p",
            build_outcome="success",
            started_at="2026-01-01",
            completed_at="2026-01-02",
        )

    def test_it_finds_the_memories_in_every_log(self) -> None:
        extractor = FakeExtractor([MEMORY])
        assert isinstance(extractor, ports.Extractor)
        first, second = extractor.extract(self.build_log("b1")), extractor.extract(self.build_log("b2"))
        assert [candidate.memory.content for candidate in first.candidates] == ["The deploy failed"]
        assert first == second
        assert [log.build_id for log in extractor.calls] == ["b1", "b2"]

    def test_by_default_it_finds_nothing(self) -> None:
        assert FakeExtractor().extract(self.build_log()).candidates == []

    def test_results_come_in_turn(self) -> None:
        results = [ExtractionResult(extractor="one"), MemGraphError("broken"), ExtractionResult(extractor="two")]
        extractor = FakeExtractor(results)
        assert extractor.extract(self.build_log()).extractor == "one"
        with pytest.raises(MemGraphError, match="broken"):
            extractor.extract(self.build_log())
        assert extractor.extract(self.build_log()).extractor == "two"
        assert extractor.extract(self.build_log()).extractor == "two"

    def test_one_result_is_enough(self) -> None:
        assert FakeExtractor(ExtractionResult(extractor="one")).extract(self.build_log()).extractor == "one"

    def test_memories_and_results_do_not_mix(self) -> None:
        with pytest.raises(InvalidInputError, match="not both"):
            FakeExtractor([MEMORY, ExtractionResult()])  # type: ignore[arg-type,list-item]


class TestFakeAnnotator:
    def test_it_finds_what_it_was_given(self) -> None:
        memory = parse_memory(MEMORY)
        annotator = FakeAnnotator(ports.Annotation(tags=("deploy",)))
        assert isinstance(annotator, ports.Annotator)
        assert annotator.annotate(memory).tags == ("deploy",)
        assert annotator.calls == [memory]
        assert FakeAnnotator().annotate(memory) == ports.Annotation()


class TestFakeKeys:
    def test_a_key_exists_once_it_was_created(self) -> None:
        keys = FakeKeys()
        assert isinstance(keys, ports.KeyProvider)
        assert keys.key("s") is None
        created = keys.create("s")
        assert keys.create("s") == keys.key("s") == created
        assert keys.calls == ["s", "s", "s", "s"]

    def test_keys_follow_from_the_store(self) -> None:
        key = FakeKeys().create("s")
        assert key == FakeKeys().create("s")
        assert key.secret != FakeKeys().create("t").secret
        assert len(key.secret) == 32
        assert key.secret.hex() not in repr(key)

    def test_a_key_can_be_lost(self) -> None:
        keys = FakeKeys()
        keys.create("s")
        del keys.created["s"]
        assert keys.key("s") is None


class TestFakeLanguageModel:
    def test_replies_come_in_turn(self) -> None:
        model = FakeLanguageModel(["one", TimeoutError("slow"), "two"])
        assert isinstance(model, ports.LanguageModel)
        assert model.complete([{"role": "user", "content": "hi"}]) == "one"
        with pytest.raises(TimeoutError, match="slow"):
            model.complete([])
        assert model.complete([], {"type": "object"}) == "two"
        assert model.complete([]) == "two"
        assert model.calls[0] == ([{"role": "user", "content": "hi"}], None)
        assert model.calls[2] == ([], {"type": "object"})

    def test_one_reply_is_enough(self) -> None:
        assert FakeLanguageModel("always").complete([]) == "always"
        assert FakeLanguageModel().complete([]) == "{}"

    def test_none_at_all_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="at least one"):
            FakeLanguageModel([])
