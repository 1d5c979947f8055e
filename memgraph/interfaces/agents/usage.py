"""Which recalled memories an agent used, as far as its transcript shows it.

The recall's id stands in the transcript where the client gave it to the agent. A memory counts as used if, after that, the agent
writes the beginning of its id or several of its words in a row, in a message or in the input of a tool, which neither the user nor
a tool had written before. That misses paraphrases, and counts nothing that only happens to be similar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from memgraph.extraction.readers.transcripts import Turn, turns_of
from memgraph.interfaces.agents.sessions import Recalled
from memgraph.model.ids import MIN_ID_CHARS

RUN_WORDS = 5
"""Words in a row that a text and a memory rarely have in common by chance."""
_WORD = re.compile(r"\w+")

_Run = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """What became of a recall.

    Attributes
    ----------
    used : list of str
        Ids of the memories that the agent used: at least one.
    outcome : {"success", "failure", "pending"}
        For a recall after a failure, the result of the same command when it last ran again. Otherwise ``pending``: a transcript does
        not say whether a task succeeded.
    """

    query_id: str
    used: list[str]
    outcome: Literal["success", "failure", "pending"]


@dataclass
class _Watched:
    """A recall while the transcript is read."""

    recall: Recalled
    is_given: bool = False
    used: set[str] = field(default_factory=set)
    command: str = ""
    last_failed: bool | None = None


def uses_of(transcript: Path, recalls: Sequence[Recalled], texts: Mapping[str, str]) -> list[Use]:
    """Return the recalls of which a use can be seen.

    Parameters
    ----------
    transcript : Path
    recalls : sequence of Recalled
    texts : mapping of str to str
        The recalled memories' texts by id, without those that no longer exist.

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    watched = [_Watched(recall) for recall in recalls]
    runs = {memory_id: set(_runs(text)) for memory_id, text in texts.items()}
    wanted = set().union(*runs.values())
    known: set[_Run] = set()
    commands: dict[str, str] = {}
    for turn in turns_of(transcript):
        for one in watched:
            one.is_given = one.is_given or (not turn.by_agent and one.recall.query_id in turn.line)
        commands |= turn.calls
        for one in watched:
            _note_result(one, turn, commands)
        if turn.by_agent:
            said = set(_runs(turn.text)) & wanted - known
            for one in watched:
                if one.is_given:
                    one.used.update(
                        memory_id
                        for memory_id in one.recall.memory_ids
                        if memory_id in runs and (runs[memory_id] & said or memory_id[:MIN_ID_CHARS] in turn.text)
                    )
        else:
            known |= set(_runs(turn.text)) & wanted
    return [
        Use(
            one.recall.query_id,
            [memory_id for memory_id in one.recall.memory_ids if memory_id in one.used],
            _outcome(one),
        )
        for one in watched
        if one.used
    ]


def _note_result(one: _Watched, turn: Turn, commands: Mapping[str, Any]) -> None:
    """Note how the command that failed ended when it ran again after the recall."""
    if not one.recall.call_id:
        return
    one.command = one.command or commands.get(one.recall.call_id, "")
    for call_id, is_error in turn.results.items():
        if one.is_given and call_id != one.recall.call_id and one.command and commands.get(call_id) == one.command:
            one.last_failed = is_error


def _outcome(one: _Watched) -> Literal["success", "failure", "pending"]:
    if one.last_failed is None:
        return "pending"
    return "failure" if one.last_failed else "success"


def _runs(text: str) -> Iterator[_Run]:
    words = _WORD.findall(text.casefold())
    yield from (tuple(words[place : place + RUN_WORDS]) for place in range(len(words) - RUN_WORDS + 1))
