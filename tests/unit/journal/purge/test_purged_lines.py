"""A purged line keeps its head, its place in the chain and its length, and holds nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from memgraph.journal.purge.lines import is_purged, purged_line, seq_of

from memgraph.journal.envelope import Chain, CommitDraft, LineError, seal, unseal, unseal_purged
from memgraph.journal.keys.ring import key_from_secret
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.events.store import MemoryPurged, ranges_of

NOW, KEY = "2026-02-01T09:00:00.000Z", key_from_secret(b"k" * 32)
START = Chain("store-1")


@pytest.fixture
def lines(added: Callable[..., MemoryAdded]) -> list[bytes]:
    drafts = [
        CommitDraft("global", [added(1), added(2)]),
        CommitDraft("global", [added(3, content='"},"payload":null')]),
    ]
    return seal(drafts, START, KEY, NOW).data.splitlines()


def test_payload_and_salt_are_gone_and_the_rest_is_as_before(lines: list[bytes]) -> None:
    chain = START
    for line in lines:
        purged = purged_line(line)
        old, new = orjson.loads(line), orjson.loads(purged)
        assert (new["payload"], new["salt"]) == (None, None)
        assert (new["head"], new["signature"]) == (old["head"], old["signature"])
        assert len(purged) == len(line)
        assert purged_line(purged) == purged
        assert (is_purged(purged), is_purged(line)) == (True, False)
        assert seq_of(purged) == seq_of(line) == old["head"]["seq"]
        _, expected = unseal(line, chain, KEY)
        head, chain = unseal_purged(purged, chain, KEY)
        assert (head.seq, head.commit_id, head.last) == tuple(
            old["head"][name] for name in ("seq", "commit_id", "last")
        )
        assert chain == expected


def test_every_flipped_bit_of_a_purged_line_is_refused(lines: list[bytes]) -> None:
    purged = purged_line(lines[0])
    for bit in range(8 * len(purged)):
        flipped = bytearray(purged)
        flipped[bit // 8] ^= 1 << bit % 8
        if b"\n" in flipped:
            continue  # then it is two lines
        with pytest.raises(LineError):
            unseal_purged(bytes(flipped), START, KEY)


@pytest.mark.parametrize("left", [{"payload": {}}, {"salt": "00" * 16}])
def test_a_line_that_is_purged_by_half_is_refused(lines: list[bytes], left: dict[str, Any]) -> None:
    half = orjson.dumps({**orjson.loads(purged_line(lines[0])), **left}, option=orjson.OPT_SORT_KEYS)
    for read in (unseal, unseal_purged):
        with pytest.raises(LineError):
            read(half, START, KEY)


def test_ranges_name_exactly_the_events() -> None:
    seqs = {3, 4, 5, 9, 11, 12}
    ranges = ranges_of(seqs)
    assert [(one.first, one.last) for one in ranges] == [(3, 5), (9, 9), (11, 12)]
    assert MemoryPurged(ranges=ranges, purged_at=NOW).seqs() == seqs
