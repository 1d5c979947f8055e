"""The words of a text that say what it is about."""

from __future__ import annotations

from memgraph.text import lazy_re as re

_EMPTY_WORDS = frozenset(
    str.split(
        "a an the of to in on at by for with and or as is are be it its this that from into some any all more most other "
        "fix fixes fixed fixing bug bugs bugfix issue issues problem problems error errors update updates updated updating change "
        "changes changed add adds added adding remove removes removed make made do does not small minor major multiple several "
        "various few many lots bunch stuff things thing misc code file files work works working again now new old better "
        "improve improved improvement improvements improving refactor refactored cleanup clean up tweak tweaks tweaked "
        "adjust test tests wip first last final hopefully really actually proper properly correctly correct use using "
        "address addressing addressed resolve resolved handle py js ts still also support missing wrong broken after before "
        "left right back get set setting pr prs related show info display script scripts command commands check checking time "
        "functionality"
    )
)
_CONTENT_WORD = re.compile(r"[^\W_][\w.-]*")


def content_words(text: str) -> list[str]:
    """Return the content words of a text, folded and in order."""
    words = (word.casefold().strip(".-") for word in _CONTENT_WORD.findall(text[:2_000]))
    return [word for word in words if len(word) > 1 and word not in _EMPTY_WORDS and not word.isdigit()]
