import json

import pytest

from memgraph.text.cutting import preview
from memgraph.text.safe import visible_json

HOSTILE = 'a\n## b\x1b[2J\x9b\u2028\u202e\u200b\u00ad\U000e0041\U000e0101 "é" 中'


def test_json_on_one_visible_line_is_the_same_value():
    line = visible_json({HOSTILE: [HOSTILE, 1]})
    assert json.loads(line) == {HOSTILE: [HOSTILE, 1]}
    assert line.isprintable()
    assert line.splitlines() == [line]
    assert "é" in line
    assert "中" in line
    assert "\U000e0101" not in line


@pytest.mark.parametrize("value", [{"a": "plain"}, [1, None, "x y"], "é"])
def test_json_of_visible_texts_is_as_it_was(value):
    assert visible_json(value) == json.dumps(value, ensure_ascii=False)


def test_a_preview_is_one_visible_line():
    assert preview(HOSTILE) == 'a ## b [2J "é" 中'
    assert preview("word " * 20) == f"{'word ' * 12}".rstrip() + "…"
