"""``config init`` and ``config show``: write the settings as a commented file, print the effective ones."""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.options import Command, Settings, Subgroup, pass_settings
from memgraph.interfaces.cli.base.output import emit, pairs, plain

if TYPE_CHECKING:
    from memgraph.config import Setting

_WIDTH = 100
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ELSEWHERE = {
    "MEMGRAPH_HOME": "the store's directory, which holds this file",
    "MEMGRAPH_KEY": "the signing key, at least 64 hexadecimal digits, instead of a key file; several are separated by spaces, the active one first",
    "MEMGRAPH_OPENAI_KEY": "the key of the OpenAI-compatible server, if it needs one",
    "MEMGRAPH_SESSION": "the session whose current task is the default of `memgraph task`, recall, search and ask (default of task alone: shell)",
    "MEMGRAPH_LOG": "debug, info, warning or error: the level at which the command line logs on standard error",
    "MEMGRAPH_WORKER": "use (default): reading commands ask the store's worker if one runs; start: they also start one; off: they do not",
    "MEMGRAPH_WORKER_IDLE_S": "seconds without a request after which a worker ends (default: 900)",
    "MEMGRAPH_WORKER_DIR": "the directory of the workers' sockets, locks and logs (default: the user's cache directory)",
}
_SECRET = {"MEMGRAPH_KEY", "MEMGRAPH_OPENAI_KEY"}
_HEADER = (
    "Settings of this memgraph store. Each setting is commented out with its default: remove the '# ' to change it. "
    "Arguments and environment variables take precedence over this file. `memgraph config show` prints the effective "
    "settings and their sources."
)


@click.group(cls=Subgroup)
def config() -> None:
    """Write or show the settings."""


@config.command("init", cls=Command)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@pass_settings
def init(settings: Settings, force: bool) -> None:
    """Write a config.toml that explains every setting, at its default, into the store's directory."""
    from memgraph.config import home_of
    from memgraph.disk.files import make_private_folder, write_private
    from memgraph.journal.opening import refuse_foreign

    home, server = home_of(settings.home)
    path = home / "config.toml"
    if server is None:
        refuse_foreign(home)
    if path.exists() and not force:
        raise Refused(f"{path} already exists; --force replaces it")
    make_private_folder(path.parent)
    write_private(path, default_text().encode())
    emit(settings, {"path": str(path)}, f"Wrote {plain(str(path))}.")


@config.command("show", cls=Command)
@pass_settings
def show(settings: Settings) -> None:
    """Print each setting's value and its source. Secrets are never shown."""
    from memgraph.config import config_path, settings_in_force

    found = settings_in_force({"home": settings.home})
    path = config_path(settings.home)
    variables = {name: _variable(name) for name in _ELSEWHERE if name != "MEMGRAPH_HOME"}
    document = {
        "file": {"path": str(path), "present": path.is_file()},
        "settings": {
            one.name: {"value": _plain_value(one.value), "source": one.source, "variable": one.variable}
            for one in found
        },
        "environment": variables,
    }
    rows = [(one.name, f"{plain(_toml(one.value))}  ({_origin(one)})") for one in found]
    rows += [(name, f"{value or 'not set'}  (environment)") for name, value in variables.items()]
    emit(settings, document, [f"file  {plain(str(path))}: {'present' if path.is_file() else 'none'}", *pairs(rows)])


def default_text() -> str:
    """Return the text of a settings file in which every setting is commented out, generated from the model."""
    from memgraph.config import OUTSIDE_THE_STORE, AgentMemoryConfig, default_settings

    schema = AgentMemoryConfig.model_json_schema(by_alias=False)
    lines = [*_comment(_HEADER), "#", *_comment("Environment variables that have no setting here:")]
    for name, meaning in _ELSEWHERE.items():
        lines += _comment(f"  {name}: {meaning}")
    for one in default_settings():
        if one.name in OUTSIDE_THE_STORE:
            lines += _comment(f"  {one.variable}: {one.meaning}")
    table = ""
    defaults = [one for one in default_settings() if one.name not in {"home", *OUTSIDE_THE_STORE}]
    for one in sorted(
        defaults, key=lambda one: "." in one.name
    ):  # in TOML, all lines after a table's header belong to it
        head, _, name = one.name.rpartition(".")
        field = schema["properties"][head or name]
        if head:
            if head != table:
                lines += ["", *_comment(str(field["description"])), f"[{head}]"]
            field = schema["$defs"][field["$ref"].rpartition("/")[2]]["properties"][name]
        table = head
        lines += ["", *_comment(f"{one.meaning}{_values(field)}")]
        if one.variable:
            lines += _comment(f"Environment: {one.variable}")
        lines.append(f"# {name} = {_toml(one.default)}")
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")


def _values(field: dict[str, Any]) -> str:
    """Return a sentence on the values a setting may have, from its JSON schema."""
    if "enum" in field:
        return f" One of {', '.join(_toml(value) for value in field['enum'])}."
    if field.get("type") == "boolean":
        return " Either true or false."
    bounds = list(_bounds(field))
    return f" {' and '.join(bounds).capitalize()}." if bounds else ""


def _bounds(field: dict[str, Any]) -> Iterator[str]:
    words = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}
    for name, word in words.items():
        if name in field and field[name] < 2**31 - 1:
            yield f"{word} {field[name]:g}"


def _toml(value: Any) -> str:
    """Return a value in TOML: JSON's strings, numbers, lists, true and false are valid TOML. A table is written in one line, without nulls."""
    found = _plain_value(value)
    if not isinstance(found, dict):
        return json.dumps(found, ensure_ascii=False)
    parts = (f"{_key(name)} = {_toml(part)}" for name, part in found.items() if part is not None)
    return f"{{{', '.join(parts)}}}"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _plain_value(value: Any) -> Any:
    """Return a value as JSON has it."""
    from pydantic import TypeAdapter

    return TypeAdapter(Any).dump_python(value, mode="json")


def _origin(one: Setting) -> str:
    return f"environment: {one.variable}" if one.source == "environment" else one.source


def _variable(name: str) -> str | None:
    """Return an environment variable's value, or ``set`` for a secret."""
    value = os.environ.get(name)
    return "set" if value and name in _SECRET else value or None
