"""The pages of the server in a real browser: one signs in, looks, asks, and nothing is run or loaded from elsewhere."""

from __future__ import annotations

import pytest

from tests.browser.test_page import CHROMIUM, FLAGS, HOSTILE
from tests.interfaces.servers import serving

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: the page is tested in a real browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: the page is tested in a real browser")


def test_one_signs_in_sees_the_page_and_runs_a_query(tmp_path):
    with serving(tmp_path, has_tokens=True) as server, playwright.sync_playwright() as driver:
        server.memory.save_observation(f"The sign says {HOSTILE}"[:700])
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        complaints: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        address = f"http://127.0.0.1:{server.port}/"
        page.goto(address)
        assert page.url == f"{address}login"
        page.fill("input", server.secret)
        page.click("button")
        page.wait_for_selector("html[data-ready]")
        assert page.url == address
        assert "What was learned" in page.title()
        page.goto(f"{address}query")
        page.fill("textarea[name=cypher]", "MATCH (m:Memory) RETURN m.content AS content")
        page.click("button >> nth=0")
        assert "The sign says" in page.inner_text("td")
        assert "</script>" in page.inner_text("td")
        assert "memgraph" in page.title()
        page.click("button >> nth=1")
        assert page.url == f"{address}login"
        browser.close()
    assert not [one for one in complaints if "favicon" not in one]
    assert all(one.startswith(address) for one in asked)
