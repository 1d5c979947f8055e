"""Operations that store and correct: observations, episodes, outcomes, feedback, remembering, forgetting, invalidating."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from memgraph.errors import PermissionDeniedError
from memgraph.interfaces.operations.operation import Answer, Arguments, Call, Operation, Traced
from memgraph.model.agent_input import FeedbackWord, ToolOutcome
from memgraph.model.base import MAX_ITEMS, Name, Prose
from memgraph.model.ids import MIN_ID_CHARS
from memgraph.model.memory import StoredMemory
from memgraph.text.cutting import preview

Tags = Annotated[list[Name], Field(max_length=50)]
Ids = Annotated[list[Name], Field(max_length=MAX_ITEMS)]


class Outcome(Arguments):
    """Arguments of `record_outcome`."""

    query_id: Name = Field(description="The query_id that recall returned.")
    outcome: str = Field(description="How the task ended: success, failure, partial or pending.", max_length=20)
    used: Ids = Field(default_factory=list, description="Ids of the recalled memories that you used.")
    overridden: Ids = Field(default_factory=list, description="Ids of those that you deliberately did not follow.")


class Observe(Arguments):
    """Arguments of `save_observation`."""

    text: Prose = Field(description="One fact, rule or preference in a sentence that can be understood by itself.")
    tags: Tags = Field(default_factory=list)
    domain: Name | None = Field(default=None, description="Such as travel, testing, health, financial.")
    project: Name | None = Field(default=None, description="Default: the project you work in.")


class SaveEpisode(Arguments):
    """Arguments of `save_episode`."""

    task: Prose = Field(description="What was to be done.")
    action: Prose = Field(description="What was done.")
    reasoning: Prose = Field(description="Why it was done so; for a failure, its cause.")
    outcome: ToolOutcome
    tags: Tags = Field(default_factory=list)
    project: Name | None = Field(default=None, description="Default: the project you work in.")


class Invalidate(Arguments):
    """Arguments of `invalidate_memory`."""

    id: Name = Field(description=f"The id, or its first {MIN_ID_CHARS} characters.")
    reason: Prose = Field(description="Why it is no longer true.")


class Feedback(Arguments):
    """Arguments of `feedback`."""

    id: Name
    feedback: FeedbackWord
    comment: Prose | None = None


class Remember(Arguments):
    """Arguments of `remember`."""

    text: Prose
    tags: Tags = Field(default_factory=list)
    project: Name | None = None
    fact: bool = Field(
        default=False, description="Save it as a fact: recalled when it concerns the task, not a standing rule."
    )


class Forget(Arguments):
    """Arguments of `forget`."""

    id: Name


def _outcome(call: Call, given: Outcome) -> Answer:
    ids = {
        name: [call.readable(one, recalled_as=given.query_id).id for one in getattr(given, name)]
        for name in ("used", "overridden")
    }
    counted = call.memory.record_outcome(given.query_id, given.outcome, **ids)
    text = f"Recorded: {given.outcome}, {len(counted['used'])} used, {len(counted['overridden'])} overridden."
    return Answer(text=text, data={"query_id": given.query_id, "outcome": given.outcome, **counted})


def _observe(call: Call, given: Observe) -> Answer:
    caller = call.caller
    saved = call.memory.save_observation(
        given.text,
        agent=caller.agent,
        context=given.domain,
        project=call.project(given.project),
        session_id=caller.session,
        tags=given.tags or None,
    )
    said = {
        "created": f"Saved: {saved.memory_id}",
        "consolidated": f"Already known, confirmed: {saved.memory_id}",
        "forgotten": "Not saved.",
    }
    return Answer(text=_noticed(said[saved.action], saved.notice), data=saved.model_dump(mode="json"))


def _episode(call: Call, given: SaveEpisode) -> Answer:
    caller = call.caller
    saved = call.memory.save_episode(
        given.task,
        given.reasoning,
        given.action,
        given.outcome,
        agent_name=caller.agent,
        project=call.project(given.project),
        session_id=caller.session,
        task_id=caller.task,
        tags=given.tags or None,
    )
    return Answer(text=_noticed(f"Saved: {saved.episode_id}", saved.notice), data=saved.model_dump(mode="json"))


def _invalidate(call: Call, given: Invalidate) -> Answer:
    memory = _writable(call, given.id)
    ended = call.memory.invalidate_memory(memory.id, reason=given.reason)
    text = f"No longer valid since {ended.invalid_at}: {_previewed(ended)}"
    return Answer(text=text, data={"id": ended.id, "invalid_at": ended.invalid_at, "reason": given.reason})


def _feedback(call: Call, given: Feedback) -> Answer:
    memory = _writable(call, given.id)
    found = call.memory.update_episode_with_feedback(memory.id, given.feedback, comment=given.comment)
    data = {"id": found.id, "outcome": found.outcome, "user_feedback": found.user_feedback}
    return Answer(text=f"Outcome is now {found.outcome}: {_previewed(found)}", data=data)


def _remember(call: Call, given: Remember) -> Answer:
    caller = call.caller
    kept = call.memory.commands.remember(
        given.text, given.tags or None, project_id=call.project(given.project), agent=caller.agent, fact=given.fact
    )
    return Answer(text=kept.message, data=kept.data or {})


def _forget(call: Call, given: Forget) -> Answer:
    memory = _writable(call, given.id)
    kept = call.memory.commands.forget(memory.id)
    return Answer(text=kept.message, data=kept.data or {})


def _writable(call: Call, beginning: str) -> StoredMemory:
    """Return a memory that the caller may both read and store."""
    memory = call.readable(beginning)
    if call.caller.is_project_fixed and memory.project_id is None:
        problem = f"a memory of no project cannot be changed by a caller for project {call.caller.project!r} alone"
        raise PermissionDeniedError(problem, agent=call.caller.agent)
    call.memory.check_may_write(call.caller.agent, memory.domain)
    return memory


def _previewed(memory: StoredMemory) -> str:
    from memgraph.retrieval.context.task_labels import labelled

    return labelled(preview(memory.content), memory.trust_class)


def _id(data: dict[str, Any]) -> list[str]:
    return [data["id"]] if "id" in data else []


def _noticed(text: str, notice: str | None) -> str:
    return f"{text}\n{notice}" if notice else text


OPERATIONS = (
    Operation(
        name="record_outcome",
        description=(
            "Call when a task for which you called recall has ended: says how it ended and which memories you used. "
            "Memories that help are kept and come first next time."
        ),
        arguments=Outcome,
        run=_outcome,
        effect="write",
        is_idempotent=True,
        toolset="core",
        traced=Traced("update_memory", lambda data: [*data["used"], *data["overridden"]]),
    ),
    Operation(
        name="save_observation",
        description=(
            "Save a lasting fact, rule or preference: what the user corrected, a decision with its reason, how this environment works. "
            "One statement a call. What is already known is confirmed instead. No secrets, no progress reports."
        ),
        arguments=Observe,
        run=_observe,
        effect="write",
        is_idempotent=True,
        toolset="core",
        traced=Traced("upsert_memory", lambda data: [data["memory_id"]] if data["memory_id"] else []),
    ),
    Operation(
        name="save_episode",
        description=(
            "Save what happened in a piece of work that taught something: the task, what was done and why, and its outcome. "
            "Failures with their cause are worth most."
        ),
        arguments=SaveEpisode,
        run=_episode,
        effect="write",
        is_one_commit=True,
        toolset="core",
        traced=Traced("create_memory", lambda data: [data["episode_id"]]),
    ),
    Operation(
        name="invalidate_memory",
        description=(
            "Mark a memory as no longer true, with the reason. It is kept in the history but no longer recalled. "
            "Use it when you find that a recalled memory is wrong or out of date."
        ),
        arguments=Invalidate,
        run=_invalidate,
        effect="write",
        is_one_commit=True,
        is_destructive=True,
        is_idempotent=True,
        toolset="core",
        traced=Traced("update_memory", _id),
    ),
    Operation(
        name="feedback",
        description="Record the user's feedback on an episode: love, like or meh, with a comment.",
        arguments=Feedback,
        run=_feedback,
        effect="write",
        is_one_commit=True,
        is_idempotent=True,
        traced=Traced("update_memory", _id),
    ),
    Operation(
        name="remember",
        description="Save a rule, preference or constraint that the user asked to remember: every session gets it. It does not fade.",
        arguments=Remember,
        run=_remember,
        effect="write",
        traced=Traced("upsert_memory", lambda data: data.get("ids", [])),
    ),
    Operation(
        name="forget",
        description="Suppress a memory: it is kept, but neither listed nor recalled. The user can undo it.",
        arguments=Forget,
        run=_forget,
        effect="write",
        is_one_commit=True,
        is_destructive=True,
        is_idempotent=True,
        traced=Traced("delete_memory", _id),
    ),
)
