"""What agents report and users ask to remember, merged or pinned where it is known; and what agents did, with the user's feedback (seed 2).

All of it is compared at once with what is known: what it contradicts is replaced or linked, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.index.columns import FACT_TAG, TIERS, TRUST
from memgraph.lifecycle.contradictions.search import described
from memgraph.lifecycle.dedup.near_duplicates import united
from memgraph.lifecycle.intake.settle import OBSERVATION_COSINE, Pending, Settled, compared, redacted, settle
from memgraph.lifecycle.run import vectors_of
from memgraph.model.agent_input import Episode, Feedback, Observation, undated
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.events.payload import Actor
from memgraph.model.memory import (
    OUTCOME_OF_WORD,
    AgentMemory,
    EpisodicMemory,
    Outcome,
    PrivacyTier,
    SemanticMemory,
    StoredEpisodicMemory,
    Vector,
    id_of,
)
from memgraph.model.results.learning import ContradictionResult, SavedEpisode, SavedObservation
from memgraph.privacy import OWNER, Access, Inferred, domain_of, inferred, strictest
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import readable
from memgraph.store.commit.records import Write
from memgraph.store.query import Mask, Reader
from memgraph.text.cutting import cut, fitted, shortened, split_text
from memgraph.text.sentences import ended

# --- observations ---

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
    With one of `memgraph.index.columns.SESSION_SOURCES` it is only told in its session, compared with nothing else, and contradicts nothing.
    Where the episode does not exist, or is of another project, and where the store has changed its model meanwhile, nothing is stored.
    """
    observation, secrets = redacted(store, observation)
    text, may = observation.content, readable(access)
    with _ready(store, text) as ready:
        episode = episode_of(store, observation.episode_id) if observation.episode_id else None
        privacy = inferred(observation.context, text)
        if observation.privacy_tier is not None:
            privacy = Inferred(observation.privacy_tier, observation.context)
        fields = _fields(store, observation, episode, privacy)
        parts = [SemanticMemory(content=one, embedding=its, source=source, **fields) for one, its in ready]
        settled = [(part, settle(store, part, threshold=OBSERVATION_COSINE, may=may)) for part in parts]
        pairs = [(part, found.memory) for part, found in settled if not found.is_left_out]
        why = list(dict.fromkeys(_why(found) for _, found in settled if found.is_left_out))
        notice = f"{len(parts) - len(pairs)} of {len(parts)} parts left out: {'; '.join(why)}" if why else None
        if not pairs:
            action = "forgotten" if why == [_FORGOTTEN] else "superseded"
            return SavedObservation(action=action, notice=f"left out: {'; '.join(why)}", secrets_redacted=secrets)
        if all(known for _, known in pairs):
            action, ids = "consolidated", _merge(store, pairs, episode)
        else:
            action, ids = "created", [kept.id for kept in store.insert_parts([part for part, _ in pairs])]
            stays, found = compared(store, ids, may=may)
            if stays:  # stored before through another door
                action, ids = "consolidated", [stays.get(one, one) for one in ids]
            notice = "; ".join(filter(None, [privacy.notice, notice, described(found)])) or None
    return SavedObservation(memory_id=ids[0], action=action, part_ids=ids, notice=notice, secrets_redacted=secrets)


@contextmanager
def _ready(store: AgentMemoryStore, text: str) -> Iterator[list[tuple[str, Vector | None]]]:
    """Hold the writer lock with the parts of a text, each at most as long as a memory, and their vectors."""
    embedder, parts = store.embedder, [text] if len(text) <= MAX_CONTENT_CHARS else split_text(text)
    vectors = vectors_of(embedder, parts)
    with store.exclusive():
        store.check_embedder(embedder)  # the store may have changed its model meanwhile
        yield list(zip(parts, vectors, strict=True))


def _fields(
    store: AgentMemoryStore, observation: Observation, episode: StoredEpisodicMemory | None, privacy: Inferred
) -> dict[str, Any]:
    trust, project, of_all = observation.trust_class, observation.project, [(privacy.tier, privacy.domain)]
    if episode is not None:
        trust = max(trust, episode.trust_class, key=TRUST.index)
        if project and episode.project_id and project != episode.project_id:
            why = f"differs from the episode's project, {episode.project_id!r}; omit it"
            raise InvalidInputError(why, field="project", value=project)
        project = project or episode.project_id
        of_all.append((episode.privacy_tier, episode.domain))
    sources = [episode.id] if episode else []
    return {
        "outcome": observation.outcome or "unknown",
        "confidence": observation.confidence,
        "valid_at": observation.valid_at or store.now(),
        "trust_class": trust,
        "privacy_tier": strictest(*(tier for tier, _ in of_all)),
        "domain": domain_of(*of_all),
        "project_id": project,
        "task_id": episode.task_id if episode else None,
        "session_id": observation.session_id,
        "tags": observation.tags or [],
        "source_event_ids": sources,
        "supporting_memory_ids": sources,
        "reason": "an agent observed it",
    }


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


# --- what the user asks to remember ---

_REMEMBERED = "remember"
_DONE = {"created": "Remembered", "known": "Already remembered", "restored": "Remembered again"}


def remember_text(
    store: AgentMemoryStore,
    text: str,
    *,
    tags: Sequence[str],
    project_id: str | None,
    access: Access = OWNER,
    domain: str | None = None,
    tier: PrivacyTier | None = None,
) -> tuple[str, dict[str, Any]]:
    """Store a text, without its secrets, as pinned memories, in linked parts if it is long; return what was done in words and as data.

    What is known is not stored again: it is pinned, and in force again if it was forgotten (``event`` is that change). What the text contradicts
    is replaced, as by an observation. An agent that saves it for the user is trusted as an agent, and it is compared with what they may have.
    The tier is by default that of the domain and of what the text concerns.
    """
    actor: Actor = "user" if access.is_owner else "agent"
    fields: dict[str, Any] = {"tags": list(tags), "trust_class": actor, "project_id": project_id, "domain": domain}
    fields |= {
        "outcome": "positive",
        "is_pinned": True,
        "reason": "the user asked to remember it",
        "source": _REMEMBERED,
    }
    fields |= {} if tier is None else {"privacy_tier": tier}
    with _ready(store, text.strip() or text) as ready:
        parts = [SemanticMemory(content=one, embedding=its, **fields) for one, its in ready]
        known, event, found = _said_again(store, parts) if actor == "user" else [], None, ContradictionResult()
        replaced: list[str] = []
        if len(known) == len(parts):
            action = "restored" if any(one.is_suppressed for one in known) else "known"
            ids, event = list(map(id_of, known)), _pin_again(store, known, tags)
        else:
            action, new = "created", [memory.id for memory in store.insert_parts(parts, actor=actor)]
            stays, found = compared(store, new, actor=actor, may=readable(access))
            links = [link for one in (new if found.replaced or found.superseded else ()) for link in store.links(one)]
            older = (link for link in links if link.relation == "SUPERSEDES" and link.source_id in new)
            replaced = list(dict.fromkeys(one.target_id for one in older if one.target_id not in stays.values()))
            ids = [stays.get(one, one) for one in new]
        shown = shortened(store.read_memories(ids)[0].content.strip())
    many = f" in {len(ids)} parts" if len(ids) > 1 else ""
    message = f"{_DONE[action]}{many}: '{shown}' (pinned, will not decay)"
    data = {"ids": ids, "action": action, "replaced": replaced, "event": event}
    return "; ".join(filter(None, [message, described(found)])), data


def _said_again(store: AgentMemoryStore, parts: Sequence[SemanticMemory]) -> list[AgentMemory]:
    """Return what the user asked to remember before and has not replaced, at least as privately, and of this domain if one is named."""
    settled = ((part, settle(store, part, threshold=None, may=_users).memory) for part in parts)
    return [
        known
        for part, known in settled
        if known is not None
        and known.source == _REMEMBERED
        and known.archived_at is None
        and known.invalid_at is None
        and TIERS.index(known.privacy_tier) >= TIERS.index(part.privacy_tier)
        and part.domain in (None, known.domain)
    ]


def _users(reader: Reader) -> Mask:
    """Return what the user said, and has not replaced."""
    said: Mask = reader.index.column("trust") == TRUST.index("user")
    return said & ~reader.superseded()


def _pin_again(store: AgentMemoryStore, known: Sequence[AgentMemory], tags: Sequence[str]) -> int | None:
    """Pin known memories, with these tags too, and restore them if they were forgotten. A fact that is said again as a rule is one."""

    def change(memory: AgentMemory, *_: Any) -> dict[str, Any]:
        kept = [tag for tag in memory.tags if tag.casefold() != FACT_TAG]
        return {"is_pinned": True, "is_suppressed": False, "tags": united(kept, list(tags))}

    return store.curation.change(list(map(id_of, known)), change).event


# --- episodes, and feedback on them ---

_AS_SAID = "situation reasoning action outcome user_feedback mission_id task_id session_id build_id occurred_at trust_class".split()
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
    """Store a complete interaction, even if equal ones exist: its parts verbatim, and a text composed of them for search and display."""
    episode, secrets = redacted(store, episode)
    parts = episode.situation, episode.reasoning, episode.action
    privacy = inferred(episode.context, "\n".join(parts))
    memory = EpisodicMemory(
        **{name: getattr(episode, name) for name in _AS_SAID},
        content=_composed(parts, OUTCOME_OF_WORD[episode.outcome], episode.user_feedback),
        agent_type=episode.agent_name,
        agents_involved=[episode.agent_name] if episode.agent_name else [],
        domain=privacy.domain,
        privacy_tier=episode.privacy_tier or privacy.tier,
        project_id=episode.project,
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
    line beside what was recorded before, and word and comment to the text. Love and like raise the relevance as one use does, once until
    the feedback changes, without counting as a use. Meh leaves the relevance unchanged, since a failure is worth remembering. Repeating the
    last feedback writes nothing.
    """
    feedback, _ = redacted(store, feedback)
    text, embedder = _changes(store, episode_of(store, episode_id), feedback).get("content"), store.embedder
    vector = vectors_of(embedder, [text])[0] if text else None
    with store.exclusive():
        found = episode_of(store, episode_id)
        changes = _changes(store, found, feedback)
        if vector is not None and changes.get("content") == text:
            store.check_embedder(embedder)  # the store may have changed its model meanwhile
            changes["embedding"] = vector
        if changes:
            store.curation.states.update_memory(found.id, **changes)  # it is the user's
        return episode_of(store, episode_id)


def episode_of(store: AgentMemoryStore, episode_id: str) -> StoredEpisodicMemory:
    """Return an episode; refuse an id that no memory has, or that is not an episode's."""
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
    composed = _composed(parts, episode.outcome, episode.user_feedback)
    if episode.content == composed:  # otherwise somebody has changed the text
        changes["content"] = _composed(parts, OUTCOME_OF_WORD[feedback.feedback], said)
    if feedback.feedback in _LIKED and _FAILURE in episode.tags:
        changes["tags"] = [tag for tag in episode.tags if tag != _FAILURE]
    if feedback.feedback in _LIKED and episode.outcome_word not in _LIKED:
        curve = store.config.forgetting_curve
        changes["relevance_score"] = min(episode.relevance_score + curve.reinforcement_boost, curve.max_relevance)
    return changes


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
