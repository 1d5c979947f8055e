"""Weaknesses: kinds of fault that a sentence can name, and where they come again. Pure.

A weakness is a cause of faults in one file or in a project ("deadlocks in `channel.py`"), two words that name a part of a file
("importlib mode"), an environment in which things go wrong ("Windows"), a platform or dependency that needs tests with each release, or a
thing that broke again after it had been mended.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from memgraph.index.analyser import analyse
from memgraph.lifecycle.evidence.sentences import sentences_of
from memgraph.lifecycle.generalisation.lessons import statement_of
from memgraph.ports import Row
from memgraph.text.sentences import ended

Kind = Literal["thing", "topic", "cause", "environment", "release"]

_MOST_READ_CHARS = 2_000
_QUOTE_CHARS = 240
_LEAST_NAME_CHARS = 3
_LONGEST_PATH = 60
_OWN = "It corrects “"
"""Opening of the sentence with which a memory names the change that it corrects."""
_NOT_MENDING = frozenset({"novelty", "release", "removal", "deprecation", "revert"})

_THING = re.compile(r"`([^`\s]{3,60})`|(?<![\w./-])([A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,4})(?![\w/-])")
_IS_NAME = re.compile(r"\w[_.]\w|[a-z][A-Z]")
_FILE_OR_ERROR = re.compile(r"\.[a-z]{1,4}$|(?:Error|Exception|Warning)$")
_FILE = re.compile(r"\.(?!md$|rst$|txt$|rdoc$)\w{1,5}$")
_WORD = re.compile(r"[^\W\d_]{3,40}")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LEAST_TERM_CHARS = 4
_TELLS_NOTHING = frozenset(
    "fix bug error issu problem crash test code python rubi support previous chang commit use add remov regress fail broken break correct "
    "proper wrong incorrect properli correctli make work case run behavior behaviour version deprec warn avoid prevent caus ensur handl "
    "instead alway never longer still without when exist differ same valu option function method class modul file line".split()
)
"""Terms that name no part of a program."""
_LABEL = re.compile(r"^\[[^\]]{3,160}\][.:]?\s+")
_PLACE = re.compile(r"\.? \([\w-]{1,60}\.\w{1,5}\)\.?$")
"""The file that stands behind a statement."""
_MENDS = re.compile(
    r"\b(?:fix(?:e[sd]|ing)?|bugs?|bugfix|regress(?:ed|es|ions?)|crash\w{0,3}|broken?|break(?:s|ing)?|fail(?:s|ed|ing|ures?)?|"
    r"wrong(?:ly)?|incorrect(?:ly)?|erroneous(?:ly)?|no longer|cannot|can['’]t|doesn['’]t|didn['’]t|prevents?|avoid(?:s|ing)?|"
    r"errors?|workarounds?|work around|corrupt\w{0,3}|special characters|dead-?lock\w{0,3})\b|\w{1,60}(?:Error|Exception|Warning)\b",
    re.IGNORECASE,
)
_ENDS = (
    r"\b(?:fix(?:e[sd]|ing)?|avoid(?:s|ed|ing)?|prevent(?:s|ed|ing)?|caus(?:e[sd]?|ing)|lead(?:s|ing)? to|led to|result(?:s|ed|ing)? in|"
    r"remov(?:e[sd]?|ing)|resolv(?:e[sd]?|ing)|would|could|may|might|can|not|never|without|due to|because of|was|were|is|are|had|it)\b"
    r"(?:[ /]+[\w`'’()-]+){0,4}?[ /]+"
)
"""What stands before a fault that is mended, rather than tested or named in passing."""
_RESOURCE = r"(?:memory|references?|resources?|descriptors?|fds?|handles?|sockets?|connections?|goroutines?|threads?|variables?|objects?|files?)"
_FAULTS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(f"{_ENDS}(?:{pattern})", re.IGNORECASE)
    for name, pattern in {
        "deadlocks and race conditions": r"dead-?lock(?:s|ed|ing)?\b|(?:data )?races?(?: conditions?)?\b(?= ?(?:$|[^\w ]|(?:between|in|with|when|on|and|that|where|to)\b))|"
        r"thread[- ]?(?:un)?safe\b",
        "leaks": rf"{_RESOURCE} leak(?:s|ed|ing|age)?\b(?! (?:detect|check|test))|leak(?:s|ed|ing)? (?:of )?(?:\w+ ){{0,3}}?{_RESOURCE}\b",
        "endless loops and recursions": r"(?:infinite|endless)(?:ly)? (?:loop|recurs)\w{0,4}|recursion errors?\b|loops? forever\b|stack overflows?\b",
        "hangs": r"(?:hang(?:s|ing)?|hung|block(?:s|ed|ing)? (?:forever|indefinitely))\b",
        "overflows": r"(?:integer |buffer )?overflow(?:s|ed)?\b",
        "circular imports": r"(?:circular|cyclic) (?:import|depend|refer)\w{0,8}|import cycles?\b",
    }.items()
}
_DEFECT = r"(?:fix(?:e[sd])?|bugs?|crash\w{0,3}|fail\w{0,4}|errors?|wrong\w{0,2}|incorrect\w{0,2}|broken?|rais\w{1,3}|throw\w{0,2}|\w{1,60}Error)"
_SUBJECTS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(
        rf"\b{_DEFECT}\b(?:\W{{1,3}}\w+){{0,6}}?\W{{1,3}}(?:{pattern})|\b(?:{pattern})(?:\W{{1,3}}\w+){{0,2}}?\W{{1,3}}{_DEFECT}\b",
        re.IGNORECASE,
    )
    for name, pattern in {
        "errors with text encodings": r"unicode\b|utf-?(?:8|16)\b|Unicode\w{1,20}Error\b|non-ascii\b|byte ?strings?\b|mojibake\b|"
        r"(?:text|file|filesystem|string|character) encodings?\b|encoding (?:errors?|issues?|problems?|is)\b|BytesWarning\b",
        "errors of escaping and quoting": r"(?:un|mis|re|double[ -])?(?:quot|escap)(?:e[sd]?|ing)\b(?! sequences?)",
        "broken line endings": r"line[- ]?endings?\b|CRLF\b|carriage returns?\b",
        "errors with symbolic links": r"sym(?:bolic )?-?link(?:s|ed|ing)?\b",
        "errors with time zones": r"time-?zones?\b|DST\b|daylight saving\b",
        "crashes on missing values": r"nil pointer\b|NoneType\b|null pointer\b|(?:\w+ )?(?:is|are|being|was) (?:None|nil|null)\b",
    }.items()
}
"""Subjects of faults: a word for a defect stands near."""
_ENVIRONMENTS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "Windows": r"\bwindows(?: \d+)?\b(?! (?:size|title|manager))|\bwin32\b|\bmsys2?\b|\bmingw\w{0,4}\b|\bcygwin\b",
        "macOS": r"\bmac ?os(?: ?x)?\b|\bos ?x\b|\bdarwin\b",
        "PyPy": r"\bpypy\w{0,3}\b",
        "Jython": r"\bjython\b",
        "JRuby": r"\bjruby\b",
        "BSD": r"\b(?:free|open|net)bsd\b",
        "Solaris": r"\bsolaris\b|\bsunos\b",
        "Alpine Linux": r"\balpine\b|\bmusl\b",
        "32-bit systems": r"\b32[- ]bit (?:systems?|platforms?|arch\w{0,10}|machines?)\b",
    }.items()
}
_OTHERS_WAYS = re.compile(
    r"\b(?:some|certain|many|other|those|most) (?:[\w-]{2,20} )?(servers?|clients?|devices?|browsers?|terminals?|shells?)\b",
    re.IGNORECASE,
)
_RELEASE = re.compile(r"\b([A-Za-z][A-Za-z0-9_.+-]{2,30}) (?:v|>=? ?)?\d{1,4}(?:\.\d{1,4})+\b")
_NO_PRODUCT = frozenset(
    "since version versions release released releases from with until before after than and the for under over like using about only both "
    "section line step part http tls ssl unicode rfc commit issue patch support supports require requires".split()
)
_ADAPTS = re.compile(
    r"\b(?:deprecat\w{1,5}|disappear\w{0,3}|br(?:eaks?|oke|oken)|no longer|incompatib\w{0,5}|renamed|removed|changed|changes|"
    r"(?:isn['’]t|is not|was not|not) (?:included|supported|available|defined|installed))\b",
    re.IGNORECASE,
)


class Weakness(NamedTuple):
    """What was mended again and again.

    Attributes
    ----------
    kind : str
    name : str
        Of a thing in lower case, of a topic two terms; otherwise as it is written in a text.
    file : str
        Path of the file that has it; empty for one of the whole project.
    """

    kind: Kind
    name: str
    file: str = ""


Sentences = Mapping[Weakness, tuple[str, ...]]


def weaknesses_of(row: Row) -> Sentences:
    """Return the weaknesses that a change mends, each with the sentences that name it and may be repeated."""
    tags = row.get("tags", ())
    if not _NOT_MENDING.isdisjoint(tags):
        return {}
    title = row.get("title") or ""
    return _weaknesses(_read(row), title if _FILE.search(title) else "", "fix" in tags)


def leads_with(row: Row, weakness: Weakness) -> bool:
    """Return whether the first sentence of a change names a weakness."""
    first = next(iter(sentences_of(_read(row))), "")
    return _bare(first) in weaknesses_of(row).get(weakness, ())


def file_name(weakness: Weakness) -> str:
    """Return the file of a weakness as a text names it."""
    return weakness.file if len(weakness.file) <= _LONGEST_PATH else weakness.file.rsplit("/", 1)[-1]


def in_place(weakness: Weakness) -> str:
    """Return an environment with its preposition."""
    return f"{'with' if weakness.name.startswith('different ') else 'on'} {weakness.name}"


def names_of(row: Row) -> dict[str, str]:
    """Return the things that an episode names, functions and options rather than files and errors, with their spelling."""
    return dict(_named(_read(row)))


def written(rows: Sequence[Row], weakness: Weakness) -> str:
    """Return the name of a weakness as most of the changes write it."""
    forms = Counter[str]()
    if weakness.kind == "thing":
        forms.update(spelt[weakness.name] for row in rows if weakness.name in (spelt := names_of(row)))
    elif weakness.kind == "topic":
        said = [sentence for row in rows for sentence in weaknesses_of(row).get(weakness, ())]
        pairs = [(pair, sentence) for sentence in said for terms, pair in _pairs(sentence) if terms == weakness.name]
        forms.update(pair for pair, sentence in pairs if pair in sentence.casefold())
        forms = forms or Counter(pair for pair, _ in pairs)
    return max(forms, key=lambda form: (forms[form], form), default=weakness.name)


def is_whole(sentence: str) -> bool:
    """Return whether a sentence was not cut inside a name, a quotation or brackets."""
    pairs = ((sentence.count(one), sentence.count(other)) for one, other in ("()", "“”", "[]"))
    return sentence.count("`") % 2 == 0 and all(one == other for one, other in pairs) and not sentence.startswith(_OWN)


def environments_in(text: str) -> list[str]:
    """Return the environments that a text names."""
    return [name for name, pattern in _ENVIRONMENTS.items() if pattern.search(text)]


@lru_cache(maxsize=8_192)
def _weaknesses(text: str, file: str, is_fix: bool) -> Sentences:
    found: dict[Weakness, list[str]] = {}
    mends = is_fix or _MENDS.search(text) is not None
    for sentence in sentences_of(text) if mends else ():
        said = _bare(sentence)
        if len(said) <= _QUOTE_CHARS and is_whole(said):
            for weakness in _in(said, file):
                found.setdefault(weakness, []).append(said)
    return {weakness: tuple(said) for weakness, said in found.items()}


def _bare(sentence: str) -> str:
    """Return a sentence without a label before it and without the file that stands behind it."""
    return ended(_PLACE.sub("", _LABEL.sub("", sentence)))


def _in(sentence: str, file: str) -> Iterator[Weakness]:
    """Yield the weaknesses that a sentence names."""
    mends = _MENDS.search(sentence) is not None
    if mends or _ADAPTS.search(sentence):
        for product in dict.fromkeys(match[1].casefold() for match in _RELEASE.finditer(sentence)):
            if (
                product not in _NO_PRODUCT
                and not environments_in(product)
                and f"/{product}/" not in f"/{file.casefold()}"
            ):
                yield Weakness("release", product.capitalize())
    for name, pattern in (*_FAULTS.items(), *(_SUBJECTS.items() if mends else ())):
        if pattern.search(sentence):
            yield Weakness("cause", name)
            if file:
                yield Weakness("cause", name, file)
    if not mends:
        return
    for name, _ in _named(sentence):
        yield Weakness("thing", name)
    for name in environments_in(sentence):
        yield Weakness("environment", name)
    if match := _OTHERS_WAYS.search(sentence):
        yield Weakness("environment", f"different {match[1].casefold().removesuffix('s')}s")
    if file:
        own = _terms_of_path(file)
        for terms in dict.fromkeys(terms for terms, _ in _pairs(sentence)):
            if own[0].isdisjoint(terms.split()) and not own[1].issuperset(terms.split()):
                yield Weakness("topic", terms, file)


def _pairs(sentence: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of telling words that stand together: as two terms in alphabetical order, and as they are written."""
    words = [word.casefold() for word in _WORD.findall(_HUMP.sub(" ", sentence).replace("_", " "))]
    terms = [(term, word) for word in words if (term := _term(word))]
    for (one, first), (other, second) in pairwise(terms):
        if one != other:
            yield " ".join(sorted((one, other))), f"{first} {second}"


@lru_cache(maxsize=2_048)
def _terms_of_path(file: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of a file's packages, and those of its whole path: these say where it lies, not what broke."""
    parts = [frozenset(filter(None, map(_term, re.findall(r"[a-z]+", part)))) for part in file.casefold().split("/")]
    return frozenset[str]().union(*parts[: min(2, len(parts) - 1)]), frozenset[str]().union(*parts)


@lru_cache(maxsize=16_384)
def _term(word: str) -> str | None:
    """Return the term of a word that may name a part of a program; None for another word."""
    term = next(iter(analyse(word)), "")
    return term if len(term) >= _LEAST_TERM_CHARS and term not in _TELLS_NOTHING else None


@lru_cache(maxsize=8_192)
def _named(text: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for match in _THING.finditer(text):
        spelt = match[1] or match[2]
        if not (match[1] or _IS_NAME.search(spelt)) or _FILE_OR_ERROR.search(spelt):
            continue
        first, _, last = spelt.rstrip("()").rpartition(".")
        name = last.strip("_")
        if first and not _IS_NAME.search(last):  # "sys.modules": the last part alone is a word
            name = f"{first.rsplit('.', 1)[-1]}.{name}"
        if len(name) > _LEAST_NAME_CHARS and name.replace(".", "_").isidentifier():
            found.setdefault(name.casefold(), name)
    return tuple(found.items())


def _read(row: Row) -> str:
    text = statement_of(row)[:_MOST_READ_CHARS]
    for agent in row.get("agents_involved", ()):
        text = text.replace(agent, "")
    return text
