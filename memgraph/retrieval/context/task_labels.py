"""Labels of what a recall gives of other tasks or outside sources, and the words before what holds in a task."""

from __future__ import annotations

import re
from collections.abc import Mapping

from memgraph.index.columns import TRUST
from memgraph.model.memory import StoredMemory, TrustClass
from memgraph.model.results.retrieval import Authority
from memgraph.text.cutting import cut
from memgraph.text.safe import visible_line

_NAME_CHARS = 80
_UNSAFE = re.compile(r"(?:[^\w .:/@+-]|_)+")
"""What could end the label, or be structure of a format: an id of a task is as hostile as any text."""

_LABEL = re.compile(r"\[(?=\s*(?:(?:related\s+)?task|source)\s*:)", re.IGNORECASE)


def without_labels(text: str) -> str:
    """Return a text whose own brackets cannot be taken for a label: a backslash stands before them."""
    return _LABEL.sub(r"\\[", text)


def is_outside(trust_class: TrustClass) -> bool:
    """Return whether neither the user nor an agent said it, but a tool, an import or a web page."""
    return TRUST.index(trust_class) > TRUST.index("agent")


def source_label(trust_class: TrustClass) -> str:
    """Return the label of what comes from an outside source, with a space behind it; nothing of anything else."""
    return f"[source: {trust_class}] " if is_outside(trust_class) else ""


def labelled(text: str, trust_class: TrustClass, before: str = "") -> str:
    """Return a text as one visible line that cannot imitate a label, behind the label of its source and what else stands before it."""
    return f"{source_label(trust_class)}{before}{without_labels(visible_line(text))}"


def related_label(task_id: str) -> str:
    """Return the label of what comes from a linked task, which is read and never written to."""
    return f"[related task: {_name(task_id)}]"


def task_label(task_id: str) -> str:
    """Return the label that says of which task something is, where every task is searched."""
    return f"[task: {_name(task_id)}]"


def label_before(memory: StoredMemory, task_id: str | None) -> str:
    """Return the label of a memory of another task than this one, with a space behind it; nothing of any other memory."""
    return f"{task_label(memory.task_id)} " if memory.task_id not in (None, task_id) else ""


def lead(memory_id: str, labels: Mapping[str, str], task_items: Mapping[str, Authority]) -> str:
    """Return what a format puts before a text, with a space behind it: its label, and its class if it holds in a task; or nothing."""
    return before(labels.get(memory_id), task_items.get(memory_id))


def before(label: str | None, task_item: Authority | None) -> str:
    """Return a label and the word for a class of items as they stand before a text; nothing for None."""
    return (f"{label} " if label else "") + (f"{word_of(task_item)}: " if task_item else "")


def word_of(authority: Authority) -> str:
    """Return the word for a class of items."""
    return {"snapshot": "Task", "event": "Noted"}.get(authority, authority.capitalize())


def _name(task_id: str) -> str:
    return cut(_UNSAFE.sub("_", visible_line(task_id)), _NAME_CHARS)
