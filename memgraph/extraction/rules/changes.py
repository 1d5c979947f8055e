"""Changes worth remembering: a change becomes a memory only if its message states something to act on.

What counts: a cause, a symptom with its condition, a reason, a choice between alternatives, a consequence for users
(something breaks, is deprecated or removed), a security problem, the cause of a flaky test, a workaround of the build.
"It is a change" is no statement. The text is composed of the subject and the sentences that state something.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memgraph.extraction.components import is_documentation, is_incidental
from memgraph.extraction.rules.grounds import (
    Weight,
    concerns_looks,
    describes_a_defect,
    is_aside,
    leans_back,
    speculates,
    states_a_reason,
    states_a_rule,
    tells_what_was,
    weight_of,
)
from memgraph.extraction.rules.prose import Sentence, plain, sentences_of
from memgraph.extraction.rules.subjects import Subject, content_words, is_bump, is_noise, is_trivial
from memgraph.extraction.statements import is_fix, is_novel, is_reshaping, is_severe
from memgraph.model.build import BuildTask
from memgraph.text.attempts import sentence

_MAX_STATED_CHARS = 600
_MAX_STATEMENTS = 3
_MAX_CORRECTED_CHARS = 120
_MAX_THREAT_CHARS = 600
_LEAST_WORDS = 3
_SECURITY = re.compile(
    r"\b(?:CVE-\d+|GHSA-\w+|CWE-\d+|security|vulnerab\w+|(?:sql|code|command|header|shell|template|log) injection|xss|csrf|ssrf|redos|denial of service|"
    r"(?:path|directory) traversal|arbitrary (?:code|file|command)|privilege escalation|open redirect|(?:timing|replay|injection) attacks?|malicious|(?:session|json) hijack\w*|(?:lack of|improper|missing) (?:escap|saniti)\w+|leaks? (?:\w+ ){0,3}(?:credentials?|passwords?|secrets?|tokens?))\b",
    re.IGNORECASE,
)
_BREAKS = re.compile(r"\bBREAKING[ -]CHANGES?\b[:\s]*|^\[breaking-change\]", re.MULTILINE)
_DEPRECATES = re.compile(r"\b(?:deprecat(?:e|es|ed|ing))\s+\S", re.IGNORECASE)
_DROPS = re.compile(
    r"(?:drop(?:s|ped|ping)?|remov(?:e|es|ed|ing)|end|discontinue)\s(?:\w+ ){0,2}?(?:support (?:for|of)\s+\S|\S{1,40}(?: \S{1,20}){0,3} support\b)",
    re.IGNORECASE,
)
_REMOVES = re.compile(
    r"(?:drop(?:s|ped|ping)?|remov(?:e|es|ed|ing)|delet(?:e|es|ed|ing)|retir(?:e|es|ed|ing))\s(?:.{0,60}\bdeprecated\s+\S|.{1,60} from (?:the )?(?:\w+[- ]){0,3}api\b|[`'\"][^`'\"]{2,60}[`'\"] (?:attribute|method|parameter|argument|function|property)\b|(?:(?!(?:from|in|of|on|for) )\S{1,60} ){0,6}(?:options?|commands?|flags?|endpoints?|settings?|hooks?|apis?|"
    r"commandline|command[- ]line|environment variables?|middleware)(?=\s*(?:$|[.,;(]|(?:from|in|and|for|of|that|which|as|because|since)\b)))",
    re.IGNORECASE,
)
_INTERNAL = re.compile(
    r"\b(?:us(?:e|es|age|ages|ing) (?:of|in)|calls? (?:to|of)|references?|mentions?|unused|dead|internal\w*|private|old|legacy|stale|obsolete|redundant|unnecessary|superfluous|unneeded|leftovers?|hacks?|workarounds?|warnings?|tests?|imports?|code|comments?|files?|ci|travis|"
    r"tox|helpers?|examples?|docs?|documentation|links?|notes?|typing|types?|todos?|debug\w*|print\w*|from (?:the )?(?:docs|tests?|ci|setup|readme|tox|travis))\b|(?<![\w-])_\w",
    re.IGNORECASE,
)
_UNSTABLE = re.compile(
    r"\b(?:flak\w{1,6}|intermittent\w{0,2}|sporadic\w{0,4}|non-?deterministic\w{0,4}|race|unstable|fail(?:s|ed|ing|ures?)?|broken?|breaks?|hang(?:s|ing)?|hung|stuck|crash\w{0,4}|cannot|incompatib\w{2,5}|"
    r"timing|time(?:s|d)?[- ]?out|pin(?:s|ned|ning)?|cap|unpin|requires?|needed by|workaround|work(?:s|ed|ing)? around|\w+Error)\b",
    re.IGNORECASE,
)
_WORDING = re.compile(
    r"\b(?:docs?|documentation|readme|changelog|typos?|man pages?|wording|translat\w+)\b", re.IGNORECASE
)
_DESCRIBED = frozenset({"feature", "refactoring", "improvement"})
_CHORES = frozenset({"docs", "ci", "chore", "wip", "release"})
_CONNECTIVE = re.compile(r"^(?:(?:and|but|also|however|so|then|additionally|note that),?\s+){1,2}(?=\w)", re.IGNORECASE)
_CLOSING = re.compile(
    r"[\s;,.]*\b(?:close[sd]?|fixe?[sd]?|refs?|see|resolve[sd]?|issue)\s?:?\s?(?:#|GH-)?\d*\s*$", re.IGNORECASE
)


_LEADS = {"fix": "Fix", "breaking": "Breaking change", "security": "Security"}


@dataclass(frozen=True, slots=True)
class Change:
    """What a change's message states.

    Attributes
    ----------
    kind : str
        ``breaking``, ``security``, ``deprecation``, ``removal``, ``fix``, ``decision`` or ``change``.
    salience : float
    reason : str
        Why it is worth remembering.
    stated : tuple of str
        The sentences of the body that state something; empty if the subject states it.
    """

    kind: str
    salience: float
    reason: str
    stated: tuple[str, ...] = ()


def assessed(task: BuildTask, subject: Subject) -> Change | None:
    """Return what a successful change states, or None."""
    text = subject.text
    files = task.files_changed[:500]
    if is_noise(task.description) or subject.kind in {"wip", "release"}:
        return None
    if len(set(content_words(f"{text} {' '.join(subject.scopes)} {task.output[:300]}"))) < 2:
        return None
    if files and all(is_documentation(file) for file in files):
        return None
    is_a_fix = subject.kind == "fix" or is_fix(text)
    # a feature's body describes it, and moved code changes nothing for anyone: there, only a cause is a reason
    is_threat = _SECURITY.search(f"{text}\n{task.output[:_MAX_THREAT_CHARS]}") is not None
    needs_a_cause = not (is_a_fix or is_threat) and (is_reshaping(text) or is_novel(text) or subject.kind in _DESCRIBED)
    least = Weight.CAUSE if needs_a_cause else Weight.STATE
    stated = statements(task.output, known=text, is_remedy=not needs_a_cause, least=least)
    is_chore = subject.kind in _CHORES or is_trivial(task.description) or is_bump(task.description)
    if is_chore or (files and all(is_incidental(file) for file in files)):
        is_routine = is_novel(text) or is_bump(task.description) or subject.kind in {"docs", "chore"}
        return _of_chore(stated, is_routine=is_routine or _WORDING.search(text) is not None)
    is_severe_one = is_severe(text)
    if subject.is_breaking or _BREAKS.search(task.output[:6_000]):
        return Change("breaking", 8.5, "a change breaks what others rely on", stated or _broken(task.output))
    is_security = _SECURITY.search(text) is not None and len(set(content_words(text))) > _LEAST_WORDS
    is_security = is_security or (is_a_fix and _SECURITY.search(" ".join(stated)) is not None)
    if is_security and (stated or not is_novel(text)):
        return Change("security", 8.2, "a change closes a security hole", stated)
    if _DEPRECATES.match(text):
        return Change("deprecation", 7.0, "something is deprecated", stated)
    if (_DROPS.match(text) or _REMOVES.match(text)) and not _INTERNAL.search(text):
        return Change("removal", 6.5 + bool(stated), "something that users meet was removed", stated)
    if is_a_fix:
        if stated:
            return Change("fix", 6.5 + is_severe_one, "a fix says what was wrong", stated)
        says_what = describes_a_defect(text) or states_a_reason(text)
        if says_what and len(set(content_words(text))) > _LEAST_WORDS and not concerns_looks(text):
            return Change("fix", 5.0 + is_severe_one, "a fix says what was wrong, and when")
        if task.mends and len(set(content_words(text))) > _LEAST_WORDS and not concerns_looks(text):
            return Change("fix", 5.0 + is_severe_one, "a fix names the change that it corrects")
        return None
    if concerns_looks(text):
        return None
    if stated:
        return Change("decision", 6.0 + is_severe_one, "a change says why it was made", stated)
    if len(set(content_words(text))) <= _LEAST_WORDS:
        return None
    if states_a_reason(text):
        return Change("decision", 5.0, "a change says why it was made")
    if states_a_rule(text):
        return Change("decision", 5.0, "a change says how things must be")
    return None


def _of_chore(stated: tuple[str, ...], *, is_routine: bool) -> Change | None:
    """Assess a change of tests, checks or the build: kept for its cause; of routine ones, for that of a failure."""
    causes = [text for text in stated if weight_of(text) is Weight.CAUSE]
    if any(not is_routine or _UNSTABLE.search(text) for text in causes):
        return Change("workaround", 5.5, "a change says what was wrong with the tests or the build", stated)
    return None


def _broken(body: str) -> tuple[str, ...]:
    """Return what follows ``BREAKING CHANGE:`` in a body."""
    match = _BREAKS.search(body[:6_000])
    if match is None:
        return ()
    paragraph = " ".join(body[match.end() : match.end() + 1_000].split("\n\n", 1)[0].split())
    if len(paragraph.split()) < _LEAST_WORDS:
        return ()
    return (sentence(_capitalised(plain(paragraph)[:_MAX_STATED_CHARS])),)


def statements(body: str, *, known: str = "", is_remedy: bool = False, least: Weight = Weight.STATE) -> tuple[str, ...]:
    """Return the sentences of a body that state something, in order, with those that they lean on.

    Parameters
    ----------
    known : str
        The subject: a sentence that only repeats it is left out.
    is_remedy : bool
        Whether the change mends or replaces something: then how things were before is a statement.
    least : Weight
        The weight that at least one sentence must have.
    """
    found = sentences_of(body)
    words = frozenset(content_words(known))
    weights = [_weight(one, words, is_remedy=is_remedy and place < 3) for place, one in enumerate(found)]
    if max(weights, default=Weight.NOTHING) < least:
        return ()
    ranked = sorted(range(len(found)), key=lambda place: (-weights[place], place))
    chosen: set[int] = set()
    for place in ranked[:_MAX_STATEMENTS]:
        if weights[place] < Weight.STATE:
            break
        needed = _with_context(found, place, words)
        if needed and _length(found, chosen | needed) <= _MAX_STATED_CHARS:
            chosen |= needed
    _fill(found, chosen, words)
    told = [found[place].text for place in sorted(chosen)]
    return tuple(
        sentence(_capitalised(_CONNECTIVE.sub("", text) if not place else text)) for place, text in enumerate(told)
    )


def _fill(found: list[Sentence], chosen: set[int], known: frozenset[str]) -> None:
    """Add what stands in the same paragraphs, as far as there is space: a cause is often half said without it."""
    for step in (1, -1):
        for start in sorted(chosen):
            at = start
            while (later := at + max(step, 0)) < len(found) and found[later].follows:
                at += step
                its = set(content_words(found[at].text))
                is_said = at in chosen or len(its) < 2 or its <= known
                if is_said or is_aside(found[at].text) or _length(found, chosen | {at}) > _MAX_STATED_CHARS:
                    break
                chosen.add(at)


def _length(found: list[Sentence], places: set[int]) -> int:
    return sum(len(found[place].text) + 1 for place in places)


def _weight(one: Sentence, known: frozenset[str], *, is_remedy: bool) -> Weight:
    weight = Weight.CAUSE if one.gives_reasons and not speculates(one.text) else weight_of(one.text)
    if one.is_item and weight < Weight.CAUSE:
        return Weight.NOTHING  # the items of a list are mostly the subjects of squashed commits
    if weight is Weight.NOTHING and is_remedy and not one.is_item and tells_what_was(one.text):
        weight = Weight.STATE
    return weight if set(content_words(one.text)) - known else Weight.NOTHING


def _with_context(found: list[Sentence], place: int, known: frozenset[str]) -> set[int]:
    """Return a sentence with those before it that it leans on; nothing if they are not there."""
    needed = {place}
    while leans_back(found[place].text) and place and len(needed) < _MAX_STATEMENTS:
        if found[place].is_item if found[place].begins else not found[place].follows:
            return set()
        if set(content_words(found[place - 1].text)) <= known:
            return needed  # it repeats the subject
        place -= 1
        if speculates(found[place].text):
            return set()
        needed.add(place)
    return needed if not (place and leans_back(found[place].text)) else set()


def composed_text(subject: Subject, change: Change, task: BuildTask, place: str) -> str:
    """Return the memory's text: the subject, what the body states, the change that it corrects, and the place."""
    lead = _LEADS.get(change.kind, "")
    text = plain(subject.text).strip(" .;,")
    text = _CLOSING.sub("", text).strip(" .;,") or text
    text = f"{lead}: {text}" if lead and not text.casefold().startswith(lead.casefold()) else _capitalised(text)
    told = " ".join([sentence(text), *change.stated])
    if task.mends and task.mends_subject:
        told += f" It corrects “{plain(task.mends_subject)[:_MAX_CORRECTED_CHARS]}” ({task.mends[:10]})."
    return f"{told} ({place})" if place and place.casefold() not in told.casefold() else told


def _capitalised(text: str) -> str:
    """Return a sentence with a capital, unless it begins with an identifier."""
    first = text.split(" ", 1)[0].rstrip(",:").replace("'", "")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text
