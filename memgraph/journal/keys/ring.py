"""The keys of one store: the one that signs, and those that verify earlier events."""

from __future__ import annotations

from memgraph.journal.envelope import ForeignKeyError
from memgraph.journal.keys.place import key_place
from memgraph.journal.keys.secret import is_named
from memgraph.ports import KeyProvider, RotatingKeyProvider, SigningKey


class KeyRing:
    """Finds a store's keys by the ids that its events name.

    Parameters
    ----------
    providers : KeyProvider
        The first one has the active key. Keys that it does not know are looked up in the others, so that a store can be moved from
        one provider to another.
    """

    def __init__(self, store_id: str, *providers: KeyProvider, active: SigningKey | None = None) -> None:
        self.store_id = store_id
        self._providers = providers
        self.active = active
        self._known: dict[str, SigningKey] = {}

    @classmethod
    def of(cls, key: SigningKey) -> KeyRing:
        """Return a ring of one key."""
        return cls("", active=key)

    @classmethod
    def from_providers(cls, store_id: str, *providers: KeyProvider) -> KeyRing:
        """Return the ring of a store; its active key is None if the first provider has none.

        Raises
        ------
        KeyMissingError, StorageError
            A provider cannot be read.
        """
        return cls(store_id, *providers, active=providers[0].key(store_id))

    @property
    def remedy(self) -> str:
        """What to do if the active key is missing or another store's, for messages."""
        return key_place(self._providers[0], self.store_id).remedy if self._providers else "restore the store's own key"

    def find(self, key_id: str) -> SigningKey | None:
        """Return the key that an id names, or None. What is not known is asked for again each time: it may have been added."""
        if key_id not in self._known:
            if self.active is not None and is_named(self.active, key_id):
                return self.active
            for provider in self._providers:
                key = provider.find(self.store_id, key_id) if isinstance(provider, RotatingKeyProvider) else None
                if key is not None:
                    self._known[key_id] = key
                    break
        return self._known.get(key_id)

    def verifying(self, key_id: str, expected_id: str | None) -> SigningKey:
        """Return the key that must verify an event, given the id that it names and that of the key in use there.

        Raises
        ------
        ForeignKeyError
            The event names another key than the one in use, or one that is missing.
        """
        expected = expected_id or key_id
        in_use = self.find(expected)
        if in_use is None:
            raise ForeignKeyError(_named(key_id, self.active), missing=expected)
        if not is_named(in_use, key_id):
            raise ForeignKeyError(_named(key_id, in_use))
        return in_use


def _named(key_id: str, other: SigningKey | None) -> str:
    if other is None:
        return f"it was signed with key {key_id}, and no key is given"
    return f"it was signed with key {key_id}, not with the key given, {other.key_id}"
