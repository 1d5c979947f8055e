"""``docs``: print the reference that is installed with the package."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NamedTuple

import click

from memgraph.interfaces.cli.base import completing
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, pairs

_COMMENT = re.compile(r"^<!--.*?-->\n", re.DOTALL | re.MULTILINE)
"""An HTML comment on lines of its own: a note to tools that process the Markdown source."""


_LISTS = frozenset({"changelog", "commands", "failures"})
"""Pages that name every command."""


class Topic(NamedTuple):
    """One page of the documentation.

    Attributes
    ----------
    name : str
        The file's name without its suffix.
    summary : str
        The first paragraph, which is one line.
    text : str
        The page in Markdown, without comments.
    """

    name: str
    title: str
    summary: str
    text: str


@click.command(cls=Command)
@click.argument("topic", required=False, shell_complete=completing.topics)
@pass_settings
def docs(settings: Settings, topic: str | None) -> None:
    """List the topics, or print a topic's page in Markdown."""
    found = topics()
    if topic is None:
        lines = pairs([(one.name, one.summary) for one in found.values()])
        document = [{"topic": one.name, "title": one.title, "summary": one.summary} for one in found.values()]
        emit(settings, document, [*lines, "", f"{count(len(found), 'topic')}; `memgraph docs TOPIC` prints a page."])
        return
    page = found.get(topic.removesuffix(".md").lower())
    if page is None:
        asked = topic.lower()
        near = [name for name in found if asked and name.startswith(asked)]
        where = _describing(asked, found) if asked and not near else None
        near = near or get_close_matches(asked, found, n=3)
        if where:
            hint = f"`memgraph {asked}` is described in the topic {where}: `memgraph docs {where}`."
        else:
            hint = f"Did you mean {' or '.join(near)}?" if near else f"The topics are {', '.join(found)}."
        raise click.BadParameter(f"{topic!r} is not a topic. {hint}", param_hint="'TOPIC'")
    one_document = {"topic": page.name, "title": page.title, "summary": page.summary, "text": page.text}
    emit(settings, one_document, page.text.rstrip("\n"))


def topics() -> dict[str, Topic]:
    """Return all pages by name, sorted."""
    from memgraph.assets import texts

    return {name: _read(name, text) for name, text in texts("docs", ".md").items()}


def _describing(command: str, found: dict[str, Topic]) -> str | None:
    """Return the topic that shows most calls of a command, or else names it most often; None if none does."""
    call = rf"memgraph {re.escape(command)}\b"
    counts = {
        name: (len(re.findall(f"^{call}", page.text, re.MULTILINE)), len(re.findall(call, page.text)))
        for name, page in found.items()
        if name not in _LISTS
    }
    best = max(counts, key=lambda name: counts[name])
    return best if any(counts[best]) else None


def _read(name: str, source: str) -> Topic:
    text = _COMMENT.sub("", source)
    title, summary = (line for line in text.splitlines()[:3] if line)
    return Topic(name, title.removeprefix("# "), summary, text)
