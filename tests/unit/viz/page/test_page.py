"""The page as a file: what is on it, what is not, and that nothing a memory says can become more than text."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
import zlib
from pathlib import Path
from uuid import uuid4

import numpy as np
import orjson
import pytest
from click.testing import CliRunner

from memgraph import assets
from memgraph.errors import InvalidInputError, StorageError
from memgraph.fold.history import History, Relevance
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeClock, FakeKeys
from memgraph.text.safe import visible
from memgraph.viz.page.data import _document, chosen_ids, page_data
from memgraph.viz.page.layout import Group, lay_out, packed
from memgraph.viz.page.page import embedded, render, write_page
from memgraph.viz.page.times import Timeline, times_of
from memgraph.viz.page.wording import counted_of, parts_of, sentence_of
from memgraph.viz.series import Point, Series
from tests.growth import assert_grows_linearly

HOSTILE = (
    "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> & \u2028\u2029 \u202egnp.exe 😀 {{title}}"
)
SOURCES = Path(__file__).parents[4] / "visualizations"


def episode(content: str, day: int, **fields):
    return {"type": "episodic", "content": content, "occurred_at": f"2026-01-{day:02d}", "project_id": "shop", **fields}


@pytest.fixture(scope="module")
def store(opened, tmp_path_factory):
    """Three failures, what was learned of them, something hostile, something private, and one that was archived."""
    folder = tmp_path_factory.mktemp("page")
    clock = FakeClock("2026-02-01T09:00:00.000Z")
    with opened(folder, clock, keys=FakeKeys()) as made:
        failures = made.insert_memories(
            [episode(f"The export failed on day {day}", day, outcome="failure", tags=["export"]) for day in (2, 4, 6)]
        )
        made.insert_memory(
            {
                "type": "semantic",
                "content": "The export fails without a lock",
                "outcome": "failure",
                "project_id": "shop",
                "title": "export.py",
                "supporting_memory_ids": [one.id for one in failures],
                "occurred_at": "2026-01-06",
            }
        )
        made.insert_memory(episode(HOSTILE, 10, tags=["<b>"], agents_involved=["<i>"]))
        made.insert_memory(episode("The password is a secret", 11, privacy_tier="private"))
        made.insert_memory(episode("Suppressed", 12, is_suppressed=True))
        clock.advance(days=1)
        made.archive(failures[0].id, reason="told often enough")
        yield made


@pytest.fixture(scope="module")
def data(store):
    return page_data(store)


def column(data, name):
    return data.document["memories"][name]


def test_memories_are_numbered_in_the_order_they_came_with_what_links_them(data):
    texts = [memory.content for memory in data.memories]
    assert [text[:20] for text in texts] == [
        *(f"The export failed on day {day}"[:20] for day in (2, 4, 6)),
        "The export fails without a lock"[:20],
        HOSTILE[:20],
    ]
    assert np.cumsum(column(data, "added")).tolist() == [86_400 * days for days in (0, 2, 4, 4, 8)]
    assert data.document["start"] == 1_767_312_000_000  # 2026-01-02
    assert data.document["links"]["EVIDENCE"] == [0, 3, 1, 3, 2, 3]
    archived = [change for change in data.document["changes"] if change[2] == "archived"]
    assert archived == [[0, 31 * 86_400 + 9 * 3600, "archived"]]
    assert data.document["lives"] == [[0, 0, 31 * 86_400 + 9 * 3600]]
    assert column(data, "type") == "00010"
    assert column(data, "outcome") == "11113"
    assert column(data, "id") == "".join(memory.id[:8] for memory in data.memories)


def test_what_is_private_or_suppressed_is_not_there_unless_it_is_named(store, data):
    assert (data.kept, data.hidden) == ({"episodic": 4, "generalisation": 1, "procedural": 0, "fact": 0}, 2)
    page = render(data, "Shop")
    assert "password" not in page
    assert "2 suppressed, sensitive or private memories are left out." in page
    named = page_data(store, include={"private"})
    assert "The password is a secret" in column(named, "text")
    assert named.hidden == 1


def test_what_the_most_relevant_were_made_of_comes_with_them(store):
    by_relevance = [one.id for one in sorted(page_data(store).memories, key=lambda one: one.content != HOSTILE)]
    lesson = next(one for one in by_relevance if store.get_memory(one).type == "semantic")
    ids = [lesson, *(one for one in by_relevance if one != lesson)]
    sources = [one for one in ids if one in store.get_memory(lesson).supporting_memory_ids]
    assert (len(sources), store.get_memory(ids[1]).content) == (3, HOSTILE)
    assert chosen_ids(store, ids, 2) == [lesson, sources[0]]
    assert chosen_ids(store, ids, 4) == [lesson, ids[1], *sources[:2]]
    assert chosen_ids(store, ids, None) == chosen_ids(store, ids, 5) == ids
    assert chosen_ids(store, [lesson, by_relevance[0]], 1) == [lesson]


def test_the_most_relevant_are_kept_and_the_rest_is_counted(store):
    few = page_data(store, limit=2)
    assert len(few.memories) == 2
    assert (sum(few.kept.values()), few.hidden) == (5, 2)
    assert "3 memories are not on this page, which shows" in render(few, "")
    assert counted_of(few).endswith("map, slider and list show only the 2 on this page.")
    live = next(one["points"] for one in few.document["series"] if one["name"] == "live_memories")
    assert sum(point["count"] for point in live if point["at"] == live[-1]["at"]) > 2  # the charts count them all


def test_a_disc_for_each_generalisation_with_its_evidence_around_it(data):
    discs = data.document["discs"]
    assert [disc[3:] for disc in discs] == [["export.py", 3, 4 * 86_400], ["<b>", -1, 8 * 86_400]]
    places = np.array([column(data, "x"), column(data, "y")]).T
    assert np.hypot(*(places[3] - discs[0][:2])) <= 1
    assert all(np.hypot(*(place - discs[0][:2])) < discs[0][2] for place in places[:3])


def test_no_text_can_end_its_block_and_all_of_it_is_kept(data):
    page = render(data, HOSTILE)
    assert page.count("</script") == 2
    assert "<img" not in page
    assert "<!--" not in page
    assert page.count("<!doctype html>") == 1
    block = re.search(r'<script type="application/json"[^>]*data-packing="none">(.*?)</script>', page, re.DOTALL)
    assert not set("<>&\u2028\u2029") & set(block[1])
    document = json.loads(block[1])
    assert document["memories"]["text"][4] == HOSTILE
    assert document["tags"] == ["export", "failure", "<b>"]
    assert "{{" not in page.replace(block[1], "").replace("{{title}} ·", "").replace("😀 {{title}}", "")


def test_the_policy_admits_the_one_script_and_the_one_style_sheet_and_nothing_else(data):
    page = render(data, "Shop")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    hashes = {}
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        inner = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[1]
        hashes[kind] = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes['script-src']}'; style-src 'sha256-{hashes['style-src']}'; "
        "base-uri 'none'; form-action 'none'"
    )
    outside = {
        found for found in re.findall(r"https?://[^\s\"'<]+", page) if not found.startswith("http://www.w3.org/")
    }
    assert outside == set()
    assert not re.search(
        r"\s(src|srcset|action|on\w+)=|@import|url\(", re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    )


def test_much_data_is_deflated(monkeypatch):
    document = orjson.dumps({"text": [HOSTILE] * 30_000})
    packing, body = embedded(document)
    assert packing == "deflate"
    assert len(body) < len(document) / 10
    assert zlib.decompress(base64.b64decode(json.loads(body))) == document


def test_of_less_relevant_memories_the_beginning_is_given(store, monkeypatch):
    monkeypatch.setattr("memgraph.viz.page.data.FULL_TEXTS", 0)
    short = page_data(store)
    assert short.shortened == 0  # all are shorter than what is cut
    monkeypatch.setattr("memgraph.viz.page.data.SHORT_CHARS", 10)
    short = page_data(store)
    assert short.shortened == 5
    assert column(short, "text")[0] == "The export…"
    assert column(short, "short") == "11111"


def test_the_same_store_gives_the_same_page(store, tmp_path):
    paths = [tmp_path / name for name in ("a.html", "b.html")]
    reports = [write_page(store, path) for path in paths]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert (reports[0].size, reports[0].memories) == (paths[0].stat().st_size, 5)
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["a.html", "b.html"]


def test_a_file_that_cannot_be_written_is_refused_and_nothing_is_left(store, tmp_path):
    with pytest.raises(StorageError, match="cannot be written"):
        write_page(store, tmp_path / "nowhere" / "page.html")
    with pytest.raises(StorageError, match="cannot be written"):
        write_page(store, tmp_path)
    with pytest.raises(InvalidInputError):
        write_page(store, tmp_path / "page.html", since="2026-03-01", until="2026-01-01")
    with pytest.raises(InvalidInputError):
        write_page(store, tmp_path / "page.html", limit=-1)
    assert not list(tmp_path.glob("*page*"))


def test_a_project_that_is_not_there_and_a_single_memory(store):
    nothing = page_data(store, project_id="nowhere")
    assert nothing.memories == []
    assert sentence_of(nothing) == "There are no memories of nowhere."
    page = render(nothing, "What was learned in nowhere")
    assert page.count("<main hidden>") == page.count('aria-labelledby="charts-title" hidden>') == 1
    hidden = page_data(store, since="2026-01-11", until="2026-01-12")
    assert sentence_of(hidden) == "There are no memories that may be shown since 2026-01-11 until 2026-01-12."
    single = page_data(store, until="2026-01-02")
    assert len(single.memories) == 1
    assert single.document["end"] > 0
    assert sentence_of(single) == "On 2 January 2026: 1 memory."


def test_the_sentence_says_how_failures_and_attempts_went(data):
    shares = [
        Point(f"2026-01-0{day}", "builds", value, count)
        for day, value, count in ((1, 0.25, 8), (2, None, 0), (3, 0.5, 10))
    ]
    series = Series("success_rate", "", "share", "", tuple(shares), "day")
    assert parts_of(series, "builds") == ((0.25, 8), (0.5, 10), False)
    many = Series("", "", "share", "", tuple(Point(str(n), "g", n % 2, 5) for n in range(9)), "day")
    assert parts_of(many, "g") == ((0.5, 20), (0.4, 25), True)
    assert parts_of(Series("", "", "share", "", (Point("1", "g", 0.5, 4), Point("2", "g", 0.5, 9))), "g") is None
    told = type(data)(**{**vars(data), "series": [series]})
    assert sentence_of(told).endswith(
        "including 1 generalisation. "
        "Attempts that succeeded rose from 25\u00a0% (of 8) on 1 January 2026 to 50\u00a0% (of 10) on 3 January 2026."
    )


def test_the_sentence_says_why_commits_have_no_outcome(data):
    (first, *others) = data.memories
    commit = first.model_copy(update={"source": "git", "outcome": "positive"})
    why = " 1 is a commit, shown without an outcome: a commit says only that it was made."
    assert why in sentence_of(dataclasses.replace(data, memories=[commit, *others]))
    assert "commit" not in sentence_of(data)


@pytest.mark.long
@pytest.mark.parametrize("chars", [250, 800])
def test_twenty_thousand_memories_take_at_most_four_megabytes(store, data, chars):
    words = ["".join(chr(97 + (number * step) % 26) for step in range(3, 9)) for number in range(3_000)]
    random = np.random.default_rng(7)
    memories, lines, at = [], {}, "2026-01-01T00:00:00.000Z"
    for number in range(20_000):
        text = " ".join(words[place] for place in random.integers(0, len(words), chars // 7))
        one = data.memories[0].model_copy(
            update={
                "id": str(uuid4()),
                "content": text,
                "tags": [words[number % 900], words[number % 7]],
                "build_id": f"build {number // 3}",
            }
        )
        memories.append(one)
        used = (Relevance(at, 0.9, at, is_use=True),) * 3
        lines[one.id] = Timeline(one.id, at, used)
    pairs = [(one.id, memories[number // 10 * 10].id) for number, one in enumerate(memories) if number % 10]
    rank = {one.id: number for number, one in enumerate(memories)}
    times = times_of([one.id for one in memories], lines, History(), at)
    document, shortened = _document(store, memories, times, rank, pairs)
    assert shortened == 15_000
    page = render(dataclasses.replace(data, document={**document, "series": []}, memories=memories), "Many")
    assert len(page.encode()) < 4_000_000


def test_discs_do_not_overlap_and_their_places_are_found_in_linear_time():
    sizes = [int(400 / (number + 1)) + 3 for number in range(300)]
    ends = np.cumsum(sizes).tolist()
    groups = [
        Group(range(end - size, end), has_hub=number % 2 == 0)
        for number, (end, size) in enumerate(zip(ends, sizes, strict=True))
    ]
    assert_grows_linearly(lambda many: lay_out(groups[:many], ends[many - 1]), len(groups))
    layout = lay_out(groups, ends[-1])
    centres, radii = layout.discs[:, :2], layout.discs[:, 2]
    apart = np.hypot(*(centres[:, None] - centres[None]).transpose(2, 0, 1)) - radii[:, None] - radii[None]
    assert apart[~np.eye(len(groups), dtype=bool)].min() > 0
    for group, disc in zip(groups, layout.discs, strict=True):
        assert np.hypot(*(layout.places[list(group.members)] - disc[:2]).T).max() <= disc[2]
    assert np.array_equal(lay_out(groups, ends[-1]).places, layout.places)
    assert packed([]).shape == (0, 2)
    assert lay_out([], 0).places.shape == (0, 2)


def test_projects_stand_apart():
    layout = lay_out([Group([0, 1], project="a"), Group([2, 3], project="b"), Group([4], project="a")], 5)
    a, b = layout.discs[[0, 2], :2].mean(axis=0), layout.discs[1, :2]
    assert np.hypot(*(a - b)) > np.hypot(*(layout.discs[0, :2] - layout.discs[2, :2]))


def test_the_command_says_what_it_wrote_and_left_out(isolated_environment, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    run = CliRunner()
    home = ["--home", str(tmp_path / "new")]
    written = run.invoke(cli, [*home, "viz", "page", str(tmp_path / "out.html")], prog_name="memgraph")
    assert written.exit_code == 0, written.output
    assert written.stdout.startswith(f"Wrote {tmp_path / 'out.html'}: 0 memories, ")
    assert "There are no memories." in (tmp_path / "out.html").read_text("utf-8")
    refused = run.invoke(cli, [*home, "viz", "page", str(tmp_path / "no" / "out.html")], prog_name="memgraph")
    assert refused.exit_code == 1
    assert "cannot be written" in refused.stderr
    for project in ("no-such", "\udcff"):
        arguments = [*home, "viz", "page", str(tmp_path / "none.html"), "--project", project]
        mistyped = run.invoke(cli, arguments, prog_name="memgraph")
        assert (mistyped.exit_code, mistyped.exception.__class__) == (1, SystemExit)
        assert "no memory belongs to project" in mistyped.stderr
        assert not (tmp_path / "none.html").exists()


def sources_hash() -> str:
    found = hashlib.sha256()
    for name in ["build.mjs", *sorted(f"src/{path.name}" for path in (SOURCES / "src").iterdir())]:
        found.update(f"{name}\0".encode() + (SOURCES / name).read_bytes() + b"\0")
    return found.hexdigest()


@pytest.mark.parametrize("name", ["page.js", "page.css"])
def test_the_bundles_are_made_of_the_sources(name):
    """A change in the sources without `npm run build` fails here, with Node or without."""
    bundle = (assets.folder("visualizations") / name).read_text("utf-8")
    assert sources_hash() in bundle.splitlines()[0]


@pytest.mark.skipif(
    not (SOURCES / "node_modules" / "esbuild").is_dir() or shutil.which("node") is None,
    reason="visualizations/node_modules is not installed; the bundles' hashes are compared instead",
)
def test_a_build_gives_the_bundles(tmp_path):
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=SOURCES, check=True, timeout=60)
    for name in ("page.js", "page.css"):
        assert (tmp_path / name).read_bytes() == (SOURCES / name).read_bytes()


def test_modules_of_the_page_are_small():
    sizes = {path.name: len(path.read_text("utf-8").splitlines()) for path in (SOURCES / "src").glob("*.js")}
    assert [name for name, lines in sizes.items() if lines > 260] == []


def test_what_cannot_be_seen_is_written_out_in_headings_as_in_the_script():
    assert visible(" a\t b\r\nc ") == "a b c"
    assert visible("\u202egnp.exe\x07 \u2028😀") == "⟨U+202E⟩gnp.exe⟨U+0007⟩ ⟨U+2028⟩😀"
    assert visible("half \udcff") == "half \ufffd"


def test_a_name_that_is_no_text_is_written(store, tmp_path):
    write_page(store, tmp_path / "odd.html", project_id="\udcff\u202e")
    assert "There are no memories of \ufffd⟨U+202E⟩." in (tmp_path / "odd.html").read_text("utf-8")
