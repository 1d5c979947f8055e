"""Where the keys of a provider are, for messages to people: each provider says it in its own terms."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from memgraph.ports import KeyProvider

SOURCE_VARIABLE = "MEMGRAPH_KEY_SOURCE"


class KeyPlace(NamedTuple):
    """Where a store's key is, and what to do if it is missing there."""

    where: str
    remedy: str


@runtime_checkable
class PlacedKeys(Protocol):
    """A provider that says where its keys are."""

    def place(self, store_id: str) -> KeyPlace:
        """Return where a store's key is. Nothing is read."""
        ...


def key_place(keys: KeyProvider, store_id: str) -> KeyPlace:
    """Return where a provider has a store's key, also if it is the user's own class and does not say."""
    if isinstance(keys, PlacedKeys):
        return keys.place(store_id)
    return KeyPlace(f"the key provider {name_of(keys)}", "restore the key there")


def name_of(keys: KeyProvider) -> str:
    """Return a provider's name."""
    return str(getattr(keys, "name", type(keys).__name__))
