"""Repair of a store that cannot be opened: diagnose its journal, and accept it in its current condition.

What concerns the journal's trust is reported as opening the store reports it, once by a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.diagnostics.reports import report_finding
from memgraph.errors import InvalidInputError, JournalError, KeyMissingError
from memgraph.journal.baseline.archive import remove_baseline
from memgraph.journal.baseline.header import checked_header
from memgraph.journal.keys.providers import configured_keys
from memgraph.journal.keys.ring import KeyRing
from memgraph.journal.opening import identify
from memgraph.journal.repair import Condition, accept, examine
from memgraph.journal.segments import Segments
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider
from memgraph.store.backup.quarantine import Cut, Damage, Part, cut, damage_in, exclusive
from memgraph.store.opening import known_id, release, utc_now


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
    store_id, ring = _identified(config, keys, clock)
    if accept_head is not None:
        if not isinstance(accept_head, Condition):
            raise InvalidInputError(
                "must be the result of an earlier repair_store() call", field="accept_head", value=accept_head
            )
        time = clock or utc_now
        return accept(
            config.home,
            store_id,
            ring,
            keys_home=config.keys_home,
            expected=accept_head,
            now=lambda: to_iso(time()),
            accepted_by=accepted_by or f"memgraph {release()}",
            reason=reason,
            lock_timeout_s=config.lock_timeout_s,
        )
    with _reported(config, clock):
        found = examine(config.home, store_id, ring, keys_home=config.keys_home)
    if any(witness.state != "missing" for witness in found.contradicting):  # opening makes a missing one
        _report(config, JournalError("a witness contradicts the journal"), clock)
    return found


@contextmanager
def _reported(config: AgentMemoryConfig, clock: Clock | None = None) -> Iterator[None]:
    """Report an error of the journal that a block raises, as opening the store does."""
    try:
        yield
    except JournalError as error:
        _report(config, error, clock)
        raise


def _report(config: AgentMemoryConfig, error: JournalError, clock: Clock | None = None) -> None:
    time = clock or utc_now
    report_finding(config, error, now=lambda: to_iso(time()), store_id=known_id(config.home))


def _identified(config: AgentMemoryConfig, keys: KeyProvider | None, clock: Clock | None = None) -> tuple[str, KeyRing]:
    """Return the id and the keys of a store; complete a resealing that was cut off."""
    with _reported(config, clock):
        return identify(
            config.home,
            keys or configured_keys(config),
            keys_home=config.keys_home,
            lock_timeout_s=config.lock_timeout_s,
        )


def baseline_problem(config: AgentMemoryConfig | None = None, *, keys: KeyProvider | None = None) -> str | None:
    """Return why the baseline of a compacted journal cannot be used; None if it can, or if there is none. Changes nothing.

    Raises
    ------
    KeyMissingError
        The key is missing.
    """
    config = config or load_config()
    store_id, ring = _identified(config, keys)
    try:
        checked_header(Segments(config.home / "journal", 0), store_id, ring)
    except KeyMissingError as error:
        _report(config, error)
        raise
    except JournalError as error:
        _report(config, error)
        return str(error)
    return None


def drop_baseline(config: AgentMemoryConfig | None = None, *, keys: KeyProvider | None = None) -> int:
    """Verify every event, archived ones included, and do without the baseline; return the number of the last event.

    Nothing is lost: the segments come back from the archive. Opening the store costs what all events cost until it is compacted again.
    A crash leaves the store refused, as before, or repaired; the call can be repeated.

    Raises
    ------
    JournalError
        An event does not verify, or archived segments are missing. Nothing is changed.
    StorageError
        The system refuses.
    """
    config = config or load_config()
    store_id, ring = _identified(config, keys)
    folder = config.home / "journal"
    with exclusive(folder, config.lock_timeout_s), _reported(config):
        found = examine(config.home, store_id, ring, keys_home=config.keys_home)
        remove_baseline(folder)
    return found.seq


def find_damage(config: AgentMemoryConfig | None = None, *, keys: KeyProvider | None = None) -> Damage | None:
    """Verify a store's journal from its first event; return its damage and what could be kept, or None. Changes nothing.

    Raises
    ------
    JournalError
        The key is missing, or an authentic event cannot be read by this release: that is no damage.
    """
    config = config or load_config()
    store_id, ring = _identified(config, keys)
    return damage_in(config.home, store_id, ring, keys_home=config.keys_home)


def cut_journal(
    expected: Damage,
    config: AgentMemoryConfig | None = None,
    *,
    part: Part = "tail",
    cut_by: str | None = None,
    reason: str | None = None,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
) -> Cut:
    """Cut a damaged journal: keep what verifies, and move the rest to ``quarantine/`` in the store's directory.

    It is recorded as an event (``journal.cut``). Whether a backup has what is cut off should be looked at first: see
    `memgraph.store.backup.replacing.restore_journal`.

    Parameters
    ----------
    expected : Damage
        What `find_damage` returned; if the journal has changed since, nothing is done.
    part : {"tail", "segment"}
        Cut after the last commit that verifies, or before the segment in which the damage is.

    Raises
    ------
    JournalError, StorageError
        The journal has changed, is of a later release, or the rest cannot be kept. Nothing was removed.
    """
    config = config or load_config()
    if not isinstance(expected, Damage):
        raise InvalidInputError("must be the result of find_damage()", field="expected", value=expected)
    if part not in ("tail", "segment"):
        raise InvalidInputError("must be tail or segment", field="part", value=part)
    store_id, ring = _identified(config, keys)
    time = clock or utc_now
    return cut(
        config.home,
        store_id,
        ring,
        keys_home=config.keys_home,
        expected=expected,
        part=part,
        now=lambda: to_iso(time()),
        cut_by=cut_by or f"memgraph {release()}",
        reason=reason,
        lock_timeout_s=config.lock_timeout_s,
    )
