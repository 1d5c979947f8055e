"""``edit``, ``pin``, ``unpin``, ``tag``, ``untag``, ``merge``, ``split``: corrections by a person."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import MemGraphError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import TIERS, Command, Settings, pass_settings
from memgraph.interfaces.cli.memories.changes import report
from memgraph.interfaces.cli.memories.selection import Selection, check_named, ids_first, selecting

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.memory import StoredMemory
    from memgraph.model.results.curation import EditResult

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
_ids = click.argument("ids", nargs=-1, metavar="[ID]...")


@click.command(cls=Command)
@_ids
@click.option("--content", metavar="TEXT", help="The new text; '-' reads standard input.")
@click.option("--title", metavar="TEXT", help="The title; '' clears it, as for the options below.")
@click.option("--tag", "tags", metavar="[+|-]TAG", multiple=True, help="Add a tag, or remove it with '-'; repeatable.")
@click.option("--project", metavar="NAME", help="The project it belongs to.")
@click.option("--valid-at", metavar="TIME", help="Since when it is true, ISO 8601.")
@click.option("--invalid-at", metavar="TIME", help="Until when it is true, ISO 8601.")
@click.option("--tier", "--privacy", "privacy", type=click.Choice(TIERS), help="The privacy tier.")
@click.option("--domain", "--context", "domain", metavar="NAME", help="The domain, such as health or travel.")
@click.option("--as-new", is_flag=True, help="Write a new version that supersedes the memory instead of changing it.")
@selecting
@pass_settings
def edit(
    settings: Settings,
    /,
    ids: Sequence[str],
    selection: Selection,
    content: str | None,
    tags: Sequence[str],
    privacy: str | None,
    as_new: bool,
    **texts: str | None,
) -> None:
    """Change fields of a memory, with options or in an editor."""
    check_named(ids, selection)
    values: dict[str, Any] = {name: value or None for name, value in texts.items() if value is not None}
    values = {("project_id" if name == "project" else name): value for name, value in values.items()}
    values |= {"privacy_tier": privacy} if privacy else {}
    if content is not None:
        values["content"] = standard_input("a memory has at most 800") if content == "-" else content
    add = [tag.removeprefix("+") for tag in tags if not tag.startswith("-")]
    gone = [tag.removeprefix("-") for tag in tags if tag.startswith("-")]
    if not values and not tags:
        if selection.is_search or len(ids) != 1:
            raise click.UsageError("give what to change as options; the editor takes one memory at a time")
        _edit_in_editor(settings, ids[0], as_new=as_new)
        return
    with opened(settings) as memory:
        chosen = selection.ids(memory, ids, what="to change them")
        result = _edited(memory, chosen, values, add, gone, as_new=as_new)
    report(settings, "edit", "Superseded" if as_new else "Changed", result)


def _edited(
    memory: MemGraph,
    ids: Sequence[str],
    values: dict[str, Any],
    add: Sequence[str],
    gone: Sequence[str],
    *,
    as_new: bool,
) -> EditResult:
    if as_new and len(ids) != 1:
        raise click.UsageError("--as-new takes one memory at a time")
    target = ids[0] if as_new else ids
    return memory.curation.edit(target, values, add_tags=add, remove_tags=gone, as_new=as_new)


def _edit_in_editor(settings: Settings, beginning: str, *, as_new: bool) -> None:
    """Let the user edit a memory as text. The store is not open meanwhile."""
    with opened(settings) as memory:
        before = memory.store.reader.known(memory.store.find_id(beginning))
    text = form_of(before)
    edited, path = edit_text(text, name=before.id[:8])
    kept = f"nothing was changed; the edited text is in {path}"
    try:
        known, values = parse_form(text), parse_form(edited)
        values = {name: value for name, value in values.items() if value != known[name]}
        with opened(settings) as memory:
            if memory.store.reader.known(before.id).updated_at != before.updated_at:
                raise Refused(f"the memory was changed while it was in the editor, so {kept}")
            result = _edited(memory, [before.id], values, (), (), as_new=as_new)
    except (FormError, MemGraphError) as error:
        raise Refused(f"{error}; {kept}") from None
    path.unlink()
    report(settings, "edit", "Superseded" if as_new else "Changed", result)


@click.command(cls=Command)
@_ids
@selecting
@pass_settings
def pin(settings: Settings, ids: Sequence[str], selection: Selection) -> None:
    """Pin memories."""
    check_named(ids, selection)
    with opened(settings) as memory:
        result = memory.curation.pin(selection.ids(memory, ids, what="to pin them"))
    report(settings, "pin", "Pinned", result)


@click.command(cls=Command)
@_ids
@selecting
@pass_settings
def unpin(settings: Settings, ids: Sequence[str], selection: Selection) -> None:
    """Undo ``pin``."""
    check_named(ids, selection)
    with opened(settings) as memory:
        result = memory.curation.unpin(selection.ids(memory, ids, what="to unpin them"))
    report(settings, "unpin", "No longer pinned", result)


@click.command(cls=Command)
@click.argument("words", nargs=-1, metavar="[ID]... TAG...")
@selecting
@pass_settings
def tag(settings: Settings, words: Sequence[str], selection: Selection) -> None:
    """Add tags to memories."""
    ids, tags = _ids_and_tags(words, selection)
    with opened(settings) as memory:
        result = memory.curation.tag(selection.ids(memory, ids, what="to tag them"), tags)
    report(settings, "tag", "Tagged", result)


@click.command(cls=Command)
@click.argument("words", nargs=-1, metavar="[ID]... TAG...")
@selecting
@pass_settings
def untag(settings: Settings, words: Sequence[str], selection: Selection) -> None:
    """Remove tags from memories."""
    ids, tags = _ids_and_tags(words, selection)
    with opened(settings) as memory:
        result = memory.curation.untag(selection.ids(memory, ids, what="to untag them"), tags)
    report(settings, "untag", "Untagged", result)


def _ids_and_tags(words: Sequence[str], selection: Selection) -> tuple[list[str], list[str]]:
    ids, tags = ([], list(words)) if selection.is_search else ids_first(words)
    if not tags:
        raise click.UsageError("give at least one TAG" if ids or selection.is_search else "give an ID and a TAG")
    return ids, tags


@click.command(cls=Command)
@click.argument("ids", nargs=-1, required=True, metavar="ID ID...")
@click.option("--keep", metavar="ID", help="The memory to keep.  [default: the first]")
@pass_settings
def merge(settings: Settings, ids: Sequence[str], keep: str | None) -> None:
    """Merge memories into one."""
    if len(ids) + (keep is not None and keep not in ids) < 2:
        raise click.UsageError("give at least two memories: ID ID")
    with opened(settings) as memory:
        found = [memory.store.find_id(one) for one in ids]
        kept = memory.store.find_id(keep) if keep is not None else None
        result = memory.curation.merge(found, keep=kept)
    report(settings, "merge", f"Merged {len(result.memories)} memories into", result)


@click.command(cls=Command)
@click.argument("id_", metavar="ID")
@click.option("--part", "parts", metavar="TEXT", multiple=True, help="The text of a part; give at least two.")
@pass_settings
def split(settings: Settings, id_: str, parts: Sequence[str]) -> None:
    """Split a memory into parts."""
    if len(parts) < 2:
        raise click.UsageError("give at least two parts: --part TEXT --part TEXT")
    with opened(settings) as memory:
        result = memory.curation.split(memory.store.find_id(id_), parts)
    report(settings, "split", f"Split into {len(parts)} memories", result)


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
