"""The life of a store, told through the ``memgraph`` command, and what it answers: the net under a change of the storage.

``python -m tests.story`` prints the answers as JSON. Each line of ``story.txt`` is one command of this process, with ``--json``; what no
command can do is a function in `CHAPTERS`. The process has a clock, ids and models of its own, set before memgraph is imported. Nothing
here knows files, segments or sizes: what only a machine, a run or a storage decides is left out by `MACHINE` and `_PATTERNS`.
"""

from __future__ import annotations

import datetime as times
import json
import os
import re
import shlex
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

GOLDENS = Path(__file__).parent / "fixtures" / "goldens"
STORY = GOLDENS / "story.txt"
DIGITS = 6
"""Sums of floats differ between machines in their last digits."""
LEFT_OUT: dict[str, str] = {
    "": "seconds bytes size_bytes db_size_bytes release version rotated_by resealed_by",  # of a machine, or a release
    "all": "sha256 signature fingerprint embedding",  # of the storage, as are those below
    "compact": "baseline_bytes journal_bytes archive_bytes rows removed_texts",
    "embed": "checked",
    "migrate": "journal_sha256",
    "purge": "vectors files ranges rebuilt removed code",
    "repair": "journal witnesses",
    "token": "id token revoked",
    "verify": "vectors nodes edges indexed",
}
"""Fields that are not compared, by the command that prints them; those of the first two by every command."""
_LEFT_OUT = {command: frozenset(fields.split()) for command, fields in LEFT_OUT.items()}
SHAPE_ONLY = {"docs", "completion", "config", "doctor", "worker", "queries"}
"""Commands that tell of a machine, or print a text of the package: of their documents, only the shape is compared."""
_PATTERNS = (
    (r"\b[0-9a-f]{8}-0000-4000-9000-[0-9a-f]{12}\b", "<id of the storage>"),
    (r"\b[0-9a-f]{16}\b", "<token>"),
)
"""Texts that each run, or each storage, has anew; the folder of the run is one more."""
_NAMED = re.compile(r"\{\w+(?:\[\w+\])*\}")
_FEW = 3
Captured = dict[str, Any]


class _Kind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _REAL)


_REAL = times.datetime


class Clock(_REAL, metaclass=_Kind):
    """What stands for `datetime` in the process of the story: its present moves when the story says so."""

    present = _REAL(2026, 3, 20, 9, tzinfo=times.UTC)

    @classmethod
    def now(cls, tz: times.tzinfo | None = None) -> _REAL:  # type: ignore[override]
        return Clock.present.astimezone(tz)

    @classmethod
    def advance(cls, **by: float) -> None:
        Clock.present += times.timedelta(**by)


_NUMBERS = {"8": count(0x0A00_0001), "9": count(0x0B00_0001)}


def _numbered() -> uuid.UUID:
    """Return the next id: what the model asks for is counted apart from what the storage does, so that another storage changes none."""
    kind = "8" if sys._getframe(1).f_code.co_name == "new_id" else "9"
    return uuid.UUID(f"{next(_NUMBERS[kind]):08x}-0000-4000-{kind}000-000000000000")


def prepare(folder: Path) -> None:
    """Give this process its clock, ids, models and places."""
    times.datetime, uuid.uuid4 = Clock, _numbered  # type: ignore[misc]
    for name in [name for name in os.environ if name.startswith(("MEMGRAPH_", "XDG_", "OLLAMA_"))]:
        del os.environ[name]
    os.environ |= {
        "HOME": str(folder),
        "MEMGRAPH_HOME": str(folder / "store"),
        "MEMGRAPH_KEYS_HOME": str(folder / "keys"),
    }
    os.environ |= {
        "MEMGRAPH_WORKER": "off",
        "COLUMNS": "100",
        "PATH": str(folder / "bin"),
        "OLLAMA_HOST": "127.0.0.1:9",
    }
    os.chdir(folder)
    import memgraph.embedding
    from memgraph.testing import FakeEmbedder

    models = {
        "minilm": FakeEmbedder(48, "story"),
        "none": memgraph.embedding.NoEmbedder(),
    }  # vectors in the chapter `tell` have 48
    other = FakeEmbedder(64, "other story")
    memgraph.embedding.default_embedder = lambda config: models.get(config.embedding_model, other)


def lines() -> Iterator[str]:
    """Yield what the story says to do."""
    for line in STORY.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


def told(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Carry out the story; return its answers, by lines, and the shapes of all documents, by commands."""
    answers: dict[str, Any] = {}
    shapes: dict[str, Any] = {}
    captured: Captured = {"inputs": "inputs"}
    seen: Counter[str] = Counter()
    problems: list[str] = []
    normalised = Normalised(folder)
    for line in lines():
        seen[line] += 1
        label = line if seen[line] == 1 else f"{line} ({seen[line]})"
        if line.startswith("+"):
            name, _, number = line[1:].strip().partition("=")
            Clock.advance(**{name: float(number)})
            continue
        if line.startswith("="):
            CHAPTERS[line[1:].strip()](folder)
            continue
        name, _, rest = line.rpartition(" <- ")
        refused = rest.startswith("! ")
        try:
            command, document, code = run(rest.removeprefix("! "), captured)
        except Exception as error:  # noqa: BLE001
            problems.append(f"{label}: {error!r}")
            continue
        if (code == 0) == refused:
            problems.append(f"{label}: exit code {code}: {json.dumps(document)[:300]}")
        if name:
            captured[name] = document
        answers[label] = normalised(document, command or "cat")
        if command and not (isinstance(document, dict) and document.keys() == {"error"}):
            shapes[command] = merged(shapes.get(command), shape(document, folder))
    if problems:
        raise SystemExit("\n".join(["the story cannot be told:", *problems]))
    return answers, dict(sorted(shapes.items()))


def run(line: str, captured: Captured) -> tuple[str, Any, int]:
    """Carry out a line; return the command's name, its document and its exit code."""
    words = [_NAMED.sub(lambda name: str(name[0].format_map(captured)), word) for word in shlex.split(line)]
    if words[0] == "cat":
        return "", contents(Path(words[1])), 0
    given = words.pop() if "<<<" in words else None
    if given is not None:
        words.remove("<<<")
    from click.testing import CliRunner

    from memgraph.interfaces.cli.base.options import Settings
    from memgraph.interfaces.cli.group import cli

    result = CliRunner().invoke(cli, [*words, "--json"], input=given, obj=Settings(), prog_name="memgraph")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return command_of(words), json.loads(result.stdout), result.exit_code


def command_of(words: list[str]) -> str:
    """Return the name of the command in the words of a line, its groups' names included."""
    import click

    from memgraph.interfaces.cli.group import cli

    found, named = cli, []
    for word in words:
        if not isinstance(found, click.Group):
            break
        following = found.get_command(click.Context(found), word)
        if following is None:
            break
        named.append(word)
        found = following
    return " ".join(named)


def contents(path: Path) -> Any:
    """Return the data of a file that a command wrote: JSON, or that of an HTML page."""
    text = path.read_text("utf-8")
    if path.suffix == ".html":
        text = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)[1]  # type: ignore[index]
    return json.loads(text)


class Normalised:
    """What is compared of documents: no empty values, nothing of `LEFT_OUT`, and of a record that was told before only its id."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told: dict[str, Any] = {}

    def __call__(self, value: Any, command: str = "") -> Any:
        word = command.partition(" ")[0]
        return (
            "<shape only>"
            if word in SHAPE_ONLY
            else self._of(value, _LEFT_OUT[""] | _LEFT_OUT["all"] | _LEFT_OUT.get(word, frozenset()))
        )

    def _of(self, value: Any, left_out: frozenset[str]) -> Any:
        match value:
            case dict():
                kept = {key: one for key, one in value.items() if key not in left_out and one not in (None, "", [], {})}
                found = {plain(key, self._folder): self._of(one, left_out) for key, one in kept.items()}
                id_ = value.get("id")
                if isinstance(id_, str) and "id" in found and len(found) > _FEW:
                    if self._told.get(id_) == found:
                        return f"<as before: {plain(id_, self._folder)}>"
                    self._told[id_] = found
                return found
            case list():
                return [self._of(one, left_out) for one in value]
            case float():
                return round(value, DIGITS) + 0.0  # no negative zero
            case str():
                return plain(value, self._folder)
            case _:
                return value


def plain(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "<folder>")
    for pattern, word in _PATTERNS:
        text = re.sub(pattern, word, text)
    return text


def shape(value: Any, folder: Path) -> Any:
    """Return the shape of a document: of an object its keys, of a list what its elements have in common, else the type."""
    match value:
        case dict():
            return {plain(key, folder): shape(one, folder) for key, one in value.items()}
        case list():
            found: Any = None
            for one in value:
                found = merged(found, shape(one, folder))
            return [] if found is None else [found]
        case None:
            return "null"
        case _:
            return type(value).__name__


def merged(one: Any, other: Any) -> Any:
    """Return the shape of what has either of two shapes, as alternatives if they are of different kinds."""
    kinds: dict[str, Any] = {}
    for each in (*_alternatives(one), *_alternatives(other)):
        kind = each if isinstance(each, str) else type(each).__name__
        kinds[kind] = _joined(kinds[kind], each) if kind in kinds else each
    found = [kinds[kind] for kind in sorted(kinds)]
    return {"|": found} if len(found) > 1 else found[0]


def _alternatives(shape: Any) -> list[Any]:
    if shape is None:
        return []
    return list(shape["|"]) if isinstance(shape, dict) and shape.keys() == {"|"} else [shape]


def _joined(one: Any, other: Any) -> Any:
    """Return the shape of two of a kind; a key that only one of them has ends with a question mark."""
    if isinstance(one, list):
        return [merged(one[0], other[0])] if one and other else one or other
    if not isinstance(one, dict):
        return one
    found = {}
    for key in [*one, *(key for key in other if key not in one and f"{key}?" not in one)]:
        bare = key.removesuffix("?")
        sides = [side[name] for side in (one, other) for name in (bare, f"{bare}?") if name in side]
        is_optional = len(sides) == 1 or any(f"{bare}?" in side for side in (one, other))
        found[f"{bare}?" if is_optional else bare] = merged(*sides) if len(sides) == 2 else sides[0]
    return found


def opened() -> Any:
    """Open the store of the story from Python."""
    from memgraph import AgentMemoryStore, MemGraph
    from memgraph.config import load_config

    return MemGraph(AgentMemoryStore(load_config({})))


def _made(name: str) -> Callable[[Path], None]:
    def chapter(folder: Path) -> None:
        from tests.fixtures.stores import make

        with opened() as memory:
            function = getattr(make, name)
            function(*([memory, Clock] if function.__code__.co_argcount == 2 else [memory]))

    return chapter


def _settings(folder: Path) -> None:
    (folder / "store").mkdir(mode=0o700, exist_ok=True)
    agents = '[agents.coach]\ndomain = "health"\nsearch = ["health", "general"]\nread = ["health", "general"]\nwrite = ["health"]\n'
    (folder / "store" / "config.toml").write_text(agents, "utf-8")


def _sources(folder: Path) -> None:
    """Read some of the invented sources, named after their places among the inputs."""
    from memgraph.extraction.readers import BuildLogReader, CiLogReader, JunitReader, SavedGitLogReader
    from tests.fixtures.stores.make import INPUTS, Placed

    (folder / "inputs").symlink_to(INPUTS)
    inputs = folder / "inputs"
    read = [SavedGitLogReader(inputs / "harbour.log"), BuildLogReader(inputs / "builds.jsonl")]
    read += [
        CiLogReader(inputs / "ci.log", project_id="harbour"),
        JunitReader(inputs / "junit/tides-0.xml", project_id="harbour"),
    ]
    with opened() as memory:
        for reader in read:
            memory.ingest(Placed(reader))


def _failures(folder: Path) -> None:
    """Failures that came back after they had been fixed: what rules cannot judge."""
    from tests.unit.lifecycle.distillation.stories import failure, fix

    other = {
        "content": "The export failed: no space in the queue",
        "errors_encountered": [{"type": "OSError", "message": "no space"}],
    }
    again = {**other, "content": "The export works: the queue is emptied first", "outcome": "positive"}
    with opened() as memory:
        memory.store.insert_memories([failure(1), fix(2), failure(3)])
        memory.store.insert_memories([failure(4, **other), failure(5, **again), failure(6, **other)])


def _back(folder: Path) -> None:
    """The old place is used again instead of the one that the store was moved to."""
    (folder / "store" / "moved.json").unlink()


CHAPTERS: dict[str, Callable[[Path], None]] = {
    "settings": _settings,
    "sources": _sources,
    "failures": _failures,
    "back": _back,
    **{name: _made(name) for name in ("tell", "move", "learn")},
}
"""What no command can do, or the frozen stores have done before."""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="story-") as made:
        folder = Path(made).resolve()
        prepare(folder)
        answers, shapes = told(folder)
        os.chdir("/")
    json.dump({"answers": answers, "shapes": shapes}, sys.stdout, ensure_ascii=False, indent=1)


if __name__ == "__main__":
    main()
