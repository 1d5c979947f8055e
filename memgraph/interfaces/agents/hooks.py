"""Answers to the hooks of coding agents. Whatever fails here, the agent goes on without an answer."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from memgraph.errors import MemGraphError
from memgraph.extraction.readers.source import project_of_directory
from memgraph.facade import MemGraph
from memgraph.interfaces.agents.clients.catalogue import AGENTS, shape_of
from memgraph.interfaces.agents.connecting.receipt import read_receipt
from memgraph.interfaces.agents.events import EventKind, HookClient, HookEvent
from memgraph.interfaces.agents.jobs import Job, Learn, add_job, start_learning, waiting_jobs
from memgraph.interfaces.agents.overview import overview_of
from memgraph.interfaces.agents.sessions import SessionLog
from memgraph.interfaces.operations import Caller
from memgraph.interfaces.operations.operation import Call
from memgraph.interfaces.operations.tracing import memory_span
from memgraph.lifecycle.orders import MAX_ASKED
from memgraph.logs import logger_of
from memgraph.model.results.retrieval import SESSION_SECTIONS, PromptSection, RetrievalResult

logger = logger_of(__name__)

LEARN_EVERY_S = 60.0
"""A session that goes on is read at most so often."""
_ASKED = "asked for answers"


def answer_hook(
    memory: MemGraph,
    client: str,
    event: Mapping[str, Any],
    *,
    learn: Learn = start_learning,
    is_printed: bool = True,
) -> str:
    """Return what a client's hook prints; "" for nothing. Raises nothing: no prompt waits for, or fails with, the memory.

    Parameters
    ----------
    client : str
        Name of the agent program, as in ``memgraph connect``. It is also the agent for which the hook acts: the owner may give it permissions
        in the settings (``[agents.claude-code]``); without, it has what is public.
    event : mapping
        What the client gave its hook.
    learn : callable
        Called with (memory, client, delay in seconds) when transcripts are to be read; returns at once.
    is_printed : bool
        Whether the agent gets the answer. Else the event, the start of a session, is only noted.
    """
    try:
        return _answer(memory, shape_of(client), event, learn, is_printed=is_printed)
    except Exception as error:  # noqa: BLE001 (the edge of an interface)
        reason = error.loggable if isinstance(error, MemGraphError) else type(error).__name__
        logger.warning("a hook of %s was not answered: %s", client if client in AGENTS else "?", reason)
        return ""


class _Hook:
    """One call of a hook."""

    def __init__(
        self, memory: MemGraph, client: HookClient, event: HookEvent, learn: Learn, *, is_printed: bool
    ) -> None:
        self.memory = memory
        self.client = client
        self.event = event
        self.learn = learn
        self.is_printed = is_printed
        self.home = memory.store.config.home
        self.log = SessionLog(self.home, client.name, event.session_id)

    @property
    def project(self) -> str | None:
        """The project that the session asks for: that of its first directory."""
        began = self.log.last("began")
        if began is not None:
            return began.get("project") or None
        project = project_of_directory(self.event.cwd)
        self.log.add("began", project=project)
        return project or None


def _answer(memory: MemGraph, client: HookClient, payload: Mapping[str, Any], learn: Learn, *, is_printed: bool) -> str:
    event = client.event_of(payload)
    if event is None:
        return ""
    text = _ANSWERS[event.kind](_Hook(memory, client, event, learn, is_printed=is_printed))
    return client.answer(payload, text) if text else ""


def _started(hook: _Hook) -> str:
    if hook.event.has_lost_context:
        hook.log.add("lost context")
    if waiting_jobs(hook.home, hook.client.name):  # of a session that was cut off, with the machine perhaps
        hook.learn(hook.memory, hook.client.name, LEARN_EVERY_S)
    project = hook.project
    if not hook.is_printed:
        return ""
    overview = overview_of(hook.memory, project, agent=hook.client.name, fits=hook.client.fits)
    if overview.memory_ids:
        hook.log.add("overview", memory_ids=overview.memory_ids)
    return overview.text


def _recalled(hook: _Hook) -> str:
    """Return what is known for a prompt or a failure, and of the session what has changed, except what the session was given already."""
    event = hook.event
    project = hook.project
    if not event.text:
        return ""
    with memory_span(hook.memory, "search_memory", query=event.text) as describe:
        found = hook.memory.recall(
            event.text, agent=hook.client.name, project=project, session_id=event.session_id, rules="none"
        )
        describe([one.id for one in found.memories if one.id not in found.task_items])
    known = hook.log.shown()
    new = found.model_copy(update={"memories": [one for one in found.memories if one.id not in known]})
    sections, state = _changed_sections(hook, project, known | {one.id for one in new.memories})
    of_session = "\n\n".join(one.text for one in sections)
    text, ids = _fitting(hook, new, known, of_session)
    if ids:
        hook.log.add("recalled", query_id=found.query_id, memory_ids=ids, call_id=event.call_id)
    if of_session and of_session in text:
        hook.log.add("session", state=state, memory_ids=[one for section in sections for one in section.memory_ids])
    return text


def _changed_sections(hook: _Hook, project: str | None, known: set[str]) -> tuple[list[PromptSection], str]:
    """Return the session's sections that are not in its context, and a hash of what its chat is about and what it is doing.

    The headings are not in the hash: they tell the age, which changes all the time.
    """
    prompt = hook.memory.tasks.prompt(
        session=hook.event.session_id,
        agent=hook.client.name,
        project=project,
        sections=SESSION_SECTIONS,
        known=known,
        with_ids=True,
    )
    said = "\x1f".join(one.body for one in prompt.sections if one.name != "chat_memory")
    state = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:32]
    is_known = hook.log.has_section(state)
    return [one for one in prompt.sections if one.name == "chat_memory" or not is_known], state


def _fitting(hook: _Hook, found: RetrievalResult, known: set[str], of_session: str) -> tuple[str, list[str]]:
    """Return the matching standing rules and the notes of a recall with its id, then the session's sections, within the client's limit; and the ids of the memories.

    The last memories leave first.
    """
    for number in range(len(found.memories), -1, -1):
        prompt = hook.memory.tasks.prompt(
            session=hook.event.session_id,
            agent=hook.client.name,
            project=hook.project,
            recalled=found.model_copy(update={"memories": found.memories[:number]}),
            sections=["constraints", "long_term"],
            known=known,
            with_ids=True,
        )
        if not prompt.text:
            break
        parts = [prompt.text, of_session, f"query_id: {found.query_id}"]
        if hook.client.fits(text := "\n\n".join(filter(None, parts))):
            return text, prompt.memory_ids
    return (of_session, []) if hook.client.fits(of_session) else ("", [])


def _ended(hook: _Hook, *, is_last: bool) -> str:
    """Have the transcript read: at once when the session ends, else at most every `LEARN_EVERY_S`.

    The process that reads it is started now and waits. So the end of a session need not be seen: some clients give its hook a second.
    """
    event, log = hook.event, hook.log
    if event.transcript:
        add_job(hook.home, hook.client.name, Job(event.session_id, event.transcript))
        now, planned = time.time(), (log.last("read") or {"at": 0.0})["at"]
        if is_last or planned <= now:
            due = now if is_last else max(now, planned + LEARN_EVERY_S)
            log.add("read", at=due)
            hook.learn(hook.memory, hook.client.name, due - now)
    return "" if is_last or event.is_answer else _orders_request(hook)


def _orders_request(hook: _Hook) -> str:
    """Return the request to answer the work orders that the session caused, once in a session; "" without orders or without the user's consent."""
    session = hook.event.session_id
    receipt = read_receipt(hook.memory.store.config.keys_home, hook.client.name)
    if receipt is None or not receipt.options.answer_orders or Path(receipt.options.home) != hook.home:
        return ""
    if hook.log.last(_ASKED) is not None:
        return ""
    call = Call(hook.memory, Caller(agent=hook.client.name, session=session))
    caused = [one for one in hook.memory.distillation.list() if session in (one.build_id or "")]
    orders = [one.id for one in caused if call.may_read(one.subject_ids)][:MAX_ASKED]
    if not orders:
        return ""
    hook.log.add(_ASKED, orders=orders)
    return (
        "The memory has questions about this session that only its agent can answer. The user has asked for this. In one step, call "
        "next_work_order with each order_id; in the next, answer_work_order for each with what its excerpt supports; skip it if there is "
        f"nothing to say. Then end your turn without further comment. Orders: {', '.join(orders)}"
    )


_ANSWERS: dict[EventKind, Callable[[_Hook], str]] = {
    "session started": _started,
    "prompt submitted": _recalled,
    "tool failed": _recalled,
    "turn ended": partial(_ended, is_last=False),
    "session ended": partial(_ended, is_last=True),
}
