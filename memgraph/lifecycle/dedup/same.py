"""Same: whether two memories that are near each other say one thing, so that one of them can stand for both.

They are not the same where they are *seen* to differ (`same`):

- each names what the other does not: a number, a version, a name, a path, a word of code; or one alone denies;
- they are the same words in another order: "Ann reviews what Bob writes";
- they share most of their words, and each has others in their place: "the key lies in the vault", "… in the safe";
- one says more, and what it adds restricts or revokes the rest, or names something.

Otherwise their vectors decide: two texts that share no word may be the same. Two commits are two events, so that they are the same
only if they state the same in equal words. Keeping two memories of one fact is a minor flaw; merging two facts loses one.
"""

from __future__ import annotations

from collections.abc import Iterable

from memgraph.index.analyser import analyse
from memgraph.index.columns import ITEM_SOURCE, PIN_SOURCE
from memgraph.lifecycle.dedup.facts import DENIES, Words, difference, fact_form, is_equal, states_the_same, words_of
from memgraph.lifecycle.episodes import task_of
from memgraph.model.ids import canonical_name
from memgraph.model.link import in_order
from memgraph.model.memory import AgentMemory, StoredMemory
from memgraph.text import lazy_re as re
from memgraph.text.sentences import split_sentences

RESTRICTS = re.compile(
    rf"\b(?:{DENIES}|unless|except|if|when|until|only|but|however|although|though|yet|instead|"
    r"wrong|false|incorrect|mistaken|outdated|old|former\w{0,2}|previous\w{0,2}|alone|merely|abandon\w{0,3}|disagree\w{0,3}|disput\w{1,3}|"
    r"doubt\w{0,3}|reject\w{0,3}|cancel\w{0,4}|withdr\w{1,5}|supersed\w{1,3}|ended|expired?|except\w{3,6}|appl(?:y|ies|ied)|"
    r"revert\w{0,3}|undo\w{0,3}|remov\w{1,4}|drop\w{0,4}|deprecat\w{1,4}|obsolete|replac\w{1,4}|now|since)\b|\?",
    re.IGNORECASE,
)
"""A word that restricts or revokes what the text says without it."""
_FRAME = 0.6
"""Texts that share this much of their words are one frame: what each has in it is a value of its own."""
_VARIES = re.compile(
    r"\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?z?)?\b|\b\d\d:\d\d:\d\d\b|\b0x[0-9a-f]{1,40}\b",
    re.IGNORECASE,
)
"""What differs between two reports of one failure: when it happened, and addresses in memory."""
_STRUCTURE = (
    "steps", "trigger_pattern", "pattern", "category", "conditions", "correct_approach", "incorrect_approach",
)  # fmt: skip
"""Structured fields that a merge would separate from their text."""


def same(one: AgentMemory, other: AgentMemory) -> bool:
    """Return whether one of two memories that are near each other can stand for both. Symmetric."""
    if any((getattr(one, name, None) or None) != (getattr(other, name, None) or None) for name in _STRUCTURE):
        return False
    return not differ(one, other, frames=True)


def differ(one: AgentMemory, other: AgentMemory, *, frames: bool = False) -> bool:
    """Return whether two memories are seen to say different things. Symmetric.

    Parameters
    ----------
    frames : bool
        Whether two texts with other words in an equal frame differ, too.
    """
    if PIN_SOURCE in (one.source, other.source):
        return True
    if task_of(vars(one)) != task_of(vars(other)) or not may_be_about_the_same(one, other):
        return True
    text, other_text = one.content, other.content
    if one.failure_fingerprint is not None and one.failure_fingerprint == other.failure_fingerprint:
        text, other_text = _VARIES.sub("·", text), _VARIES.sub("·", other_text)
    if states_the_same(text, other_text):
        return False
    are_commits = all(getattr(memory, "git_commit", None) for memory in (one, other))
    return are_commits or _are_apart(text, other_text, frames=frames)


def may_be_about_the_same(one: AgentMemory, other: AgentMemory) -> bool:
    """Return whether their subjects are the same, where both name one. Values under two keys are about two things."""
    if one.source == other.source == ITEM_SOURCE:
        return False
    about, others = (
        {(entity.kind, canonical_name(entity.name)) for entity in memory.entities if entity.about}
        for memory in (one, other)
    )
    return not about or not others or bool(about & others)


def _are_apart(one: str, other: str, *, frames: bool) -> bool:
    """Return whether two texts that do not state the same are seen to differ."""
    found = difference(one, other)
    if not fact_form(one) or not fact_form(other) or not (found.own or found.its):
        return True  # signs alone, or the same words in another order
    if found.is_seen:
        return True
    if found.own and found.its:
        contents = [_content(words_of(text)) for text in (one, other)]
        return frames and contents[0] - _content(found.own) >= _FRAME * max(contents)
    longer, shorter = (one, other) if found.own else (other, one)
    left = iter(fact_form(longer))
    if not all(word in left for word in fact_form(shorter)) or found.own_names or found.its_names:
        return True
    is_restricted = any(map(RESTRICTS.search, [*found.own, *found.its]))
    return is_restricted or (found.is_condition and not _begins_with(longer, shorter))


def _content(words: Iterable[str]) -> int:
    return sum(1 for word in words if analyse(word))


def _begins_with(longer: str, shorter: str) -> bool:
    """Return whether the first sentences of a text state another one: what follows elaborates it."""
    words: Words = ()
    for sentence in split_sentences(longer, "claim"):
        words += fact_form(sentence)
        if words == fact_form(shorter):
            return True
    return False


def stands_for_both(one: StoredMemory, other: StoredMemory) -> StoredMemory:
    """Return which of two memories that say the same stands for both.

    It is the one that says more; if both say as much, the newer one where its wording differs, and the first one where
    the texts are equal.
    """
    words, others = fact_form(one.content), fact_form(other.content)
    if len(words) != len(others):
        return one if len(words) > len(others) else other
    return one if is_equal(one.content, other.content) else in_order(one, other)[1]
