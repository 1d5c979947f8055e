"""Events of coding agents in one form: each client's hooks are translated into these, and their answers back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

EventKind = Literal["session started", "prompt submitted", "tool failed", "turn ended", "session ended"]


@dataclass(frozen=True, slots=True)
class HookEvent:
    """Something that happened in a session.

    Attributes
    ----------
    session_id, cwd, transcript : str
        The session, its working directory, and the file of its transcript; "" if the client does not say.
    text : str
        The prompt, or what failed and how. "" at other events.
    call_id : str
        The failed use of a tool.
    has_lost_context : bool
        The session's earlier context is gone, so what was recalled in it may be recalled again.
    is_answer : bool
        The turn was itself a reaction to a hook.
    """

    kind: EventKind
    session_id: str
    cwd: str
    transcript: str = ""
    text: str = ""
    call_id: str = ""
    has_lost_context: bool = False
    is_answer: bool = False


class HookClient(Protocol):
    """How a client's hooks are read and answered.

    Attributes
    ----------
    name : str
        As in ``memgraph connect NAME``.
    """

    @property
    def name(self) -> str:
        """Name of the client."""
        ...

    def fits(self, text: str) -> bool:
        """Return whether an answer is not too long for the client."""
        ...

    def event_of(self, payload: Mapping[str, Any]) -> HookEvent | None:
        """Return what a payload reports; None if there is nothing to do.

        Raises
        ------
        InvalidInputError
            A required field is missing or has another type.
        """
        ...

    def answer(self, payload: Mapping[str, Any], text: str) -> str:
        """Return what the hook prints to give the agent a text."""
        ...
