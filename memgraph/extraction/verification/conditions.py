"""Conditions: whether a claim leaves out that something holds only under one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from memgraph.text import lazy_re as re

Stems = frozenset[str]

_RESTRICTED = re.compile(
    r"\b(?:only (?:if|when|while|where|after|once|with|in|on|for|by|from)|unless(?! (?:i am|i'm) (?:mis|wrong))|except|provided)\b",
    re.IGNORECASE,
)
"""“Unless I am mistaken” is no condition."""
_CONDITIONAL = re.compile(
    r"\b(?:if|when\w*|while|where|only|unless|except|once|until|after|before|provided|without|assuming|as long as)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[.!?;:]+(?:\s|$)|\n\s*\n")


def dropped_conditions(claim: str, sentences: Sequence[str], stems_of: Callable[[str], Stems]) -> Iterator[str]:
    """Yield the conditions under which alone evidence says what a claim says without any.

    Parameters
    ----------
    sentences : sequence of str
        The whole sentences of the source in which the evidence stands.
    stems_of : callable
        Returns the stems of a text's words, without function words.
    """
    restricted: list[tuple[str, Stems, Stems]] = []
    for sentence in sentences:
        if (found := _RESTRICTED.search(sentence)) is not None:
            main, condition = sentence[: found.start()], sentence[found.end() :]
            if not stems_of(main.rpartition(":")[2]):  # it comes first: “only if it is cold, open it”
                condition, _, main = condition.partition(",")
            restricted.append((found[0].lower(), stems_of(main), stems_of(condition)))
    if not restricted:
        return
    free = [stems_of(one) for one in sentences if _CONDITIONAL.search(one) is None]
    for said in _SENTENCE.split(claim):
        if _CONDITIONAL.search(said) is not None:
            continue
        words = stems_of(said)
        for marker, held, under in restricted:
            common = words & held
            is_meant = 2 * len(common) >= max(len(held), len(words), 1) and not words & (under - held)
            if is_meant and not any(common <= other for other in free):
                yield f"the quoted evidence says so with a condition (“{marker} …”)"
