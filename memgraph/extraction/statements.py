"""Statements in a text: decisions and rejected alternatives, reasons, instructions, steps of a procedure.

Every text is truncated first and every repetition is bounded, so hostile input costs linear time.
"""

from __future__ import annotations

from dataclasses import dataclass

from memgraph.text import lazy_re as re
from memgraph.text.sentences import split_sentences

_MAX_TEXT_CHARS = 6_000
_MAX_SENTENCE_CHARS = 400
_MAX_STEPS = 12

_THING = r"([^\s,;:.()](?:[^,;:()\n]){0,80}?)"
_END = r"(?=[,;:()]|\.(?:\s|$)|\s(?:because|since|so|as|to|for|in|when|and|if)\b|$)"
_ALTERNATIVES = (
    re.compile(rf"\b(?:instead of|rather than|in place of|in favou?r over)\s+{_THING}{_END}", re.IGNORECASE),
    re.compile(
        rf"\b(?:replac(?:e|es|ed|ing)|swap(?:s|ped|ping)?|substitut(?:e|es|ed|ing))\s+{_THING}\s+(?:with|by|for)\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:switch|migrat|mov|chang|convert|renam)(?:e|es|ed|ing|s)?\s+(?:[\w.-]+\s)?from\s+{_THING}\s+to\b",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?:renam|chang)(?:e|es|ed|ing)\s+{_THING}\s+(?:to|->|=>|→)\s", re.IGNORECASE),
    re.compile(rf"\bpartially supersedes?\s+{_THING}{_END}", re.IGNORECASE),
)
_DECISION = re.compile(
    r"\b(?:instead of|rather than|in favou?r of|in place of|switch(?:ed|ing|es)? (?:back )?(?:from|to|over)|migrat(?:e|es|ed|ing)|"
    r"until we|set \S{2,60}=\S|deprecat\w{1,6}|drop(?:s|ped|ping)? (?:the )?(?:support|use|old|legacy|dependency|requirement)|no longer|only use|"
    r"by default|(?:new |change |set |use |different )default\b|defaults? (?:\w+ ){0,3}to|require[sd]? \S+ (?:flag|to)|forbid|disallow|"
    r"decided?(?: to| on| against)|we (?:chose|choose|will use)|opt(?:ed)? (?:for|to)|stick(?:ing)? (?:with|to)|use \S{2,40} (?:not|over) |"
    r"standardi[sz]e[ds]? on|split (?:out|up|off)|merge[ds]? \S+ (?:into|and)|pin(?:ned)? \S+ to)\b|->|=>|→",
    re.IGNORECASE,
)
_SWAP = re.compile(
    r"^(?:replace|replaced|replaces|replacing|rename|renamed|renames|change|changed|convert|converted)\b.{1,120}\s(?:by|to|into)\s"
    r"|^(?:replace|replaced|replaces|replacing)\b.{1,120}\swith\s|^us(?:e|es|ed|ing) \S{2,40} (?:for|as|to)\b"
    r"|^(?:do not|don't|never|always)\s",
    re.IGNORECASE,
)
_FIX = re.compile(
    r"^(?:(?:important|critical|major|quick|also|hot|bug|further|various|more)[ -]?)?(?:fix(?:e[sd]|ing|up)?|bugfix|repair(?:ed|s)?|"
    r"correct(?:ed|ing|s)?|resolv(?:e|es|ed|ing)|patch(?:ed|es)?|debugg(?:ed|ing)|address(?:es|ed|ing)?)\b"
    r"|\b(?:fix(?:e[sd])? (?:a |an |the )?\w{0,20} ?(?:bug|crash|race|leak|deadlock|regression)|&|and fix)\b",
    re.IGNORECASE,
)
_NOVELTY = re.compile(
    r"^(?:add(?:s|ed|ing)?|introduc(?:e|es|ed|ing)|implement(?:s|ed|ing)?|support(?:s|ed|ing)?|create[sd]?|initial\w{0,8}|first version|"
    r"enabl(?:e|es|ed|ing)|allow(?:s|ed|ing)?|new|provide[sd]?)\b|\bsupport for\b",
    re.IGNORECASE,
)
_RESHAPING = re.compile(
    r"^(?:(?:very|complete(?:ly)?|large[- ]scale|big|major|another|first)\s+)?(?:refactor|restructur|reorgani[sz]|rewrit|renam|improv|better\b|attempt|benchmark|hack|overhaul|mov|simplif|clean|tid|inline|extract|split|reorder|sort|reus|unif|modulari[sz]|"
    r"start(?:ed)? (?:work|maint)|more work|work on|tweak|minor|some |small )",
    re.IGNORECASE,
)
_SEVERE = re.compile(
    r"\b(?:critical|crash\w{0,3}|security|vulnerab\w{1,6}|cve-\d+|cwe-\d+|arbitrary code|injection|data[ -]?loss|corrupt\w{0,4}|deadlock|"
    r"race condition|memory leak|infinite loop|hang(?:s|ing)?|outage|regression|important|breaks?|broken|multi-?thread\w{0,3}|concurren\w{1,4})\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|due to|caused? by|root cause|turns out|otherwise|so that|in order to|the reason|leads? to|led to|results? in|"
    r"resulted in|prevents?|to avoid|which (?:made|makes|broke|breaks|caused|causes)|does not exist|doesn't|didn't|cannot|can't|fails?|"
    r"instead of|rather than|no longer|as it|lesson|learned|never|always|must)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:always|never|prefers?|preferred|don'?t|do not|must(?: not)?|should(?: not|n't)?|from now on|make sure|avoid|"
    r"only (?:use|ever)|use .{1,60} (?:instead|rather)|stop \w+ing|no more|remember to|every time|at all times|convention)\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(?:no[,.!]|wrong|incorrect|mistake|not what|undo|undid|revert\w{0,3}|reject\w{0,3}|overr(?:ide|ode|idden)|correct(?:ed|ion|s)?|"
    r"chang(?:e|ed) .{1,60} (?:to|from)|instead|abort\w{0,3}|cancel\w{0,4}|stopped|rolled back|roll back|denied|disapprov\w{1,3}|fix(?:ed)?)\b",
    re.IGNORECASE,
)
_STEP = re.compile(r"^\s{0,8}(?:(?:step )?(\d{1,2})[.):]|[Ss]tep (\d{1,2})\b[.: ]?)\s{1,4}(\S.{1,300})")
_IMPERATIVE = re.compile(
    r"^`?(?:run|open|set|install|create|copy|delete|remove|add|stop|start|restart|check|verify|make|build|deploy|push|pull|call|update|"
    r"export|execute|go|use|click|select|wait|clone|edit|apply|configure|commit|tag|test|enable|disable|download|move|ask|write|read|"
    r"find|log|ensure|git|npm|npx|pip|python|docker|kubectl|cargo|uv|pytest|bash|sh|\./)\b",
    re.IGNORECASE,
)
_THEN = re.compile(r",?;?\s+(?:and )?(?:then|followed by)\s+", re.IGNORECASE)
_FIRST = re.compile(r"^(?:first,? |please |to [^,]{2,80}, )", re.IGNORECASE)
_MAX_STEP_CHARS = 160


@dataclass(frozen=True, slots=True)
class Decision:
    """A sentence that states a decision, and the rejected alternatives if named."""

    sentence: str
    alternatives: tuple[str, ...] = ()


def sentences(text: str) -> list[str]:
    """Split prose into sentences and list items, each on one line of at most 400 characters."""
    parts = (" ".join(part.split()).strip("-*• ") for part in split_sentences(text[:_MAX_TEXT_CHARS], "prose"))
    return [part[:_MAX_SENTENCE_CHARS] for part in parts if len(part) > 2]


def find_decision(text: str) -> Decision | None:
    """Return the first sentence that states a decision."""
    for sentence in sentences(text):
        if _DECISION.search(sentence) or _SWAP.search(sentence):
            return Decision(sentence, alternatives_in(sentence))
    return None


def alternatives_in(sentence: str) -> tuple[str, ...]:
    """Return the rejected alternatives in a sentence: "X instead of Y", "replace Y with X", "switch from Y to X"."""
    sentence = sentence[:_MAX_SENTENCE_CHARS]
    found = (match[1].strip(" `'\"") for pattern in _ALTERNATIVES for match in pattern.finditer(sentence))
    return tuple(dict.fromkeys(item for item in found if len(item) > 1))[:5]


def is_fix(text: str) -> bool:
    """Return whether a text reports that something broken was fixed."""
    return _FIX.search(text[:_MAX_SENTENCE_CHARS]) is not None


def is_novel(text: str) -> bool:
    """Return whether a text reports something new."""
    return _NOVELTY.search(text[:_MAX_SENTENCE_CHARS]) is not None


def is_reshaping(text: str) -> bool:
    """Return whether a text reports moved or rewritten code, with nothing new for its users."""
    return _RESHAPING.match(text) is not None


def is_severe(text: str) -> bool:
    """Return whether a text concerns lasting damage: crashes, security, corruption, races."""
    return _SEVERE.search(text[:_MAX_SENTENCE_CHARS]) is not None


def is_instruction(text: str) -> bool:
    """Return whether a text states a general instruction."""
    return _RULE.search(text[:_MAX_TEXT_CHARS]) is not None


def is_correction(text: str) -> bool:
    """Return whether a text says that an action was wrong."""
    return _CORRECTION.search(text[:_MAX_TEXT_CHARS]) is not None


def reasons_in(text: str) -> list[str]:
    """Return the sentences that give reasons."""
    return [sentence for sentence in sentences(text) if _REASON.search(sentence)]


def steps_in(text: str) -> tuple[str, ...]:
    """Return the steps in a text: a numbered list, or "run X, then Y". Nothing unless each of them is an action."""
    numbered: list[str] = []
    for line in text[:_MAX_TEXT_CHARS].splitlines():
        if (match := _STEP.match(line)) and int(match[1] or match[2]) == len(numbered) + 1:
            numbered.append(match[3].strip())
    if len(numbered) > 1 and all(map(_is_action, numbered)):
        return tuple(numbered[:_MAX_STEPS])
    for sentence in sentences(text):
        parts = [part.strip(" ,;.") for part in _THEN.split(_FIRST.sub("", sentence))]
        if len(parts) > 1 and all(_is_action(part) and len(part) <= _MAX_STEP_CHARS for part in parts):
            return tuple(parts[:_MAX_STEPS])
    return ()


def _is_action(step: str) -> bool:
    return _IMPERATIVE.match(step) is not None and not step.endswith(":")  # what follows a colon is not in the list
