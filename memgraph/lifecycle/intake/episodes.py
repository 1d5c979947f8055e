"""Episodes: agents' actions, their outcomes, and the user's feedback (seed 2, §1.2)."""

from __future__ import annotations

from typing import Any, TypeVar

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.secrets import redact_any
from memgraph.lifecycle.run.embedding import vectors_of
from memgraph.model.agent_input import Episode, Feedback, Observation, undated
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.memory import OUTCOME_OF_WORD, EpisodicMemory, Outcome, StoredEpisodicMemory
from memgraph.model.results.learning import SavedEpisode
from memgraph.privacy import inferred
from memgraph.store import AgentMemoryStore
from memgraph.text.cutting import cut, fitted
from memgraph.text.sentences import ended

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
