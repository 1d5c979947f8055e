"""The public door to repair: what keeps a store from being opened, and accepting its journal as it is."""

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
    """Verify a store's journal by itself and say how it is; change something only when told to.

    A store that is refused because its journal ends before its head file or checkpoint, because the head file is missing or
    damaged, or because it names another event of the same number, can be accepted as it is. The acceptance is an event of
    the journal (``journal.repaired``). A journal whose own lines do not verify is not mended: that takes a backup.

    Parameters
    ----------
    accept_head : Condition, optional
        What a first call has returned: accept the journal in just this condition.
    accepted_by, reason : str, optional
        Kept in the event.

    Returns
    -------
    Condition
        How the journal is: after the acceptance, where one was asked for.

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
