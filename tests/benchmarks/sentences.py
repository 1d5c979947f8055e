"""Which sentences of a user's turn are kept, by the rules and by a trained head, against labels of public sessions.

``python tests/benchmarks/sentences.py MIRRORS`` reads the sessions that `quality/sentences.jsonl` names out of bare repositories
(``MIRRORS/owner+name/repo``) and prints precision, recall and F1 on the sources of training and of the test. The labels
(`quality/sentences.md` has their criteria) are kept by a hash of each sentence: the sessions' text is nobody's to copy.

Parts by owner: ``train`` chose rules and thresholds, ``test`` only measured. ``natural`` sentences were drawn at random from turns; the others
because a first head found them likely, so precision on all sentences is comparable between ways of deciding and not a forecast.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.embedding.default import default_embedder
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.model.build import BuildEventLog, UserIntervention

LABELS = Path(__file__).with_name("quality") / "sentences.jsonl"
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARK = re.compile(r"^\s*(?:[-*•+>]|\(?\d{1,2}[.):]|[a-z][.)]|\[[ x]\]|#{1,6})\s+", re.IGNORECASE)
_END = re.compile(r"(?<=[.!?…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)[\"”')*]*\s+(?=\S)")
_ASKED = re.compile(r"/(?:ask|code|architect|chat-mode \w+)\s+")
_SPECSTORY = re.compile(
    r"^_\*\*User(?: \([^)\n]*\))?\*\*_\s*$(.*?)(?=^---\s*$|^_\*\*(?:Assistant|Agent|User)|\Z)", re.MULTILINE | re.DOTALL
)
_HEADED = re.compile(r"^## 👤 User\s*$(.*?)(?=^---\s*$|\Z)", re.MULTILINE | re.DOTALL)
_CALLOUT = re.compile(r"^> \[!IMPORTANT\]\n((?:>.*\n?)+)", re.MULTILINE)
_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?|[?!:]")
_FOLDS = 5
_KEPT_SHARE = 0.6


class Sentence(NamedTuple):
    """A labelled sentence, and the turn that it stands in."""

    text: str
    turn: str
    owner: str
    part: str
    is_natural: bool
    is_kept: bool


def turns_of(path: str, text: str) -> Iterator[str]:
    """Yield what the user said in a session published as Markdown: by aider, SpecStory, claude-transcript, or under headings."""
    if path.endswith(".aider.chat.history.md"):
        for said in re.findall(r"(?:^####.*\n?)+", text, re.MULTILINE):
            yield _ASKED.sub("", "\n".join(line[4:].strip() for line in said.splitlines()), count=1)
    elif ".claude-transcripts/" in path:
        yield from ("\n".join(line[1:].strip() for line in said.splitlines()) for said in _CALLOUT.findall(text))
    else:
        yield from (_SPECSTORY if "specstory" in path else _HEADED).findall(text)


def sentences_of(turn: str) -> Iterator[str]:
    """Yield the sentences of a turn without fenced text and marks of lists, of at most 600 characters."""
    for raw in _FENCED.sub("\n", turn).splitlines():
        line = raw
        while mark := _MARK.match(line):
            line = line[mark.end() :]
        yield from (part.strip()[:600] for part in _END.split(line.strip()))


def name_of(text: str) -> str:
    """Return the hash by which the labels know a sentence."""
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def labelled(mirrors: Path) -> Iterator[Sentence]:
    """Yield the labelled sentences of the sessions that are there."""
    for source in map(json.loads, LABELS.read_text().splitlines()):
        git = ["git", "-C", str(mirrors / source["repo"].replace("/", "+") / "repo")]
        shown = subprocess.run([*git, "show", f"{source['commit']}:{source['path']}"], capture_output=True, check=False)
        wanted = {name: (kind, where) for where in ("natural", "likely") for name, kind in source[where].items()}
        for turn in turns_of(source["path"], shown.stdout.decode(errors="replace")):
            for text in sentences_of(turn):
                if found := wanted.pop(name_of(text), None):
                    kind, where = found
                    owner = source["repo"].split("/")[0]
                    yield Sentence(text, turn.strip(), owner, source["part"], where == "natural", kind != "not")


def by_rules(sentences: Sequence[Sentence]) -> NDArray[np.float64]:
    """Return 1 for each sentence most of whose pairs of words are in a memory that the extractor makes of its turn."""

    @cache
    def memories(turn: str) -> tuple[frozenset[tuple[str, str]], ...]:
        said = UserIntervention(timestamp="2026-01-01T00:00:00Z", action=turn[:60_000])
        log = BuildEventLog(
            build_id="b",
            project_id="p",
            source="transcript",
            started_at="2026-01-01T00:00:00Z",
            completed_at="2026-01-01T00:00:00Z",
            build_outcome="success",
            user_interventions=[said],
        )
        made = RuleExtractor().extract(log).candidates
        return tuple(frozenset(_pairs(one.memory.content)) for one in made if one.is_stated)

    def is_in(sentence: Sentence) -> bool:
        pairs = _pairs(sentence.text)
        return any(sum(pair in made for pair in pairs) >= _KEPT_SHARE * len(pairs) for made in memories(sentence.turn))

    return np.array([float(is_in(one)) for one in sentences])


def _pairs(text: str) -> list[tuple[str, str]]:
    words = re.findall(r"\w+", text.lower())
    return list(pairwise(words)) or [(word, "") for word in words]


def words_of(text: str) -> set[str]:
    """Return the words of a sentence and their pairs, with its ends."""
    words = ["^", *(word.replace("’", "'") for word in _WORD.findall(text.lower())[:59]), "$"]
    return {*words, *(f"{one} {other}" for one, other in pairwise(words))}


def plain(text: str) -> list[float]:
    """Return what a sentence looks like: its length, its end, its marks, who is spoken of."""
    looks = (r"\?\W*$", r":\W*$", r"`|\w[_/.]\w|[a-z][A-Z]|\(\)", r"\*\*|^\W*[|<>{}\[$#]|[{};]$|</?\w", r"^[a-z]",
             r"\b[A-Z]{3,}\b", r"\d", r"(?i)\b(?:i|my|we|our|i'm|im)\b", r"(?i)\b(?:you|your)\b")  # fmt: skip
    letters = sum(map(str.isalpha, text)) / max(1, len(text))
    return [np.log1p(len(text.split())) / 3, letters, *(float(re.search(look, text) is not None) for look in looks)]


def fit(x: NDArray[np.float64], y: NDArray[np.float64], l2: float = 1.0) -> NDArray[np.float64]:
    """Return weights of a logistic regression, the bias last, by 300 steps of Adam."""
    x = np.hstack([x, np.ones((len(x), 1))])
    weights, first, second = np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for step in range(1, 301):
        slope = x.T @ (1 / (1 + np.exp(-(x @ weights))) - y) + l2 * np.append(weights[:-1], 0)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        weights = weights - 0.05 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return weights


def by_head(sentences: Sequence[Sentence], ways: str) -> tuple[NDArray[np.float64], float]:
    """Return each sentence's probability and the threshold: of training ones by the folds without their owner, of test ones by all of training.

    `ways` are ``words``, ``vectors`` or both; what a sentence looks like is always among its features.
    """
    kept = np.array([one.is_kept for one in sentences], float)
    is_train = np.array([one.part == "train" for one in sentences])
    owners = {owner: place % _FOLDS for place, owner in enumerate(sorted({one.owner for one in sentences}))}
    folds = np.array([owners[one.owner] for one in sentences])
    looks = np.array([plain(one.text) for one in sentences])
    said = [words_of(one.text) for one in sentences]
    embedder = default_embedder()
    texts = [one.text[:400] for one in sentences]
    parts = [embedder.embed(texts[at : at + 32]) for at in range(0, len(texts), 32)] if "vectors" in ways else []
    vectors = 2.0 * np.vstack(parts) if parts else np.empty((len(texts), 0))

    def predicted(train: NDArray[np.bool_]) -> NDArray[np.float64]:
        owned = defaultdict(set)
        for place in np.flatnonzero(train):
            for word in said[place]:
                owned[word].add(sentences[place].owner)
        known = {word: at for at, word in enumerate(sorted(word for word, of in owned.items() if len(of) > 2))}
        x = np.zeros((len(sentences), len(known) if "words" in ways else 0))
        for place, words in enumerate(said if "words" in ways else ()):
            x[place, [known[word] for word in words & known.keys()]] = 1
        x = np.hstack([(looks - looks[train].mean(0)) / (looks[train].std(0) + 1e-6), x, vectors])
        weights = fit(x[train], kept[train])
        return 1 / (1 + np.exp(-(x @ weights[:-1] + weights[-1])))

    scores = np.where(is_train, 0.0, predicted(is_train))
    for fold in range(_FOLDS):
        scores = np.where(is_train & (folds == fold), predicted(is_train & (folds != fold)), scores)
    choices = [float(one) for one in np.linspace(0.05, 0.9, 86)]
    return scores, max(choices, key=lambda one: measured(scores[is_train] >= one, kept[is_train] > 0)[2])


def measured(said: NDArray[np.bool_], kept: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return precision, recall and F1."""
    right = float((said & kept).sum())
    precision, recall = right / max(1, said.sum()), right / max(1, kept.sum())
    return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)


def main(mirrors: Path) -> None:
    """Print the table."""
    sentences = list(labelled(mirrors))
    print(Counter((one.part, one.is_kept) for one in sentences), len({one.owner for one in sentences}), "owners")
    ways = {"rules": (by_rules(sentences), 0.5)}
    ways |= {name: by_head(sentences, name) for name in ("words", "vectors", "words and vectors")}
    kept = np.array([one.is_kept for one in sentences])
    parts = {
        "train": [one.part == "train" for one in sentences],
        "test": [one.part == "test" for one in sentences],
        "test, natural": [one.part == "test" and one.is_natural for one in sentences],
    }
    print("| | threshold |" + "".join(f" {part}: P / R / F1 |" for part in parts))
    for name, (scores, threshold) in ways.items():
        rows = [measured(scores[of] >= threshold, kept[of]) for of in map(np.array, parts.values())]
        print(f"| {name} | {threshold:.2f} |" + "".join(" {:.2f} / {:.2f} / {:.2f} |".format(*row) for row in rows))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
