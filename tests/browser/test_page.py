"""The page in a real browser: it draws, replays, searches, goes where one clicks, asks for nothing, and runs nothing foreign."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from memgraph import AgentMemoryStore, MemoryCommands
from memgraph.config import AgentMemoryConfig
from memgraph.model.memory import AttemptFields
from memgraph.testing import FakeClock, FakeEmbedder, FakeKeys
from memgraph.viz.page.page import write_page
from tests.unit.viz.conftest import fill_trials

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: the page is tested in a real browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: the page is tested in a real browser")

HOSTILE = (
    "</script><script>document.title='run'</script><img src=x onerror=\"document.title='run'\"> "
    "\u0007 \u202egnp.exe\u202c 😀 " + "long words " * 63
)[:800]
ODD_NAMES = [
    "a very long name of a project that goes on and on and on, longer than any map is wide, and then some",
    "x" * 120,
    "\u202egnp.exe \u0007",
    "../../etc",
    "short",
    "long again, and again, and again, and again, and again",
]
WRITTEN = """
  window.written = [];
  const write = CanvasRenderingContext2D.prototype.fillText;
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    if (this.canvas.id === "over") window.written = [];
    return clear.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const half = this.measureText(text).width / 2;
    window.written.push([text, x - half, y - 9, x + half, y + 2]);
    return write.call(this, text, x, y);
  };
"""
"""Keeps what is written on the map, and where."""
TITLE = "What was learned in shop, 2 January 2026 to 14 January 2026 · memgraph"
SPAN_DAYS = 31 + 9 / 24  # from 2 January to 2 February, 9:00
DAYS = {"alpha": 2, "beta": 4, "gamma": 6, "lesson": 6, "hostile": 10, "old": 12, "new": 14}


def episode(content: str, day: int, **fields):
    return {"type": "episodic", "content": content, "occurred_at": f"2026-01-{day:02d}", "project_id": "shop", **fields}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    clock = FakeClock("2026-02-01T09:00:00.000Z")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(), clock=clock, keys=FakeKeys()) as store:
        of_failure = {"outcome": "failure", "tags": ["export"], "build_id": "build-7", "git_commit": "c0ffee12345678"}
        sources = store.insert_memories(
            [episode(f"Export {name} failed", DAYS[name], **of_failure) for name in ("alpha", "beta", "gamma")]
        )
        lesson = {
            "type": "semantic",
            "content": "Exports fail without a lock",
            "outcome": "failure",
            "project_id": "shop",
        }
        ids = [one.id for one in sources]
        store.insert_memory({**lesson, "supporting_memory_ids": ids, "occurred_at": "2026-01-06", "title": "export.py"})
        store.insert_memory(episode(HOSTILE, DAYS["hostile"], outcome="partial"))
        old = store.insert_memory(episode("The port is 80", DAYS["old"], outcome="success"))
        new = store.insert_memory(episode("The port is 443", DAYS["new"], outcome="success", agents_involved=["ann"]))
        clock.advance(days=1)
        store.supersede(old.id, by=new.id)
        store.archive(ids[0])
        write_page(store, folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module")
def odd_files(tmp_path_factory):
    """Pages of projects with odd names, in which something was replaced, settled and taken back; of nothing; and a broken one."""
    folder = tmp_path_factory.mktemp("odd")
    clock = FakeClock("2026-02-01T09:00:00.000Z")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(), clock=clock, keys=FakeKeys()) as store:
        write_page(store, folder / "empty.html")
        store.insert_memories(
            [
                {"type": "episodic", "content": f"Event {day}", "project_id": name, "tags": [f"{name} {day % 2}"]}
                for name in ODD_NAMES
                for day in range(9)
            ]
        )
        said = ["The port is 80", "The port is 81", "The port is 82"]
        first, second, third = store.insert_memories(
            [{"type": "episodic", "content": text, "project_id": ODD_NAMES[0]} for text in said]
        )
        clock.advance(days=2)
        store.link(first.id, "CONTRADICTS", second.id)
        clock.advance(days=2)
        store.supersede(first.id, by=second.id)
        store.supersede(second.id, by=third.id)
        clock.advance(days=2)
        store.delete_memory(third.id)
        clock.advance(days=2)
        store.record_access(second.id)
        write_page(store, folder / "odd.html")
    text = (folder / "odd.html").read_text("utf-8")
    (folder / "broken.html").write_text(text.replace('data-packing="none">', 'data-packing="deflate">["'), "utf-8")
    return {name: folder / f"{name}.html" for name in ("empty", "odd", "broken")}


@pytest.fixture(scope="module")
def browser():
    """Chromium for this module alone: while it runs, an event loop does, and no other test could run one of its own."""
    with playwright.sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def opened(browser, page_file):
    """Open the page, keeping what it asks for and complains of."""
    contexts = []

    def open_one(width=1280, height=900, *, file=page_file, ready="html[data-ready]", script="", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.asked, page.complaints = [], []
        page.add_init_script(script)
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        context.route("**/*", lambda route: route.continue_() if route.request.url == file.as_uri() else route.abort())
        page.goto(file.as_uri())
        page.wait_for_selector(ready)
        return page

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def wide(opened):
    return opened(color_scheme="light")


@pytest.fixture
def page(wide):
    """The wide page as it was when it opened."""
    yield wide
    wide.keyboard.press("Escape")  # what is open
    wide.locator("#words").press("Escape")  # what was looked for
    go_to(wide, 1000)


def go_to(page, value: int) -> dict[str, str]:
    page.locator("#slider").fill(str(value))
    return page.locator("#time").evaluate("one => ({...one.dataset})")


def at_day(page, day: int) -> dict[str, str]:
    """Move the slider to the first step at or after a day of January."""
    return go_to(page, int(1000 * (day - 2) / SPAN_DAYS) + 1)


def drawn(page) -> int:
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return int(page.locator("#nodes").get_attribute("data-shown"))


def pixel(page, number: int) -> dict[str, float]:
    """Return where a memory is drawn, from the data and the map's view."""
    document = json.loads(page.locator("#data").text_content())
    scale, left, top = (float(one) for one in page.locator("#over").get_attribute("data-view").split())
    columns = document["memories"]
    return {"x": columns["x"][number] * scale + left, "y": columns["y"][number] * scale + top}


def test_it_says_what_it_shows(page):
    assert page.title() == TITLE
    assert page.locator("h1").text_content() == "What was learned in shop"
    opening = page.locator(".opening").text_content()
    assert opening.startswith("From 2 January 2026 to 14 January 2026: 7 memories, including 1 generalisation.")
    assert int(page.locator("html").get_attribute("data-ready")) < 2_000


@pytest.mark.parametrize(
    ("day", "live", "shown"),
    [
        (3, 1, 1),
        (7, 4, 4),
        (13, 6, 6),
        (33, 5, 7),
    ],  # at the end one is archived and one replaced: out of force, still drawn
)
def test_the_slider_replays_what_was_in_force(page, day, live, shown):
    told = at_day(page, day) if day < 32 else go_to(page, 1000)
    assert int(told["live"]) == live
    assert told["date"][:10] == f"2026-01-{day:02d}" if day < 32 else told["date"][:10] == "2026-02-02"
    assert f"{live} memor" in page.locator("#live").text_content()
    assert drawn(page) == shown


def test_keys_step_through_time_and_play(page):
    go_to(page, 0)
    page.locator("#over").focus()
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator("#time").get_attribute("data-date") == "2026-01-04T00:00:00.000Z"
    page.keyboard.press("Shift+ArrowLeft")
    assert page.locator("#time").get_attribute("data-date") == "2026-01-02T00:00:00.000Z"
    page.keyboard.press("ArrowRight")
    assert page.locator("#slider").input_value() == "10"
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Pause"
    page.wait_for_function("() => Number(document.getElementById('slider').value) > 12")
    page.keyboard.press("Space")
    assert page.locator("#play").get_attribute("aria-label") == "Play"


def test_search_finds_lists_and_dims(page):
    page.locator("#over").focus()
    page.keyboard.press("/")
    page.keyboard.type("port is")
    page.get_by_text("2 memories found").wait_for()
    assert [row.text_content() for row in page.locator("#results .row bdi").all()] == [
        "The port is 443",
        "The port is 80",
    ]
    assert page.locator("#results .row").nth(1).locator(".meta").text_content() == "12 Jan 2026 · superseded"
    assert page.locator("#time").get_attribute("data-matching") == "1"
    page.keyboard.press("Escape")
    page.get_by_text("Best supported lessons").wait_for()
    page.locator('[data-filter="that 1"]').uncheck()
    assert page.locator("#results h2").text_content() == "3 memories found"
    page.locator('[data-filter="that 1"]').check()


def test_a_click_on_the_map_opens_a_memory_and_leads_to_its_evidence_and_back(page):
    page.locator("#over").click(position=pixel(page, 3))
    details = page.locator("#details")
    assert details.locator(".content").text_content() == "Exports fail without a lock"
    made_of = details.locator('[data-part="Derived from"]')
    assert [row.text_content() for row in made_of.locator("bdi").all()] == ["Export beta failed", "Export gamma failed"]
    made_of.get_by_text("Show 1 archived").click()
    assert made_of.locator("bdi").nth(2).text_content() == "Export alpha failed"
    made_of.locator(".row").nth(0).click()
    assert details.locator(".content").text_content() == "Export beta failed"
    assert details.locator(".state").all_text_contents()[0] == "in force"
    details.locator('[data-part="Derived from it"] .row').click()
    assert details.locator(".content").text_content() == "Exports fail without a lock"
    page.keyboard.press("Escape")
    assert details.is_hidden()


def test_a_build_and_a_commit_lead_to_what_else_came_of_them(page):
    page.locator("#over").click(position=pixel(page, 1))
    facts = page.locator("#details .facts")
    assert facts.get_by_role("button", name="c0ffee123456").count() >= 1
    facts.get_by_text("build-7").click()
    assert page.locator("#results h2").text_content() == "3 memories found"
    assert page.locator("#words").input_value() == "build-7"


def test_a_hostile_text_is_read_whole_and_does_nothing(page):
    page.locator("#over").click(position=pixel(page, 4))
    shown = page.locator("#details .content").text_content()
    assert shown.startswith("</script><script>document.title='run'</script><img src=x onerror=")
    assert "⟨U+0007⟩ ⟨U+202E⟩gnp.exe⟨U+202C⟩ 😀" in shown
    assert len(shown.replace("⟨U+0007⟩", "").replace("⟨U+202E⟩", "").replace("⟨U+202C⟩", "")) == len(HOSTILE) - 3
    assert page.title() == TITLE
    assert page.locator("img, iframe, object, link").count() == 0


def test_charts_tell_what_they_count_and_follow_the_slider(page):
    chart = page.locator('[data-series="live_memories"]')
    assert "in force at the end of the bucket" in chart.locator("details").text_content()
    line = chart.locator(".now-line")
    end = float(line.get_attribute("x1"))
    at_day(page, 3)
    assert float(line.get_attribute("x1")) < end / 2


def test_dark_follows_the_system_and_the_button(opened):
    dark = opened(color_scheme="dark")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    was = dark.evaluate(ground)
    assert sum(int(one) for one in re.findall(r"\d+", was)) < 120
    dark.locator("#theme-button").click()
    assert sum(int(one) for one in re.findall(r"\d+", dark.evaluate(ground))) > 600
    assert dark.complaints == []


def test_a_narrow_screen_needs_no_sideways_scrolling(opened):
    narrow = opened(width=390, height=844, reduced_motion="reduce")
    narrow.locator("#results .row").first.click()
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 390
    assert narrow.locator("#details .content").is_visible()
    boxes = [narrow.locator(one).bounding_box() for one in (".map", "#panel", "#charts")]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
    assert boxes[1]["y"] + boxes[1]["height"] <= boxes[2]["y"]
    assert narrow.complaints == []


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.long)])
def test_names_on_the_map_are_whole_apart_and_harmless(opened, odd_files, width):
    page = opened(width=width, file=odd_files["odd"], script=WRITTEN)
    drawn(page)
    written = page.evaluate("window.written")
    zoom = page.evaluate(
        "() => { const one = document.querySelector('.zoom'); "
        "return ['zoom', one.offsetLeft, one.offsetTop, one.offsetLeft + one.offsetWidth, one.offsetTop + one.offsetHeight]; }"
    )
    assert len(written) >= 4
    places = [*written, zoom]
    for number, (text, left, top, right, bottom) in enumerate(places):
        assert 0 <= left < right <= page.locator("#over").bounding_box()["width"], text
        for other, x0, y0, x1, y1 in places[number + 1 :]:
            assert right <= x0 or x1 <= left or bottom <= y0 or y1 <= top, (text, other)
    texts = [text for text, *_ in written]
    assert not re.search("[\x00-\x1f\u202a-\u202e]", "".join(texts))
    assert any(text.startswith("⟨U+202E⟩gnp") for text in texts)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.complaints == []


def test_what_was_replaced_is_back_once_the_newer_one_is_gone(opened, odd_files):
    page = opened(file=odd_files["odd"])
    page.locator("#words").fill("port is")
    page.get_by_text("2 memories found").wait_for()
    states = []
    for day in (1, 3, 5, 7):
        go_to(page, 1000 * day // 8)
        page.locator("#results .row", has_text="The port is 81").click()
        states.append([one for one in page.locator("#details .state").all_text_contents() if "relevance" not in one])
        page.keyboard.press("Escape")
    assert states == [["in force"], ["in force", "contradicted"], ["superseded"], ["in force"]]
    label = page.locator('[data-series="live_memories"] .bucket')
    assert label.text_content() == "8 Feb 2026"


def test_what_still_fails_is_listed_first_as_of_the_time_shown(opened, tmp_path):
    config = AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(), clock=FakeClock(), keys=FakeKeys()) as store:
        fill_trials(store)
        write_page(store, tmp_path / "trials.html")
    page = opened(file=tmp_path / "trials.html")

    def lists() -> list[tuple[str, list[str], list[str]]]:
        page.wait_for_timeout(120)
        return [
            (
                block.locator("h2").text_content(),
                block.locator("b").all_text_contents(),
                block.locator(".meta").all_text_contents(),
            )
            for block in page.locator("#results .block").all()
        ]

    assert lists() == [
        ("Still failing (2)", ["env_1", "env_2"], ["failed 3 of 3 attempts"] * 2),
        (
            "Solved since (4)",
            ["env_3", "env_4", "env_5"],
            ["failed 2 of 3 attempts, solved in trial 2", *["failed 1 of 3 attempts, solved in trial 1"] * 2],
        ),
    ]
    assert page.locator("#results h2").last.text_content() == "Best supported lessons"
    page.get_by_text("Show 1 more").click()
    assert lists()[1][1] == ["env_3", "env_4", "env_5", "env_6"]
    go_to(page, 500)
    assert [(head, names) for head, names, _ in lists()] == [
        ("Still failing (3)", ["env_1", "env_2", "env_3"]),
        ("Solved since (3)", ["env_4", "env_5", "env_6"]),
    ]
    words = page.locator('[data-list="failing"] .words').all_text_contents()
    assert [one.partition(" I ")[0] for one in words] == [
        f"env_{n} … at the {n}th door of the house." for n in (1, 2, 3)
    ]
    go_to(page, 0)
    assert [(head, len(names)) for head, names, _ in lists()] == [("Failing (6)", 6)]
    page.locator('[data-list="failing"] .row').first.click()
    assert "House env_1" in page.locator("#details .content").text_content()
    assert "trials" not in "".join(page.locator("#details .state").all_text_contents())
    assert page.complaints == []


def test_of_lessons_with_as_much_evidence_the_surest_comes_first(opened, tmp_path):
    config = AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(), clock=FakeClock("2026-02-01T09:00:00.000Z")) as store:
        for day, (name, sure, many) in enumerate([("Sure", 0.9, 2), ("Often seen", 0.1, 3), ("Unsure", 0.2, 2)], 1):
            events = [episode(f"{name} {number}", day) for number in range(many)]
            ids = [one.id for one in store.insert_memories(events)]
            lesson = {
                "type": "semantic",
                "content": f"{name} of it",
                "confidence": sure,
                "occurred_at": f"2026-01-{day:02d}",
            }
            store.insert_memory({**lesson, "project_id": "shop", "supporting_memory_ids": ids})
        write_page(store, tmp_path / "lessons.html")
    page = opened(file=tmp_path / "lessons.html")
    assert page.locator("#results .words").all_text_contents() == ["Often seen of it", "Sure of it", "Unsure of it"]


def test_a_task_without_a_memory_is_counted_and_a_remembered_rule_is_a_fact(opened, tmp_path):
    config = AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(), clock=FakeClock(), keys=FakeKeys()) as store:
        fill_trials(store)
        for memory in store.query_by_type("episodic"):
            if "env_2" in memory.content:
                store.suppress(memory.id)
            if "env_1" in memory.content:
                tried = memory.model_dump(include=set(AttemptFields.model_fields))  # a new text alone would clear them
                store.update_memory(memory.id, content=f"{memory.content} And then closed it.", **tried)
        MemoryCommands(store).remember("Open doors before you look behind them", project_id="house")
        commit = {"source": "git", "outcome": "success", "change_kind": "fix", "git_commit": "c0ffee1"}
        store.insert_memory({"type": "episodic", "content": "Oil the hinges.", "project_id": "house", **commit})
        write_page(store, tmp_path / "facts.html", until="2000-01-03")
        write_page(store, tmp_path / "all.html")
    page = opened(file=tmp_path / "facts.html")
    assert page.locator('[data-list="failing"] h2').text_content() == "Still failing (2)"
    assert page.locator('[data-list="failing"] b').all_text_contents() == ["env_1"]
    assert (
        page.locator('[data-list="failing"] .hint').last.text_content() == "No memory on this page describes 1 of them."
    )
    page = opened(file=tmp_path / "all.html")
    chips = [" ".join(one.split()) for one in page.locator("#legend .chip").all_inner_texts()]
    assert chips == ["episodes 6", "generalisations 1", "facts 1", "went wrong 5", "no outcome 3"]
    go_to(page, 0)
    meta = page.locator('[data-list="failing"] .row', has_text="env_1").locator(".meta")
    playwright.expect(meta).to_have_text("failed 1 of 1 attempt · in the words of 1 Jan 2026")  # drawn after a pause
    page.locator("#words").fill("behind them")
    page.get_by_text("Open doors before you look behind them").click()
    assert page.locator(".detail-head span").text_content() == "Fact"
    page.locator("#words").fill("hinges")
    page.locator("#matches, .row").get_by_text("Oil the hinges").first.click()
    assert page.locator(".detail-head span").text_content() == "Episode, fix"
    assert page.complaints == []


def test_a_page_of_nothing_says_so(opened, odd_files):
    page = opened(file=odd_files["empty"])
    assert page.locator(".opening").text_content() == "There are no memories."
    assert [page.locator(part).is_visible() for part in ("main", ".charts", "#play", "#legend", "#date")] == [False] * 5
    assert "1970" not in page.locator("body").inner_text()
    assert page.complaints == []


def test_a_page_that_cannot_be_drawn_says_so(opened, odd_files):
    page = opened(file=odd_files["broken"], ready="#failed:not([hidden])")
    assert page.locator("#failed").text_content().startswith("This page could not be drawn: ")
    assert not page.locator("main").is_visible()


def test_no_request_leaves_the_page_and_nothing_is_complained_of(wide, page_file: Path):
    assert wide.asked == [page_file.as_uri()]
    assert wide.complaints == []
