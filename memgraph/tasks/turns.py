"""A turn: what a message means for the task that its session works on, and what to ask about it.

Texts of memories and tasks are shown as one line without invisible characters.
"""

from __future__ import annotations

import math
import re
import shlex
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from memgraph.errors import InvalidInputError
from memgraph.fold.tasks import HAS_ITEM, ITEM, PIN, SESSION, WRITABLE, is_pin, mismatches_after, session_key, task_key
from memgraph.index.analyser import analyse
from memgraph.logs import logger_of
from memgraph.model.base import Name, QueryText, Text, checked
from memgraph.model.events.payload import Actor, Payload
from memgraph.model.events.tasks import SessionTasksSet, TurnControlled, UserConfirmed
from memgraph.model.ids import new_id
from memgraph.model.memory import StoredMemory
from memgraph.model.results.tasks import (
    Decision,
    Language,
    Nudge,
    NudgeKind,
    NudgeOption,
    SessionTasks,
    Task,
    TaskMatch,
    TurnConfirmation,
    TurnControl,
    TurnCounters,
    TurnSettings,
)
from memgraph.ports import Row
from memgraph.privacy import Access
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope, of_or_none
from memgraph.store.access.visibility import visible
from memgraph.store.query import Mask
from memgraph.tasks.prohibitions import asks_for_forbidden
from memgraph.tasks.sessions import list_tasks, session_of, stack_with
from memgraph.text.cutting import cut
from memgraph.text.safe import visible_line

ASK_FROM = 0.35
"""Confidence from which it is worth asking which task is meant."""
_MOST_SHOWN = 5
_SHOWN_CHARS = 300
_SHORT = 8
MAX_READ_CHARS = 16_000
"""Of a longer message the beginning is read: that says what it is about, and what follows is pasted."""
LEAST_CONFIDENCE = 0.3
"""Below it no task is inferred."""
AMBIGUOUS_WITHIN = 0.15
"""Candidates whose confidence is nearer to the best one's than this match about equally well."""
_NAMED = 0.95
_NAMED_BY_A_WORD = 0.8
"""A name of one word may also be meant as that word."""
_TITLE_SHARE, _ITEMS_SHARE = 0.7, 0.7
_HALF_SURE_WORDS = 2.0
"""Words of the items that a message must have so that they say half of what they can."""
_TELLS_LITTLE = 0.25
_ANY_TASK = frozenset(
    analyse(
        "fix write add make update implement create remove improve test check use change build review get set run new task work "
        "continue finish start help look need want"
    )
)
"""What is done in any task: such a word alone tells little about which one is meant."""
_QUOTES = "`\"'“”‘’«»#"
_ID_CHAR = re.compile(r"[\w./-]")
MAX_MEMORIES = 64
"""Pinned memories that are compared with a message: those with the most of its words."""
_CHOOSES_NONE = "That chooses none of the options: name one by its number, or run its command."
WORDS: Mapping[Language, str] = {
    "de": "ja, jawohl, jep, genau, richtig, korrekt, stimmt, das stimmt, das ist richtig, einverstanden, bestätigt, ganz genau, ja bitte",
    "en": (
        "yes, yep, yeah, yup, correct, agreed, i agree, right, exactly, confirmed, i confirm, that's right, thats right, that is right, "
        "that's correct, thats correct, that is correct, you are right, you're right, absolutely, definitely, of course"
    ),
    "es": "sí, si, correcto, exacto, exactamente, de acuerdo, confirmado, así es, es correcto, claro, por supuesto",
    "fr": "oui, exact, exactement, correct, c'est exact, c'est ça, c'est correct, c'est juste, d'accord, je suis d'accord, confirmé, tout à fait",
    "it": "sì, si, esatto, esattamente, corretto, giusto, è giusto, è corretto, d'accordo, sono d'accordo, confermato, confermo",
    "ja": "はい, そうです, その通りです, そのとおりです, 正しいです, 同意します",
    "nl": "ja, jawel, klopt, dat klopt, correct, juist, dat is juist, precies, akkoord, mee eens, bevestigd",
    "pl": "tak, zgadza się, zgoda, dokładnie, racja, potwierdzam, poprawnie",
    "pt": "sim, correto, exato, exatamente, certo, está certo, de acordo, concordo, confirmado, isso mesmo",
    "ru": "да, верно, правильно, точно, согласен, согласна, подтверждаю, так и есть",
    "sv": "ja, japp, stämmer, det stämmer, rätt, korrekt, precis, exakt, håller med, bekräftat",
    "zh": "是, 是的, 对, 对的, 正确, 没错, 同意, 确认",
}
"""What confirms, by language. A word that may merely acknowledge, such as “ok”, is none of them."""
DENIALS: Mapping[Language, str] = {
    "de": "nein, nee, nö",
    "en": "no, nope, nah, no way",
    "es": "no",
    "fr": "non",
    "it": "no",
    "ja": "いいえ",
    "nl": "nee",
    "pl": "nie",
    "pt": "não",
    "ru": "нет",
    "sv": "nej",
    "zh": "不, 不是, 不对",
}
"""What denies, by language."""
_COURTESY = frozenset(
    "please, thanks, thank you, danke, bitte, gracias, por favor, merci, grazie, bedankt, obrigado, obrigada, tack".split(
        ", "
    )
)
MAX_CHARS = 60
_MAX_WORDS = 8
_ASKS = "?？؟"
_NO_WORD = re.compile(r"[^\w']+")
VERSION = 1
"""Of the turn-control record."""
MAX_TASKS_WITH_ITEMS = 20
"""Tasks, those touched last, whose goal and items are compared with a message; of others only the id and the title."""
_MAX_AMBIGUOUS = 20
_COMPARED = frozenset({"goal", "decision", "constraint", "open_question", "next_action", "artifact", "state"})
_MAX_ITEM_TEXTS = 200
_WHY: dict[Decision, str] = {
    "nothing_inferred": "",
    "same_task": "",
    "switched": "The session switched to it.",
    "autoswitch_off": "Autoswitch is off, so the task stays.",
    "low_confidence": "That is not sure enough to switch, so the task stays.",
    "ambiguous": "Others match about equally well, so the task stays.",
    "guarded": "The session went to and fro or matched other tasks too often, so the task stays; `session autoswitch on` starts anew.",
}
_log = logger_of(__name__)


@dataclass(frozen=True)
class _Session:
    """A session at the beginning of a turn, and what whoever asks may know of its tasks."""

    known: SessionTasks
    row: Row
    active: Task | None
    candidates: list[Task]

    @property
    def active_id(self) -> str | None:
        return self.active.id if self.active else None

    @property
    def asked(self) -> tuple[NudgeKind | None, list[str]]:
        return self.row.get("asked_kind"), self.row.get("asked_about", [])


@dataclass(frozen=True)
class Turns:
    """The turns of a store's sessions, for whoever has this access."""

    store: AgentMemoryStore
    access: Access

    def begin(
        self, session_id: str, message: str, *, asked: str | None, project: str | None, actor: Actor
    ) -> TurnControl:
        """Decide a turn, and record it; see `Tasks.begin_turn`."""
        name, text = checked(Name, session_id, "session_id"), checked(QueryText, message, "message")
        if not text.strip():
            raise InvalidInputError("must not be empty", field="message", value=text[:1])
        question = checked(Text | None, asked, "asked")
        beginning = text[:MAX_READ_CHARS]
        with self.store.exclusive():
            session = self._session(name, checked(Name | None, project, "project"))
            confirms = is_confirmation(text, self.store.config.turns)
            is_answer = confirms or (session.asked[0] is not None and is_denial(text, self.store.config.turns))
            inference = Inference(None) if is_answer else self._inferred(session, beginning)
            decision = self._decision(session, inference)
            inferred = inference.best.task_id if inference.best else None
            resolved = inferred if decision == "switched" else session.active_id
            questions = self._questions(session, resolved, project)
            if is_answer:
                kind, about = session.asked
                nudge = questions.again(kind, about, session.candidates) if kind and question is None else None
            else:
                nudge = self._nudge(session, inference, decision, beginning, questions)
            confirmations = self._confirmed(session, text, question, actor) if confirms and nudge is None else []
            event = TurnControlled(
                session_id=name,
                turn_id=new_id(),
                inferred_task=inferred,
                confidence=inference.confidence,
                ambiguous=[one.task_id for one in inference.ambiguous[:_MAX_AMBIGUOUS]],
                resolved_task=resolved,
                autoswitch=session.known.autoswitch,
                guidance=session.known.guidance,
                decision=decision,
                asked_kind=nudge.kind if nudge else None,
                asked_about=nudge.about if nudge else [],
            )
            self._record(session, event, actor)
            return self._control(session, inference, event, nudge, confirmations)

    def _session(self, name: str, project: str | None) -> _Session:
        row = self.store.reader.record(SESSION, session_key(name)) or {}
        known = session_of(name, row, self.store.now())
        visible_tasks: list[Task] = []
        if self.access.may("read", "public", None) and self.access.may("search", "public", None):
            of_project = (one for one in list_tasks(self.store) if project is None or one.project_id in (None, project))
            visible_tasks = [one for one in of_project if self.access.may_read_text(one.title)]
        active = next((one for one in visible_tasks if one.id == known.active), None)
        if known.active is not None and active is None:
            visible_tasks = []  # nobody decides about a task that they may not see
        return _Session(known, row, active, [one for one in visible_tasks if one.status in WRITABLE])

    def _inferred(self, session: _Session, message: str) -> Inference:
        message_terms = frozenset(analyse(message))
        texts = [
            TaskText(task.id, task.title, self._items(task, message_terms) if place < MAX_TASKS_WITH_ITEMS else ())
            for place, task in enumerate(session.candidates)
        ]
        return infer_task(message, texts, active=session.active_id) if texts else Inference(None)

    def _items(self, task: Task, message_terms: frozenset[str]) -> Sequence[str]:
        """Return the newest texts of a task, without those that an agent may not have: only such as share a word with the message could tell."""
        rows = [row for row in self.store.reader.held(HAS_ITEM, task_key(task.id), None) if row["kind"] in _COMPARED]
        rows.sort(key=lambda row: (-row["seq"], row["id"]))
        texts = [row["content"] for row in rows[:_MAX_ITEM_TEXTS]]
        if self.access.is_owner:
            return texts
        return [one for one in texts if message_terms.isdisjoint(terms_of(one)) or self.access.may_read_text(one)]

    def _decision(self, session: _Session, inference: Inference) -> Decision:
        """Return whether the session switches to the inferred task, and why."""
        limits, known = self.store.config.turns, session.known
        if inference.best is None:
            return "nothing_inferred"
        if inference.best.task_id == session.active_id:
            return "same_task"
        if inference.ambiguous:
            return "ambiguous"
        if not known.autoswitch:
            return "autoswitch_off"
        if inference.confidence < limits.switch_confidence:
            return "low_confidence"
        if known.switches_back >= limits.max_switches_back or known.mismatches >= limits.max_mismatches:
            return "guarded"
        return "switched"

    def _questions(self, session: _Session, resolved: str | None, project: str | None) -> Questions:
        if project is None:
            known = (*session.candidates, session.active)
            project = next((one.project_id for one in known if one and one.id == resolved), None)
        return Questions(self.store, self.access, session.known.session_id, resolved, project)

    def _nudge(
        self, session: _Session, inference: Inference, decision: Decision, message: str, questions: Questions
    ) -> Nudge | None:
        """Return the most important question: a conflict, then an ambiguity, then, if guidance is supportive, another topic."""
        name, active = session.known.session_id, session.active_id
        if (conflict := questions.conflict(message)) is not None:
            return conflict
        if inference.best is None or inference.confidence < ASK_FROM:
            return None
        if decision == "ambiguous":
            return ambiguity_nudge(name, [(one.task_id, one.title) for one in inference.ambiguous], active)
        if session.known.guidance == "supportive" and decision in ("autoswitch_off", "low_confidence", "guarded"):
            return topic_nudge(name, (inference.best.task_id, inference.best.title), active)
        return None

    def _confirmed(self, session: _Session, message: str, question: str | None, actor: Actor) -> list[TurnConfirmation]:
        """Commit that the user agreed, in the scope of the current task; nothing without a task that can change, or by an agent that may not write."""
        task = session.active
        if task is None or task.status not in WRITABLE or not self.access.may("write", "public", None):
            return []
        event = UserConfirmed(message=message.strip(), confirmed=question)
        committed = self.store.commit("task", [event], task_id=task.id, actor=actor)
        done = ((one.seq, one.payload) for one in committed if isinstance(one.payload, UserConfirmed))
        return [TurnConfirmation(task_id=task.id, seq=seq, **one.model_dump()) for seq, one in done]

    def _record(self, session: _Session, event: TurnControlled, actor: Actor) -> None:
        """Append the turn if it changes the session: a switch, the mismatches in a row, or what was asked."""
        events: list[Payload] = [event]
        if event.decision == "switched":
            stack = stack_with(session.known.stack, event.resolved_task or "")
            # the switch first: after it the inferred task is the current one, and what the turn asks is kept
            events.insert(0, SessionTasksSet(session_id=event.session_id, stack=stack))
        is_as_before = session.asked == (event.asked_kind, event.asked_about)
        counts_as_before = mismatches_after(session.row, event.inferred_task) == session.known.mismatches
        if event.decision == "switched" or not (is_as_before and counts_as_before):
            self.store.commit("system", events, actor=actor)

    def _control(
        self,
        session: _Session,
        inference: Inference,
        event: TurnControlled,
        nudge: Nudge | None,
        confirmations: list[TurnConfirmation],
    ) -> TurnControl:
        now, limits = self.store.now(), self.store.config.turns
        row = self.store.reader.record(SESSION, session_key(event.session_id)) or {}
        after = session_of(event.session_id, row, now)
        _log.info("turn %s: %s, confidence %.2f", event.turn_id, event.decision, event.confidence)
        return TurnControl(
            **event.model_dump(exclude={"ambiguous", "asked_kind", "asked_about"}),
            version=VERSION,
            seq=self.store.reader.index.offset.seq,
            at=now,
            ambiguous=list(inference.ambiguous[:_MAX_AMBIGUOUS]),
            active_task=session.active_id,
            nudge=nudge,
            counters=TurnCounters(
                switches_back=after.switches_back,
                max_switches_back=limits.max_switches_back,
                mismatches=after.mismatches,
                max_mismatches=limits.max_mismatches,
            ),
            confirmations=confirmations,
        )


def is_confirmation(message: str, settings: TurnSettings) -> bool:
    """Return whether a message as a whole confirms: “Yes, that's right!” does; “yes, but …”, “right?” and a longer text do not."""
    words = tuple(WORDS[one] for one in settings.confirmation_languages)
    return _is_one_of(message, _phrases(words, tuple(settings.confirmations)))


def is_denial(message: str, settings: TurnSettings) -> bool:
    """Return whether a message as a whole says no: “No, thanks.” does; “no, use the other one” does not."""
    return _is_one_of(message, _phrases(tuple(DENIALS[one] for one in settings.confirmation_languages)))


def _is_one_of(message: str, phrases: frozenset[str]) -> bool:
    """Return whether a message consists of some of these phrases and of courtesy."""
    text = message.strip()
    if not text or len(text) > MAX_CHARS or any(sign in text for sign in _ASKS):
        return False
    words = tuple(_normal(text).split())
    if not 0 < len(words) <= _MAX_WORDS:
        return False
    reached = {0: {False}}  # the number of words read: whether a phrase was among them
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            phrase = " ".join(words[start:end])
            for has_phrase in reached.get(start, ()):
                if phrase in phrases:
                    reached.setdefault(end, set()).add(True)
                elif phrase in _COURTESY:
                    reached.setdefault(end, set()).add(has_phrase)
    return True in reached.get(len(words), ())


@lru_cache(maxsize=32)
def _phrases(listed: tuple[str, ...], further: tuple[str, ...] = ()) -> frozenset[str]:
    phrases = (phrase for words in listed for phrase in words.split(", "))
    return frozenset(filter(None, map(_normal, (*phrases, *further))))


def _normal(text: str) -> str:
    """Return a text in lower case, with plain apostrophes, and words alone."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join(_NO_WORD.sub(" ", plain).split())


@dataclass(frozen=True)
class Questions:
    """The questions of a turn, as far as whoever asks may see what they are about."""

    store: AgentMemoryStore
    access: Access
    session_id: str
    task_id: str | None
    project: str | None

    def conflict(self, message: str) -> Nudge | None:
        """Return the question that a message raises which asks for what a constraint of the task or a pinned memory forbids."""
        if self.task_id is not None:
            for row in self.store.reader.held(HAS_ITEM, task_key(self.task_id), None):
                if self._is_constraint(row) and asks_for_forbidden(message, row["content"]):
                    return conflict_nudge("constraint", row["id"], row["content"], self.task_id)
        for memory in self._pinned(message):
            if asks_for_forbidden(message, memory.content):
                return self._about(memory)
        return None

    def again(self, kind: NudgeKind, about: Sequence[str], candidates: Sequence[Task]) -> Nudge | None:
        """Return a question once more, because the answer chose none of its options; None if there is nothing to choose any more."""
        nudge = self._rule(about) if kind == "conflict" else self._tasks(kind, about, candidates)
        if nudge is None:
            return None
        return nudge.model_copy(update={"question": f"{_CHOOSES_NONE} {nudge.question}"})

    def _rule(self, about: Sequence[str]) -> Nudge | None:
        if len(about) != 1:
            return None
        row = self.store.reader.record(ITEM, about[0])
        if row is not None and row["task_id"] == self.task_id and "closed_seq" not in row and self._is_constraint(row):
            return conflict_nudge("constraint", row["id"], row["content"], self.task_id)
        with self.store.reader.frozen():
            index, mask = self.store.reader.index, self._mask(about)
            memories = self.store.reader.read([index.ids.names[slot] for slot in np.flatnonzero(mask).tolist()])
        return self._about(memories[0]) if memories else None

    def _tasks(self, kind: NudgeKind, about: Sequence[str], candidates: Sequence[Task]) -> Nudge | None:
        known = {one.id: one.title for one in candidates}
        named = [(one, known[one]) for one in about if one in known]
        if not named or len(named) < len(about):
            return None
        if kind == "ambiguity":
            return ambiguity_nudge(self.session_id, named, self.task_id)
        return topic_nudge(self.session_id, named[0], self.task_id)

    def _is_constraint(self, row: Row) -> bool:
        """Return whether an item is a constraint that whoever asks may have."""
        return row["kind"] == "constraint" and self.access.may_read_text(row["content"])

    def _about(self, memory: StoredMemory) -> Nudge:
        self.store.auditing.record_disclosure(self.access, "read", [memory])
        is_a_pin = is_pin(self.store.reader.record(PIN, memory.id))
        return conflict_nudge("pin" if is_a_pin else "memory", memory.id, memory.content)

    def _pinned(self, message: str) -> list[StoredMemory]:
        """Return the pinned memories with the most words of a message that whoever asks may have."""
        reader = self.store.reader
        with reader.frozen():
            index, mask = reader.index, self._mask()
            if not mask.any():
                return []
            shared = np.zeros(len(index), dtype=np.int32)
            for term in set(analyse(message)):
                code = index.vocabulary.find(term)
                if code >= 0:
                    shared[index.postings.get(code)[0]] += 1
            slots = np.flatnonzero(mask & (shared > 0))
            best = slots[np.argsort(-shared[slots], kind="stable")][:MAX_MEMORIES]
            return reader.read([index.ids.names[slot] for slot in best.tolist()])

    def _mask(self, among: Sequence[str] | None = None) -> Mask:
        """Return which slots hold pinned memories that whoever asks may have, of all or of some. Call it in a frozen block."""
        reader = self.store.reader
        scope = Scope(self.access, project_id=self.project, asking_session=self.session_id, task_id=self.task_id)
        mask = visible(reader, self.access, "read", "search", scope=replace(scope, among=among))
        mask &= reader.index.column("is_pinned") & ~reader.superseded()
        return mask & of_or_none(reader.index, "project", self.project)


class TaskText(NamedTuple):
    """What is known of a task: its id, its title, and the texts of its goal and items."""

    task_id: str
    title: str
    items: Sequence[str] = ()


class Inference(NamedTuple):
    """The task that a message seems to belong to."""

    best: TaskMatch | None
    ambiguous: tuple[TaskMatch, ...] = ()

    @property
    def confidence(self) -> float:
        """Confidence in the best candidate; 0 without one."""
        return self.best.confidence if self.best else 0.0


def infer_task(message: str, tasks: Sequence[TaskText], *, active: str | None = None) -> Inference:
    """Return the task that a message seems to belong to: one that it names, else by the share of title, goal and items that its words make up.

    A word that many of the tasks have speaks for none. Deterministic; linear in the message and in the texts of the tasks.
    """
    beginning = message[:MAX_READ_CHARS]
    terms = analyse(beginning)
    weights = _weights(tasks)
    message_terms, line, lowered = frozenset(terms), _line(terms), beginning.casefold()
    matches = []
    for task in tasks:
        confidence = max(_by_name(task, lowered, line), _by_words(task, message_terms, weights))
        if confidence >= LEAST_CONFIDENCE:
            matches.append(TaskMatch(task_id=task.task_id, title=task.title, confidence=round(confidence, 2)))
    matches.sort(key=lambda one: (-one.confidence, one.task_id != active, one.task_id))
    if not matches:
        return Inference(None)
    near = tuple(one for one in matches if round(matches[0].confidence - one.confidence, 2) < AMBIGUOUS_WITHIN)
    return Inference(matches[0], near if len(near) > 1 else ())


def _weights(tasks: Sequence[TaskText]) -> Mapping[str, float]:
    """Return how much each term tells about which task is meant, from 0 to 1: its inverse document frequency among the tasks."""
    having = Counter(term for task in tasks for term in _terms([task.title, *task.items]))
    highest = _idf(1, len(tasks))
    return {
        term: (_TELLS_LITTLE if term in _ANY_TASK else 1.0) * _idf(count, len(tasks)) / highest
        for term, count in having.items()
    }


def _idf(having: int, total: int) -> float:
    return math.log1p(total / having)


def _by_words(task: TaskText, message_terms: frozenset[str], weights: Mapping[str, float]) -> float:
    title = _terms([task.title])
    whole = math.fsum(weights[term] for term in title)
    of_title = math.fsum(weights[term] for term in title & message_terms) / whole if whole else 0.0
    of_items = math.fsum(weights[term] for term in (_terms(task.items) - title) & message_terms)
    return 1.0 - (1.0 - _TITLE_SHARE * of_title) * (1.0 - _ITEMS_SHARE * of_items / (of_items + _HALF_SURE_WORDS))


def _by_name(task: TaskText, lowered: str, line: str) -> float:
    """Return how sure it is that the message names the task: quoted, after the word “task”, or by several words, more so than by one."""
    title = analyse(task.title)
    if len(title) > 1 and _line(title) in line:
        return _NAMED
    if (found := _by_id(task.task_id.casefold(), lowered)) == _NAMED:
        return found
    return max(found, _NAMED_BY_A_WORD if title and set(title) - _ANY_TASK and _line(title) in line else 0.0)


def _by_id(name: str, lowered: str) -> float:
    is_word = name.isalpha()
    tells = bool(set(analyse(name)) - _ANY_TASK) and (not name.isdecimal())
    best, at = 0.0, lowered.find(name)
    while at >= 0:
        before, after = lowered[max(0, at - 6) : at], lowered[at + len(name) : at + len(name) + 2]
        if not _goes_on(before[-1:], after):
            if (before[-1:] in _QUOTES and before) or before.rstrip().endswith("task") or (tells and not is_word):
                return _NAMED
            best = _NAMED_BY_A_WORD if tells else best
        at = lowered.find(name, at + len(name))
    return best


def _goes_on(before: str, after: str) -> bool:
    """Return whether what was found is a part of a longer name; a full stop at the end of a sentence is none."""
    if before and _ID_CHAR.match(before):
        return True
    return bool(after) and _ID_CHAR.match(after) is not None and (after[0] not in "./-" or after[1:].isalnum())


@lru_cache(maxsize=1 << 13)
def terms_of(text: str) -> frozenset[str]:
    """Return the terms of a title or an item: the same ones are compared with each message."""
    return frozenset(analyse(text))


def _terms(texts: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(terms_of, texts))


def _line(terms: Sequence[str]) -> str:
    """Return terms as one text in which a sequence of them can be found."""
    return f" {' '.join(terms)} "


def conflict_nudge(
    kind: Literal["pin", "constraint", "memory"], rule_id: str, text: str, task_id: str | None = None
) -> Nudge:
    """Ask what holds: the message, or the text that forbids what it asks for."""
    short = rule_id[:_SHORT]
    task = f" --task {shlex.quote(task_id)}" if task_id else ""
    changes: dict[str, list[tuple[str, str | None]]] = {
        "pin": [
            ("Change the pin", f"memgraph pins edit {short} --text TEXT"),
            ("Remove the pin", f"memgraph pins remove {short}"),
        ],
        "constraint": [("Lift the constraint", f"memgraph task done {short}{task}")],
        "memory": [("Forget it", f"memgraph forget {rule_id}")],
    }
    what = {"pin": "a pin", "constraint": "a constraint of the task", "memory": "a memory"}[kind]
    question = f"The message asks for what {what} rules out: “{_shown(text)}”. Which holds?"
    return _nudge("conflict", question, [("Keep it, and change the request", None), *changes[kind]], [rule_id])


def ambiguity_nudge(session_id: str, tasks: Sequence[tuple[str, str]], active: str | None) -> Nudge:
    """Ask which of several tasks, given by their ids and titles, a message belongs to."""
    shown = tasks[:_MOST_SHOWN]
    options: list[tuple[str, str | None]] = [
        _stay(task_id) if task_id == active else (f"Switch to {_named(task_id, title)}", _switch(session_id, task_id))
        for task_id, title in shown
    ]
    if active not in [task_id for task_id, _ in shown]:
        options.append(_stay(active) if active else ("None of these", None))
    question = f"The message matches {len(tasks)} tasks about equally well. Which one is it about?"
    return _nudge("ambiguity", question, options, [task_id for task_id, _ in shown])


def topic_nudge(session_id: str, task: tuple[str, str], active: str | None) -> Nudge:
    """Ask whether to work on another task, given by its id and title."""
    task_id, named = task[0], _named(*task)
    options: list[tuple[str, str | None]] = [(f"Switch to {named}", _switch(session_id, task_id))]
    if active is None:
        options.append(("Work on no task", None))
        question = f"The message seems to belong to {named}. Which task is it about?"
    else:
        interrupts = f"Interrupt {_shown(active)} for it", _switch(session_id, task_id, " --push")
        options += [interrupts, _stay(active)]
        question = (
            f"The message seems to belong to {named}, and the session works on {_shown(active)}. Which one is it about?"
        )
    return _nudge("topic_switch", question, options, [task_id])


def _nudge(
    kind: Literal["conflict", "ambiguity", "topic_switch"],
    question: str,
    options: Sequence[tuple[str, str | None]],
    about: list[str],
) -> Nudge:
    numbered = [
        NudgeOption(key=str(number), label=label, command=command)
        for number, (label, command) in enumerate(options, start=1)
    ]
    return Nudge(kind=kind, question=question, options=numbered, about=about)


def _stay(active: str) -> tuple[str, None]:
    return f"Stay with {_shown(active)}", None


def _switch(session_id: str, task_id: str, how: str = "") -> str:
    return f"memgraph task switch {shlex.quote(task_id)}{how} --session {shlex.quote(session_id)}"


def _named(task_id: str, title: str) -> str:
    return f"{_shown(task_id)} (“{_shown(title)}”)"


def _shown(text: str) -> str:
    return cut(visible_line(text), _SHOWN_CHARS)


def turn_lines(turn: TurnControl) -> list[str]:
    """Return what a turn decided, confirmed and asks, as lines of visible characters."""
    lines = [f"Task: {visible_line(turn.resolved_task)}" if turn.resolved_task else "No task."]
    if why := _WHY[turn.decision]:
        inferred = visible_line(turn.inferred_task or "")
        lines.append(f"The message seems to belong to {inferred} ({round(100 * turn.confidence)} %). {why}")
    for one in turn.confirmations:
        what = f" ({visible_line(one.confirmed)})" if one.confirmed else ""
        lines.append(f"Confirmed in {visible_line(one.task_id)}: {visible_line(one.message)}{what}")
    if turn.nudge:
        lines.append(f"? {visible_line(turn.nudge.question)}")
        for option in turn.nudge.options:
            command = f"  `{visible_line(option.command)}`" if option.command else ""
            lines.append(f"  {option.key}  {visible_line(option.label)}{command}")
    return lines
