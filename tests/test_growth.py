"""The guard against more than linear growth tells one from the other."""

from __future__ import annotations

import pytest

from tests.growth import assert_grows_linearly


def test_linear_work_passes() -> None:
    assert_grows_linearly(lambda size: [hash(str(number)) for number in range(size)], 400_000)


@pytest.mark.parametrize("exponent", [2, 3])
def test_work_that_grows_faster_fails_before_it_takes_long(exponent: int) -> None:
    with pytest.raises(AssertionError, match="cost"):
        assert_grows_linearly(lambda size: sum(range(size**exponent)), 10_000)
