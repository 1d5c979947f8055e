"""What is worth remembering in an agent's session: the user's statements, and the facts of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memgraph.extraction.rules.findings import Finding
from memgraph.extraction.rules.runs import failures, repeated, solved, steps_of
from memgraph.extraction.rules.user import UserStatement, spoken, statements_in, takes_back
from memgraph.extraction.statements import steps_in
from memgraph.model.build import BuildEventLog, UserIntervention
from memgraph.text import lazy_re as re
from memgraph.text.words import content_words

_MAX_TURNS = 20_000
_MAX_PASTED_CHARS = 4_000
_ASKED = "Asked: "
_REFUSED = "Refused: "
_MARK = re.compile(r"\W{0,3}(?:(?:option|number) )?(\d{1,2}|[a-h])\W{0,3}(?:please\W{0,2})?", re.IGNORECASE)
"""An answer that names one of the marked lines."""
_TELLS_HOW = re.compile(
    r"\bhow (?:to|we)\b|\b(?:the|these|our) (?:steps|procedure|checklist|recipe)\b|\bin this order\b|\b(?:always|whenever|every time|each time)\b|\b(?:for|before|after) (?:each|every|any)\s|"
    r"^(?:to|when)\s[^.!?\n]{3,80}[,:]",
    re.IGNORECASE | re.MULTILINE,
)
"""What tells a way of doing something from a list of requests."""


def from_session(log: BuildEventLog) -> Iterator[Finding]:
    """Yield what is worth remembering in a session; see `RuleExtractor` for salience."""
    steps = steps_of(log.tasks)
    yield from _from_user(log)
    yield from failures(steps)
    yield from repeated(steps)
    if log.build_outcome == "success":
        yield from solved(log, steps)


def _from_user(log: BuildEventLog) -> Iterator[Finding]:
    """Yield the user's statements that hold beyond the session, without those taken back later, and what the user refused with which words."""
    at: Counter[str] = Counter()
    kept: list[tuple[str, UserIntervention, UserStatement]] = []
    latest = 0  # the number of statements of earlier messages than the one before
    for said in log.user_interventions[:_MAX_TURNS]:
        place = f"user@{said.timestamp}" + (f"#{at[said.timestamp]}" if at[said.timestamp] else "")
        at[said.timestamp] += 1
        if len(said.action) > _MAX_PASTED_CHARS:
            continue  # pasted text
        if chosen := _chosen(said):
            reason = "the user answered a question"
            text = "The user chose “{}” when asked “{}”".format(*chosen)
            yield Finding("statement", 8.3, f"{place}:answer", text, reason, said=said, told=text)
            continue
        own = "\n".join(filter(None, spoken(said.action)))
        kept = [entry for number, entry in enumerate(kept) if not takes_back(own, entry[2], is_latest=number >= latest)]
        latest = len(kept)
        if (steps := steps_in(said.action)) and _tells_how(said.action, own, steps):
            reason = "the user stated the steps"
            alone = said.model_copy(update={"context": ""})
            yield Finding("procedure", 9.2, f"{place}:procedure", own, reason, said=alone, steps=steps)
            continue
        stated = statements_in(said.action)
        kept += [(place, said, one) for one in stated]
        says_why = content_words(own) and not own.rstrip().endswith("?")
        if not stated and said.context.startswith(_REFUSED) and says_why:
            alone = said.model_copy(update={"action": own})
            yield Finding("correction", 9.4, f"{place}:correction", own, "the user refused a call", said=alone)
    number: Counter[str] = Counter()
    for place, said, one in kept:
        key = f"{place}:{one.kind}"
        number[key] += 1
        key += f"-{number[key]}" if number[key] > 1 else ""
        reason = "the user gave an instruction" if one.kind == "instruction" else "the user stated a fact or a decision"
        told = said.model_copy(update={"action": one.text, "context": ""})
        yield Finding(one.kind, 9.3, key, one.text, reason, said=told)


def _chosen(said: UserIntervention) -> tuple[str, str] | None:
    """Return what the user chose of what the agent offered, by a tool or as a list of marked lines, and the question."""
    if said.context.startswith(_ASKED):
        return said.action, said.context.removeprefix(_ASKED)
    if mark := _MARK.fullmatch(said.action):
        offered = re.findall(
            rf"^\W{{0,6}}{mark[1]}\W{{1,4}}(\w.{{1,200}})$", said.context, re.MULTILINE | re.IGNORECASE
        )
        asked = [line.strip(" *") for line in said.context.splitlines() if line.rstrip(" *").endswith("?")]
        if len(offered) == 1 and asked:
            return offered[0].strip(" *"), asked[-1]
    return None


def _tells_how(message: str, own: str, steps: tuple[str, ...]) -> bool:
    """Return whether the line of the first step or the one before it says that these are steps, all in the user's own words."""
    around = [line for line in message.partition(steps[0])[0].splitlines() if line.strip()][-2:]
    words = own.replace("\n", " ")
    is_own = all(" ".join(step.split()) in words for step in steps)
    return is_own and any(_TELLS_HOW.search(line) for line in (*around, steps[0]) if line.strip("-*• ") in words)
