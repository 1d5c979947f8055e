"""What a user says to hold always is kept, however it is typed; what a user asks is not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memgraph.extraction.rules.user import statements_in

_ORDERS = st.sampled_from(
    ["always {}", "never {}", "please always {}", "from now on {}", "remember to {}", "remember: never {}"]
)
_DEEDS = st.sampled_from(
    [
        "run the linter before a commit",
        "push to main without review",
        "write tests with pytest",
        "sign the commits",
        "edit files under vendor/",
    ]
)
_TYPED = st.sampled_from([str, str.capitalize, str.upper])
_PLACED = st.sampled_from(
    ["{}", "3. {}", "- {}", "fix the header please. {}", "{}\n\nnow add the logout button", "ok. {}"]
)


@given(_ORDERS, _DEEDS, _TYPED, _PLACED)
def test_a_standing_order_is_kept(order: str, deed: str, typed: type[str], placed: str) -> None:
    said = typed(order.format(deed))
    kept = " ".join(one.text for one in statements_in(placed.format(f"{said}."))).casefold()
    assert deed.casefold() in kept


@given(_DEEDS, st.sampled_from(["should i {}?", "do we always {}?", "can you {}", "why would you never {}?"]))
def test_a_question_or_a_request_is_not(deed: str, asked: str) -> None:
    assert statements_in(asked.format(deed)) == []
