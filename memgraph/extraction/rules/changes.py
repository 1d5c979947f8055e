"""Changes worth remembering: a change becomes a memory only if its message states something to act on.

What counts: a cause, a symptom with its condition, a reason, a choice between alternatives, a consequence for users
(something breaks, is deprecated or removed), a security problem, the cause of a flaky test, a workaround of the build.
"It is a change" is no statement. The text is composed of the subject and the sentences that state something.
"""

from __future__ import annotations

from dataclasses import dataclass

from memgraph.extraction.components import is_documentation, is_incidental
from memgraph.extraction.readers.commits import is_bump
from memgraph.extraction.rules.grounds import (
    CONNECTIVE,
    Weight,
    concerns_looks,
    describes_a_defect,
    is_aside,
    leans_back,
    lists_mends,
    speculates,
    states_a_reason,
    states_a_rule,
    tells_only_origin,
    tells_what_was,
    weight_of,
)
from memgraph.extraction.rules.prose import Sentence, plain, sentences_of
from memgraph.extraction.rules.subjects import Subject, content_words, is_noise, is_trivial, reports_progress
from memgraph.extraction.statements import is_fix, is_novel, is_reshaping, is_severe
from memgraph.model.build import BuildTask
from memgraph.text import lazy_re as re
from memgraph.text.attempts import sentence
from memgraph.text.cutting import cut, whole_sentences

_MAX_STATED_CHARS = 800
_MAX_CORRECTED_CHARS = 120
_MAX_THREAT_CHARS = 600
_LEAST_WORDS = 3
_SECURITY = re.compile(
    r"\b(?:CVE-\d+|GHSA-\w+|CWE-\d+|security|vulnerab\w+|(?:sql|code|command|header|shell|template|log) injection|xss|csrf|ssrf|redos|denial of service|"
    r"(?:path|directory) traversal|arbitrary (?:code|file|command)|privilege escalation|open redirect|(?:timing|replay|injection) attacks?|malicious|(?:session|json) hijack\w*|(?:lack of|improper|missing) (?:escap|saniti)\w+|leaks? (?:\w+ ){0,3}(?:credentials?|passwords?|secrets?|tokens?))\b",
    re.IGNORECASE,
)
_BREAKS = re.compile(r"\bBREAKING[ -]CHANGES?\b[:\s]*|^\[breaking-change\]", re.MULTILINE)
_DEPRECATES = re.compile(
    r"\b(?:deprecat(?:e|es|ed|ing))\s+(?!apis?\b|usages?\b|code\b|things\b|stuff\b)\S", re.IGNORECASE
)
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
    r"\b(?:flak\w{1,6}|intermittent\w{0,2}|sporadic\w{0,4}|non-?deterministic\w{0,4}|race|unstable|fail(?:s|ed|ing|ures?)?|broken?|break(?:s|ing|ages?)?|hang(?:s|ing)?|hung|stuck|crash\w{0,4}|cannot|corrupt\w{0,4}|never worked|wrong|incorrect\w{0,2}|incompatib\w{2,5}|"
    r"timing|time(?:s|d)?[- ]?outs?|errors?|not (?:yet|accessible|available|supported|work\w{0,3})|slow\w{0,2}|pin(?:s|ned|ning)?|cap|unpin|requires?|needed by|workaround|work(?:s|ed|ing)? around|\w+Error)\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"\b(?:bugs|issues|problems|regressions|fixes|bugfixes|leaks|errors)\b", re.IGNORECASE)
_PROTECTS = re.compile(
    r"\b(?:fix\w{0,3}|prevent\w{0,3}|protect\w{0,4}|avoid\w{0,3}|block\w{0,3}|reject\w{0,3}|escap\w{1,3}|saniti[sz]\w{1,3}|validat\w{1,3}|harden\w{0,3}|disallow\w{0,3}|do(?:n't| not)|mitigat\w{1,3}|against|vulnerab\w+|attack\w{0,3}|bypass\w{0,3}|CVE-\d+|GHSA-\w+)\b",
    re.IGNORECASE,
)
_SELF = frozenset({"commit", "patch", "pull", "request", "where", "which", "when"})
_DESCRIBED = frozenset({"feature", "refactoring", "improvement"})
_CHORES = frozenset({"docs", "ci", "chore", "wip", "release"})
_CLOSING = re.compile(
    r"[\s;,.]*\b(?:(?:this|it|which) )?(?:close[sd]?|fixe?[sd]?|refs?|see|resolve[sd]?|issue)\s?:?\s?(?:#|GH-)?\d*\s*$",
    re.IGNORECASE,
)
_DANGLING_END = re.compile(r"(?:\s(?:as (?:mentioned|described|discussed) in|for|in|of|by|from|with|see))+$")
"""What a removed reference leaves behind."""

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
    if is_noise(task.description) or reports_progress(text) or subject.kind in {"wip", "release"}:
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
    stated = statements(
        task.output, known=text, is_remedy=not needs_a_cause, is_a_fix=is_a_fix or is_threat, least=least
    )
    if len(stated) > 1 and _SEVERAL.search(text) and lists_mends(stated):
        return None
    is_chore = subject.kind in _CHORES or is_trivial(task.description) or is_bump(task.description)
    if is_chore or (files and all(is_incidental(file) for file in files)):
        return _of_chore(text, stated, is_a_fix=is_a_fix)
    is_severe_one = is_severe(text)
    if subject.is_breaking or _BREAKS.search(task.output[:6_000]):
        return Change("breaking", 8.5, "a change breaks what others rely on", stated or _broken(task.output))
    is_security = (
        _SECURITY.search(text) is not None
        and _PROTECTS.search(text) is not None
        and len(set(content_words(text))) > _LEAST_WORDS
    )
    is_security = is_security or (is_a_fix and _SECURITY.search(" ".join(stated)) is not None)
    if is_security and (stated or not (is_novel(text) or is_reshaping(text))):
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


def _of_chore(text: str, stated: tuple[str, ...], *, is_a_fix: bool) -> Change | None:
    """Assess a change of tests, checks or the build: kept for the cause of something that failed."""
    has_cause = any(weight_of(one) is Weight.CAUSE for one in stated)
    if has_cause and (is_a_fix or _UNSTABLE.search(" ".join([text, *stated]))):
        return Change("workaround", 5.5, "a change says what was wrong with the tests or the build", stated)
    return None


def _broken(body: str) -> tuple[str, ...]:
    """Return what follows ``BREAKING CHANGE:`` in a body."""
    match = _BREAKS.search(body[:6_000])
    if match is None:
        return ()
    paragraph = body[match.end() : match.end() + 6_000].split("\n\n", 1)[0]
    if len(paragraph.split()) < _LEAST_WORDS:
        return ()
    return (sentence(_capitalised(whole_sentences(plain(paragraph), _MAX_STATED_CHARS))),)


def statements(
    body: str, *, known: str = "", is_remedy: bool = False, is_a_fix: bool = False, least: Weight = Weight.STATE
) -> tuple[str, ...]:
    """Return the stretch of a body that states most, in order: whole sentences of which none points to one left out.

    Parameters
    ----------
    known : str
        The subject: a sentence that only repeats it is left out.
    is_remedy : bool
        Whether the change mends or replaces something: then how things were before is a statement.
    is_a_fix : bool
        Whether it mends a defect: then so is anything that happened.
    least : Weight
        The weight that at least one sentence must have.
    """
    found = sentences_of(body)
    words = frozenset(content_words(known))
    weights = [
        _weight(one, words, is_remedy=is_remedy and place < 3, is_a_fix=is_a_fix) for place, one in enumerate(found)
    ]
    if max(weights, default=Weight.NOTHING) < least:
        return ()
    for place in sorted(range(len(found)), key=lambda place: (-weights[place], place)):
        if weights[place] < max(least, Weight.STATE):
            break
        chosen = _stretch(found, weights, place, words)
        if not all(tells_only_origin(found[one].text) for one in chosen):
            told = [found[one].text for one in chosen]
            return (
                sentence(_capitalised(CONNECTIVE.sub("", told[0]))),
                *(sentence(_capitalised(text)) for text in told[1:]),
            )
    return ()


def _stretch(found: list[Sentence], weights: list[Weight], statement: int, known: frozenset[str]) -> list[int]:
    """Return the sentences to tell with a statement: a stretch of its section, from what it needs to what follows from it.

    It begins with the first paragraph that states something, if everything up to the statement fits; no sentence points
    back to one that is left out. Nothing if the statement does.
    """
    section = [place for place, one in enumerate(found) if one.section == found[statement].section]
    starts = [place for place in section if place <= statement and (found[place].begins or found[place].after_gap)]
    telling = [
        start
        for start, end in zip(starts, [*starts[1:], statement + 1], strict=True)
        if max(weights[start:end]) >= Weight.STATE
    ]
    for start in [*telling, *reversed([one for one in starts if one < telling[-1]])]:
        chosen = _told_from(found, weights, [place for place in section if place >= start], known)
        if statement in chosen:
            return chosen
    return []


def _told_from(found: list[Sentence], weights: list[Weight], places: list[int], known: frozenset[str]) -> list[int]:
    """Return the sentences worth keeping: no asides, no repetitions, and none that refers to a sentence left out."""
    chosen: list[int] = []
    last = -1
    """The last sentence that another may point to: told, or a repetition of the subject."""
    for place in places:
        one = found[place]
        if is_aside(one.text) or (one.is_item and weights[place] is Weight.NOTHING and not _heads(found, place)):
            continue
        if leans_back(one.text) and (one.after_gap or last != place - 1):
            continue
        last = place
        if _repeats(one.text, known):
            continue
        if sum(len(found[its].text) + 1 for its in chosen) + len(one.text) > _MAX_STATED_CHARS:
            break
        chosen.append(place)
    return chosen


def _heads(found: list[Sentence], place: int) -> bool:
    """Return whether a list item is the heading of a paragraph that points to it."""
    following = found[place + 1] if place + 1 < len(found) else None
    return following is not None and not following.is_item and not following.after_gap and leans_back(following.text)


def _repeats(text: str, known: frozenset[str]) -> bool:
    """Return whether a sentence says nothing that the subject does not say: numbers count."""
    its = set(content_words(text)) - _SELF
    return its <= known or (len(its) < 2 and not any(word[:1].isdigit() for word in text.split()))


def _weight(one: Sentence, known: frozenset[str], *, is_remedy: bool, is_a_fix: bool) -> Weight:
    weight = Weight.CAUSE if one.gives_reasons and not speculates(one.text) else weight_of(one.text)
    if one.is_item and weight < Weight.CAUSE:
        return Weight.NOTHING  # the items of a list are mostly the subjects of squashed commits
    if weight is Weight.NOTHING and is_remedy and not one.is_item and tells_what_was(one.text, is_fix=is_a_fix):
        weight = Weight.STATE
    return weight if set(content_words(one.text)) - known else Weight.NOTHING


def composed_text(subject: Subject, change: Change, task: BuildTask, place: str) -> str:
    """Return the memory's text: the subject, what the body states, the change that it corrects, and the place."""
    lead = _LEADS.get(change.kind, "")
    text = plain(subject.text).strip(" .;,")
    text = _CLOSING.sub("", text).strip(" .;,") or text
    text = _DANGLING_END.sub("", text) or text
    text = f"{lead}: {text}" if lead and not text.casefold().startswith(lead.casefold()) else _capitalised(text)
    told = " ".join([sentence(text), *change.stated])
    if task.mends and task.mends_subject:
        told += f" It corrects “{cut(plain(task.mends_subject), _MAX_CORRECTED_CHARS)}” ({task.mends[:10]})."
    return f"{told} ({place})" if place and place.casefold() not in told.casefold() else told


def _capitalised(text: str) -> str:
    """Return a sentence with a capital, unless it begins with an identifier."""
    first = text.split(" ", 1)[0].rstrip(",:").replace("'", "")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text
