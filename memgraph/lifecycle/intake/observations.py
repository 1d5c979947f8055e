"""Observations: facts and preferences learned by agents; known ones are merged (seed 2, §1.1)."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.errors import InvalidInputError
from memgraph.index.columns import TRUST
from memgraph.lifecycle.contradictions.search import described, find_contradictions_of
from memgraph.lifecycle.dedup.copies import merge_copies_of
from memgraph.lifecycle.dedup.duplicates import duplicate_of, of_scope, possible_duplicates, told_with
from memgraph.lifecycle.dedup.merge import merge_event, merged
from memgraph.lifecycle.dedup.thresholds import OBSERVATION_COSINE
from memgraph.lifecycle.intake.episodes import episode_of, redacted
from memgraph.lifecycle.intake.forgotten import is_forgotten
from memgraph.lifecycle.run.embedding import vectors_of
from memgraph.model.agent_input import Observation
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.memory import AgentMemory, SemanticMemory, StoredEpisodicMemory, StoredMemory, Vector
from memgraph.model.results.learning import SavedObservation
from memgraph.privacy import OWNER, Access, Inferred, domain_of, inferred, strictest
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import Permits, everything, readable
from memgraph.store.commit.records import Write, with_vector
from memgraph.text.cutting import split_text

SOURCE = "observation"
_FORGOTTEN = "it says again what was forgotten; `memgraph unforget` takes that back"


def save_observation(
    store: AgentMemoryStore, observation: Observation, access: Access = OWNER, *, source: str = SOURCE
) -> SavedObservation:
    """Store an observation, or merge it into the one in force with the same meaning: one commit, under one lock.

    Only observations of the same project, task, domain, privacy tier, trust class and outcome are compared. One that is
    longer than a memory is stored in parts, each linked to the one before; it is known if each of its parts is. One
    learned from an episode is derived from it, so it has at least its privacy tier, with its domain if that is stricter, at most its trust, and its
    project and task; when merged, the episode supports the known observation. Content that the user made the store forget is
    left out. An observation that contradicts a memory in force is stored, linked to it and, where that is safe,
    supersedes it; the notice says so. What says again what the user has replaced is left out. What the observing agent may not have is
    as if it did not exist; the next sleep compares the observation with all memories.

    Parameters
    ----------
    source : str
        One of `memgraph.index.columns.SESSION_SOURCES`: it is only told in its session, compared with nothing else, and contradicts nothing.

    Raises
    ------
    NotFoundError
        The episode does not exist; nothing is stored.
    InvalidInputError
        The id is not that of an episode, or the episode belongs to another project; nothing is stored.
    ModelMismatchError
        The store has changed its embedding model meanwhile; nothing is stored, and a retry succeeds.
    """
    observation, secrets = redacted(store, observation)
    text = observation.content
    texts = [text] if len(text) <= MAX_CONTENT_CHARS else split_text(text)
    embedder = store.embedder
    vectors, may = vectors_of(embedder, texts), readable(access)
    with store.exclusive():
        store.check_embedder(embedder)  # the store may have changed its model meanwhile
        episode = episode_of(store, observation.episode_id) if observation.episode_id else None
        privacy = inferred(observation.context, text)
        if observation.privacy_tier is not None:
            privacy = Inferred(observation.privacy_tier, observation.context)
        parts = [
            _memory(store, observation, episode, part, vector, privacy, source)
            for part, vector in zip(texts, vectors, strict=True)
        ]
        settled = [_settled(store, part, may) for part in parts]
        pairs = [one for one in settled if not isinstance(one, str)]
        why = list(dict.fromkeys(one for one in settled if isinstance(one, str)))
        notice = f"{len(parts) - len(pairs)} of {len(parts)} parts left out: {'; '.join(why)}" if why else None
        if not pairs:
            return SavedObservation(
                action="forgotten" if why == [_FORGOTTEN] else "superseded",
                notice=f"left out: {'; '.join(why)}",
                secrets_redacted=secrets,
            )
        if all(known for _, known in pairs):
            action, ids = "consolidated", _merge(store, pairs, episode)
        else:
            action, ids = "created", [kept.id for kept in store.insert_parts([part for part, _ in pairs])]
            if stays := merge_copies_of(store, ids, may=may):  # stored before through another door
                action, ids = "consolidated", [stays.get(one, one) for one in ids]
            found = find_contradictions_of(store, ids, may=may)
            notice = "; ".join(filter(None, [privacy.notice, notice, described(found)])) or None
    return SavedObservation(memory_id=ids[0], action=action, part_ids=ids, notice=notice, secrets_redacted=secrets)


def _memory(
    store: AgentMemoryStore,
    observation: Observation,
    episode: StoredEpisodicMemory | None,
    text: str,
    vector: Vector | None,
    privacy: Inferred,
    source: str,
) -> SemanticMemory:
    trust = observation.trust_class
    project = observation.project
    if episode is not None:
        trust = max(trust, episode.trust_class, key=TRUST.index)
        if project and episode.project_id and project != episode.project_id:
            raise InvalidInputError(
                f"differs from the episode's project, {episode.project_id!r}; omit it", field="project", value=project
            )
        project = project or episode.project_id
    own = privacy.tier, privacy.domain
    of_all = [own, (episode.privacy_tier, episode.domain)] if episode else [own]
    sources = [episode.id] if episode else []
    return SemanticMemory(
        content=text,
        embedding=vector,
        outcome=observation.outcome or "unknown",
        confidence=observation.confidence,
        valid_at=observation.valid_at or store.now(),
        trust_class=trust,
        privacy_tier=strictest(*(tier for tier, _ in of_all)),
        domain=domain_of(*of_all),
        project_id=project,
        task_id=episode.task_id if episode else None,
        session_id=observation.session_id,
        tags=observation.tags or [],
        source_event_ids=sources,
        supporting_memory_ids=sources,
        reason="an agent observed it",
        source=source,
    )


def _settled(
    store: AgentMemoryStore, part: SemanticMemory, may: Permits
) -> tuple[SemanticMemory, StoredMemory | None] | str:
    """Return a part and the matching memory in force, if any; or why the part is left out."""
    mask = possible_duplicates(store, part) & of_scope(store, "domain", part.domain) & may(store.reader)
    alike, known = duplicate_of(store, part, mask, threshold=OBSERVATION_COSINE)
    if is_forgotten(store, part, threshold=OBSERVATION_COSINE, alike=alike, may=may):
        return _FORGOTTEN
    if known is None and (pair := decided_against(store, part, threshold=OBSERVATION_COSINE, may=may)) is not None:
        older, newer = pair
        return f"it says again what the user replaced; `memgraph unsupersede {older} --by {newer}` takes that back"
    return part, known


def _merge(
    store: AgentMemoryStore,
    pairs: Sequence[tuple[SemanticMemory, StoredMemory | None]],
    episode: StoredEpisodicMemory | None,
) -> list[str]:
    """Merge each part into its match, once per match; return the ids of the matches."""
    now, writes = store.now(), list[Write]()
    merges = {known.id: (part, known) for part, known in reversed(pairs) if known}
    for part, known in merges.values():
        after = merged(known, part, now, store.config.forgetting_curve)
        vector = after.embedding if after.content != known.content else None
        writes.append(with_vector(merge_event(known, after, candidate=part, now=now), vector))
        ends = (episode.id, known.id) if episode else None
        if ends and store.reader.record("SUPPORTS", ends) is None:
            writes.append(MemoryLinked(source_id=ends[0], relation="SUPPORTS", target_id=ends[1], created_at=now))
    task_id = pairs[0][0].task_id
    store.commit("task" if task_id else "global", writes, task_id=task_id)
    return [known.id for _, known in pairs if known]


def decided_against(
    store: AgentMemoryStore, memory: AgentMemory, *, threshold: float, may: Permits = everything
) -> tuple[str, str] | None:
    """Return the ids of the memory that one says again and of the one by which the user replaced it; None if there is no such decision.

    Decisions of the user stand: what they superseded is hidden from deduplication, so a repetition by an agent would be added as
    a new memory, newer than the one that the user kept. Of what the writer may not have (`may`) nothing is named. Reads the journal, if there is a superseded memory of the same meaning.
    """
    if memory.trust_class == "user":
        return None
    reader = store.reader
    index = reader.index
    visible = may(reader)
    mask = (
        visible
        & index.column("is_live")
        & ~index.column("is_suppressed")
        & ~index.column("is_archived")
        & reader.superseded()
    )
    mask &= of_scope(store, "project", memory.project_id) & of_scope(store, "task", memory.task_id)
    mask &= told_with(store, memory)
    if not mask.any():
        return None
    _, known = duplicate_of(store, memory, mask, threshold=threshold)
    if known is None:
        return None
    newer = {
        link.source_id
        for link in store.links(known.id)
        if link.relation == "SUPERSEDES" and link.target_id == known.id and visible[index.slot(link.source_id)]
    }
    links = (event.payload for event in reader.history(known.id) if event.actor == "user")
    decisions = (made for made in links if isinstance(made, MemoryLinked) and made.relation == "SUPERSEDES")
    by = next((made.source_id for made in decisions if made.target_id == known.id and made.source_id in newer), None)
    return None if by is None else (known.id, by)
