"""The in-memory projection that retrieval filters, scores and traverses, with one slot per memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import ne
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.index.analyser import analyse
from memgraph.index.arrays import MAX_WEIGHT, Multimap, Names, Sequences
from memgraph.index.columns import COLUMN_TYPES, EMPTY, NEVER, OUTCOMES, QUESTION_MARKS, TIERS, TRUST, columns_of_source
from memgraph.model.ids import canonical_name, without_title
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import MEMORY_TYPES, RECORD_SOURCE, Role, fields_with
from memgraph.model.timestamps import epoch_days
from memgraph.ports import Change, Key, Row, is_known_to_the_source
from memgraph.text.calendar import in_words
from memgraph.text.cutting import SUMMARY_CHARS

INDEX_VERSION = 9
"""Version of the snapshot's layout."""
RELATION_CODE = {relation: code for code, relation in enumerate(EXPLICIT_RELATIONS, start=1)}
"""Weight of a link's pair: positive at its source, negative at its target."""
_MAPS = ("postings", "mentions", "named", "links", "agents", "tags", "tagged", "triggers", "called")
_NAMES = ("ids", "vocabulary", "scopes", "entities", "agent_names", "tag_names", "phrases")
_SMALLEST = 64


@dataclass(frozen=True, slots=True)
class IndexOffset:
    """The event that an index has reached, and the rebuild from which its rows came."""

    seq: int = 0
    signature: str = ""
    made: str = ""


class Index:
    """Columns, postings, mentions and links of all memories.

    A memory's slot never changes; a deleted memory's slot stays dead. Everything is derived from the current rows, so an
    index that is built from them, updated row by row, or loaded from a snapshot gives equal answers.
    """

    def __init__(
        self, data: Mapping[str, NDArray[Any]] | None = None, names: Mapping[str, list[str]] | None = None
    ) -> None:
        data, names = data or {}, names or {}
        self._columns = {
            name: data[f"column.{name}"] if data else np.full(_SMALLEST, EMPTY.get(name, 0), dtype=dtype)
            for name, dtype in COLUMN_TYPES.items()
        }
        for kind in _MAPS:
            part = {name: data[f"{kind}.{name}"] for name in ("offsets", "values", "weights")} if data else None
            setattr(self, kind, Multimap(part))
        for kind in _NAMES:
            setattr(self, kind, Names(list(names[kind]) if data else None))
        kept = {name: data[f"sequences.{name}"] for name in ("starts", "lengths", "codes")} if data else None
        self.sequences = Sequences(kept)  # slot → the terms of its text, in order
        self.naming = Naming(self.phrases, self.called)
        self.topics = set(self.called.pairs(1)[1].tolist())  # the entities that memories are about
        self.aliases = Aliases(self.entities, self.mentions)
        self.vector_model: str | None = None  # whose vectors are searched, as ``vector_row`` says; None: any
        self.offset = IndexOffset()
        self.changed = 0

    postings: Multimap  # term → (slot, occurrences)
    mentions: Multimap  # entity → (slot, 1 mentioned or 2 about)
    named: Multimap  # slot → (entity, the same)
    links: Multimap  # slot → (other slot, ± code of the relation; positive where the slot is the source)
    agents: Multimap  # agent → (slot, 1)
    tags: Multimap  # tag, by its canonical name → (slot, 1)
    tagged: Multimap  # slot → (tag, 1)
    triggers: Multimap  # term → (slot of a procedure, number of different terms in its trigger)
    called: Multimap  # phrase → (entity that memories are about, with this name; 1)
    ids: Names
    vocabulary: Names
    scopes: Names
    entities: Names
    agent_names: Names
    tag_names: Names
    phrases: Names

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> NDArray[Any]:
        """Return a column over all slots; do not keep it across changes."""
        return self._columns[name][: len(self.ids)]

    def slot(self, memory_id: str) -> int:
        """Return a live memory's slot, or −1."""
        slot = self.ids.find(memory_id)
        return slot if slot >= 0 and self._columns["is_live"][slot] else -1

    def use_vectors_of(self, model: str | None) -> None:
        """Set ``vector_row`` to this model's vectors only."""
        if model == self.vector_model:
            return
        self.vector_model = model
        places = self.column("vector_place")
        if model is not None:
            own = self.column("vector_model") == self.scopes.find(scope_name("model", model))
            places = np.where(own, places, -1)
        self.column("vector_row")[:] = places

    def followers(self, memory_id: str) -> list[str]:
        """Return the ids of the memories whose predecessor is this one."""
        slot = self.ids.find(memory_id)
        found = np.flatnonzero((self.column("previous") == slot) & self.column("is_live")) if slot >= 0 else ()
        return [self.ids.names[other] for other in found]

    def live_ids(self, mask: NDArray[np.bool_], order: NDArray[Any], limit: int | None = None) -> list[str]:
        """Return at most `limit` ids of masked slots, by descending `order`, then by id."""
        slots = np.flatnonzero(mask)
        if limit is not None and 0 < limit < len(slots):  # sort only the slots that can be among the first
            slots = slots[order[slots] >= np.partition(order[slots], -limit)[-limit]]
        ranked = sorted(zip((-order[slots]).tolist(), (self.ids.names[slot] for slot in slots), strict=True))
        return [memory_id for _, memory_id in ranked[:limit]]

    def apply(self, changes: Sequence[Change], texts: Mapping[str, Text] | None = None) -> None:
        """Apply the changed rows of a commit, at the cost of what they add; `texts` are what `texts_of` found in them, to have most of the work done before."""
        rows = []
        for change in changes:
            if change.table == "Memory":
                if change.new is None:
                    self.remove(str(change.key))
                elif is_use(change):
                    self.touch(change.new)
                    self.changed += 1
                else:
                    rows.append(change.new)
        self._put(rows, texts_of(changes) if texts is None else texts)
        links = [change for change in changes if change.table in RELATION_CODE]
        self._link((change.table, change.key) for change in links if change.old is None)
        for change in links:
            if change.old is not None and change.new is None:
                self._unlink(change.table, change.key)

    def build(self, memories: Sequence[Row], links: Iterable[tuple[str, Key]] = ()) -> None:
        """Build the index from all current rows; it must be empty."""
        self._put(memories, {row["id"]: text_of(row) for row in memories})
        self._link(links)

    def _put(self, rows: Sequence[Row], texts: Mapping[str, Text]) -> None:
        """Add memories, or update their slots: the columns from their rows, and the texts that are given."""
        for memory_id in texts:
            if (known := self.ids.find(memory_id)) >= 0:
                self._drop_text(known)
        slots = self.ids.codes(row["id"] for row in rows)
        room = len(self._columns["seq"])
        if len(self.ids) > room:
            more = max(len(self.ids) - room, room)
            self._columns = {
                name: np.concatenate([column, np.full(more, EMPTY.get(name, 0), dtype=column.dtype)])
                for name, column in self._columns.items()
            }
        values, at = [self._columns_of(row) for row in rows], np.array(slots, dtype=np.int64)
        for name in values[0] if values else ():
            self._columns[name][at] = [one[name] for one in values]
        for slot, row in zip(slots, rows, strict=True):
            self._follow(slot, self._predecessor(row))
        if texts:
            self._put_texts(self.ids.codes(texts), list(texts.values()))
        self.changed += len(rows)

    def touch(self, row: Row) -> None:
        """Apply the use of a memory that its row states."""
        slot = self.ids.find(row["id"])
        if slot >= 0:
            for name, value in _use_of(row).items():
                self._columns[name][slot] = value

    def supporting_ids(self, memory_id: str) -> list[str]:
        """Return the ids of the live memories that support this one, sorted."""
        others, weights = self.links.get(self.ids.find(memory_id))
        live = self.column("is_live")
        found = others[(weights == -RELATION_CODE["SUPPORTS"]) & live[others]]
        return sorted(self.ids.names[slot] for slot in found)

    def remove(self, memory_id: str) -> None:
        """Mark a memory's slot dead."""
        slot = self.ids.find(memory_id)
        if slot >= 0:
            self.column("is_live")[slot] = False
            self._drop_text(slot)
            for other in np.unique(self.links.get(slot)[0]).tolist():
                self.links.remove(other, slot)
            self.links.remove_key(slot)
            self._follow(slot, -1)
            self.changed += 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything except the names as flat arrays, for a snapshot."""
        data = {f"column.{name}": self.column(name) for name in self._columns}
        for kind in _MAPS:
            data |= {f"{kind}.{name}": values for name, values in getattr(self, kind).arrays().items()}
        return data | {f"sequences.{name}": values for name, values in self.sequences.arrays().items()}

    def memories(self) -> NDArray[np.bool_]:
        """Return which slots are those of memories, not of records."""
        mask: NDArray[np.bool_] = self.column("is_live") & ~self.column("is_record")
        return mask

    def name_lists(self) -> dict[str, list[str]]:
        """Return the names, for a snapshot."""
        return {kind: getattr(self, kind).names for kind in _NAMES}

    def _columns_of(self, row: Row) -> dict[str, Any]:
        project = row.get("project_id")
        place, made_by = row.get("vector_row", -1), row.get("embedding_model") if "vector_row" in row else None
        return {
            "is_live": True,
            "is_suppressed": row.get("is_suppressed", False),
            "is_archived": "archived_at" in row,
            "is_pinned": row.get("is_pinned", False),
            "lacks_summary": "archive_summary" not in row and len(row["content"]) > SUMMARY_CHARS,
            "asks": row["content"].rstrip().endswith(QUESTION_MARKS),
            **columns_of_source(row),
            "type": MEMORY_TYPES.index(row["type"]),
            "outcome": OUTCOMES.index(row.get("outcome", "unknown")),
            "tier": TIERS.index(row.get("privacy_tier", "public")),
            "trust": TRUST.index(row.get("trust_class", "agent")),
            "project": self._scope("project", project),
            "session": self._scope("session", row.get("session_id"), project),
            "task": self._scope("task", row.get("task_id")),
            "domain": self._scope("domain", row.get("domain")),
            "speaker": self._scope("speaker", phrase_of(row.get("speaker"))),
            "vector_row": place if self.vector_model in (None, made_by) else -1,
            "vector_model": self._scope("model", made_by),
            "vector_place": place,
            **_use_of(row),
            "floor": row.get("floor", 0.0),
            "confidence": row.get("confidence", 0.0),
            "occurred_days": epoch_days(row["occurred_at"]),
            "created_days": epoch_days(row["created_at"]),
            "invalid_days": epoch_days(row["invalid_at"]) if "invalid_at" in row else NEVER,
            "seq": row.get("seq", 0),
        }

    def _predecessor(self, row: Row) -> int:
        """Return the slot of the memory before this one, or −1. A memory recorded later cannot be a predecessor."""
        slot = self.slot(row.get("previous_id") or "")
        return slot if slot >= 0 and self._columns["seq"][slot] < row.get("seq", 0) else -1

    def _follow(self, slot: int, previous: int) -> None:
        """Set a slot's predecessor. Of several successors, the one recorded last counts."""
        before, following, seq, live = (self._columns[name] for name in ("previous", "following", "seq", "is_live"))
        old = int(before[slot])
        before[slot] = previous
        if old not in (-1, previous) and following[old] == slot:
            heirs = np.flatnonzero((before == old) & live)
            following[old] = heirs[np.argmax(seq[heirs])] if len(heirs) else -1
        if previous >= 0:
            known = int(following[previous])
            if known < 0 or not live[known] or seq[slot] >= seq[known]:
                following[previous] = slot

    def _drop_text(self, slot: int) -> None:
        """Remove what was derived from a slot's text and names; costs one pass over the postings of its terms."""
        for code in np.unique(self.sequences.get(slot)).tolist():
            self.postings.remove(code, slot)
        for of_slots, to_slots in ((self.named, self.mentions), (self.tagged, self.tags)):
            for code in np.unique(of_slots.get(slot)[0]).tolist():
                to_slots.remove(code, slot)
            of_slots.remove_key(slot)
        self.agents.remove_value(slot)  # these two are short
        self.triggers.remove_value(slot)
        self.sequences.clear(slot)
        self.column("terms")[slot] = 0

    def _put_texts(self, known: Sequence[int], texts: Sequence[Text]) -> None:
        """Give slots without a text those of their memories."""
        slots = np.array(known, dtype=np.int32)
        lengths = np.array([len(text.terms) for text in texts], dtype=np.int32)
        codes = np.array(self.vocabulary.codes(chain.from_iterable(text.terms for text in texts)), dtype=np.int32)
        self.sequences.put(slots, lengths, codes)
        self.column("terms")[slots] = lengths
        self.column("words")[slots] = [text.words for text in texts]
        count = len(texts)
        places = codes.astype(np.int64) * count + np.repeat(np.arange(count), lengths)
        places, occurrences = np.unique(places, return_counts=True)
        self.postings.add(places // count, slots[places % count], np.minimum(occurrences, MAX_WEIGHT))
        for field, names, of_names, of_slots in (
            ("trigger", self.vocabulary, self.triggers, None),
            ("entities", self.entities, self.mentions, self.named),
            ("agents", self.agent_names, self.agents, None),
            ("tags", self.tag_names, self.tags, self.tagged),
        ):
            found = [(slot, *one) for slot, text in zip(known, texts, strict=True) for one in getattr(text, field)]
            if found:
                at, said, weights = zip(*found, strict=True)
                of_names.add(named := names.codes(said), at, weights)
                if of_slots is not None:
                    of_slots.add(at, named, weights)
        called: list[tuple[str, int]] = []
        for entity, kind, name in chain.from_iterable(text.about for text in texts):
            if (code := self.entities.find(entity)) not in self.topics:
                self.topics.add(code)
                called += [(phrase, code) for phrase in phrases_of(kind, name)]
        if called:
            phrases, topics = zip(*called, strict=True)
            self.called.add(self.phrases.codes(phrases), topics, [1] * len(called))

    def _scope(self, kind: str, name: str | None, project: str | None = None) -> int:
        return -1 if name is None else self.scopes.code(scope_name(kind, name, project))

    def _link(self, links: Iterable[tuple[str, Key]]) -> None:
        ends = [(RELATION_CODE[relation], *map(self.ids.find, key)) for relation, key in links]
        found = [(source, target, weight) for weight, source, target in ends if source >= 0 and target >= 0]
        if found:
            sources, targets, weights = (np.array(part) for part in zip(*found, strict=True))
            self.links.add(sources, targets, weights)
            self.links.add(targets, sources, -weights)
            self.changed += len(found)

    def _unlink(self, relation: str, key: Key) -> None:
        source, target = (self.ids.find(end) for end in key)
        weight = RELATION_CODE[relation]
        self.links.remove(source, target, weight)
        self.links.remove(target, source, -weight)
        self.changed += 1


_TEXT_FIELDS = (
    "content", "title", "speaker", "occurred_at", "tags", "cues", "entities", "agents_involved", "project_id", "trigger_pattern",
    "steps",
)  # fmt: skip
"""Fields from which postings, mentions and agents are derived."""
_USE = fields_with(Role.USE)
Weighted = list[tuple[str, int]]


class Text(NamedTuple):
    """What a row's text and names say, with the names' weights: the expensive part of putting it, which needs no index."""

    terms: list[str]
    words: int
    trigger: Weighted
    """The different terms of a procedure's trigger, sorted."""
    entities: Weighted
    """As the index names them."""
    agents: Weighted
    tags: Weighted
    about: list[tuple[str, str, str]]
    """The entities that the memory is about, as the index names them, with their kinds and names."""


def text_of(row: Row) -> Text:
    """Return what a row's text and names say."""
    trigger = sorted(set(analyse(row.get("trigger_pattern") or "")))
    entities = [
        (entity_name(one["kind"], one["name"], row.get("project_id")), one["kind"], one["name"], one.get("about"))
        for one in row.get("entities", ())
    ]
    return Text(
        analyse(indexed_text(row)),
        len(row["content"].split()),
        [(term, min(len(trigger), MAX_WEIGHT)) for term in trigger],
        [(name, 2 if is_about else 1) for name, _, _, is_about in entities],
        [(agent, 1) for agent in row.get("agents_involved", ())],
        [(tag, 1) for tag in dict.fromkeys(map(canonical_name, row.get("tags", ())))],
        [(name, kind, said) for name, kind, said, is_about in entities if is_about],
    )


def texts_of(changes: Iterable[Change]) -> dict[str, Text]:
    """Return what the texts say that changes bring, by memory id: for `Index.apply`, which is short then."""
    return {
        str(change.key): text_of(change.new)
        for change in changes
        if change.table == "Memory" and change.new and (change.old is None or has_other_text(change.old, change.new))
    }


def is_use(change: Change) -> bool:
    """Return whether nothing but the use of a memory changed."""
    old, new = change.old, change.new
    if change.table != "Memory" or not old or not new or old == new:
        return False
    return {**old, **{name: new[name] for name in _USE if name in new}} == new


def _use_of(row: Row) -> Row:
    """Return the columns that recall changes."""
    return {
        "access_count": row.get("access_count", 0),
        "accessed_days": epoch_days(row["last_accessed_at"]) if "last_accessed_at" in row else -NEVER,
        "anchor": row["relevance_anchor"],
        "anchored_days": epoch_days(row["relevance_at"]),
    }


def has_other_text(old: Row, new: Row) -> bool:
    """Return whether postings, mentions or agents of two rows may differ."""
    return any(map(ne, map(old.get, _TEXT_FIELDS), map(new.get, _TEXT_FIELDS)))


def phrase_of(name: str | None) -> str | None:
    """Return the terms of a person's name, joined by spaces, as a query would contain them; None if there are none."""
    return " ".join(analyse(name)) or None if name else None


def scope_name(kind: str, name: str, project_id: str | None = None) -> str:
    """Name of a project, session, task or model among the index's scopes."""
    project = (project_id or "").replace("\x1f", "\x1e")  # so that the rest is the name, whatever it contains
    return f"{kind}\x1f{project}\x1f{name}"


def name_in_scope(scope: str) -> str:
    """Return the name of the project, session, task or model that a scope stands for."""
    return scope.split("\x1f", 2)[2]


def entity_name(kind: str, name: str, project_id: str | None) -> str:
    """Name of a project's entity among the index's entities, independent of its spelling."""
    return f"{kind}\x1f{project_id or ''}\x1f{canonical_name(name)}"


def indexed_text(row: Row) -> str:
    """Return the content with its subjects, speaker, date, tags and cues, and a commit's issues and release, which its content leaves out."""
    entities = row.get("entities", ()) if row.get("source") in ("git", RECORD_SOURCE) else ()
    parts = [
        row.get("title"),
        row.get("speaker"),
        in_words(row["occurred_at"]),
        row["content"],
        row.get("trigger_pattern"),
        *row.get("steps", ()),
        *row.get("tags", ()),
        *row.get("cues", ()),
        *(
            one["name"]
            for one in entities
            if is_known_to_the_source(one["kind"], one["name"]) and one["name"] not in row["content"]
        ),
    ]
    return "\n".join(part for part in parts if part)


_MOST_ALIKE = 50
"""Number of names with a common ending (``index.ts``) from which no aliases are searched."""
Group = tuple[str, str, str]
Slots = frozenset[int]
MAX_NAME_TERMS = 8
"""Maximum length of a name in terms. A longer one is a sentence, and is found by its words."""
_IN_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")
_SLASH = re.compile(r"[/\\]")


def phrases_of(kind: str, name: str) -> list[str]:
    """Return the runs of terms that name an entity: its name, also without a disambiguation in brackets, and a file's name without folders."""
    forms = [name, _IN_PARENTHESES.sub("", name)]
    if kind == "file":
        forms.append(_SLASH.split(name.rstrip("/\\"))[-1])
    runs = [analyse(form) for form in forms]
    return list(dict.fromkeys(" ".join(run) for run in runs if 0 < len(run) <= MAX_NAME_TERMS))


class Naming:
    """Finds names in runs of terms: `phrases` may grow, `entities` maps a phrase to the entities of this name."""

    def __init__(self, phrases: Names, entities: Multimap) -> None:
        self._phrases = phrases
        self._entities = entities
        self._lengths: dict[str, list[int]] = {}
        self._seen = 0

    def named_in(
        self, terms: Sequence[str], about: Callable[[Sequence[int]], Slots]
    ) -> Iterator[tuple[Sequence[str], Slots]]:
        """Yield, for each name in the terms, its terms and the visible slots that `about` returns for its entities; nothing for a name without any.

        Of names that begin with the same term the longest is taken, and a name within another is ignored: "New York Times" is the newspaper.
        """
        self._take_in()
        seen: set[int] = set()
        at = 0
        while at < len(terms):
            length, code, slots = self._longest(terms, at, about)
            if slots and code not in seen:
                seen.add(code)
                yield terms[at : at + length], slots
            at += length

    def _longest(
        self, terms: Sequence[str], at: int, about: Callable[[Sequence[int]], Slots]
    ) -> tuple[int, int, Slots]:
        """Return the length of the longest name that begins here, its code, and the slots about it; (1, −1, no slots) if none does."""
        for length in self._lengths.get(terms[at], ()):
            if at + length <= len(terms):
                code = self._phrases.find(" ".join(terms[at : at + length]))
                if code >= 0 and (slots := about(sorted(self._entities.get(code)[0].tolist()))):
                    return length, code, slots
        return 1, -1, frozenset()

    def _take_in(self) -> None:
        for phrase in self._phrases.names[self._seen :]:
            first, *more = phrase.split(" ")
            lengths = self._lengths.setdefault(first, [])
            if len(more) + 1 not in lengths:
                lengths.append(len(more) + 1)
                lengths.sort(reverse=True)
        self._seen = len(self._phrases)


class Aliases:
    """Finds entities that are one thing under several names, given the names that memories have (`mentions`): linear in names of the same ending.

    ``session.ts`` is ``auth/session.ts`` as long as no other file of that name is known in the project; ``Smith`` is ``Anna Smith`` as long as there is no
    other Smith. Nothing is stored: a name that becomes ambiguous is separate again.
    """

    def __init__(self, entities: Names, mentions: Multimap) -> None:
        self._entities = entities
        self._mentions = mentions
        self._groups: dict[Group, list[int]] = {}
        self._parts: dict[int, tuple[str, ...]] = {}
        self._seen = 0

    def same(self, entity: int) -> list[int]:
        """Return the codes of all names of the thing that `entity` names, including itself, in order."""
        self._take_in()
        group = self._group(entity)
        known = self._groups.get(group, []) if group else []
        if not 1 < len(known) <= _MOST_ALIKE:
            return [entity]
        live = [code for code in known if code == entity or code in self._mentions]
        whole = self._whole(entity, live)
        return [code for code in live if self._whole(code, live) == whole]

    def _whole(self, entity: int, live: list[int]) -> tuple[str, ...]:
        """Return the longest name that ends with this one, if it is unique; else the name itself."""
        mine = self._parts[entity]
        longer = {parts for code in live if len(parts := self._parts[code]) > len(mine) and parts[-len(mine) :] == mine}
        longest = {
            one for one in longer if not any(len(other) > len(one) and other[-len(one) :] == one for other in longer)
        }
        return longest.pop() if len(longest) == 1 else mine

    def _take_in(self) -> None:
        for code in range(self._seen, len(self._entities)):
            if group := self._group(code):
                self._groups.setdefault(group, []).append(code)
        self._seen = len(self._entities)

    def _group(self, entity: int) -> Group | None:
        """Return what all names of one thing share: kind, project and ending; None for an entity without aliases."""
        kind, project, name = self._entities.names[entity].split("\x1f", 2)
        if kind == "file":
            parts = tuple(part for part in name.split("/") if part not in {"", "."})
        elif kind == "person" or (kind == "concept" and without_title(name) != name):
            kind, parts = "person", tuple(without_title(name).split())
        else:
            return None
        if not parts:
            return None
        self._parts[entity] = parts
        return kind, project, parts[-1]


Mask = NDArray[np.bool_]


def newest_of(index: Index, mask: Mask, slots: NDArray[np.int64] | None = None) -> dict[int, int]:
    """Return for each superseded slot, of all or some, the newest masked one that replaces it; a cycle's also represents itself.

    A slot without a masked replacement is not superseded. Takes a pass over the pairs for each step of the longest chain.
    """
    successor = _successors(index, mask, slots)
    seq = index.column("seq")
    return {old: _newest(old, successor, mask, seq) for old in successor}


def superseded(index: Index, mask: Mask) -> Mask:
    """Return which slots, masked or not, are superseded by a masked one."""
    found = np.zeros(len(index), dtype=np.bool_)
    found[[old for old, newest in newest_of(index, mask).items() if newest != old]] = True
    return found


def _successors(index: Index, mask: Mask, slots: NDArray[np.int64] | None) -> dict[int, int]:
    """Return for each superseded slot its next newer one: of those that lead to an admitted slot, the last recorded."""
    newer, older = index.links.pairs(RELATION_CODE["SUPERSEDES"])
    live = index.column("is_live")
    valid = (newer != older) & live[newer] & live[older]
    if not valid.any():
        return {}
    if slots is not None:
        valid &= _above(newer, older, slots, len(index))
    pairs = list(zip(newer[valid].tolist(), older[valid].tolist(), strict=True))
    replaces: dict[int, list[int]] = {}
    for new, old in pairs:
        replaces.setdefault(new, []).append(old)
    leads = {new for new in replaces if mask[new]}
    waiting = list(leads)
    while waiting:
        found = [old for old in replaces.get(waiting.pop(), ()) if old not in leads]
        leads.update(found)
        waiting += found
    seq = index.column("seq")
    successor: dict[int, int] = {}
    for new, old in pairs:
        if new in leads and (old not in successor or (seq[new], new) > (seq[successor[old]], successor[old])):
            successor[old] = new
    return successor


def _newest(old: int, successor: dict[int, int], mask: Mask, seq: NDArray[np.int64]) -> int:
    """Return the last admitted slot on the path from `old`; for a cycle the last recorded one, so that one remains."""
    path: dict[int, None] = {old: None}
    at = old
    while (following := successor.get(at)) is not None:
        if following in path:
            way = list(path)
            cycle = [slot for slot in way[way.index(following) :] if mask[slot]]
            if cycle:
                return max(cycle, key=lambda slot: (seq[slot], slot))
            break
        path[following] = None
        at = following
    return next(slot for slot in reversed(path) if mask[slot])


def _above(newer: NDArray[np.int32], older: NDArray[np.int32], slots: NDArray[np.int64], count: int) -> Mask:
    """Return which pairs lie on a path from one of these slots to newer ones."""
    reached = np.zeros(count, dtype=np.bool_)
    reached[slots] = True
    while True:
        found: Mask = reached[older]
        if reached[newer[found]].all():
            return found
        reached[newer[found]] = True
