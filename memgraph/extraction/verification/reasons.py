"""Reasons: whether evidence states the cause that a claim states. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from memgraph.extraction.verification.words import CAUSAL, CLAIMS_A_CAUSE
from memgraph.text import lazy_re as re

Stems = frozenset[str]
_LETTERS = re.compile(r"[^\W\d_]+")
_SENTENCE = re.compile(r"[.!?;]+(?:\s|$)|\n\s*\n")
_CAUSE = re.compile(rf"\b(?:{'|'.join(sorted(CLAIMS_A_CAUSE))})\b")
_JOINED = re.compile(r"\s[-–—]+\s|[:;(→]|=>|->")
_OF_A_PERSON = re.compile(r"\b(?:i|we|let us|let's|please)\b", re.IGNORECASE)


def unstated_reasons(
    claim: str, evidence: str, passages: Sequence[Sequence[str]], stems_of: Callable[[str], Stems]
) -> Iterator[str]:
    """Yield the causes that a claim states and its evidence does not.

    Without a word for it, evidence states a cause where a dash, colon or bracket joins both, and where a person gives it in the
    sentence before or after: “I do not want it. Too much work.”

    Parameters
    ----------
    claim, evidence : str
        In comparable form: folded, contractions written out.
    passages : sequence
        The sentences of each passage, in their order.
    stems_of : callable
        Returns the stems of a text's words, without function words.
    """
    if not CAUSAL.isdisjoint(_LETTERS.findall(evidence)):
        return
    for sentence in _SENTENCE.split(claim):
        if (found := _CAUSE.search(sentence)) is None:
            continue
        sides = [stems_of(sentence[: found.start()]), stems_of(sentence[found.end() :])]
        joined = [one for some in passages for one in some if _JOINED.search(one) is not None]
        joined += [
            f"{one} {other}"
            for some in passages
            for one, other in pairwise(some)
            if _OF_A_PERSON.search(one) or _OF_A_PERSON.search(other)
        ]
        if not any(all(2 * len(side & stems_of(one)) >= len(side) for side in sides) for one in joined):
            yield f"the quoted evidence states no cause (“{found[0]}”): quote the passage that does, or say both without it"
