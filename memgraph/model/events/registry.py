"""All event payloads by (type, version), and the policies of all types. Events state effects as absolute values, never commands.

A payload class never changes once it has been released: any change is a new class with a higher version, and a fixture of
the old one stays readable. Replay therefore calls no model and no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memgraph.model.events import memories, records, store, tasks
from memgraph.model.events.earlier import EARLIER
from memgraph.model.events.payload import Payload, Policy

_FAMILIES = (memories, records, store, tasks)


def _kinds() -> Iterator[type[Payload]]:
    for family in _FAMILIES:
        for kind in vars(family).values():
            if isinstance(kind, type) and issubclass(kind, Payload) and hasattr(kind, "TYPE"):
                yield kind
    yield from EARLIER


PAYLOADS: dict[tuple[str, int], type[Payload]] = {(kind.TYPE, kind.VERSION): kind for kind in _kinds()}
POLICIES: dict[str, Policy] = {kind.TYPE: kind.POLICY for kind in PAYLOADS.values()}


def types_where(holds: Callable[[Policy], bool]) -> frozenset[str]:
    """Return the types of events of whose policy something holds."""
    return frozenset(name for name, policy in POLICIES.items() if holds(policy))


STATES_MEMORY = types_where(lambda policy: policy.purge == "restated")
"""Types that state fields of a memory."""
NEVER_PURGED = types_where(lambda policy: policy.purge == "stays")
