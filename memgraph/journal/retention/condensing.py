"""Rewrites archived segments without signatures and without the texts of deleted memories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import orjson

from memgraph.errors import DamagedJournalError
from memgraph.journal.closed import files
from memgraph.journal.closed.condensed import extent_of
from memgraph.journal.closed.digest import Extent
from memgraph.journal.envelope import assembled, canonical, unseal_alone
from memgraph.journal.journal import Journal
from memgraph.journal.purge.lines import is_purged
from memgraph.journal.retention.reduction import IsGone, reduced
from memgraph.model.events.registry import POLICIES


def condense(journal: Journal, verified: Mapping[str, Extent], is_gone: IsGone) -> list[str]:
    """Condense the first segments of a journal, and return the names of those that were written. Needs the writer lock. Idempotent.

    A segment is replaced as a whole, so a kill leaves it as it was or condensed. Some 40 µs an event.

    Parameters
    ----------
    verified : mapping of str to Extent
        The segments, all before the baseline's, with their contents as the caller has verified them.
    is_gone : callable
        See `reduced`.

    Raises
    ------
    JournalError
        A segment is no longer what was verified, or the manifest or the proof of condensed segments cannot be trusted.
    StorageError
        The system refuses.
    """
    written = []
    for name, extent in verified.items():
        before = files.read_all(journal.folder, name)
        if extent_of(before) != extent:
            path = files.file_of(journal.folder, name)
            raise DamagedJournalError("it is not what was verified before", path=path, offset=0)
        lines = before.split(b"\n")[:-1]
        after = b"".join(line + b"\n" for line in _condensed(lines, journal.store_id, is_gone))
        if after != before:
            journal.closed.forget([name], journal.signing_key, journal.ring.find)
            journal.condensed.replace(name, before, after, [journal.signing_key])
            written.append(name)
    return written


def _condensed(lines: Sequence[bytes], store_id: str, is_gone: IsGone) -> Iterator[bytes]:
    """Yield the verified lines of a segment, condensed. Only its ends keep a signature: that before it, and its last one."""
    for number, line in enumerate(lines):
        envelope = orjson.loads(line)
        head, payload, salt = envelope["head"], envelope["payload"], None if is_purged(line) else ""
        if salt is not None and POLICIES[head["type"]].is_reduced:
            event = unseal_alone(line, store_id, None)  # brings it to the present version
            if (left := reduced(event, is_gone)) is not None:
                payload, head["event_version"] = left, event.payload.VERSION
        head |= {"event_id": "", "key_id": "", "payload_sha256": ""}
        if number:
            head["prev_signature"] = ""
        signature = envelope["signature"] if number == len(lines) - 1 else ""
        yield assembled(canonical(head), canonical(payload), salt, signature)
