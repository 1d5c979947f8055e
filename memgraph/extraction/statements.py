"""Statements in a text: instructions, corrections, steps of a procedure.

Every text is truncated first and every repetition is bounded, so hostile input costs linear time.
"""

from __future__ import annotations

from memgraph.text import lazy_re as re
from memgraph.text.sentences import split_sentences

_MAX_TEXT_CHARS = 6_000
_MAX_SENTENCE_CHARS = 400
_MAX_STEPS = 12

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


def sentences(text: str) -> list[str]:
    """Split prose into sentences and list items, each on one line of at most 400 characters."""
    parts = (" ".join(part.split()).strip("-*• ") for part in split_sentences(text[:_MAX_TEXT_CHARS], "prose"))
    return [part[:_MAX_SENTENCE_CHARS] for part in parts if len(part) > 2]


def is_instruction(text: str) -> bool:
    """Return whether a text states a general instruction."""
    return _RULE.search(text[:_MAX_TEXT_CHARS]) is not None


def is_correction(text: str) -> bool:
    """Return whether a text says that an action was wrong."""
    return _CORRECTION.search(text[:_MAX_TEXT_CHARS]) is not None


def steps_in(text: str) -> tuple[str, ...]:
    """Return the steps in a text: a numbered list, or "run X, then Y". Nothing unless each of them is an action."""
    numbered: list[str] = []
    for line in text[:_MAX_TEXT_CHARS].splitlines():
        if (match := _STEP.match(line)) and int(match[1] or match[2]) == len(numbered) + 1:
            numbered.append(match[3].strip())
    if len(numbered) > 1 and all(map(is_action, numbered)):
        return tuple(numbered[:_MAX_STEPS])
    for sentence in sentences(text):
        parts = [part.strip(" ,;.") for part in _THEN.split(_FIRST.sub("", sentence))]
        if len(parts) > 1 and all(is_action(part) and len(part) <= _MAX_STEP_CHARS for part in parts):
            return tuple(parts[:_MAX_STEPS])
    return ()


def is_action(step: str) -> bool:
    """Return whether a sentence tells to do something."""
    return _IMPERATIVE.match(step) is not None and not step.endswith(":")  # what follows a colon is not in the list
