"""Verification of claims: whether a source says what is stated about it, as far as comparing words can tell.

What is quoted must stand in the source. Exact items (numbers, names, versions, paths, quoted text) must stand in the records that are
quoted, plain numbers in the sentences; the project, and a name that the source has three times, may be added. What is stated must not
be denied there, nor what is denied stated. Half of a sentence's other words must be those of the records, and half of a cause's those
of the quoted sentences. What a person typed is read with its slips and short forms. Words are compared, not meanings. Pure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from snowballstemmer.english_stemmer import EnglishStemmer

from memgraph.model.ids import canonical_name
from memgraph.text import lazy_re as re
from memgraph.text.words import expanded

SAYS_NOTHING = "it says nothing that evidence could support"
_FREE = frozenset(
    "a an the this that these those it its itself he she they them their we us our you your i me my one ones who whom whose which what "
    "where is are was were be been being am do does did done has have had having will would shall should can could may might must need "
    "needs needed of to in on at by for from with into onto over under out up off as than about via per between during through within "
    "against and or nor but so if then else when while because since although though whether both also too just very still again there "
    "here how given rather why more most some such same other another each every all any only always own way yes please thus hence due "
    "general even unable etc say says said state states stated told report reports reported ask asks asked request requests requested "
    "want wants wanted like expect expects expected require requires required prefer prefers preferred decide decided decision choose "
    "chose chosen choice explained confirmed agreed suggested before after first last next finally earlier later now once until already "
    "instead longer get gets got gave goes went became become took takes put comes came make makes made keep keeps kept use used uses "
    "using not no never none nobody nothing neither without".split()
)
"""Words that need no evidence: of grammar, telling, order and time, and light verbs."""
_NUMBERS = {"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}  # fmt: skip
_PERSONS = frozenset({"user", "users", "agent", "agents", "assistant"})
_ITEM = re.compile(r"[-+]?\d[\d.,:]*\d%?[^\W\d_]*(?![^\s,;)])|[^\s()\[\]{}<>\"“”„«»‘`;|*,…]+")
_EDGES = ".:!?'’=&\\-–—/"
_SIGNS = re.compile(r"[\d_./\\:=@#+~$%]|[a-z][A-Z]|^--|^[A-Z]{2,}s?$")
_QUANTITY = re.compile(r"[-+]?v?(\d[\d.,:]*)(%?)([a-z]{0,4})")
_THOUSANDS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_PERCENT = re.compile(r"(?<=\d)\s?(?:%|per ?cent\b)", re.IGNORECASE)
_PLAIN = str.maketrans({"*": " ", "`": " ", "’": "'", "−": "-"})
_WIDE = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_WIDE}]|\d+(?:[.,:]\d+)*%?|[^\W_{_WIDE}]+")
_FRAME = re.compile(r"^\[\d{1,4}\]$", re.MULTILINE)  # of a record; without any, the paragraphs are records
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_SENTENCE = re.compile(r"[.!?;]+[\"”'’)]*\s+|\n+")
_BEGINS = re.compile(r"(?:^|[.!?:;]\s+|\n)[^\w\n]{0,4}(\w+)")
_CAUSE = re.compile(r"\b(?:because|since|due to|owing to|caused by)\b([^.;:]*)", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?i)[.!?;]+(?=\s|$)|:(?=\s)(?!\s+(?:not|no|never)\b)|,(?=\s)|\n|\s[-–—]+\s|[()]|"
    r"\s(?=(?:but|because|so|if|when|unless|while|although|though|since|until|without|please|instead of|rather than|"
    r"(?:that|which|who)\s(?:\w+\s)?(?:not|never|no))\s)|\sand\s(?=(?:never|not|no|nobody|do|does|did|is|are|was|were|"
    r"has|have|can|must|should|will|it|there|they|we|you|i)\s)",
)
_DENIAL = re.compile(
    r"(?i)(?<![\w-])(?:not|no|never|(?-i:none)|none of|nobody|nothing|neither|nor|without|instead of|rather than|(?:fail(?:s|ed)?|unable|refuse[sd]?|forg[eo]ts?)"
    r"(?= to\b)|(?:stop|avoid|quit)s?(?= \w+ing\b))(?![\w-])",
)
_NEGATIVE = re.compile(
    r"(?i)\b((?:fail|refus|reject|block|prevent|avoid|lack|miss|disabl|forbid|prohibit|stop|drop|remov|delet|ban)"
    r"(?:e?s|e?d|ing|ure|ped|ping)?|wrong|broken?|breaks?|errors?|over|unless|except|hardly|barely|too|"
    r"un\w{4,}|dis\w{4,}|non\w{4,}|impossible|invalid|absent|denied)\b",
)
"""Words that deny without a denial: with one, a text may say what another one denies."""


class _Clause(NamedTuple):
    """The words of a clause as stems, those that it denies, and those by which it may deny."""

    words: frozenset[str]
    denied: frozenset[str]
    negative: frozenset[str]


@dataclass(frozen=True)
class Evidence:
    """What is quoted of a source: the records and whole sentences that have it, their words and stems, and what may be named anyhow."""

    records: str
    told: str
    written: frozenset[str]
    near: frozenset[str]
    quoted: frozenset[str]
    sentences: tuple[tuple[_Clause, ...], ...]
    whole: frozenset[tuple[str, ...]]
    common: str
    by_user: bool

    def has(self, item: str) -> bool:
        """Return whether an exact item stands there or may be named anyhow; a name also by a short form that a user typed."""
        wanted = comparable(item)
        forms = [wanted, *(one for pair in _NUMBERS.items() if wanted in pair for one in pair)]
        is_number = len(forms) > 1 or _QUANTITY.fullmatch(wanted) is not None
        text = self.told if is_number else f"{self.records}\n{self.common}"
        if any(item_pattern(form).search(text) for form in forms):
            return True
        if item.isalpha():
            return self.by_user and any(may_stand_for(one, wanted) for one in self.written)
        joined = "".join(_WORD.findall(wanted))  # “GL-iNet” is “GL.iNet”
        return len(joined) > 4 and joined.isalpha() and joined in "".join(_WORD.findall(self.records))

    def tells(self, sentence: str) -> bool:
        """Return whether a sentence is one of those quoted, word for word."""
        return tuple(_WORD.findall(comparable(sentence))) in self.whole

    def may_say(self, word: str) -> bool:
        """Return whether a word needs no more evidence: it stands for one of the records, or may be named anyhow."""
        return self.meant(word) in self.near or item_pattern(word).search(self.common) is not None

    def meant(self, word: str) -> str:
        """Return the stem of the word of the records that a word stands for; its own if there is none."""
        if (own := stem(word)) in self.near:
            return own
        others = ((one, stem(one)) for one in self.written if one[0] == word[0])
        near = (to for one, to in others if may_stand_for(one, word) or (len(to) > 3 and own.startswith(to)))
        return min(near, default=own)


def evidence_in(source: str, parts: Iterable[str], *, known: str = "") -> tuple[Evidence, list[str]]:
    """Return what parts of a source say there, and those that are not in it; `known` may be named without a quotation.

    Case, white space, markup and punctuation do not count, nor does a slip in six words; “…” may leave something out.
    """
    text = _prepared(source)
    words = list(_WORD.finditer(_FRAME.sub(lambda frame: " " * len(frame[0]), text)))
    told = [found[0].casefold() for found in words]
    missing, spans = list[str](), list[tuple[int, int]]()
    for part in parts:
        pieces = re.split(r"\s*\[?(?:…|\.{3})\]?\s*", _FRAME.sub("", _prepared(part)))
        places = [_places(told, [one.casefold() for one in _WORD.findall(piece)]) for piece in pieces if piece]
        if not places or [] in places:
            missing.append(part)
        spans += [(words[start].start(), words[end - 1].end()) for some in places for start, end in some]
    around = "\n".join(_parts(_FRAME if _FRAME.search(text) else _PARAGRAPH, text, spans))
    sentences = _parts(_SENTENCE, text, spans)
    said = "\n".join(sentences)
    named = (name for name, count in Counter(re.findall(r"\b[A-Z]\w*[a-z]\w*", text)).items() if count > 2)
    evidence = Evidence(
        records=comparable(around),
        told=comparable(said),
        written=frozenset(map(str.casefold, _WORD.findall(around))),
        near=word_stems(around),
        quoted=word_stems(said),
        sentences=tuple(filter(None, (tuple(_clauses(one, stem)) for one in sentences))),
        whole=frozenset(tuple(_WORD.findall(comparable(one))) for part in sentences for one in _SENTENCE.split(part)),
        common=comparable(" ".join([known, *named])),
        by_user=re.search(r"(?im)^\W{0,3}(?:the )?user\w*[ \t]*:", around) is not None,
    )
    return evidence, missing


def unsupported(claim: str, evidence: Evidence, *, names_only: bool = False) -> list[str]:
    """Return what a claim says that its evidence does not, at least something; with `names_only`, it states and denies nothing."""
    text = _prepared(claim)
    if not any(_content(text)):
        return [SAYS_NOTHING]
    found = [*_unsaid(text, evidence), *_unquoted(text, evidence)]
    return list(dict.fromkeys(found or ([] if names_only else _denials(text, evidence))))


def _unsaid(text: str, known: Evidence) -> Iterator[str]:
    """Yield the exact items that the evidence does not have, and the other words of a sentence if it does not have half of them."""
    compared = 0
    for sentence in _SENTENCE.split(text):
        new: list[str] = []
        items = list(_content(sentence))
        for item, is_exact in items:
            word = item.casefold()
            if is_exact and not known.has(item):
                yield f"“{item}” is not in the quoted evidence: quote the passage that has it"
            elif word in {"user", "users"} and not known.by_user and stem(word) not in known.near:
                yield f"“{item}” is not in the quoted evidence: quote the turn of the user, or say who said it"
            elif not is_exact and word not in _PERSONS and not word_stems(word) <= known.near:
                compared += 1
                if compared > 40 or not known.may_say(word):
                    new.append(f"“{item}”")
        total = len(items) - sum(item.casefold() in _PERSONS for item, _ in items)
        if new and 2 * len(new) > total - (total < 4):
            yield f"{', '.join(new)} {'is' if len(new) == 1 else 'are'} not in the source: say it in its words"


def _unquoted(text: str, known: Evidence) -> Iterator[str]:
    """Yield the causes of which the quoted sentences do not have half, and quotations that the records do not have word for word."""
    for cause in _CAUSE.findall(text):
        items = [item for item, _ in _content(cause)]
        exact = [item_pattern(comparable(item)).search(known.told) is not None for item in items]
        said = [
            is_there or known.meant(item.casefold()) in known.quoted
            for item, is_there in zip(items, exact, strict=True)
        ]
        if 2 * sum(said) < len(said):
            yield f"the quoted evidence states no cause “{cause.strip()}”: quote the passage that does, or leave it out"
    for one, other in re.findall(r"(?<![\w-])([a-z]+)-([a-z]+)(?![\w-])", text):
        is_like_a_name = f"{one}-" in known.records or f"-{other}" in known.records
        if is_like_a_name and f"{one}-{other}" not in known.records and not {stem(one), stem(other)} <= known.near:
            yield f"“{one}-{other}” is not in the quoted evidence: quote the passage that has it"
    told = f" {' '.join(_WORD.findall(known.records))} "
    for quotation in re.findall(r"[“\"]([^“”\"\n]{1,400})[”\"]", text):
        if " " in quotation and f" {' '.join(_WORD.findall(comparable(quotation)))} " not in told:
            yield f"“{quotation}” is not in the quoted evidence word for word: quote it as it is"


def _denials(text: str, known: Evidence) -> Iterator[str]:
    """Yield what is stated and denied in the quoted sentences, or denied and stated there, clause by clause; no sentence that is copied."""
    text = "\n".join(one for one in _SENTENCE.split(text) if not known.tells(one))
    claimed = _stems(_DENIAL.sub(" ", text), known.meant)
    every = [one for sentence in known.sentences for one in sentence]
    text = re.sub(r"\b(?i:instead of|rather than)\b[^,.;:]*", "", text)  # a rejected alternative need not be denied
    for claim in _clauses(text, known.meant):
        told, is_whole = _nearest(claim, known.sentences)
        about, stated = claim.words - claim.denied, told.words - told.denied
        if not claim.denied:
            is_wrong = len(claim.words & told.denied) > (len(claim.words & stated) if is_whole else 0)
            is_wrong = is_wrong and claim.negative <= told.negative
        elif not told.words:
            is_wrong = not (_DENIAL.search(known.records) or _NEGATIVE.search(known.records))
        elif told.denied:
            is_wrong = len(claim.denied & stated) > max(len(claim.denied) / 2, len(claim.denied & told.denied))
        else:
            may_deny = told.negative - claim.negative - (frozenset() if is_whole else claimed)
            was_so = any(one.denied and about & one.words - one.denied for one in every)  # and then it was not
            is_wrong = 2 * len(claim.denied & stated) >= len(claim.denied) and not was_so
            is_wrong = is_wrong and (not may_deny or bool(claim.negative - told.negative))
        if is_wrong:
            items = " ".join(sorted(claim.denied or claim.words & told.denied))
            yield f"the quoted evidence {'does not deny' if claim.denied else 'denies'} “{items}”: quote the passage that does"


def _nearest(claim: _Clause, sentences: Sequence[Sequence[_Clause]]) -> tuple[_Clause, bool]:
    """Return the clause with most of a claim's words, or its sentence if that has more, and whether it is one; an empty one if none is near."""
    best: tuple[float, ...] = (0.0,)
    nearest, is_whole = _Clause(frozenset(), frozenset(), frozenset()), False
    for sentence in sentences:
        whole = _Clause(*(frozenset[str]().union(*parts) for parts in zip(*sentence, strict=True)))
        if sum(bool(one.denied) for one in sentence) == 2:  # “never commit without signing”
            whole = whole._replace(denied=frozenset())
        said = len(claim.words & whole.words)
        is_near = 2 * said >= len(claim.words) or (claim.denied and claim.denied <= whole.words)
        for one in sentence if is_near else ():
            common = len(claim.words & one.words)
            rank = (common, bool(one.denied) == bool(claim.denied), common / len(one.words))
            if rank > best:
                best, nearest, is_whole = rank, one if common == said else whole, common < said
    return nearest, is_whole


def _clauses(text: str, stem_of: Callable[[str], str]) -> Iterator[_Clause]:
    """Yield the clauses of a text that say something. A denial alone, except “no,”, belongs to the next one; two cancel each other."""
    carried = ""
    for part in _CLAUSE.split(text):
        clause = f"{carried} {part}"
        denials = list(_DENIAL.finditer(clause))
        if not (words := _stems(clause, stem_of)):
            carried = "not" if len(denials) % 2 and clause.rsplit(maxsplit=1)[-1].casefold() != "no" else ""
            continue
        carried, denied = "", frozenset[str]()
        if len(denials) % 2:
            after = clause[denials[0].end() :]
            denied = _stems(after, stem_of) if after.strip(f" {_EDGES}") else words
        negative = set(map(stem, _NEGATIVE.findall(_DENIAL.sub(" ", clause).casefold())))
        negative |= {"not"} if denials and not denied else set()
        yield _Clause(words, denied, frozenset(negative))


def _stems(text: str, stem_of: Callable[[str], str]) -> frozenset[str]:
    items = (item for item, _ in _content(text) if item.casefold() not in _PERSONS)
    return frozenset(stem_of(item.casefold()) if item.isalpha() else comparable(item) for item in items)


def _content(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the items of a text that say something, and whether each is exact; of a compound of one or two plain words, its words."""
    initial = set(_BEGINS.findall(text))
    for raw in _ITEM.findall(text):
        item = raw.rstrip(_EDGES)
        has_sign = item.startswith("--") or (item[:1] in {"-", "+"} and item[1:2].isdigit())
        item = (item if has_sign else item.lstrip(f"{_EDGES}@")).removesuffix("'s")
        words = item.split("-")
        is_name = len(words) > 2 and not _FREE.intersection(words[1:-1])
        if item.casefold() in _NUMBERS or _SIGNS.search(item) or (is_name and item):
            yield item, True
            continue
        for word in words if item.casefold() not in _FREE else ():
            if word.casefold() not in _FREE and _WORD.search(word):
                yield word, word[0].isupper() and (word not in initial or _SIGNS.search(word) is not None)


def _places(told: Sequence[str], wanted: Sequence[str]) -> list[tuple[int, int]]:
    """Return where a run of words stands: as it is, else with one slip in six words; at most eight places."""
    whole, run, length = f" {' '.join(told)} ", f" {' '.join(wanted)} ", len(wanted)
    found, at = list[tuple[int, int]](), whole.find(run)
    while wanted and at >= 0 and len(found) < 8:
        found.append((whole.count(" ", 0, at), whole.count(" ", 0, at) + length))
        at = whole.find(run, at + 1)
    for first in range(len(told) - length + 1 if length > 2 and not found else 0):
        if told[first] == wanted[0] or told[first + length - 1] == wanted[-1]:
            slips = [pair for pair in zip(told[first:], wanted, strict=False) if pair[0] != pair[1]]
            if len(slips) <= length // 6 + 1 and all(may_stand_for(*pair) for pair in slips):
                return [(first, first + length)]
    return found


def _parts(limits: re.Pattern[str], text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    """Return the parts of a text that passages stand in, each once."""
    bounds = [0, *(found.end() for found in limits.finditer(text)), len(text)]
    found = (range(bisect_right(bounds, first) - 1, bisect_right(bounds, last - 1)) for first, last in spans)
    return [text[bounds[at] : bounds[at + 1]] for at in dict.fromkeys(at for some in found for at in some)]


def _prepared(text: str) -> str:
    """Return a text without markup, its denials and percentages written in one way."""
    return _PERCENT.sub("%", expanded(text.translate(_PLAIN)))


def comparable(text: str) -> str:
    """Return a text folded, with paths and numbers written in one way."""
    return _THOUSANDS.sub(lambda number: number[0].replace(",", ""), canonical_name(text).replace("\\", "/"))


@lru_cache(maxsize=4_096)
def item_pattern(item: str) -> re.Pattern[str]:
    """Return the pattern of an item, or of a longer one that it is part of: “ada/kiln” in “git.org/ada/kiln”, but not 3.3 in 3.3.5."""
    if (number := _QUANTITY.fullmatch(item)) is not None:
        sign = re.escape(item[0]) if item[0] in "+-" else r"(?<![\s(=:,/][-+])(?<!^[-+])(?<!-\d\d-)(?<!\d{4}-)"
        version = "v" if "v" in item and "." not in item else "v?"
        unit = rf" ?{number[3]}(?!\w)" if number[3] else "" if number[2] else r"(?![\d%_]|[.,:]\d)"
        return re.compile(rf"(?<![\w.])(?<!\d[.,:]){sign}{version}{re.escape(number[1])}{number[2]}{unit}")
    start = r"(?<![\w-])" if item.startswith("-") else r"(?<!\w)" if item[0].isalnum() or item[0] == "_" else ""
    end = "" if re.search(rf"[{_WIDE}]", item) else r"(?!\w)"
    return re.compile(rf"{start if end else ''}{re.escape(item)}{end}")


def may_stand_for(written: str, word: str) -> bool:
    """Return whether a typed word may stand for another one: “auth”, “brew” of “homebrew”, “ps” of “powershell”; or with one slip."""
    short, long = sorted((written, word), key=len)
    if written == word or written in _FREE or not (written.isalpha() and word.isalpha()):
        return False
    if len(short) > 3 and written[0] == word[0] and len(long) - len(short) < 2:
        is_longer = short[-1] == long[-1] and any(long[:at] + long[at + 1 :] == short for at in range(1, len(long) - 1))
        is_other = len(short) > 6 and sum(one != other for one, other in zip(short, long, strict=False)) == 1
        return is_longer if len(short) < len(long) else is_other or sorted(short) == sorted(long)
    if len(written) > 2 and (word.startswith(written) or (len(written) > 3 and word.endswith(written))):
        return True
    rest, most = iter(word), min(4, len(word) // 2)
    return 1 < len(written) <= most and written[0] == word[0] and all(char in rest for char in written)


def word_stems(text: str) -> frozenset[str]:
    """Return the words of a text by their stems."""
    return frozenset(stem(word.casefold()) for word in _WORD.findall(text))


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return what the forms of a word in lower case have in common."""
    stemmer: Any = EnglishStemmer()  # type: ignore[no-untyped-call]  # one for each: it holds the word as state
    return str(stemmer.stemWord(word))
