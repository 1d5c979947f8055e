"""Edits of rows, graph, index or views of the past without the key, with unchanged file times, are never served and never derived from.

The short form makes several edits at once; ``--long`` makes 1,000, and 400 flips of random bytes, one at a time (``-s`` shows a table).
"""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import memgraph
from memgraph import MemGraph
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeEmbedder
from tests.crash.conftest import Scene
from tests.crash.forging import Attacker, Forgery, Known, flip, put, timeless
from tests.engines import vendor_name
from tests.projections import INDEX, keep

BIRDS = "Albatross Bullfinch Cormorant Dotterel Eiderduck Flamingo Goldfinch Hornbill Kingfisher Lapwing Mockingbird Nightingale".split()
TREES = "Alderwood Basswood Cottonwood Driftwood Elderberry Firethorn Greengage Hackberry Juniperus Larchwood Mahogany Nutmegtree".split()
STEPS = "1. Run the checks. 2. Write the changelog. 3. Tag the release. 4. Push the tag."
PAST = "2026-02-15"
QUERY = "MATCH (m:Memory) RETURN m.id, m.content, m.title, m.tags, m.outcome"


class Lab:
    """A store of distinct texts, used through the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "store"

    def run(self, *args: str) -> tuple[int, str, str]:
        """Run a command in this process, and return exit code, output and errors. A crash would end the tests."""
        settings = {
            "MEMGRAPH_HOME": str(self.home),
            "MEMGRAPH_KEYS_HOME": str(self.folder / "keys"),
            "MEMGRAPH_ENGINE": vendor_name(),
        }
        result = CliRunner().invoke(cli, list(args), env=settings, prog_name="memgraph")
        assert isinstance(result.exception, SystemExit | None), (args, result.exception)
        return result.exit_code, result.stdout, result.stderr

    def did(self, *args: str) -> str:
        """Run a command that must succeed, and return its output."""
        code, output, errors = self.run(*args)
        assert code == 0, (args, errors)
        return output

    def open(self) -> memgraph.AgentMemoryStore:
        """Open the store."""
        config = memgraph.AgentMemoryConfig(home=self.home, keys_home=self.folder / "keys", engine=vendor_name())
        return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64))

    def copy(self, folder: Path) -> Lab:
        """Return a copy elsewhere."""
        shutil.copytree(self.folder, folder)
        return Lab(folder)

    def journal(self) -> str:
        """Return what the events say."""
        return b"".join(Scene(self.folder, "", "").lines).decode()


@pytest.fixture(scope="module", autouse=True)
def _fake_model() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("memgraph.store.store", "memgraph.embedding"):
            patch.setattr(f"{module}.default_embedder", lambda _model="minilm": FakeEmbedder(dimension=64))
        yield


@pytest.fixture(scope="module")
def known() -> Known:
    return Known([*BIRDS, *TREES], [f"{bird} and {tree}" for bird, tree in zip(BIRDS, TREES, strict=True)], BIRDS, [])


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, known: Known) -> Lab:
    """Make a store whose graph, log, index and view of the past all hold texts."""
    lab = Lab(tmp_path_factory.mktemp("forgery") / "one")
    with lab.open() as store:
        for number, (bird, tree) in enumerate(zip(BIRDS, TREES, strict=True)):
            episode = {
                "type": "episodic", "content": f"The {bird} nests in the {tree}", "title": f"{bird} and {tree}",
                "tags": [bird.lower(), "birds"], "outcome": "success", "project_id": "shop", "build_id": f"b{number}",
                "occurred_at": f"2026-02-{number + 1:02}T09:00:00.000Z",
            }  # fmt: skip
            known.ids.append(store.insert_memory(episode).id)
        for number in range(1, 4):
            MemGraph(store).save_episode(
                f"Release version 1.{number}", reasoning="All checks were green.", action=STEPS, outcome="success",
                project="shop", build_id=f"r{number}",
            )  # fmt: skip
        store.rebuild()
        store.insert_memory({"type": "episodic", "content": "The Albatross has left the Basswood for the Nutmegtree"})
        assert MemGraph(store).recall("where does the Lapwing nest").memories
    lab.did(*READERS["query"])
    lab.did("list", "--as-of", PAST)  # last: from here on it is kept under this name
    assert Attacker(lab.home, known, random.Random(0)).graph.stat().st_size
    return lab


READERS: dict[str, Sequence[str]] = {
    "recall": ("recall", "where do Kingfisher and Hornbill nest"),
    "list": ("list", "--json"),
    "search": ("search", "The Flamingo nests", "--limit", "20"),
    "query": ("query", "--json", "--cypher", QUERY),
    "export": ("export",),
    "show": ("show", "ID"),
    "stats": ("stats", "--json"),
    "named query": ("query", "coverage_by_project", "--json"),
    "as of": ("list", "--json", "--as-of", PAST),
    "verify": ("verify", "--deep"),
    "sleep": ("sleep",),
    "compress": ("compress",),
}

_ALL = {*BIRDS, *TREES}
SHOWN = {
    **dict.fromkeys(("list", "query", "export", "search", "as of"), _ALL), "recall": {"Kingfisher"}, "show": {BIRDS[3], TREES[3]},
}  # fmt: skip
"""The output that readers must show."""
GRAPH_WAYS = (["rows", "graph", *["rows"] * 3], ["rows and their codes"] * 6, ["graph", *["rows"] * 4])
MAIN = ("rows", "rows and their codes", "graph")
PAST_PLACES = ("past: rows", "past: index")
OF_INDEX = "the index snapshot"
OF_GRAPH = (
    "is not what was written",
    "no valid code",
    "do not match their digest",
    "is damaged",
    "is not as this store wrote it",
)
QUIET = "nothing said: not looked at, or the journal was used instead"
FIRST = ("recall", "query", "export")
"""The first reader in the short form, one for each way of changing the graph."""


def noticed(errors: str, where: str) -> str:
    """Return a command's message about damage, without paths and numbers."""
    known = [OF_INDEX] if "index" in where else OF_GRAPH
    return next((what for what in known if what in errors), QUIET)


def ask(lab: Lab, name: str, known: Known, forgeries: Sequence[Forgery]) -> str:
    """Run a command on a forged store, check that its output is true, and return its messages."""
    made = [(one.where, one.what) for one in forgeries]
    code, output, errors = lab.run(*(known.ids[3] if part == "ID" else part for part in READERS[name]))
    if name == "verify" and code:  # it says what it has found
        assert "differences from the journal" in errors, (made, errors)
        lab.did("rebuild")
        code, output, errors = lab.run(*READERS[name])
    assert code == 0, (name, made, errors)
    assert {word for word in SHOWN.get(name, ()) if word not in output} == set(), (name, made)
    journal = lab.journal()
    for mark in (mark for one in forgeries for mark in one.marks):
        assert mark not in output + errors, (name, made)
        assert mark not in journal, (name, made)
    return errors


@pytest.fixture
def copies(template: Lab, tmp_path: Path) -> Iterator[Callable[[], Lab]]:
    """Return copies of the store, one at a time."""
    made: list[Path] = []

    def copy() -> Lab:
        if made:
            shutil.rmtree(made[-1])
        made.append(tmp_path / f"copy{len(made)}")
        return template.copy(made[-1])

    return copy


def test_nothing_forged_is_served_or_derived_from(
    copies: Callable[[], Lab], known: Known, show: Any, is_long: bool
) -> None:
    chance = random.Random(20_260_201)
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    first: Counter[str] = Counter()
    names = list(READERS)
    began, edits, trials = time.monotonic(), 0, 0
    while edits < (1_000 if is_long else 24):
        lab = copies()
        attacker = Attacker(lab.home, known, chance)
        if is_long:
            name, where = chance.choice(names), [MAIN[trials % len(MAIN)], "index", PAST_PLACES[trials % 2]]
        else:  # each way of changing the graph in turn, and all else beside it
            name, way = FIRST[trials], GRAPH_WAYS[trials]
            where = [*way, "index", *PAST_PLACES]
        forgeries = [attacker.forge(place) for place in where]
        edits, trials = edits + len(forgeries), trials + 1
        first[name] += 1
        # before anything is written, after which the view is no longer that of the journal's end
        past = ask(lab, "as of", known, forgeries) if is_long or trials == 1 else ""
        said = ask(lab, name, known, forgeries)
        for one in forgeries:
            how = noticed(past if one.where in PAST_PLACES else said, one.where)
            counts[one.where, one.what][how if is_long else "among others"] += 1
        if is_long and trials % 30 == 0:
            for other in names:
                ask(lab, other, known, forgeries)
    rows = [
        (*key, ", ".join(f"{count} {how}" for how, count in found.items())) for key, found in sorted(counts.items())
    ]
    title = f"{edits} edits of the same length, times kept, in {time.monotonic() - began:.0f} s: none served, none derived from"
    show(f"{title} ({vendor_name()})", ("where", "what", "how it was noticed"), rows)
    show("Who read first", ("command", "times"), first.most_common())


def test_sleep_derives_nothing_from_forged_data(template: Lab, tmp_path: Path, known: Known, rows: Any) -> None:
    """Otherwise a procedure with a forged last step would be proposed, signed and stored."""
    lab = template.copy(tmp_path / "copy")
    with timeless(lab.home / "memgraph.db") as raw:
        edit = "UPDATE node SET body = CAST(replace(CAST(body AS TEXT), 'Push the tag', 'Mail the key') AS BLOB)"
        assert raw.execute(f"{edit} WHERE CAST(body AS TEXT) LIKE '%Push the tag%'").rowcount > 0
    code, _, errors = lab.run("sleep")
    assert code == 0
    row = rows["rows, graph or index are edited, with lengths, times and digests adjusted to match"]
    assert [row.fits(line.removeprefix("memgraph: ")) for line in errors.splitlines()] == [True]
    lab.did("verify", "--deep")
    proposals = lab.did("proposals")
    assert "Push the tag" in proposals
    assert "Mail the key" not in proposals + lab.journal()


def test_a_view_of_the_past_is_not_accepted_as_the_store_or_another_view(template: Lab, tmp_path: Path) -> None:
    """All of them claim the journal's end as their position, and are written with this store's key."""
    lab = template.copy(tmp_path / "copy")
    later, earlier = PAST, "2026-02-05"
    lab.did("list", "--as-of", earlier)
    (other,) = (lab.home / "past" / path.name for path in (template.home / "past").iterdir())
    (view,) = (path for path in (lab.home / "past").iterdir() if path != other)
    keep(view, other)
    keep(view, lab.home, [INDEX])
    with timeless(lab.home / "memgraph.db") as raw:  # its rows: the events lie beside them
        raw.execute("ATTACH ? AS view", (str(view / "memgraph.db"),))
        for table in ("edge", "node", "gone", "state"):
            raw.execute(f"DELETE FROM main.{table}")
            raw.execute(f"INSERT INTO main.{table} SELECT * FROM view.{table}")
    for command in (("list", "--json"), ("list", "--json", "--as-of", later)):
        output = lab.did(*command)
        assert [bird for bird in BIRDS if bird not in output] == [], command
    lab.did("verify", "--deep")


def test_flipped_bytes_are_repaired_or_change_nothing(
    copies: Callable[[], Lab], known: Known, show: Any, is_long: bool
) -> None:
    chance = random.Random(400)
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    commands = list(READERS)
    began, total = time.monotonic(), 400 if is_long else 8
    for number in range(total):
        lab = copies()
        attacker = Attacker(lab.home, known, chance)
        past = next((lab.home / "past").iterdir())
        paths = (attacker.graph, lab.home / "index" / "index.npz", past / "memgraph.db", past / "index" / "index.npz")
        path = paths[number % len(paths)]
        where = flip(path, chance)
        name = "as of" if path.is_relative_to(past) else chance.choice(commands)
        place = str(path.relative_to(lab.home).parts[0]) + "/" + path.name
        outcomes[place][noticed(ask(lab, name, known, [Forgery(where, "a byte")]), place)] += 1
        if is_long and number % 19 == 0:
            assert lab.run("doctor")[0] in {0, 1}, where
            ask(lab, "verify", known, [])
            problems = json.loads(lab.run("doctor", "--json")[1])["errors"]
            assert [one for one in problems if "the model is" not in one] == [], where  # that is the tests'
    rows = [(path, ", ".join(f"{count} {how}" for how, count in found.items())) for path, found in outcomes.items()]
    title = f"{total} flips of random bytes, times kept, in {time.monotonic() - began:.0f} s ({vendor_name()})"
    show(title, ("where", "how it was noticed"), rows)


def test_forged_events_are_never_shown(template: Lab, tmp_path: Path, known: Known) -> None:
    """Whoever can write the database's file changes texts of the events, in place."""
    lab = template.copy(tmp_path / "lab")
    Scene(lab.folder, "", "").settle()
    path = lab.home / "memgraph.db"
    data = path.read_bytes()
    for bird in BIRDS:
        data = data.replace(bird.encode(), b"Zq" + bird[2:].encode())
    put(path, data)
    gone = known.ids[3]
    for args in (
        *READERS.values(),
        ("history", gone),
        ("delete", gone, "--yes"),
        ("list", "--deleted"),
        ("undelete", gone),
    ):
        _, output, errors = lab.run(*(gone if one == "ID" else one for one in args))
        assert not re.search(r"Zq[a-z]{4}", output + errors), args
    assert lab.run("verify")[0] != 0
    assert lab.run("rebuild")[0] != 0
