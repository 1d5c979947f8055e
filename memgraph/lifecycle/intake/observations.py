"""What agents report: facts and preferences, which are merged where known, and what they did, with the user's feedback (seed 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.secrets import redact_any
from memgraph.index.columns import TRUST
from memgraph.lifecycle.contradictions.search import described, find_contradictions_of
from memgraph.lifecycle.dedup.near_duplicates import merge_copies_of
from memgraph.lifecycle.intake.settle import OBSERVATION_COSINE, Pending, Settled, settle
from memgraph.lifecycle.run import vectors_of
from memgraph.model.agent_input import Episode, Feedback, Observation, undated
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.memory import (
    OUTCOME_OF_WORD,
    AgentMemory,
    EpisodicMemory,
    Outcome,
    SemanticMemory,
    StoredEpisodicMemory,
    Vector,
    id_of,
)
from memgraph.model.results.learning import SavedEpisode, SavedObservation
from memgraph.privacy import OWNER, Access, Inferred, domain_of, inferred, strictest
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import readable
from memgraph.store.commit.records import Write
from memgraph.text.cutting import cut, fitted, split_text
from memgraph.text.sentences import ended

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


T = TypeVar("T", Episode, Observation, Feedback)

_LIKED = ("love", "like")
_FAILURE = "failure"
"""The tag of negative episodes."""
_WORD_OF: dict[Outcome, str] = {
    "positive": "success",
    "negative": "failure",
    "neutral": "partial",
    "unknown": "pending",
}
_FEEDBACK_CHARS = 160
_DAY_CHARS = len("2026-01-01")
_ENDS = ".!?…。！？:;"


def save_episode(store: AgentMemoryStore, episode: Episode) -> SavedEpisode:
    """Store a complete interaction: its parts verbatim, and a text composed of them for search and display.

    Each call stores one episode, even if equal ones exist.

    Raises
    ------
    InvalidInputError
        A field is invalid; nothing is stored.
    """
    episode, secrets = redacted(store, episode)
    content = _composed(
        (episode.situation, episode.reasoning, episode.action), OUTCOME_OF_WORD[episode.outcome], episode.user_feedback
    )
    privacy = inferred(episode.context, f"{episode.situation}\n{episode.reasoning}\n{episode.action}")
    memory = EpisodicMemory(
        content=content,
        situation=episode.situation,
        reasoning=episode.reasoning,
        action=episode.action,
        outcome=episode.outcome,
        user_feedback=episode.user_feedback,
        mission_id=episode.mission_id,
        agent_type=episode.agent_name,
        agents_involved=[episode.agent_name] if episode.agent_name else [],
        domain=privacy.domain,
        privacy_tier=episode.privacy_tier or privacy.tier,
        project_id=episode.project,
        task_id=episode.task_id,
        session_id=episode.session_id,
        build_id=episode.build_id,
        occurred_at=episode.occurred_at,
        trust_class=episode.trust_class,
        tags=episode.tags or [],
        reason="an agent recorded what it did",
        source="episode",
    )
    kept = store.insert_memory(memory)
    notice = privacy.notice if episode.privacy_tier is None else None
    return SavedEpisode(episode_id=kept.id, notice=notice, secrets_redacted=secrets)


def give_feedback(store: AgentMemoryStore, episode_id: str, feedback: Feedback) -> StoredEpisodicMemory:
    """Record the user's feedback on an episode: love and like make it a success, meh a failure, whatever it was before.

    The word is stored as the origin of the outcome. Day, word and comment are appended to ``user_feedback`` as a new
    line beside what was recorded before, and word and comment to the text. Love and like raise the relevance as one use does, once until the feedback changes, without
    counting as a use. Meh leaves the relevance unchanged, since a failure is worth remembering. Repeating the last
    feedback writes nothing.

    Raises
    ------
    NotFoundError
        There is no such episode.
    InvalidInputError
        The id names a memory that is not an episode.
    ModelMismatchError
        The store has changed its embedding model meanwhile; nothing is changed, and a retry succeeds.
    """
    feedback, _ = redacted(store, feedback)
    drafted = _changes(store, episode_of(store, episode_id), feedback)
    texts = [drafted["content"]] if "content" in drafted else []
    embedder = store.embedder
    ready = dict(zip(texts, vectors_of(embedder, texts), strict=True))
    with store.exclusive():
        found = episode_of(store, episode_id)
        changes = _changes(store, found, feedback)
        vector = ready.get(changes.get("content", ""))
        if vector is not None:
            store.check_embedder(embedder)  # the store may have changed its model meanwhile
            changes["embedding"] = vector
        if changes:
            store.curation.states.update_memory(found.id, **changes)  # it is the user's
        return episode_of(store, episode_id)


def episode_of(store: AgentMemoryStore, episode_id: str) -> StoredEpisodicMemory:
    """Return an episode.

    Raises
    ------
    NotFoundError
        No memory has this id.
    InvalidInputError
        The id names a memory that is not an episode.
    """
    found = store.get_memory(episode_id)
    if found is None:
        raise NotFoundError("episode", episode_id)
    if not isinstance(found, StoredEpisodicMemory):
        raise InvalidInputError(f"names a {found.type} memory, not an episode", field="episode_id", value=episode_id)
    return found


def _changes(store: AgentMemoryStore, episode: EpisodicMemory, feedback: Feedback) -> dict[str, Any]:
    """Return the fields that feedback changes: none if it was given before."""
    recorded = episode.user_feedback or ""
    if feedback.is_last_of(recorded) and episode.outcome_word == feedback.feedback:
        return {}
    said = feedback.after(recorded, day=store.now()[:_DAY_CHARS], recorded_on=(episode.occurred_at or "")[:_DAY_CHARS])
    changes: dict[str, Any] = {"outcome": feedback.feedback, "user_feedback": said}
    parts = (episode.situation or "", episode.reasoning or "", episode.action or "")
    if episode.content == _composed(
        parts, episode.outcome, episode.user_feedback
    ):  # otherwise somebody has changed the text
        changes["content"] = _composed(parts, OUTCOME_OF_WORD[feedback.feedback], said)
    if feedback.feedback in _LIKED and _FAILURE in episode.tags:
        changes["tags"] = [tag for tag in episode.tags if tag != _FAILURE]
    if feedback.feedback in _LIKED and episode.outcome_word not in _LIKED:
        curve = store.config.forgetting_curve
        changes["relevance_score"] = min(episode.relevance_score + curve.reinforcement_boost, curve.max_relevance)
    return changes


def redacted(store: AgentMemoryStore, said: T) -> tuple[T, int]:
    """Return an agent's text without its secrets, and the number of secrets.

    This comes before any truncation: a truncated secret would not be recognised.
    """
    return redact_any(said) if store.config.redact_secrets else (said, 0)


def _composed(parts: tuple[str, str, str], outcome: Outcome, feedback: str | None) -> str:
    """Return situation, reasoning, action and result in one line that fits into a memory."""
    ending = f"Outcome: {_WORD_OF[outcome]}."
    if said := _newest(feedback or ""):
        ending += f" User feedback: {said}"
    labels = ("", "Reasoning: ", "Action: ")
    plain = [" ".join(part.split()) for part in parts]
    frame = len(ending) + sum(map(len, labels)) + 2 * len(parts)  # a full stop and a space after each
    shortened = fitted(plain, MAX_CONTENT_CHARS - frame)
    return " ".join([*(f"{label}{_sentence(part)}" for label, part in zip(labels, shortened, strict=True)), ending])


def _newest(feedback: str) -> str:
    """Return the latest lines of feedback that fit into a memory's text, as sentences in order."""
    lines = [line for line in (" ".join(undated(line).split()) for line in feedback.split("\n")) if line]
    said = _sentence(cut(lines.pop(), _FEEDBACK_CHARS)) if lines else ""
    while lines and len(longer := f"{_sentence(lines.pop())} {said}") <= _FEEDBACK_CHARS:
        said = longer
    return said


def _sentence(text: str) -> str:
    return ended(text, ends=_ENDS, closing="")
