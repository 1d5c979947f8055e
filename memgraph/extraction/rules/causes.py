"""Sentences in which an agent states a cause.

They tell why a change was made that a later run confirmed. What an agent concludes without one is wrong too often to be a memory by itself (five
of eight, as read by others): it is a record, and the agent is asked about it.
"""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.extraction.statements import sentences
from memgraph.text import lazy_re as re
from memgraph.text.sentences import ended

_MAX_CHARS = 420
_LEAST_WORDS, _MOST_WORDS = 6, 60
_TELLING_WORDS = 10

_JOINED = re.compile(r"(?<=[a-z\d)`'\"])[.!?](?=[A-Z][a-z]{1,20}[ ,])")
_PLANS = re.compile(
    r"^(?:ok(?:ay)?,?\s+|great[,!]?\s+|good[,!]?\s+|so,?\s+|perfect[,!]?\s+)?(?:now,?\s+|next,?\s+|first,?\s+|then,?\s+|finally,?\s+)?(?:let'?s?(?:\s+us)?|lets|"
    r"i(?:'ll| will| need| should| am going| want| can now|'m going)|we(?:'ll| will| need| should| can now| are going)|now|next|first|the next step|"
    r"(?:before|after) \w+ing|using it|calling|proceed|would you|do you|shall i|want me|fix|add|update|check|move|create|use|write|run|option)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:root cause|turn(?:s|ed) out|culprit|the (?:real |actual |underlying |main |core |two |only )?(?:issues?|problems?|bugs?|causes?|reasons?|errors?|failures?) (?:is|was|are|were|lies|lay|came|comes)\b|"
    r"(?:is|was|are|were|'s) (?:caused by|due to|because)|caused by|the fix (?:is|was)|fixed by|that'?s why|which is why|the (?:vulnerability|weakness) is)\b",
    re.IGNORECASE,
)
_BECAUSE = re.compile(
    r", so (?!let|i\b|we\b|i'll|now)\w|\b(?:because|due to|since (?:the|it|they|we)|so that|means that|meaning that|which means|this means|does(?:n't| not) support|not supported|only works|is required|"
    r"must (?:be|have|not)|needs? to be|(?:which|that) (?:can |may |could )?(?:truncates?|causes?|breaks?|drops?|ignores?|loses?|overwrites?|skips?|prevents?|fails?)|leads? to|too (?:large|small|long|short|old|new|many|slow)|never (?:set|called|initiali[sz]ed|closed|summed|reset|updated)|instead of|contrary to|in reality|"
    r"(?:did|does|do)(?:n't| not) (?:work|match|exist|handle|include|contain|pass|reset|update|find|have|know|set)|timed out|(?:is|are|was|were) (?:missing|empty|null|undefined|never)|conflicts? with|shadow(?:s|ed)|overrid(?:e|es|den))\b",
    re.IGNORECASE,
)
_DOUBTS = re.compile(
    r"\b(?:maybe|perhaps|might|could be|possibl[ey]|probably|likely|i think|i suspect|i believe|not sure|let me|let's|we will|i will|i'll|seems? (?:like|to)|appears? to|whether|yet|as expected)\b|\?\W*$",
    re.IGNORECASE,
)
_ECHO = re.compile(
    r"^(?:the (?:file|script|code|edit|output|command) (?:has been|was|is)\s+(?:\w+ly )?(?:created|updated|removed|added|written|saved|opened)|all (?:tests|checks)|this confirms|the (?:output|result) (?:indicates|shows|confirms)|(?:the )?\w+ (?:script )?(?:has )?(?:successfully )?reproduce[sd]?\b|you'?re (?:absolutely |completely )?right)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(r"^(?:this|that|it|these|those|they|he|she|there)(?:'s|\b)", re.IGNORECASE)
NAMES = re.compile(
    r"`[^`]{2,80}`|\b\w+\.\w{1,5}\b|\b\w+_\w+|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w*|[\w.~-]+/[\w./-]+|\b\d{2,}\b|“[^”]{2,60}”|\"[^\"]{2,60}\"|'[^'\s][^']{1,60}'|\b[A-Z]{2,}\b|-{1,2}[a-z][\w-]+"
)
"""Something that can be looked up: code, a path, a number, a quotation."""


def causes_in(text: str, *, weak: bool = False, is_about: bool = False) -> list[str]:
    """Return the sentences that state a cause; with `weak`, also a reason or a limit. Plans and doubts are left out.

    A sentence must name something that can be looked up, unless what it is about is known (`is_about`) or it tells the cause at length.
    """
    parts = sentences(_JOINED.sub(r"\g<0> ", text[:6_000]))
    found: list[str] = []
    for place, part in enumerate(parts):
        is_cause = _CAUSE.search(part) is not None
        if (
            not (is_cause or (weak and _BECAUSE.search(part)))
            or _PLANS.match(part)
            or _ECHO.match(part)
            or _DOUBTS.search(part)
        ):
            continue
        if part.endswith(":"):  # it announces a list
            part = " ".join([part, *(ended(one, ends=".!?", closing="") for one in parts[place + 1 : place + 4])])  # noqa: PLW2901
        elif _POINTS.match(part):
            if not place or _PLANS.match(parts[place - 1]) or _DOUBTS.search(parts[place - 1]):
                continue
            part = f"{ended(parts[place - 1], ends='.!?', closing='')} {part}"  # noqa: PLW2901
        words = len(part.split())
        is_telling = is_about or NAMES.search(part) is not None or (is_cause and words >= _TELLING_WORDS)
        if _LEAST_WORDS <= words <= 2 * _MOST_WORDS and is_telling:
            found.append(part)
    return found


def joined(parts: Sequence[str], limit: int = _MAX_CHARS) -> str:
    """Return sentences as one text, as many as fit."""
    chosen: list[str] = []
    for part in parts:
        if chosen and sum(map(len, chosen)) + len(part) > limit:
            break
        chosen.append(ended(part, ends=".!?", closing=""))
    return " ".join(chosen)
