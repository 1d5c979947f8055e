"""pydantic-ai: a capability that recalls before a run and lets the agent save. Needs the extra ``pydantic-ai``.

What is recalled for a run's prompt stands in its instructions; the core operations (`memgraph.interfaces.operations`) are tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memgraph.errors import MemGraphError
from memgraph.facade import MemGraph
from memgraph.interfaces.operations import Caller, Operation, offered, perform
from memgraph.interfaces.refusals import message_of, needing
from memgraph.logs import logger_of
from memgraph.model.results.retrieval import MAX_TASK_CHARS

with needing("pydantic-ai-slim", extra="pydantic-ai"):
    from pydantic_ai import RunContext, Tool
    from pydantic_ai.agent import AgentRunResult
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.toolsets import FunctionToolset

logger = logger_of(__name__)

GUIDE = (
    "You have a long-term memory. Save with save_observation what the user corrects or decides and what will be true in later tasks, "
    "one statement a call; with save_episode a piece of work that taught something, failures with their cause first. When a task has ended "
    "for which memories were recalled, call record_outcome with their query_id."
)


@dataclass
class MemGraphMemory(AbstractCapability[Any]):
    """Long-term memory for a pydantic-ai agent: ``Agent(model, capabilities=[MemGraphMemory(memory)])``.

    If the memory fails, the run goes on without it, and the failure is logged.

    Attributes
    ----------
    memory : MemGraph
        Stays open as long as the agent is used.
    caller : Caller
        For whom memories are read and stored, and in which project and session.
    recalls : bool
        Whether each run begins with what is recalled for its prompt.
    guide : str
        What the instructions say about the tools.
    outcome_of : callable, optional
        Returns how a run ended, from its result: success, failure, partial or pending. If given, it is recorded as the outcome of the recall.
    also : callable, optional
        Returns up to five phrases for a run's prompt, in the words that past messages would have used; called in a thread.
    """

    memory: MemGraph
    caller: Caller = field(default_factory=Caller)
    recalls: bool = True
    guide: str = GUIDE
    outcome_of: Callable[[AgentRunResult[Any]], str] | None = None
    also: Callable[[str], Sequence[str]] | None = None
    recalled: Mapping[str, Any] | None = field(default=None, init=False, repr=False)
    """What was recalled for this run."""

    async def for_run(self, ctx: RunContext[Any]) -> MemGraphMemory:
        """Return the capability of one run, which has recalled what concerns its prompt."""
        own = replace(self)
        task = _text_of(ctx.prompt)
        if self.recalls and task.strip():
            try:
                also = await asyncio.to_thread(self.also, task) if self.also else []
                arguments = {"task": task[:MAX_TASK_CHARS], "also": also}
                found = await asyncio.to_thread(perform, self.memory, self.caller, "recall", arguments)
                own.recalled = found.data
            except MemGraphError as error:
                logger.warning("nothing was recalled: %s", error.loggable)
        return own

    def get_instructions(self) -> str:
        """Return what was recalled for the run, and how to use the tools."""
        parts = [self.guide]
        if self.recalled and (self.recalled["memories"] or self.recalled["rules"]):
            parts = [f"{self.recalled['formatted']}\nquery_id: {self.recalled['query_id']}", *parts]
        return "\n\n".join(parts)

    def get_toolset(self) -> FunctionToolset[Any]:
        """Return the core operations as tools."""
        return FunctionToolset([self._tool(operation) for operation in offered("core")])

    async def after_run(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        *,
        result: AgentRunResult[Any],
    ) -> AgentRunResult[Any]:
        """Record how the run ended, if `outcome_of` tells."""
        if self.outcome_of is not None and self.recalled is not None:
            arguments = {"query_id": self.recalled["query_id"], "outcome": self.outcome_of(result)}
            try:
                await asyncio.to_thread(perform, self.memory, self.caller, "record_outcome", arguments)
            except MemGraphError as error:
                logger.warning("the outcome was not recorded: %s", error.loggable)
        return result

    def _tool(self, operation: Operation[Any]) -> Tool[Any]:
        async def call(**arguments: Any) -> str:
            try:
                done = await asyncio.to_thread(
                    perform, self.memory, self.caller, operation.name, arguments, toolset="core"
                )
            except MemGraphError as error:
                raise ToolFailed(message_of(error)) from error
            return done.text

        schema = operation.arguments.model_json_schema(by_alias=False)
        return Tool.from_schema(call, operation.name, operation.description, schema)


def _text_of(prompt: str | Sequence[Any] | None) -> str:
    """Return the text of a prompt, without images and files."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    return "\n".join(part for part in prompt if isinstance(part, str))
