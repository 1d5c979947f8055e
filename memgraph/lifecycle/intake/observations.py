"""Observations: facts and preferences learned by agents; known ones are merged (seed 2, §1.1)."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.errors import InvalidInputError
from memgraph.index.columns import TRUST
from memgraph.lifecycle.contradictions.search import described, find_contradictions_of
from memgraph.lifecycle.dedup.copies import merge_copies_of
from memgraph.lifecycle.dedup.thresholds import OBSERVATION_COSINE
from memgraph.lifecycle.intake.episodes import episode_of, redacted
from memgraph.lifecycle.intake.settle import Pending, Settled, settle
from memgraph.lifecycle.run.embedding import vectors_of
from memgraph.model.agent_input import Observation
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.memory import AgentMemory, SemanticMemory, StoredEpisodicMemory, Vector, id_of
from memgraph.model.results.learning import SavedObservation
from memgraph.privacy import OWNER, Access, Inferred, domain_of, inferred, strictest
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import readable
from memgraph.store.commit.records import Write
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
        settled = [(part, settle(store, part, threshold=OBSERVATION_COSINE, may=may)) for part in parts]
        pairs = [(part, found.memory) for part, found in settled if found.state in ("new", "known")]
        why = list(dict.fromkeys(_why(found) for _, found in settled if found.state not in ("new", "known")))
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


def _why(found: Settled) -> str:
    """Return why a part is left out."""
    if found.state != "decided" or found.memory is None:
        return _FORGOTTEN
    undone = f"`memgraph unsupersede {found.memory.id} --by {found.by}`"
    return f"it says again what the user replaced; {undone} takes that back"


def _merge(
    store: AgentMemoryStore,
    pairs: Sequence[tuple[SemanticMemory, AgentMemory | None]],
    episode: StoredEpisodicMemory | None,
) -> list[str]:
    """Merge each part into its match, once per match; return the ids of the matches."""
    pending, writes = Pending(store), list[Write]()
    for known_id, (part, known) in {id_of(known): (part, known) for part, known in reversed(pairs) if known}.items():
        writes.append(pending.merge(known, part))
        if episode and store.reader.record("SUPPORTS", (episode.id, known_id)) is None:
            ends = {"source_id": episode.id, "relation": "SUPPORTS", "target_id": known_id}
            writes.append(MemoryLinked(**ends, created_at=pending.now))
    task_id = pairs[0][0].task_id
    store.commit("task" if task_id else "global", writes, task_id=task_id)
    return [id_of(known) for _, known in pairs if known]
