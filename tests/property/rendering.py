"""Renders a recall whose memories say a text wherever they can, and reads the structure of each format back."""

from __future__ import annotations

import re
from itertools import count
from typing import Any
from xml.etree import ElementTree

from markdown_it import MarkdownIt

import memgraph
from memgraph.retrieval import agent_context


def recalled(text: str, trust_class: str = "agent") -> memgraph.AgentContext:
    """Recall memories that say a text wherever they can say anything.

    It ends in a word of its own and that word's number, often enough that no two fields are near-duplicates and none is empty.
    """
    place = count(1)

    def said() -> str:
        number = next(place)
        return f"{text}word{number}{f' {number}' * 20}"

    def common() -> dict[str, Any]:
        return {
            "content": said(),
            "title": said(),
            "project_id": said(),
            "tags": [said()],
            "source": said(),
            "trust_class": trust_class,
        }

    error = {"type": f"{said()} type", "message": f"{said()} message", "resolution": said()}
    memories = [
        memgraph.EpisodicMemory(**common(), errors_encountered=[error], outcome="failure"),
        memgraph.EpisodicMemory(
            **(common() | {"trust_class": "web"}),
            situation=said(),
            reasoning=said(),
            action=said(),
            user_feedback=said(),
        ),
        memgraph.SemanticMemory(
            **common(), category=said(), conditions=[said()], incorrect_approach=said(), correct_approach=said()
        ),
        memgraph.SemanticMemory(**common(), outcome="failure"),
        memgraph.ProceduralMemory(**common()),
        memgraph.ProceduralMemory(
            **common(),
            trigger_pattern=said(),
            steps=[said(), said()],
            prerequisites=[said()],
            exit_criteria=[said()],
            common_errors=[{"error": said(), "fix": said()}],
        ),
    ]
    stored = [memory.model_copy(update={"id": f"memory {place}"}) for place, memory in enumerate(memories)]
    return agent_context(
        memgraph.RetrievalResult(
            query_id="q", memories=stored, total_tokens_used=1, injected_prompt_prefix="", retrieved_at="2026-02-01"
        )
    )


def told(text: str, format: Any) -> str:
    if format == "notes":  # where a word of an instruction moves an entry to another heading
        text = re.sub("avoid", "evade", text, flags=re.IGNORECASE)
    return memgraph.format_context_for_prompt(recalled(text), format=format)


_MARKDOWN = MarkdownIt("commonmark")


def blocks(markdown: str) -> list[tuple[str, str, int]]:
    """Return how CommonMark divides a text: headings, lists, items, paragraphs, and whatever else there should not be."""
    environment: dict[str, Any] = {}
    found = [(token.type, token.tag, token.level) for token in _MARKDOWN.parse(markdown, environment)]
    assert environment.get("references", {}) == {}
    return found


def inlines(markdown: str) -> list[str]:
    """Return the tags, links, images and strong texts that CommonMark finds in a text."""
    tokens = [child for token in _MARKDOWN.parse(markdown) for child in token.children or ()]
    return [token.type for token in tokens if token.type in {"html_inline", "link_open", "image", "strong_open"}]


def tags(element: ElementTree.Element) -> list[Any]:
    return [element.tag, sorted(element.attrib), [tags(child) for child in element]]


def shape(value: Any) -> Any:
    """Return a document with its texts left out."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else type(value)


def markers(text: str) -> list[str]:
    """Return what each line begins with: its first word."""
    return [line.strip().split(" ")[0] for line in text.splitlines()]
