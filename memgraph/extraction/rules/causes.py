"""What an agent found out: the cause of a problem, as it was stated last, and what was tried in vain before.

An agent states many causes before it finds the one. A stated cause is disproved by the same failure after it, or by the user ("still broken"); what
remains is the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from memgraph.extraction.error_text import error_lines, failure_fingerprint
from memgraph.extraction.rules.findings import Finding
from memgraph.extraction.rules.session_steps import Step, is_same
from memgraph.extraction.statements import find_decision, sentences
from memgraph.model.build import BuildEventLog, UserIntervention
from memgraph.text import lazy_re as re
from memgraph.text.sentences import ended

_MAX_CHARS = 420
_MAX_FOUND = 12
_MAX_VAIN = 3
_NEAR_FAILURES = 40
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
_STILL = re.compile(
    r"\b(?:still|same (?:error|issue|problem|thing|result|behaviou?r)|(?:does|did|is|was)(?:n'?t| not) (?:work|help|fix|it|fixed|working|the (?:problem|cause|issue|reason))|not (?:fixed|working|it|the (?:problem|cause|issue|reason))|"
    r"no,? (?:it|that|this)|that'?s (?:wrong|not)|wrong|nope|again|not true|incorrect|no luck)\b",
    re.IGNORECASE,
)


@dataclass
class _Turn:
    """What follows one message of the user: steps, and the user's next message."""

    steps: list[Step] = field(default_factory=list)
    answered: str = ""


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


def causes(log: BuildEventLog, steps: Sequence[Step]) -> Iterator[Finding]:
    """Yield the cause that was stated last in each turn and that nothing disproved."""
    vain: list[str] = []
    count = 0
    for turn in _turns(log.user_interventions, steps):
        claims, disproved = _claims(turn)
        vain += disproved
        if not claims:
            continue
        step, said = claims[-1]
        if _STILL.search(turn.answered[:200]):
            vain += said
            continue
        decision = next((one for sentence in said if (one := find_decision(sentence)) and one.alternatives), None)
        before = [one for one in dict.fromkeys(vain) if one not in said][-_MAX_VAIN:]
        told = joined(said)
        if before:
            told = f"{told} Supposed before, and not confirmed: {joined(before)}"
        yield Finding(
            "insight",
            7.5 if any(_CAUSE.search(one) for one in said) else 6.0,
            f"{step.task.task_id[:380]}:insight",
            said[0],
            "the agent said what it had found out",
            step.task,
            decision=decision,
            told=told,
        )
        vain = []
        count += 1
        if count == _MAX_FOUND:
            return


def _claims(turn: _Turn) -> tuple[list[tuple[Step, list[str]]], list[str]]:
    """Return the claims of a turn, in order, and those that a failure disproved."""
    claims: list[tuple[Step, list[str]]] = []
    disproved: list[str] = []
    failed: list[tuple[Step, str]] = []
    before = ""
    for step in turn.steps:
        if step.task.reasoning != before and (said := causes_in(step.task.reasoning)):
            claims.append((step, said[-2:]))
        before = step.task.reasoning
        if not step.worked and step.runs:
            error = next(iter(error_lines(step.task.output, limit=1)), "")
            mark = failure_fingerprint(error) if error else ""
            if any(its == mark and is_same(one, step) for one, its in failed):
                disproved += [one for _, said in claims for one in said]
                claims = []
            failed = [*failed[1 - _NEAR_FAILURES :], (step, mark)]
        if said := causes_in(step.task.lesson):
            claims.append((step, said[:3]))
    return claims, disproved


def _turns(said: Sequence[UserIntervention], steps: Sequence[Step]) -> list[_Turn]:
    """Return the steps by the user's message that they follow; steps without a time follow the first."""
    times = [one.timestamp for one in said]
    turns = [_Turn() for _ in range(len(said) + 1)]
    for one, following in zip(turns, said, strict=False):
        one.answered = following.action
    place = 0
    for step in steps:
        when = step.task.occurred_at
        while when and place < len(times) and times[place] <= when:
            place += 1
        turns[place].steps.append(step)
    if not any(step.task.occurred_at for step in steps):
        turns[0].answered = ""
    return turns


def joined(parts: Sequence[str], limit: int = _MAX_CHARS) -> str:
    """Return sentences as one text, as many as fit."""
    chosen: list[str] = []
    for part in parts:
        if chosen and sum(map(len, chosen)) + len(part) > limit:
            break
        chosen.append(ended(part, ends=".!?", closing=""))
    return " ".join(chosen)
