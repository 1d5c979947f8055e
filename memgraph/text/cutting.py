"""Truncation and splitting of texts."""

from __future__ import annotations

from collections.abc import Sequence

from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.text.attempts import stated
from memgraph.text.safe import visible_line
from memgraph.text.sentences import split_sentences

_PREVIEW_CHARS = 60
_NO_ENDS = ("e.g.", "i.e.", "cf.", "vs.")
"""Abbreviations after which a sentence goes on."""


def shortened(text: str, limit: int = 80) -> str:
    """Return a text, or its first characters and three dots, as lists show it (seed 0)."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def preview(text: str) -> str:
    """Return the beginning of a text for identification: one visible line of at most 60 characters, with an ellipsis if truncated."""
    line = visible_line(text)
    return line if len(line) <= _PREVIEW_CHARS else f"{line[:_PREVIEW_CHARS].rstrip()}…"


def cut(text: str, limit: int, *, keep_space: bool = False) -> str:
    """Truncate a text to `limit` characters, at least 1; a truncated text ends in an ellipsis.

    White space before the ellipsis is removed, unless it is to be kept.
    """
    beginning = text[: limit - 1] if keep_space else text[: limit - 1].rstrip()
    return text if len(text) <= limit else f"{beginning}…"


def whole_sentences(text: str, limit: int) -> str:
    """Return the sentences at the beginning of a text that fit in `limit` characters; a longer first sentence is truncated."""
    said = [" ".join(part.split()) for part in split_sentences(text, "part")] if len(text) > limit else []
    while len(said) > 1 and (len(" ".join(said)) > limit or said[-1].endswith((*_NO_ENDS, ":"))):
        said.pop()
    return cut_at_word(" ".join(said) or text, limit)


def fitted(texts: Sequence[str], max_chars: int) -> list[str]:
    """Truncate the longest texts, at ends of sentences where they have any, so that all take at most `max_chars` characters.

    Short texts leave their share to the others. `max_chars` must be at least the number of texts.
    """
    limit = left = max_chars
    for place, length in enumerate(sorted(map(len, texts))):
        limit = left // (len(texts) - place)
        if length > limit:
            break
        left -= length
    else:
        return list(texts)
    return [whole_sentences(text, limit) for text in texts]


SUMMARY_CHARS = 200
"""A text of at most this length is its own summary."""


def summary_of(text: str) -> str | None:
    """Return a summary of at most 200 characters from the sentences that a text states; None for a text no longer than that.

    The first sentence gives the subject and the last one the result; others follow, in their order, while there is
    space. Sentences that are too long are cut between words, with an ellipsis. Pure, so equal texts have equal
    summaries.
    """
    if len(text) <= SUMMARY_CHARS:
        return None
    sentences = [said for said in (" ".join(part.split()) for part in split_sentences(stated(text), "part")) if said]
    if not sentences:
        return None
    last = len(sentences) - 1
    kept_for_last = min(len(sentences[last]), SUMMARY_CHARS // 2) + 1 if last else 0
    said = {0: cut_at_word(sentences[0], SUMMARY_CHARS - kept_for_last)}
    if last:
        said[last] = cut_at_word(sentences[last], SUMMARY_CHARS - len(said[0]) - 1)
    left = SUMMARY_CHARS - sum(map(len, said.values())) - len(said) + 1
    for place, sentence in enumerate(sentences):
        if place not in said and len(sentence) < left:
            said[place] = sentence
            left -= len(sentence) + 1
    return " ".join(said[place] for place in sorted(said))


def cut_at_word(text: str, limit: int) -> str:
    """Truncate a text to `limit` characters between words, or within a word longer than half of that."""
    if len(text) <= limit:
        return text
    cut = max(text.rfind(" ", 0, limit), text.rfind("\n", 0, limit))
    return f"{text[: cut if cut > limit // 2 else limit - 1].rstrip(' ,;:–-')}…"


def split_text(text: str, limit: int = MAX_CONTENT_CHARS) -> list[str]:
    """Split a text into parts of at most `limit` characters: at sentence ends, else at spaces, else anywhere."""
    parts: list[str] = []
    current = ""
    for sentence in split_sentences(text.strip(), "part"):
        for piece in _pieces(sentence.strip(), limit):
            joined = f"{current} {piece}" if current else piece
            if len(joined) <= limit:
                current = joined
            else:
                parts.append(current)
                current = piece
    return [*parts, current] if current else parts


def _pieces(sentence: str, limit: int) -> list[str]:
    pieces = []
    while len(sentence) > limit:
        cut = sentence.rfind(" ", 1, limit + 1)
        cut = cut if cut > 0 else limit
        pieces.append(sentence[:cut].rstrip())
        sentence = sentence[cut:].lstrip()
    return [*pieces, sentence] if sentence else pieces
