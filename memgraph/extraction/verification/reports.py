"""Reports: words that say only that someone said, wanted or decided something. Pure.

“The user wants the lamps off” reports “turn the lamps off, please”. What is reported is compared; that it was decided is not, but a
question and a proposal decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_DECIDED = r"decid\w+|agreed|chose"
_REPORT = re.compile(
    r"\b((?:users?|team|we|they|he|she|you|it was|it is|was|were)(?: do| does| did| has| have)?(?: not)?(?: also| then| now| explicitly)?) "
    rf"(?:wants?|wanted|asks?|asked|says?|said|states|tells?|told|{_DECIDED})\b",
    re.IGNORECASE,
)
_COMMITTED = re.compile(rf"\b(?:{_DECIDED})\b")
_OPEN = re.compile(r"\?|\b(?:maybe|perhaps|might|could|consider\w*|suggest\w*|propos\w+|should we|let us see)\b")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n\s*\n")


def reported(text: str) -> str:
    """Return a text without the verbs that report something of a person."""
    return _REPORT.sub(r"\1", text)


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
