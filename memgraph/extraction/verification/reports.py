"""Reports: whether evidence only asks or proposes what a claim calls decided. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memgraph.text import lazy_re as re

_DECIDED = r"decid\w+|agreed|chose"
_COMMITTED = re.compile(rf"\b(?:{_DECIDED})\b")
_OPEN = re.compile(r"\?|\b(?:maybe|perhaps|might|could|consider\w*|suggest\w*|propos\w+|should we|let us see)\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n\s*\n")


def undecided(claim: str, evidence: str, stems_of: Callable[[str], frozenset[str]]) -> Iterator[str]:
    """Yield that a claim says that something was decided which its evidence only asks or proposes.

    Parameters
    ----------
    claim, evidence : str
        In comparable form: folded, contractions written out.
    stems_of : callable
        Returns the stems of a text's words, without function words.
    """
    said = _COMMITTED.search(claim)
    if said is None or _COMMITTED.search(evidence) is not None:
        return
    wanted = stems_of(claim)
    nearest = max(_SENTENCE.split(evidence), key=lambda one: len(wanted & stems_of(one)))
    if _OPEN.search(nearest) is not None:
        yield f"the quoted evidence asks or proposes it, and does not say “{said[0]}”"
