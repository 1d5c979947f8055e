"""Sentences of an episode that may be repeated elsewhere, without details that belong to one case only.

A sentence that was cut, or that is data rather than language (JSON, a call with its arguments, markup), is left out.
Details of one case, such as a customer's id, a booking code or a date, are removed or replaced with their kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from memgraph.index.analyser import analyse
from memgraph.text import lazy_re as re
from memgraph.text.calendar import MONTHS
from memgraph.text.sentences import ended, split_sentences
from memgraph.text.words import overlap

_LEAST_WORDS = 3
_WORD = re.compile(r"[^\W\d_]{2,}")
_LINK = re.compile(r"!?\[([^\]\[]*)\]\([^()\s]*\)")
_MARKS = re.compile(r"(?<!\w)\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?!\w)|^(?:#{1,6}|[-*+>])\s+")
_RAW = re.compile(r"[{}]|\":|':|```|\|\s*-|\w\([\"'\w]*\s*=|\[\[|</?\w+[ />]|\\n")
_CALL = re.compile(r"`([A-Za-z_][\w.]*)\([^`]*`")
_FIELD = re.compile(r"[\"']?\b([A-Za-z_]\w*)[\"']?\s*[:=]")
_MONTH = rf"(?:{'|'.join(MONTHS)})"
_DATE = re.compile(
    rf"\s(?:(?:on|for|from|until|by|of|since) )?(?:the )?(?:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|"
    rf"\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?: \d{{4}})?|\d{{4}}-\d\d-\d\d)\b"
)
_COMMAS = re.compile(r",(?=[,.;])")
"""A comma before a mark: what stood between them was removed."""
_ID = re.compile(
    r"\b[A-Za-z]+(?:_[A-Za-z]+)*_\d{3,}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b|[^\s@]{1,64}@[^\s@]{1,190}\.\w+"
)
_CODE = re.compile(r"\b(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{6}\b|(?<![\w.])\d{4,}(?![\w.])")
_NUMBER = re.compile(r"(?<![\w.])[#$]?\d+(?![\w])")
_ADVICE = (
    re.compile(r"\b(?:should|must|instead(?! of)|need(?:s|ed)? to|avoid|always|never)\b", re.IGNORECASE),
    re.compile(r"\b(?:will|ensure|make sure|next time|try to|remember)\b", re.IGNORECASE),
)
"""Phrases that name a better alternative, and phrases that only state an intention."""
_FITS_ANYTHING = re.compile(
    r"\b(?:read the (?:task|question|instructions)|understand what|double-check|(?:a )?different action|identical actions|"
    r"check the environment for (?:any|changes)|pay (?:more |close )?attention|be (?:more )?careful|the correct (?:item|answer)|"
    r"move on to the next|before attempting to solve)\b",
    re.IGNORECASE,
)
"""Phrases about a task that could be said of any task."""
_REQUEST = re.compile(
    r"\b(?:like to|want|need|looking|could you|can you|please|write|find|how|what|which|who)\b", re.IGNORECASE
)
_TELLS_MORE = 3
_ALIKE = 0.5
_OPENING = re.compile(
    r"^(?:(?:However|Additionally|Also|Moreover|Therefore|Sure|Sure thing|Hmm|Yes|No|Hi|Hello|Alright|Okay|Well)(?: there)?[,!]\s+|and )",
    re.IGNORECASE,
)


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text that may be repeated, verbatim but for markup, each with a final punctuation mark."""
    text = _LINK.sub(r"\1", " ".join(text.split()))
    text = _CALL.sub(r"`\1`", text)
    found = []
    for part in split_sentences(text, "quoted"):
        said = _opened(_MARKS.sub("", part).strip())
        if said.endswith("…") or "… " in said or _RAW.search(said) or len(_WORD.findall(said)) < _LEAST_WORDS:
            continue
        found.append(ended(said))
    return list(dict.fromkeys(found))


def is_plain(command: str) -> bool:
    """Return whether a command applies in general; the arguments of a call apply to one case only."""
    return not _RAW.search(command) and not _FIELD.search(command)


def _opened(said: str) -> str:
    """Return a sentence without a leading connective, and with a capital letter."""
    bare = said
    while (shorter := _OPENING.sub("", bare)) != bare:
        bare = shorter
    first = bare.split(" ", 1)[0]
    return bare[:1].upper() + bare[1:] if first.rstrip(",:;").isalpha() else bare


def in_general(sentences: Sequence[str]) -> list[str]:
    """Return sentences without details of one case: those that contain none, otherwise all with kinds as placeholders."""
    dateless = [_COMMAS.sub("", _DATE.sub("", one)) for one in sentences]
    clean = [one for one in dateless if not _ID.search(one) and not _CODE.search(one)]
    return clean or [_CODE.sub("(a code)", _ID.sub("(an id)", one)) for one in dateless]


def without_numbers(error: str) -> str:
    """Return an error message without the clauses that hold numbers of one case, and without the word “Error”."""
    said = re.sub(r"^(?:\w*(?:Error|Exception):\s*)+", "", error.strip().rstrip("."))
    clauses = re.split(r"(?<=[\w)]), ", said)
    kept = [clause for clause in clauses if not _NUMBER.search(clause)]
    return in_general([", ".join(kept or clauses)])[0]


def concrete(sentences: Sequence[str]) -> list[str]:
    """Return the sentences that are specific to their case, not true of any."""
    return [one for one in sentences if not _FITS_ANYTHING.search(one)]


def is_advice(sentence: str) -> bool:
    """Return whether a sentence gives advice rather than reporting an event."""
    return any(marks.search(sentence) for marks in _ADVICE)


def most_central(sentences: Sequence[str], *, room: int) -> list[str]:
    """Return one or two sentences in their order: the one that shares most terms with the others, and advice about it.

    Advice on what would have been better is preferred to intentions, and must differ from the first sentence.
    """
    terms = [_terms(one) for one in sentences]
    frequency = Counter(term for own in terms for term in own)
    weight = [sum(frequency[term] - 1 for term in own) / (len(own) + 5.0) for own in terms]
    by_weight = sorted(range(len(sentences)), key=lambda place: (-round(weight[place], 6), place))
    first = next((place for place in by_weight if len(sentences[place]) <= room), None)
    if first is None:
        return []
    left = room - len(sentences[first]) - 1
    others = [
        place
        for place in by_weight
        if len(sentences[place]) <= left and place != first and overlap(terms[place], terms[first]) < _ALIKE
    ]
    if not others:
        return [sentences[first]]

    def rank(place: int) -> tuple[int, int]:
        strength = next((n for n, marks in enumerate(_ADVICE) if marks.search(sentences[place])), len(_ADVICE))
        return (strength, -len(terms[place] & terms[first]))

    return [sentences[place] for place in sorted([first, min(others, key=rank)])]


def requests(sentences: Sequence[str], *, room: int) -> list[str]:
    """Return the first request and the most informative other request, each limited to the given number of characters."""
    fitting = [one for one in sentences if len(one) <= room and len(_terms(one)) > 1]
    asked = [one for one in fitting if _REQUEST.search(one)] or fitting
    if not asked:
        return []
    said = _terms(asked[0])
    more = max(asked, key=lambda one: (len(_terms(one) - said), -asked.index(one)))
    return [asked[0], more] if len(_terms(more) - said) >= _TELLS_MORE else asked[:1]


def _terms(text: str) -> frozenset[str]:
    return frozenset(term for term in analyse(text) if not term.isdigit())
