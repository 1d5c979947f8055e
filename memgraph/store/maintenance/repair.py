"""Repair of a store that cannot be opened: diagnose its journal, and accept it in its current condition."""

from __future__ import annotations

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.errors import InvalidInputError
from memgraph.journal.keys import default_keys
from memgraph.journal.opening import identify
from memgraph.journal.repair import Condition, accept, examine
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider
from memgraph.store.opening import release, utc_now


def repair_store(
    config: AgentMemoryConfig | None = None,
    *,
    accept_head: Condition | None = None,
    accepted_by: str | None = None,
    reason: str | None = None,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
) -> Condition:
    """Verify a store's journal by itself and return its condition; change something only on request.

    A store is rejected if its journal ends before its head file or checkpoint, if the head file is missing or damaged,
    or if it names another event of the same number. Such a journal can be accepted as it is. The acceptance is recorded
    as an event (``journal.repaired``). A journal whose own lines do not verify cannot be repaired: restore a backup.

    Parameters
    ----------
    accept_head : Condition, optional
        The condition returned by a first call: accept the journal in exactly this condition.
    accepted_by, reason : str, optional
        Recorded in the event.

    Returns
    -------
    Condition
        The journal's condition; after the acceptance, if one was requested.

    Raises
    ------
    JournalError
        The journal's own lines do not verify, there is nothing to accept, or the journal has changed since.

    Examples
    --------
    >>> found = repair_store(config)  # doctest: +SKIP
    >>> len(found.lost), found.contradicting  # doctest: +SKIP
    >>> repair_store(config, accept_head=found, reason="restored from Monday's backup")  # doctest: +SKIP
    """
    config = config or load_config()
    store_id, key = identify(config.home, keys or default_keys(config.keys_home), keys_home=config.keys_home)
    if accept_head is not None:
        if not isinstance(accept_head, Condition):
            raise InvalidInputError(
                "must be the result of an earlier repair_store() call", field="accept_head", value=accept_head
            )
        time = clock or utc_now
        return accept(
            config.home,
            store_id,
            key,
            keys_home=config.keys_home,
            expected=accept_head,
            now=lambda: to_iso(time()),
            accepted_by=accepted_by or f"memgraph {release()}",
            reason=reason,
            lock_timeout_s=config.lock_timeout_s,
        )
    return examine(config.home, store_id, key, keys_home=config.keys_home)
