"""Clauses: where those of a text stand, what each of them denies, and what its words, names and numbers are. Pure.

A denial bears on what follows it in its clause (its scope). What stands before it is what the clause is about (its topic), unless it
denies only a part of it: “use tabs, not spaces” and “content not policy” state what stands before.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from memgraph.extraction.verification.words import FREE_WORDS, FUNCTION_WORDS, INTERJECTION, NEGATIONS, NUMBERS, stem
from memgraph.text import lazy_re as re
from memgraph.text.words import expanded

SUPERSCRIPT = str.maketrans({sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})
"""Writes powers with a caret, for `str.translate`: 10² is 10^2, not 102."""
_SEPARATORS = re.compile(r"[\s()\[\]{}<>\"“”„«»‘`;|*]+|,(?!\d)|(?<!\d),|(?<=\s)[-–—]+(?=\s)|…")
_EDGES = ".:!?'’=&\\-–—/"
_MARKUP = re.compile(r"(?<=\S)[*`]+|[*`]+(?=\S)")
"""Emphasis and code; the sign of a list has a space behind it."""
_PERCENT = re.compile(r"(?<=\d)\s?(?:%|per ?cent\b)", re.IGNORECASE)
_IN_ORDER_TO = re.compile(r"\bin order to\b", re.IGNORECASE)
_MISSPELT_WITHOUT = re.compile(
    r"\b(?:with[a-np-z]ut|witho[a-z]?t|withou|wit[a-gi-z]?out|wihtout|withotu|whithout)\b", re.IGNORECASE
)
_IN_PLACE_OF = re.compile(r"\b(?:instead\s+of|rather\s+than)\b", re.IGNORECASE)
_FAILS_TO = re.compile(
    r"\b(?:fail(?:s|ed|ing)?|unable|too [a-z]{2,20}|refus(?:e|es|ed|ing)|forgets?|forgot|impossible) (?=to [^\W\d_])",
    re.IGNORECASE,
)
"""What it governs is denied, whatever the rest of the clause says."""
_GOVERNED = re.compile(r"to ([^\W\d_]+)", re.IGNORECASE)
_NEGATION = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(NEGATIONS))})(?![\w-])", re.IGNORECASE)
_DIGIT_OR_SIGN = re.compile(r"[\d_./\\:=@#+~$%]|(?<=[a-z])[A-Z]")
_SIGN = re.compile(r"[^\w]*?([-+])\.?\d")
_OPERATOR = re.compile(r"(?<![=!<>])[=!<>]==?(?![=>])|(?<=\s)[<>](?=\s)|[≠≤≥]")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_VERB = r"(?:must|should|is|are|was|were|do|does|did|can|will|would|has|have|had|could)"
_CLAUSE = re.compile(
    r"[.!?;:]+(?:[\"”'’)\]]*(?=\s|$)|[\"”](?==))|[\"”]\s?=\s?(?=[\"“])|,(?=\s)|\n\s*(?=\n|[-*•#>]|\d{1,3}[.)]|(?-i:[A-Z])|(?:no|not)\s)|\s[-–—]+\s|[()]"
    r"|(?<!\bnot)(?<!\bnever)\s(?=(?:but|because|so|if|when|why|unless|while|although|though|since|until|without|please|where|how|whether|in case)\s)"
    r"|(?<!\bmore)(?<!\bless)\s(?=then\s)"
    rf"|\sand\s(?=(?:{_VERB}|it|there|they|we|you|i|this|that|never|not|no|always)\s)|\sor\s(?={_VERB}\snot\s)|\s(?P<bare>(?=not\s))",
    re.IGNORECASE,
)
_LAST_WORD = re.compile(r"([^\W_]+)[\"”]?\s*$")
_SUCH_AS = re.compile(r"\b(?:such as|for example)\b|\be\.g\.", re.IGNORECASE)
_AND = re.compile(r"\band\b", re.IGNORECASE)
_OR = re.compile(r"\b(?:n?or)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?;=]|\n")
MOST_CLAUSES = 24
"""So many clauses of a sentence are considered together."""
_MOST_WORD = 60
_NEXT_TO = 3
"""Denials with so many words from one to the other cancel one another."""
_CARRIED_TO = re.compile(r"[.!?;=]|\n\s*\n")
"""A denial alone denies the list that follows it."""
_FIRST_WORD = re.compile(
    r"\W*(?:and\s+)?(?:(?:the|an?|this|that|our|my|your|every|each|all)\s+)?([\w./]+)", re.IGNORECASE
)
_RELATIVE = re.compile(r"\s*(?:which|whose|who)\b", re.IGNORECASE)
_ELLIPTIC = re.compile(r"\s*(?:but |and )?(?:not|never)\b", re.IGNORECASE)


class Clause(NamedTuple):
    """A clause: its words by their stems, its names and numbers, and what it denies.

    Attributes
    ----------
    scope : frozenset of str
        What is denied; empty if it states.
    topic : frozenset of str
        What stands before the denial.
    subject : frozenset of str
        The part of the topic next to the denial: of “at night the pump of the pond does not run”, pump and pond.
    failing : frozenset of str
        What follows a denial that is a verb, such as “fails to”: the rest of the clause is stated too.
    core : frozenset of str
        What is denied first, and each alternative to it: of “do not cut or burn the wood at night”, cut and burn.
    joint : str
        What separates it from the clause before it.
    begin : str
        Its text.
    """

    words: dict[str, str]
    names: dict[str, str]
    scope: frozenset[str] = frozenset()
    topic: frozenset[str] = frozenset()
    subject: frozenset[str] = frozenset()
    is_denied: bool = False
    failing: frozenset[str] = frozenset()
    core: frozenset[str] = frozenset()
    joint: str = ""
    begin: str = ""

    @property
    def keys(self) -> frozenset[str]:
        """The stems of its words, its names and its numbers."""
        return frozenset((*self.words, *self.names))

    @property
    def shown(self) -> dict[str, str]:
        """Its words, names and numbers as they are written."""
        return {**self.words, **self.names}

    @property
    def conjuncts(self) -> list[frozenset[str]]:
        """The words of what “and” joins in it, if it does."""
        parts = _AND.split(self.begin)
        return [self.keys & bare_clause(part).keys for part in parts] if len(parts) > 1 else []

    @property
    def head(self) -> str:
        """Its first word, if it begins with it or with an article; otherwise empty."""
        first = _FIRST_WORD.match(self.begin)
        return next(iter(bare_clause(first[1]).shown), "") if first is not None else ""

    @property
    def begins_a_sentence(self) -> bool:
        """Whether what stands before it is another sentence."""
        return _SENTENCE_END.search(self.joint) is not None

    @property
    def is_labelled(self) -> bool:
        """Whether it follows a colon, as in “exports: not supported”."""
        return ":" in self.joint and not self.begins_a_sentence

    @property
    def follows_a_label(self) -> bool:
        """Whether it follows a colon or a dash, and so may leave its subject out."""
        return not self.begins_a_sentence and re.search(r"[:–—-]", self.joint) is not None

    @property
    def is_relative(self) -> bool:
        """Whether it tells more of what stands before it: “tabs, which we do not use”."""
        return _RELATIVE.match(self.begin) is not None and not self.begins_a_sentence

    @property
    def is_elliptic(self) -> bool:
        """Whether it leaves its verb out: “use tabs, not spaces”."""
        return _ELLIPTIC.match(self.begin) is not None and not self.begins_a_sentence


class Part(NamedTuple):
    """Where a clause stands in a text, and where its denial does; -1: it has none."""

    start: int
    end: int
    denied_from: int
    is_by_verb: bool
    joint: str

    @property
    def begins_a_sentence(self) -> bool:
        """Whether what stands before it is another sentence."""
        return _SENTENCE_END.search(self.joint) is not None

    def within(self, text: str, start: int, stop: int) -> Clause:
        """Return the clause, or what these places leave of it; it denies as the whole of it does."""
        start, stop = max(self.start, start), min(self.end, stop)
        whole = bare_clause(text[start:stop])
        begin = text[self.start : self.end]
        if self.denied_from < 0:
            return whole._replace(joint=self.joint, begin=begin)
        cut = min(max(self.denied_from, start), stop)
        topic, scope = text[start:cut], bare_clause(text[cut:stop]).keys
        return whole._replace(
            is_denied=True,
            failing=self._failing(text),
            core=_core(text[cut:stop]) or scope or whole.keys,
            scope=scope or whole.keys,  # “tabs: never”
            topic=bare_clause(topic).keys if scope else frozenset(),
            subject=_subject(topic) if scope else frozenset(),
            joint=self.joint,
            begin=begin,
        )

    def _failing(self, text: str) -> frozenset[str]:
        governed = _GOVERNED.match(text, self.denied_from) if self.is_by_verb else None
        return frozenset() if governed is None else bare_clause(governed[1]).keys


def prepared(text: str) -> str:
    """Return a text without markup, its denials, percentages and powers written in one way."""
    text = expanded(_MARKUP.sub(" ", text).replace("’", "'").replace("−", "-").translate(SUPERSCRIPT))
    text = _MISSPELT_WITHOUT.sub("without", text)
    return _IN_ORDER_TO.sub("to", _PERCENT.sub("%", _IN_PLACE_OF.sub("without", text)))


def clauses_of(text: str) -> Iterator[Clause]:
    """Yield the clauses of a prepared text that say something."""
    for part in parts_of(text):
        clause = part.within(text, part.start, part.end)
        if clause.words or clause.names or clause.is_denied:
            yield clause


def parts_of(text: str) -> list[Part]:
    """Return where the clauses of a prepared text stand. “Do not, in general, …”: a denial alone denies the rest of its sentence, but “no, …” does not."""
    found: list[Part] = []
    start, is_carried, joint = 0, False, "."
    for cut in [*_CLAUSE.finditer(text), None]:
        if (
            cut is not None
            and cut["bare"] is not None
            and not _follows_a_word(text[max(start, cut.start() - _MOST_WORD) : cut.start()])
        ):
            continue
        end = len(text) if cut is None else cut.start()
        places, is_by_verb = _denials(text, start, end)
        is_denied = bool(places) and not _cancel(text, places)
        denied_from = -1 if is_denied == is_carried else places[0] if is_denied else start
        found.append(Part(start, end, denied_from, is_by_verb, joint))
        clause = bare_clause(text[start:end])
        if is_denied and not clause.words and not clause.names and text[start:end].strip().casefold() != INTERJECTION:
            is_carried = not is_carried
        if cut is not None:
            joint = cut[0] or " "
            is_carried = is_carried and _CARRIED_TO.search(joint) is None
            start = cut.end()
    return found


def sentences_of(text: str, parts: Sequence[Part], first: int, last: int) -> list[str]:
    """Return the sentences of which clauses from the first to the last are parts; of a long one, the clauses next to them."""
    while first > 0 and not parts[first].begins_a_sentence and last - first < MOST_CLAUSES:
        first -= 1
    while last + 1 < len(parts) and not parts[last + 1].begins_a_sentence and last - first < MOST_CLAUSES:
        last += 1
    starts = [at for at in range(first, last + 1) if at == first or parts[at].begins_a_sentence]
    return [text[parts[start].start : parts[end - 1].end] for start, end in pairwise([*starts, last + 1])]


def _denials(text: str, start: int, end: int) -> tuple[list[int], bool]:
    """Return where denials stand, and whether all are verbs such as “fails to”."""
    plain = [found.start() for found in _NEGATION.finditer(text, start, end)]
    failing = [found.end() for found in _FAILS_TO.finditer(text, start, end)]
    return sorted(plain + failing), bool(failing) and not plain


def _cancel(text: str, places: Sequence[int]) -> bool:
    """Return whether denials cancel one another: an even number of them, each next to another (“is not unable to”)."""
    return len(places) % 2 == 0 and all(len(text[one:other].split()) <= _NEXT_TO for one, other in pairwise(places))


def _follows_a_word(text: str) -> bool:
    """Return whether a denial after this text denies only what follows it: “content not policy”, but not “is still not”."""
    last = _LAST_WORD.search(text)
    return last is not None and last[1].casefold() not in FUNCTION_WORDS | NEGATIONS and not last[1].endswith("ly")


def _subject(topic: str) -> frozenset[str]:
    """Return the words at the end of a topic that belong together: joined by nothing or by “of”."""
    words = _SUCH_AS.split(topic)[0].replace("'s ", " of ").split()
    while words and _is_function(words[-1]):
        words.pop()
    start = len(words)
    while start > 0 and (
        not _is_function(words[start - 1])
        or words[start - 1].casefold() == "of"
        or (words[start - 1].casefold() in {"the", "a", "an"} and words[start - 2 : start - 1] == ["of"])
    ):
        start -= 1
    return bare_clause(" ".join(words[start:])).keys


def _core(scope: str) -> frozenset[str]:
    """Return the first two words of what is denied, and each word after “or”."""
    first = islice((key for word in _AND.split(scope, maxsplit=1)[0].split() for key in bare_clause(word).shown), 2)
    return frozenset(first).union(*(list(bare_clause(one).shown)[:1] for one in _OR.split(scope)[1:]))


def _is_function(word: str) -> bool:
    return word.strip(_EDGES).casefold() in FUNCTION_WORDS


def bare_clause(text: str) -> Clause:
    """Return a text as one clause that states."""
    words: dict[str, str] = {}
    names: dict[str, str] = {f"name {operator}": operator for operator in _OPERATOR.findall(text)}
    for token in _tokens(text):
        written = unicodedata.normalize("NFKC", token)
        folded = written.casefold()
        if folded in NUMBERS:
            names[f"name {NUMBERS[folded]}"] = token
        elif folded in FREE_WORDS or folded in NEGATIONS:
            continue
        elif _DIGIT_OR_SIGN.search(token) or token.startswith("--"):
            names[f"name {plain_number(folded)}"] = token
        else:
            for word in written.split("-"):
                if word.casefold() not in FREE_WORDS and any(char.isalnum() for char in word):
                    words[f"word {stem(word.casefold())}"] = word
    return Clause(words, names)


def _tokens(text: str) -> Iterator[str]:
    for raw in _SEPARATORS.split(text):
        token = raw.rstrip(_EDGES)
        token = token if token.startswith("--") else token.lstrip(_EDGES.replace("/", "@"))
        token = token[:-2] if token.casefold().endswith("'s") else token
        if token[:1].isdecimal() and (signed := _SIGN.match(raw)) is not None:
            token = signed[1] + token
        if token:
            yield token


def plain_number(text: str) -> str:
    """Return a number without separators of thousands; any other text unchanged."""
    return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text


def stems(text: str) -> frozenset[str]:
    """Return the stems of a text's words, its names and its numbers."""
    return bare_clause(text).keys
