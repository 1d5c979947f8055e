"""Drafts of generalisations: their texts, and the episodes to link them with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from memgraph.index.index import Index
from memgraph.lifecycle.evidence.evidence import confidence_of, evidence_of, strictness
from memgraph.lifecycle.evidence.experience import SOURCE
from memgraph.lifecycle.generalisation.extractive_text import (
    Shared,
    counted,
    generalised,
    kind_of,
    shared_by,
    trials_of_one_task,
)
from memgraph.lifecycle.generalisation.patterns import Pattern, Plan
from memgraph.lifecycle.generalisation.stages import Stage, stages
from memgraph.lifecycle.generalisation.wording import Wording
from memgraph.lifecycle.run.runner import View
from memgraph.model.base import MAX_ITEMS
from memgraph.model.ids import natural_id, source_id
from memgraph.model.memory import AgentMemory, Entity, SemanticMemory, StoredMemory
from memgraph.ports import Row
from memgraph.store.query import Reader

MOST_LINKED = 200
"""Maximum number of episodes linked as evidence: linked ones first, then the most typical ones of the community."""
_MOST_AGENTS = 50


@dataclass(slots=True)
class Draft:
    """A stage of a pattern, and the generalisation that describes it.

    Attributes
    ----------
    before : AgentMemory or None
        The generalisation that it updates, as stored or as in the preceding draft. None for a new one.
    linked : list of str
        The episodes to link it with.
    were_linked : frozenset of str
        The episodes that it was linked with before.
    """

    stage: Stage
    memory: SemanticMemory
    before: AgentMemory | None
    linked: list[str]
    were_linked: frozenset[str] = field(default_factory=frozenset)

    @property
    def pattern(self) -> Pattern:
        """Its text."""
        return self.stage.pattern

    @property
    def has_new_text(self) -> bool:
        """Whether its text has changed."""
        return self.before is None or self.before.content != self.memory.content

    @property
    def added(self) -> list[list[str]]:
        """The episodes to link newly, grouped by the time at which they came."""
        new: dict[str, list[str]] = {}
        for one in self.linked:
            if one not in self.were_linked:
                new.setdefault(self.stage.came[one], []).append(one)
        return [new[at] for at in sorted(new)]

    @property
    def left(self) -> list[str]:
        """The episodes to unlink."""
        members = {row["id"] for row in self.pattern.members}
        return sorted(self.were_linked - members - set(self.linked))


Growth = list[Draft]
"""The drafts of one generalisation as it arose and grew, in order; not empty."""


def drafts(view: View, made: Sequence[Plan], wording: Wording) -> list[list[Growth]]:
    """Return, group by group, the drafts of the generalisations that have changed."""
    patterns = [pattern for plan in made for group in plan.groups for pattern in group]
    known = view.reader.read([pattern.same.row["id"] for pattern in patterns if pattern.same])
    before = {memory.id: memory for memory in known}
    grown = iter(stages(view.reader, patterns))
    found = [
        [growth for pattern in group if (growth := _growth(view, pattern, next(grown), before, wording))]
        for plan in made
        for group in plan.groups
    ]
    return [group for group in found if group]


def _growth(
    view: View,
    pattern: Pattern,
    grown: Sequence[Stage],
    known: Mapping[str, StoredMemory],
    wording: Wording,
) -> Growth:
    """Return the drafts of a pattern, stage by stage, without those that add nothing."""
    same = pattern.same
    found: Growth = []
    before: AgentMemory | None = known.get(same.row["id"]) if same else None
    linked = frozenset(same.live | same.others) if same else frozenset[str]()
    for stage in grown:
        draft = _draft(view.reader, stage, before, linked, wording)
        if draft is not None:
            found.append(_confirmed(view, draft))
            before, linked = draft.memory, frozenset(draft.linked)
    return found


def _confirmed(view: View, draft: Draft) -> Draft:
    """Raise the relevance of a generalisation that gained evidence, as for a repeated memory."""
    before, after = draft.before, draft.memory
    if before is None:
        return draft
    if set(after.evidence_build_ids) - set(before.evidence_build_ids) or set(draft.linked) - draft.were_linked:
        relevance = view.config.forgetting_curve.confirmed(before.relevance_score)
        confirmed = {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": view.now}
        draft.memory = after.model_copy(update=confirmed)
    return draft


def _draft(
    reader: Reader, stage: Stage, before: AgentMemory | None, linked: frozenset[str], wording: Wording
) -> Draft | None:
    pattern = stage.pattern
    covered, same = pattern.covered, pattern.same
    shared = shared_by(covered)
    fields = _fields(reader, stage, shared)
    if fields["pattern"] is None:  # by then no lesson could be stated
        return None
    wanted = _linked(pattern, linked)
    if before is None:
        memory = SemanticMemory(id=_id(reader.index, pattern), **fields, content=_worded(stage, fields, wording))
        return Draft(stage, memory, None, wanted)
    is_told = all(getattr(before, name) == value for name, value in fields.items())
    lost = same.lost if same else []
    if same is not None:
        # faded or deleted episodes are not compared: their sentences are the same in other words
        is_as_open = all(getattr(before, name) == fields[name] for name in ("privacy_tier", "trust_class"))
        has_same_builds = set(fields["evidence_build_ids"]) == set(before.evidence_build_ids)
        is_told |= bool(same.collected or same.faded) and has_same_builds and is_as_open
    if is_told and set(wanted) == linked and not lost:
        return None
    says_the_same = getattr(before, "pattern", None) == fields["pattern"] and not lost
    content = before.content if before.is_pinned or says_the_same else _worded(stage, fields, wording)
    after = before.model_copy(update={**fields, "content": content})
    return Draft(stage, after, before, wanted, linked)  # type: ignore[arg-type]


def _worded(stage: Stage, fields: Mapping[str, Any], wording: Wording) -> str:
    """Return the text; a model is asked only for that of the latest stage."""
    covered, plain = stage.pattern.covered, str(fields["pattern"])
    return wording.of(covered, plain, counted(stage.pattern.evidence, covered)) if stage.is_latest else plain


def _fields(reader: Reader, stage: Stage, shared: Shared) -> dict[str, Any]:
    """Return the fields derived from its episodes; domain, tier and trust are the narrowest of theirs."""
    pattern = stage.pattern
    covered = pattern.covered
    project_id, task_id = pattern.experience.scope
    in_order = sorted(covered, key=lambda row: (row.get("occurred_at", ""), row.get("seq", 0)))
    builds = [build for row in in_order for build in (*row.get("evidence_build_ids", ()), row.get("build_id")) if build]
    domains = {row.get("domain") for row in covered}
    gone = sorted(key for key in pattern.evidence if not key.startswith("memory ") and key not in builds)
    agents = dict.fromkeys(agent for row in in_order for agent in row.get("agents_involved", ()))
    before = [pattern.same] if pattern.same else pattern.replaced
    collected = sorted(pattern.same.collected) if pattern.same else []
    shared_context = {"tags": list(shared.tags), "entities": [Entity(**entity) for entity in shared.entities]}
    seen = counted(pattern.evidence, covered)
    trials = trials_of_one_task(covered, seen, pattern.solved)
    return {
        # those that are missing are extracted from the text
        **{name: values for name, values in shared_context.items() if values},
        "outcome": pattern.experience.outcome,
        "confidence": confidence_of(len(pattern.evidence)),
        "project_id": project_id,
        "task_id": task_id,
        "domain": domains.pop() if len(domains) == 1 else None,
        **strictness([*covered, *(known.row for known in before)]),
        "title": shared.title,
        "agents_involved": list(agents)[:_MOST_AGENTS],
        "evidence_build_ids": list(dict.fromkeys([*gone, *builds]))[-MAX_ITEMS:],
        "source_event_ids": [*collected, *(row["id"] for row in in_order)][-MAX_ITEMS:],
        "source": SOURCE,
        "occurred_at": stage.at,
        "pattern": generalised(
            covered,
            shared,
            pattern.experience.outcome,
            seen,
            times=stage.times,
            solved=pattern.solved,
            failed_builds=_failed_builds(reader, pattern) if kind_of(covered) == "recovery" else 0,
            against=len(frozenset().union(*map(evidence_of, pattern.against)) - pattern.evidence),
        ),
        "reason": f"the same was seen {seen}",
        "asked": trials and trials.asked,
        "lesson": trials and trials.lesson,
        "is_solved": trials and trials.is_solved,
    }


def _failed_builds(reader: Reader, pattern: Pattern) -> int:
    """Return how many of the builds are known to have failed."""
    project = pattern.experience.scope[0]
    found = (reader.record("Build", natural_id("build", one, project_id=project)) for one in pattern.evidence)
    return sum(build is not None and build.get("outcome") == "failure" for build in found)


def _linked(pattern: Pattern, before: frozenset[str]) -> list[str]:
    """Return the episodes to link: the evidence, and the solutions of the failed trials' task that it quotes."""
    members = [row["id"] for row in pattern.members]
    evidence = [*(one for one in members if one in before), *(one for one in members if one not in before)]
    solved: Sequence[Row] = pattern.solved or ()
    return [*evidence[:MOST_LINKED], *(row["id"] for row in solved)]


def _id(index: Index, pattern: Pattern) -> str:
    """Return an id derived from the first episode generalised and from what the generalisation replaces.

    One that is made again after it was retired gets another id, because the former id has its own history.
    """
    scope = "\x1f".join(part or "" for part in (*pattern.experience.scope, pattern.experience.outcome))
    members = "\x1f".join(sorted(row["id"] for row in pattern.members))
    replaced = "\x1f".join(sorted(known.row["id"] for known in pattern.replaced))
    ids = (source_id(f"generalisation\x1f{scope}\x1f{members}\x1f{replaced}", number) for number in count())
    return next(one for one in ids if index.slot(one) < 0)
