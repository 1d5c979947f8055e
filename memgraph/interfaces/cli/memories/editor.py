"""Editing a memory as text in the user's editor: the text form, its strict parser, and the editor's process."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memgraph.interfaces.cli.base.commands import Refused

if TYPE_CHECKING:
    from memgraph.model.memory import StoredMemory

FIELD_OF = {
    "title": "title",
    "project": "project_id",
    "privacy": "privacy_tier",
    "domain": "domain",
    "valid_at": "valid_at",
    "invalid_at": "invalid_at",
}
_TAG = "tag"
_END = "---"
_HEAD = """\
# Memory {id}
# Lines that begin with # are ignored. An empty value clears a field. One `tag:` line for each tag.
# The text follows the line `---`, up to the end of the file.
"""


class FormError(ValueError):
    """The edited text is not in the form."""


def form_of(memory: StoredMemory) -> str:
    """Return a memory's fields and content as text."""
    lines = [f"{name}: {_one_line(getattr(memory, field) or '')}" for name, field in FIELD_OF.items()]
    lines += [f"{_TAG}: {_one_line(tag)}" for tag in memory.tags]
    return _HEAD.format(id=memory.id) + "\n".join([*lines, _END, memory.content]) + "\n"


def parse_form(text: str) -> dict[str, Any]:
    """Return the fields that an edited text states.

    Raises
    ------
    FormError
        Names the line that is not in the form.
    """
    head, separator, content = text.partition(f"\n{_END}\n")
    if not separator:
        raise FormError(f"the line {_END}, which separates the fields from the text, is missing")
    found: dict[str, Any] = {"tags": []}
    for number, line in enumerate(head.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if name == _TAG and colon:
            found["tags"] += [value] if value else []
        elif name not in FIELD_OF or not colon:
            raise FormError(f"line {number} is not one of {', '.join([*FIELD_OF, _TAG])}, followed by a colon")
        elif FIELD_OF[name] in found:
            raise FormError(f"line {number} states {name} a second time")
        else:
            found[FIELD_OF[name]] = value or None
    if missing := [name for name, field in FIELD_OF.items() if field not in found]:
        raise FormError(f"the line `{missing[0]}:` is missing; to clear the field, leave its value empty")
    return {**found, "content": content.removesuffix("\n")}


def edit_text(text: str, *, name: str) -> tuple[str, Path]:
    """Let the user edit a text in ``$VISUAL`` or ``$EDITOR``; return it with the path of its file, which the caller removes.

    Raises
    ------
    Refused
        There is no editor, it failed, or the text is unchanged.
    """
    command = _editor()
    descriptor, path_name = tempfile.mkstemp(prefix=f"memgraph-{name}-", suffix=".txt")
    path = Path(path_name)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    try:
        code = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        path.unlink()
        why = error.strerror or str(error)
        raise Refused(f"the editor {command[0]!r} cannot be started ({why}); set VISUAL or EDITOR") from None
    try:
        edited = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"the edited text in {path} cannot be read ({error}); nothing was changed") from None
    if edited == text:
        path.unlink()
        raise Refused("the text was not changed in the editor, so the memory was not changed")
    if code:
        raise Refused(f"the editor ended with exit code {code}, so nothing was changed; the edited text is in {path}")
    return edited, path


def _editor() -> list[str]:
    for variable in ("VISUAL", "EDITOR"):
        if value := os.environ.get(variable, "").strip():
            try:
                return shlex.split(value)
            except ValueError as error:
                raise Refused(f"{variable} is not a command: {error}") from None
    raise Refused("no editor is set: set VISUAL or EDITOR, or give what to change as options (memgraph edit --help)")


def _one_line(value: str) -> str:
    return " ".join(value.split())
