"""What counts as the steps of a procedure: actions, not prose."""

from __future__ import annotations

import pytest

from memgraph.extraction.statements import steps_in


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1. Stop the worker\n2. Run `make migrate`\n3. Start the worker", ("Stop the worker", "Run `make migrate`", "Start the worker")),
        ("First, run `make build`, then push the tag and then deploy.", ("run `make build`", "push the tag", "deploy")),
        ("To release, tag the commit, then run `make publish`.", ("tag the commit", "run `make publish`")),
        ("The daemon speaks an old protocol, so if we do fetch over it, then anybody may change what arrives.", ()),
        ("Set the limit and if it is reached then the pool has to wait.", ()),
        ("1. Stop the worker\n2. The queue was full\n3. Start the worker", ()),
        ("1. Write the plan with:\n- a goal\n2. Ask before starting", ()),
        ("1. The first reason is speed\n2. The second one is size", ()),
    ],
)  # fmt: skip
def test_steps_are_actions(text: str, steps: tuple[str, ...]) -> None:
    assert steps_in(text) == steps
