"""Tags with which a model marks in its answer what is to be remembered (seed 1): found, stored and removed, in linear time.

================================ ==============================================
``<memory>Title: fact</memory>`` a lasting fact
``<chat-memory>``                a fact that concerns this chat alone
``<working-memory>``             what the session is doing; the last one counts
``<chat-context>``               what the chat is about; the last one counts
================================ ==============================================

- Names are matched in any case. Attributes are ignored; a tag ends at its first ``>``. ``<memory/>`` is an empty element.
- A closing tag closes the last open element of its name. Elements that are still open within that one, or at the end of the text, are not closed:
  nothing is extracted from them. Their opening tags are removed and their text stays, so that no part of an answer is lost.
- Of elements in each other, each is extracted without the text of those in it.
- A closing tag without an open element is removed. Empty elements are removed, and nothing is extracted from them.
- Code is left as it is, and nothing is extracted from it: fenced blocks (also one that has no end) and code between backticks within a paragraph, as
  Markdown (CommonMark 0.31) has them. Code within an element is part of its text.

What a tag is depends on what follows it (a closing tag, the end of code), so only a whole answer can be parsed: there is no parser of streams.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple, TypeVar, cast

from memgraph.errors import InvalidInputError
from memgraph.index.columns import CHAT_SOURCE
from memgraph.lifecycle import save_observation
from memgraph.lifecycle.intake.observations import SOURCE
from memgraph.model.agent_input import Observation
from memgraph.model.base import Name, checked
from memgraph.model.results.learning import SavedObservation
from memgraph.model.results.tasks import Absorbed, ChatContext, LeftOut, WorkingMemory
from memgraph.privacy import Access
from memgraph.tasks.sessions import Working
from memgraph.text.cutting import split_text

TagName = Literal["memory", "chat-memory", "working-memory", "chat-context"]

_TAG = re.compile(r"<(/?)(memory|chat-memory|working-memory|chat-context)(?=[\s/>])([^<>]*)>", re.IGNORECASE | re.ASCII)
_FENCE = re.compile(r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_FENCE_END = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t\r]*$", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_PARAGRAPH_END = re.compile(r"\n[ \t\r]*\n")
_TITLE = re.compile(r"([^\n:]{1,100}):[ \t]+(?=\S)")
_LABEL = re.compile(r"(?:[-*] +|#+ +)?\**(task|context|pending|notes)\**\s*:\**[ \t]*", re.IGNORECASE | re.ASCII)
_BULLET = re.compile(r"[-*•][ \t]+")
_OUTSIDE = -1
_BLANKS = frozenset({" ", "\t"})
_BEFORE_WHICH_NO_BLANK = frozenset({" ", "\t", "\n", "\r", "", ".", ",", ";", "!", "?"})


class TaggedFact(NamedTuple):
    """A fact from a tag: its title, if it has one, and the fact."""

    title: str | None
    fact: str

    @property
    def text(self) -> str:
        """The title and the fact."""
        return f"{self.title}: {self.fact}" if self.title else self.fact


class WorkingFields(NamedTuple):
    """A working memory as fields."""

    task: str | None
    context: list[str]
    pending: list[str]
    notes: str | None


@dataclass(frozen=True, slots=True)
class Tagged:
    """What an answer says in tags, in the order of their beginnings."""

    text: str
    memories: list[TaggedFact] = field(default_factory=list)
    chat_memories: list[TaggedFact] = field(default_factory=list)
    working_memory: str | None = None
    chat_context: str | None = None


@dataclass(slots=True)
class _Element:
    name: TagName
    parent: int
    """The element around it; outside: -1."""
    is_closed: bool = False
    pieces: list[str] = field(default_factory=list)


def parse_tags(answer: str) -> Tagged:
    """Extract what an answer says in tags, and remove them. Pure; linear in the length of the answer."""
    elements, pieces = _elements(answer)
    if len(pieces) == 1 and not elements:
        return Tagged(pieces[0][1])
    owners: list[int] = []
    for number, one in enumerate(elements):  # what stands in an unclosed element belongs to the one around it
        around = _OUTSIDE if one.parent == _OUTSIDE else owners[one.parent]
        owners.append(number if one.is_closed else around)
    seen: list[str] = []
    for number, text in pieces:
        owner = _OUTSIDE if number == _OUTSIDE else owners[number]
        if owner == _OUTSIDE:
            seen.append(text)
        else:
            elements[owner].pieces.append(text)
    texts: dict[TagName, list[str]] = {"memory": [], "chat-memory": [], "working-memory": [], "chat-context": []}
    for one in elements:
        if one.is_closed and (text := _joined(one.pieces).strip()):
            texts[one.name].append(text)
    return Tagged(
        _joined(seen).rstrip(),
        [_fact(text) for text in texts["memory"]],
        [_fact(text) for text in texts["chat-memory"]],
        next(reversed(texts["working-memory"]), None),
        next(reversed(texts["chat-context"]), None),
    )


def working_fields(text: str) -> WorkingFields:
    """Return a working memory as fields: lines after ``Task:``, ``Context:``, ``Pending:`` or ``Notes:`` belong to that field, others to the notes."""
    fields: dict[str, list[str]] = {"task": [], "context": [], "pending": [], "notes": []}
    name = "notes"
    for line in map(str.strip, text.splitlines()):
        label = _LABEL.match(line)
        name, value = (label[1].lower(), line[label.end() :]) if label else (name, line)
        if value:
            fields[name].append(value if name == "notes" else _BULLET.sub("", value, count=1))
    return WorkingFields(
        " ".join(fields["task"]) or None, fields["context"], fields["pending"], "\n".join(fields["notes"]) or None
    )


def _elements(answer: str) -> tuple[list[_Element], list[tuple[int, str]]]:
    """Return the elements, and the pieces of text between tags with the element in which each stands."""
    elements: list[_Element] = []
    pieces: list[tuple[int, str]] = []
    open_: list[int] = []
    names = Counter[str]()
    end = 0
    for tag in _tags(answer):
        pieces.append((open_[-1] if open_ else _OUTSIDE, answer[end : tag.start()]))
        end, name = tag.end(), cast("TagName", tag[2].lower())
        if not tag[1]:
            if not tag[3].endswith("/"):
                open_.append(len(elements))
                names[name] += 1
            elements.append(_Element(name, pieces[-1][0]))
        elif names[name]:
            while True:
                number = open_.pop()
                names[elements[number].name] -= 1
                if elements[number].name == name:
                    break
            elements[number].is_closed = True
    pieces.append((open_[-1] if open_ else _OUTSIDE, answer[end:]))
    return elements, pieces


def _tags(answer: str) -> Iterator[re.Match[str]]:
    code = _code(answer)
    span = next(code, None)
    for tag in _TAG.finditer(answer):
        while span is not None and span[1] <= tag.start():
            span = next(code, None)
        if span is None or tag.end() <= span[0]:
            yield tag


def _code(answer: str) -> Iterator[tuple[int, int]]:
    """Yield where code begins and ends, in order."""
    end = 0
    for start, following in _fences(answer):
        yield from _code_spans(answer, end, start)
        yield start, following
        end = following
    yield from _code_spans(answer, end, len(answer))


def _fences(answer: str) -> Iterator[tuple[int, int]]:
    place = 0
    while opening := _FENCE.search(answer, place):
        mark = opening[1]
        place = opening.end()
        ends = (one for one in _FENCE_END.finditer(answer, place) if one[1][0] == mark[0] and len(one[1]) >= len(mark))
        closing = next(ends, None)
        place = len(answer) if closing is None else closing.end()
        yield opening.start(), place


def _code_spans(answer: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the code between runs of equally many backticks within one paragraph."""
    paragraph = start
    while paragraph < end:
        blank = _PARAGRAPH_END.search(answer, paragraph, end)
        following = end if blank is None else blank.end()
        runs = [(one.start(), one.end()) for one in _BACKTICKS.finditer(answer, paragraph, following)]
        later: dict[int, int] = {}
        closings = [-1] * len(runs)
        for number in range(len(runs) - 1, -1, -1):
            length = runs[number][1] - runs[number][0]
            closings[number] = later.get(length, -1)
            later[length] = number
        number = 0
        while number < len(runs):
            closing = closings[number]
            if closing < 0:
                number += 1
            else:
                yield runs[number][0], runs[closing][1]
                number = closing + 1
        paragraph = following


def _fact(text: str) -> TaggedFact:
    """Return a text as title and fact: the title is what stands before a colon and a space, in 100 characters at most."""
    title = _TITLE.match(text)
    return TaggedFact(title[1].strip(), text[title.end() :]) if title else TaggedFact(None, text)


def _joined(pieces: list[str]) -> str:
    """Join pieces between which something was removed, without the blank lines and double spaces that it would leave."""
    joined = pieces[:1]
    for following in pieces[1:]:
        piece, before = following, _end_of(joined)
        line, rest = before.rpartition("\n")[2], piece.lstrip(" \t")
        if not line.strip() and (not rest or rest.startswith(("\n", "\r\n"))):  # the line holds nothing else
            joined[-1] = joined[-1].rstrip(" \t")
            piece = rest.partition("\n")[2]
            if not before.strip() or before.rstrip(" \t").endswith(("\n\n", "\n\r\n")):
                piece = piece.lstrip("\r\n")
        elif not before or (line[-1:] in _BLANKS and piece[:1] in _BEFORE_WHICH_NO_BLANK):
            joined[-1] = joined[-1].rstrip(" \t")
            piece = piece if before else rest
        if piece:
            joined.append(piece)
    return "".join(joined)


def _end_of(pieces: list[str]) -> str:
    """Return the last characters of some joined pieces: enough to know the line in which they end, if it holds nothing."""
    return "".join(one[-200:] for one in pieces[-3:])[-200:]  # cut first: a piece may be the whole answer


MAX_FACTS = 50
"""Facts for the long term that are stored of one answer, and facts for its chat: further ones are left out."""
_SHOWN_CHARS = 200
T = TypeVar("T")


def absorb(working: Working, session_id: str, output: str, *, agent: str, project: str | None) -> Absorbed:
    """Store what a model says in the tags of an answer, and return the answer without them; see `memgraph.tasks.absorbing`. Repeatable.

    Each is a commit of its own, by the agent, who must be allowed to write. What is too long, forgotten or replaced by the user is left out, with the reason.
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
