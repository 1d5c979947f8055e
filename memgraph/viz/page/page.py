"""The page: one self-contained HTML file that loads nothing else.

The memories' texts are data: JSON in a block that browsers do not execute, with every character escaped that could end it, and the
script inserts them as text only. The content security policy allows nothing but the one script and the one style sheet that the
page was generated with.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Collection
from dataclasses import dataclass
from html import escape
from pathlib import Path

import orjson

from memgraph import assets
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.store.purge.exports import note_exports
from memgraph.viz.files import write_files
from memgraph.viz.page.data import PageData, page_data
from memgraph.viz.page.limits import MEMORIES
from memgraph.viz.page.wording import counted_of, left_out_of, sentence_of, span_of, title_of

_PACKED_FROM = 2_500_000
"""Size in bytes from which the JSON is deflated; browsers since 2023 can inflate it natively."""
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_ESCAPED = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    "\u2028".encode(): b"\\u2028",
    "\u2029".encode(): b"\\u2029",
}


@dataclass(frozen=True)
class PageReport:
    """What was written: its size in bytes, its number of memories, and a sentence for each kind of content that is left out."""

    path: Path
    size: int
    memories: int
    left_out: list[str]


def write_page(
    store: AgentMemoryStore,
    path: str | Path,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = MEMORIES,
    progress: Progress | None = None,
) -> PageReport:
    """Write the page of a store atomically; parameters as for `page_data`."""
    path = Path(path)
    data = page_data(
        store, project_id=project_id, since=since, until=until, include=include, limit=limit, progress=progress
    )
    text = render(data, title_of(data.project_id, data.memories))
    content = text.encode()
    write_files({path: content})
    note_exports(store.config.home, "viz page", path, at=store.now())
    return PageReport(path, len(content), len(data.memories), left_out_of(data))


def render(data: PageData, title: str) -> str:
    """Return the page as HTML; deterministic."""
    files = assets.folder("visualizations")
    template, style, script = ((files / name).read_text("utf-8") for name in ("page.html", "page.css", "page.js"))
    document = {**data.document, "notes": left_out_of(data)}
    span = span_of(data)
    packing, body = embedded(orjson.dumps(document))
    filled = {
        "policy": f"default-src 'none'; script-src {_hash_of(script)}; style-src {_hash_of(style)}; base-uri 'none'; form-action 'none'",
        "name": escape(f"{title}, {span}" if span else title),
        "title": escape(title),
        "span": escape(span),
        "sentence": escape(sentence_of(data)),
        "counted": escape(counted_of(data)),
        "hidden": "" if data.memories else " hidden",
        "style": style,
        "script": script,
        "packing": packing,
        "data": body,
    }
    # in one pass, so that placeholders in inserted values are not replaced
    return _PLACE.sub(lambda place: filled[place[1]], template)


def embedded(document: bytes) -> tuple[str, str]:
    """Return how a JSON document is packed, ``none`` or ``deflate`` (a base64 JSON string), and its text for embedding in HTML."""
    if len(document) >= _PACKED_FROM:
        return "deflate", f'"{base64.b64encode(zlib.compress(document, 9)).decode()}"'
    for character, code in _ESCAPED.items():  # these occur only inside strings
        document = document.replace(character, code)
    return "none", document.decode()


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
