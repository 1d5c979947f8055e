"""Weaknesses: kinds of fault that a sentence can name, and where they come again. Pure.

A weakness is a cause of faults in one file ("deadlocks in `channel.py`"; of a whole project such faults are too unlike), or an environment that behaves
differently ("BSD"). A change has one only if a sentence of it says that the product had such a fault: new features, tests,
builds of the project itself, warnings and gains of speed mend nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from memgraph.lifecycle.evidence.sentences import sentences_of
from memgraph.lifecycle.generalisation.lessons import statement_of
from memgraph.ports import Row
from memgraph.text import lazy_re as re
from memgraph.text.sentences import ended

Kind = Literal["cause", "environment"]

_MOST_READ_CHARS = 2_000
_QUOTE_CHARS = 240
_REMEDY_CHARS = 180
_LEAST_WORDS = 4
_LONGEST_PATH = 60
_OWN = "It corrects “"
"""Opening of the sentence with which a memory names the change that it corrects."""
_NOT_MENDING = frozenset({"novelty", "release", "removal", "deprecation", "revert"})

_FILE = re.compile(r"\.(?!md$|rst$|txt$|rdoc$)\w{1,5}$")
_LABEL = re.compile(r"^\[[^\]]{3,160}\][.:]?\s+")
_PLACE = re.compile(r"\.? \(([\w.-]{1,60}\.\w{1,5})\)\.?$")
"""The file that stands behind a statement."""
_NO_PRODUCT = re.compile(
    r"(?:^|/)(?:tests?|testing|specs?|bench(?:es|marks?)?|examples?|demos?|docs?|scripts?|ci|\.\w[^/]*)/|(?:^|/)\.|"
    r"(?:^|[/_.-])(?:tests?|specs?|bench\w{0,5}|travis|appveyor|cirrus)[_.-]|(?:Test|Tests|_test|_spec)\.\w{1,5}$|(?:^|/)conftest\.py$|(?:^|/)tox\.ini$",
    re.IGNORECASE,
)
"""Paths of tests, examples, documentation, and the builds of the project itself."""
_WORD = re.compile(r"[^\W\d_]{2,40}")
_CODE = re.compile(r"`[^`]{0,200}`|'[^']{0,60}'|\"[^\"]{0,60}\"")
_POINTS_BACK = re.compile(
    r"(?:This|These|It|Its|That|They|Those|Such|Which|Both|Here|But|So|And|Then|Otherwise|Instead|Thus|Hence|Therefore|Also|Again|"
    r"Doing so|Seems|As (?:such|mentioned)|If (?:that|this|so)|(?:On|In|For|With|If|When|While|At)\b[^.]{0,80}?, (?:it|this|that|they)|Previously,? (?:it|this))\b|\W*\(",
)
"""Opening of a sentence that nobody understands without the one before it."""
_OPAQUE = re.compile(
    r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\bas mentioned\b|\bsee (?:above|below)\b|\b(?:the|this|that) (?:above|previous|former|same) (?:change|commit|fix|patch)\b|"
    r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<!vs)[.!?&] (?![\w.]*[_(])[a-z(]|;.*;|; ?also\b|&\.|\b(?:so|and|but|as) (?:this|it) (?:would|could|can|will|may|is|was)\b",
)
"""What a reader cannot look up, and sentences that were run together."""
_NO_FAULT = re.compile(
    r"\btest(?:s|ed|ing|ers?)?\b|\b(?-i:Test[A-Z_]|test_)\w*|\bspecs?\b|\bCI\b|\bflak[ey]\w{0,4}|\b(?:travis|appveyor|github actions?|valgrind|coverity|codecov)\b|\bwarn\w{0,4}\b|\w{1,60}Warning\b|"
    r"\bfalse[- ](?:positive|alarm)\w?|\bstatic(?:ally)? (?:analy|detect)\w{0,5}|\b(?:clippy|rubocop|eslint|lint\w{0,3}|mypy|pylint|typos?)\b|"
    r"\b(?:performance|optimi[sz]\w{1,6}|overhead|heavy|slow\w{0,4}|faster|speed\w{0,3}|advantages?|benchmarks?|documentation|docs?|docstrings?|readme|changelog|coverage)\b|"
    r"\bchecks? for\b|\bunlikely\b|\bnot (?:cause|lead|result|expose)\b|\b(?:do|does|did)(?: not|n['’]t) (?:actually )?(?:fix|solve|affect|matter)|\bno (?:need|deadlocks?|races?|leaks?)\b|\btheoretical\w{0,2}\b",
    re.IGNORECASE,
)
_NEW = re.compile(
    r"(?:Add(?:s|ed|ing)? (?:(?:a|an|the|some|more) )?(?:new|options?|flags?|supports?|API|methods?|features?|behaviou?rs?|config\w*|settings?|functions?|"
    r"parameters?|commands?|class(?:es)?|macros?)|Implement\w{0,3}|Introduc\w{1,3}|Support\w{0,3}|Allow\w{0,3}|Enabl\w{1,3}|Provid\w{1,3}|Port\w{0,3}|"
    r"Remov\w{1,3} support|Drop\w{0,4}|Bump|Upgrade|Update)\b",
    re.IGNORECASE,
)
"""Opening of a sentence that describes something new."""
_MENDS = re.compile(r"\b(?:fix(?:e[sd]|ing)?|bugs?|bugfix|solv\w{1,3}|resolv\w{1,3})\b", re.IGNORECASE)
_BREAKS = re.compile(
    r"\b(?:crash\w{0,3}|broken?|breaks?|breaking|fail(?:s|ed|ing)?|(?:build|compil\w{1,5}|link\w{0,3}) (?:failures?|errors?)|compilations? failures?|wrong(?:ly)?|"
    r"incorrect(?:ly)?|corrupt\w{0,3}|conflicts?|cannot|can['’]t|does(?: not|n['’]t)|never works?|unimplemented|caus(?:es?|ing)|errors?|"
    r"work(?:s|ed|ing)?[ -]?around (?!for\b)|dead-?lock\w{0,3}|hangs?|hung|leaks?|segfaults?|undefined (?:symbol|reference)s?|"
    r"fix(?:e[sd]|ing)?\b.{3,120}\b(?:when|if|for|with|where|since|as)\b)|(?-i:\b[A-Z]\w{2,50}(?<!Last)(?:Error|Exception)\b|\bE[A-Z]{4,14}\b)",
    re.IGNORECASE,
)
"""Words for what went wrong in an environment."""
_NO_MEND = re.compile(
    r"(?:Add(?:s|ed|ing)?|Remov\w{1,3}|Revert\w{0,3}|Restor\w{1,3}|Rework\w{0,3}|Implement\w{0,3}|Introduc\w{1,3}|Support\w{0,3}|Allow\w{0,3}|Enabl\w{1,3}|"
    r"Improv\w{1,3}|Eliminat\w{1,3}|Refactor\w{0,3}|Updat\w{1,3})\b",
    re.IGNORECASE,
)
"""Opening of a change that mends an environment's fault in passing, if at all."""
_TO_MEND = re.compile(
    r"(?:Work(?:ed|s)? around|Mitigat\w{1,4}|Us(?:e|es|ed)|Avoid(?:s|ed)?|Mov(?:e|es|ed)|Mak(?:e|es)|Restructur\w{1,3}|Replac\w{1,3}|Hold|Acquir\w{1,3}|"
    r"Releas\w{1,3}|Lock(?:s|ed)?|Unlock|Check(?:s|ed)?|Wrap(?:s|ped)?|Ensur\w{1,3}|Wait(?:s|ed)?|Clos(?:e|es|ed)|Defer|Guard|Protect|Call|Set|Copy|Free|Forc\w{1,3}|"
    r"Refactor|Instead(?: of)?,?|To (?:fix|avoid|prevent|solve|resolve) (?:this|that|it),|(?:The|Our) (?:fix|solution|remedy|workaround) (?:is|was)|Fix(?:ed|es)? (?:this |it )?by)\b",
)
"""Opening of a sentence that says what was done."""
_ENDS = (
    r"\b(?:fix(?:e[sd]|ing)?|avoid(?:s|ed|ing)?|prevent(?:s|ed|ing)?|caus(?:e[sd]?|ing)|lead(?:s|ing)? to|led to|result(?:s|ed|ing)? in|"
    r"remov(?:e[sd]?|ing)|resolv(?:e[sd]?|ing)|would|could|may|might|can|not|never|without|due to|because of|was|were|is|are|had|it)\b"
    r"(?:[ /]+[\w`'’()-]+){0,4}?[ /]+"
)
"""What stands before a fault that is mended, rather than tested or named in passing."""
_RESOURCE = r"(?:memory|references?|resources?|descriptors?|fds?|handles?|sockets?|connections?|goroutines?|threads?|variables?|objects?|files?)"
_FAULTS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(
        rf"{_ENDS}(?:{pattern})|(?:{pattern})(?: \w+){{0,2}}? (?:occurs?|happens?|arises?)\b", re.IGNORECASE
    )
    for name, pattern in {
        "deadlocks and race conditions": r"dead-?lock(?:s|ed|ing)?\b|(?:data )?races?(?: conditions?)?\b(?= ?(?:$|[^\w ]|(?:between|in|with|when|on|and|that|where|to|may|can|could|might|would)\b))|"
        r"(?:thread[- ]?un|(?:(?<=not )|(?<=n['’]t ))thread[- ]?)safe\b",
        "leaks": rf"{_RESOURCE} leak(?:s|ed|ing|age)?\b(?! (?:detect|check|test))|leak(?:s|ed|ing)? (?:of )?(?:\w+ ){{0,3}}?{_RESOURCE}\b",
        "endless loops and recursions": r"(?:infinite|endless)(?:ly)? (?:loop|recurs)\w{0,4}|recursion errors?\b|loops? forever\b|stack overflows?\b",
        "hangs": r"(?:hang(?:s|ing)?|hung|block(?:s|ed|ing)? (?:forever|indefinitely))\b",
        "overflows": r"(?:integer |buffer )?overflow(?:s|ed)?\b",
    }.items()
}
_DEFECT = r"(?:fix(?:e[sd])?|bugs?|crash\w{0,3}|fail\w{0,4}|errors?|wrong\w{0,2}|incorrect\w{0,2}|broken?|rais\w{1,3}|throw\w{0,2}|\w{1,60}Error)"
_SUBJECTS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(
        rf"\b{_DEFECT}\b(?:\W{{1,3}}\w+){{0,6}}?\W{{1,3}}(?:{pattern})|\b(?:{pattern})(?:\W{{1,3}}\w+){{0,2}}?\W{{1,3}}{_DEFECT}\b",
        re.IGNORECASE,
    )
    for name, pattern in {
        "errors with text encodings": r"unicode\b(?! (?:decoding|encoding) errors?)|utf-?(?:8|16)\b|Unicode\w{1,20}Error\b|non-ascii\b|byte ?strings?\b|mojibake\b|"
        r"(?:text|file|filesystem|string|character) encodings?\b|encoding (?:errors?|issues?|problems?)\b",
        "errors of escaping and quoting": r"(?<!loop )(?:un|mis|re|double[ -])?(?:quot|escap)(?:ed|ing)\b",
        "broken line endings": r"line[- ]?endings?\b|CRLF\b|carriage returns?\b",
        "errors with symbolic links": r"sym(?:bolic )?-?link(?:s|ed|ing)?\b",
        "errors with time zones": r"time-?zones?\b|DST\b|daylight saving\b",
        "crashes on missing values": r"nil pointer\b|NoneType\b|null pointer\b|(?:is|are|being|was) (?-i:None|nil|null|NULL)\b",
    }.items()
}
"""Subjects of faults: a word for a defect stands near."""
_WHY = re.compile(
    r"\b(?:because|since|if|when|while|between|without|unless|else|otherwise|due to (?!(?:an? |the )?(?:data )?(?:race|dead-?lock|leak|overflow|crash|bug|error))|cannot|can['’]t|(?:do|does|did)(?: not|n['’]t)|lacks?|unimplemented)\b",
    re.IGNORECASE,
)
_ENVIRONMENTS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "Windows": r"\b(?:windows(?: \d+)?|win32|msys2?|mingw\w{0,4}|cygwin)\b(?! (?:size|title|manager))",
        "macOS": r"\b(?:mac ?os(?: ?x)?|os ?x|darwin)\b",
        "PyPy": r"\bpypy\w{0,3}\b",
        "Jython": r"\bjython\b",
        "JRuby": r"\bjruby\b",
        "BSD": r"\bk?(?:free|open|net)bsd\b",
        "Solaris": r"\b(?:solaris|sunos)\b",
        "Alpine Linux": r"\b(?:alpine|musl)\b",
        "32-bit systems": r"\b32[- ]bit (?:systems?|platforms?|arch\w{0,10}|machines?)\b",
    }.items()
}
_COMMON = frozenset({"Windows", "macOS"})
"""Environments that faults of every kind are reported from: few have more in common than that. Others are named for how they differ."""
_THERE = r"\b(?:change|on|in|under|with|for|of|around|using|at|into|against|fix|than|that|since|because)(?: [\w/.-]+(?:['’]s)?){0,2}? "
_ACTS = r"(?:['’]s)?(?: [\w.]+){0,2}? (?:cannot|can['’]t|do(?:es)?(?: not|n['’]t)|did(?: not|n['’]t)|will|would|treats?|uses?|returns?|raises?|rejects?|fails?|requires?|implicitly|has|lacks?)\b"
"""What stands before and behind an environment in which something goes wrong, rather than one of several that are named."""
_ATTACHED: Mapping[str, re.Pattern[str]] = {
    name: re.compile(f"{_THERE}(?:{pattern.pattern})|(?:{pattern.pattern}){_ACTS}", re.IGNORECASE)
    for name, pattern in _ENVIRONMENTS.items()
}


class Weakness(NamedTuple):
    """What was mended again and again.

    Attributes
    ----------
    kind, name : str
    file : str
        Path of the file that has it; empty for an environment.
    """

    kind: Kind
    name: str
    file: str = ""


class Told(NamedTuple):
    """What a change says of a weakness: the sentence that names the fault, and the one that says what was done, if there is one."""

    fault: str
    remedy: str = ""


def weaknesses_of(row: Row) -> Mapping[Weakness, Told]:
    """Return the weaknesses that a change mends, each with the best account of it."""
    if not _NOT_MENDING.isdisjoint(row.get("tags", ())):
        return {}
    title, text = row.get("title") or "", " ".join(row["content"].split())
    place = _PLACE.search(text)
    if _NO_PRODUCT.search(title) or (place and _NO_PRODUCT.search(place[1])):
        return {}
    is_its_own = _FILE.search(title) is not None and (place is None or title.rsplit("/", 1)[-1] == place[1])
    return _weaknesses(_read(row), title if is_its_own else "")


def says_why(told: Told) -> bool:
    """Return whether an account says how the fault comes about, more than that it was there: titles of changes teach nothing."""
    return _WHY.search(told.fault) is not None


def file_name(weakness: Weakness) -> str:
    """Return the file of a weakness as a text names it."""
    return weakness.file if len(weakness.file) <= _LONGEST_PATH else weakness.file.rsplit("/", 1)[-1]


def environments_in(text: str) -> list[str]:
    """Return the environments that a text names."""
    return [name for name, pattern in _ENVIRONMENTS.items() if pattern.search(text)]


@lru_cache(maxsize=8_192)
def _weaknesses(text: str, file: str) -> Mapping[Weakness, Told]:
    found: dict[Weakness, list[Told]] = {}
    said = [_bare(sentence) for sentence in sentences_of(text)]
    if not said or not _may_mend(said[0]):
        return {}
    is_new = _NO_MEND.match(said[0])
    for place, sentence in enumerate(said):
        own = [one for one in _in(sentence, file) if one.kind == "cause" or not is_new]
        quoted = own and _on_its_own(said, place)
        if not quoted:
            continue
        after = said[place + 1] if place + 1 < len(said) else ""
        is_remedy = _TO_MEND.match(after) and len(after) <= _REMEDY_CHARS and _is_whole(after)
        for weakness in own:
            found.setdefault(weakness, []).append(Told(quoted, after if is_remedy else ""))
    return {weakness: max(told, key=_worth) for weakness, told in found.items()}


def _may_mend(sentence: str) -> bool:
    """Return whether a sentence may describe a fault of the product."""
    return not _NO_FAULT.search(sentence) and (not _NEW.match(sentence) or _MENDS.search(sentence) is not None)


def _worth(told: Told) -> tuple[bool, int]:
    """Return the place of an account among those of a change: one sentence rather than two, and the longest."""
    is_alone = _POINTS_BACK.match(told.fault.partition(". ")[2]) is None
    return (is_alone, len(_WORD.findall(told.fault)))


def _on_its_own(said: list[str], place: int) -> str:
    """Return a sentence that can be understood alone, or behind the one before it; empty if it cannot."""
    quoted = said[place]
    if _POINTS_BACK.match(quoted):
        quoted = f"{said[place - 1]} {quoted}" if place else ""
    is_clear = (
        not _POINTS_BACK.match(quoted) and not _OPAQUE.search(quoted) and len(_WORD.findall(quoted)) >= _LEAST_WORDS
    )
    return quoted if is_clear and len(quoted) <= _QUOTE_CHARS and _is_whole(quoted) else ""


def _is_whole(sentence: str) -> bool:
    """Return whether a sentence was not cut inside a name, a quotation or brackets."""
    pairs = ((sentence.count(one), sentence.count(other)) for one, other in ("()", "“”", "[]"))
    return sentence.count("`") % 2 == 0 and all(one == other for one, other in pairs) and not sentence.startswith(_OWN)


def _bare(sentence: str) -> str:
    """Return a sentence without a label before it and without the file that stands behind it."""
    return ended(_PLACE.sub("", _LABEL.sub("", sentence)))


def _in(sentence: str, file: str) -> Iterator[Weakness]:
    """Yield the weaknesses of which a sentence says that the product had them."""
    mends = _MENDS.search(sentence) is not None
    if not _may_mend(sentence):
        return
    breaks = _BREAKS.search(sentence) is not None
    for name, pattern in (*_FAULTS.items(), *(_SUBJECTS.items() if mends or breaks else ())):
        if file and pattern.search(sentence):
            yield Weakness("cause", name, file)
    bare = _CODE.sub("", sentence)
    named = environments_in(bare) if breaks else []
    if len(named) == 1 and named[0] not in _COMMON and _ATTACHED[named[0]].search(bare):
        yield Weakness("environment", named[0])


def _read(row: Row) -> str:
    text = statement_of(row)[:_MOST_READ_CHARS]
    for agent in row.get("agents_involved", ()):
        text = text.replace(agent, "")
    return text
