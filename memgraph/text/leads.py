"""What stands before the text of an episode: which kind of thing it tells."""

from __future__ import annotations

from collections.abc import Iterable

LEADS = {
    "fix": "Fix",
    "breaking": "Breaking change",
    "release": "Release",
    "partial": "Partly done",
    "instruction": "Instruction by the user",
    "statement": "The user said",
    "correction": "The user corrected",
    "intervention": "The user stepped in",
}


def with_lead(kind: str, text: str) -> str:
    """Return a text behind the lead of its kind, if the kind has one and the text does not begin so already."""
    lead = LEADS.get(kind, "")
    return text if not lead or text.casefold().startswith(lead.casefold()) else f"{lead}: {text}"


def without_lead(text: str, kinds: Iterable[str]) -> str:
    """Return a text without the lead of one of these kinds."""
    for kind in kinds:
        if kind in LEADS:
            text = text.removeprefix(f"{LEADS[kind]}: ")
    return text
