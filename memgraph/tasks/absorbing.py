"""Writing of what a model says in tags: facts to memory, and what a session is doing to its working memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TypeVar

from memgraph.errors import InvalidInputError
from memgraph.index.columns import CHAT_SOURCE
from memgraph.lifecycle import save_observation
from memgraph.lifecycle.intake.observations import SOURCE
from memgraph.model.agent_input import Observation
from memgraph.model.base import Name, checked
from memgraph.model.results.learning import SavedObservation
from memgraph.model.results.tasks import Absorbed, ChatContext, LeftOut, WorkingMemory
from memgraph.privacy.access import Access
from memgraph.tasks.tags import TaggedFact, TagName, parse_tags, working_fields
from memgraph.tasks.working import Working
from memgraph.text.cutting import split_text

MAX_FACTS = 50
"""Facts for the long term that are stored of one answer, and facts for its chat: further ones are left out."""
_SHOWN_CHARS = 200
T = TypeVar("T")


def absorb(working: Working, session_id: str, output: str, *, agent: str, project: str | None) -> Absorbed:
    """Store what a model says in the tags of an answer, and return the answer without them; see `memgraph.tasks.tags`.

    Facts are stored as observations of the agent (`memgraph.lifecycle.save_observation`), those for the chat are told in the session alone. The
    working memory is replaced, and the last statement of what the chat is about holds. Each is a commit of its own, in one write
    scope; repeating an answer stores nothing twice, so a call that was interrupted can be repeated. What is too long, was forgotten
    or is replaced by the user is left out, with the reason.

    Parameters
    ----------
    output : str
        The whole answer, of any length.
    agent : str
        Whose answer it is: its permissions must include writing.
    project : str or None
        Of the facts. `Tasks.absorb`: by default that of the task that the session works on.

    Raises
    ------
    InvalidInputError
        The session's name or the project is invalid. Nothing is stored.
    PermissionDeniedError
        The agent may not store memories. It is recorded; nothing is stored.
    """
    session, store = checked(Name, session_id, "session_id"), working.store
    project, tagged = checked(Name | None, project, "project"), parse_tags(checked(str, output, "output"))
    access = store.access_of(agent)
    store.auditing.check_asked(access, "write", domain="general")
    intake = _Intake(working, session, project, access)
    return Absorbed(
        session_id=session,
        text=tagged.text,
        memories=intake.facts("memory", tagged.memories, SOURCE),
        chat_memories=intake.facts("chat-memory", tagged.chat_memories, CHAT_SOURCE),
        working_memory=intake.working_memory(tagged.working_memory),
        chat_context=intake.chat_context(tagged.chat_context),
        left_out=intake.left_out,
    )


@dataclass(frozen=True)
class _Intake:
    """The intake of one answer. What cannot be stored is left out, with the reason, and the rest is stored."""

    working: Working
    session: str
    project: str | None
    access: Access
    left_out: list[LeftOut] = field(default_factory=list)

    def facts(self, tag: TagName, found: Sequence[TaggedFact], source: str) -> list[SavedObservation]:
        """Store facts, each once, or merge them with those that are known."""
        texts = list(dict.fromkeys(one.text for one in found))
        if len(texts) > MAX_FACTS:
            reason = f"and {len(texts) - MAX_FACTS - 1} more: {MAX_FACTS} are stored of one answer"
            self._leave_out(tag, texts[MAX_FACTS], reason)
        saved = []
        for text in texts[:MAX_FACTS]:
            one = self._kept(tag, text, partial(self._saved, text, source))
            if one is not None and one.memory_id is not None:
                saved.append(one)
            elif one is not None:
                self._leave_out(tag, text, one.notice or one.action)
        return saved

    def working_memory(self, text: str | None) -> WorkingMemory | None:
        """Replace the working memory of the session."""
        if text is None:
            return None
        task, context, pending, notes = working_fields(self.working.store.without_secrets(text))  # before it is split

        def replace() -> WorkingMemory:
            parts = {"context": [*chain(*map(split_text, context))], "pending": [*chain(*map(split_text, pending))]}
            return self.working.replace(self.session, task=task, notes=notes, actor="agent", **parts)

        return self._kept("working-memory", text, replace)

    def chat_context(self, text: str | None) -> ChatContext | None:
        """State what the chat is about, unless that was stated already."""
        if text is None:
            return None
        known = self.working.context(self.session)
        if known is not None and known.context == self.working.store.without_secrets(text):
            return known
        return self._kept("chat-context", text, lambda: self.working.set_context(self.session, text, actor="agent"))

    def _saved(self, text: str, source: str) -> SavedObservation:
        given = {"content": text, "project": self.project, "session_id": self.session, "trust_class": "agent"}
        return save_observation(self.working.store, Observation.parse(given), self.access, source=source)

    def _kept(self, tag: TagName, text: str, keep: Callable[[], T]) -> T | None:
        try:
            return keep()
        except InvalidInputError as error:
            self._leave_out(tag, text, error.problem)
            return None

    def _leave_out(self, tag: TagName, text: str, reason: str) -> None:
        self.left_out.append(LeftOut(tag=tag, content=text[:_SHOWN_CHARS], reason=reason))
