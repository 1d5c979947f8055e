"""Every removed or changed byte of a journal is detected: truncated anywhere, flipped anywhere, events in any other order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import JournalError, TruncatedJournalError
from memgraph.journal.envelope import Chain, LineError, unseal
from memgraph.journal.journal import Journal
from memgraph.journal.keys.providers import FileKeys
from memgraph.journal.opening import open_journal

LAST_COMMITS = 3


def journal_of(scene: Any) -> Journal:
    return open_journal(
        scene.home, FileKeys(scene.keys_home), keys_home=scene.keys_home, now=lambda: "", created_by="tests"
    )


def commit_ends(lines: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the number of each commit's last event, and the size of the journal up to it."""
    ends, size = [], 0
    for line in lines:
        size += len(line)
        head = json.loads(line)["head"]
        if head["last"]:
            ends.append((head["seq"], size))
    return ends


def head_at(lines: Sequence[bytes], seq: int) -> bytes:
    return json.dumps({"seq": seq, "signature": json.loads(lines[seq - 1])["signature"]}).encode()


class TestCutAnywhere:
    def test_it_recovers_or_refuses_and_never_silently_serves_less(self, scene: Any, is_long: bool, show: Any) -> None:
        lines = scene.lines
        data = b"".join(lines)
        ends = commit_ends(lines)
        assert len(ends) >= 12
        assert any(later[0] - earlier[0] > 1 for earlier, later in pairwise(ends))
        last = ends[-1][0]
        begin = ends[-1 - LAST_COMMITS][1]
        line_ends = {sum(map(len, lines[:count])) for count in range(len(lines) + 1)}
        cuts = [
            at for at in range(begin, len(data) + 1) if is_long or at % 131 == 0 or {at - 1, at, at + 1} & line_ends
        ]
        witnesses: dict[str, tuple[int | None, bool]] = {
            "head file as it was": (last, False),
            "head file a commit older": (ends[-2][0], False),
            "head file three commits older": (ends[-1 - LAST_COMMITS][0], False),
            "no head file": (None, False),
            "no head file, but a checkpoint": (None, True),
        }
        checkpoint = scene.checkpoint.read_bytes()
        assert json.loads(checkpoint)["body"]["chain"]["seq"] == last
        counts: Counter[tuple[str, str]] = Counter()
        for name, (known, with_checkpoint) in witnesses.items():
            for cut in cuts:
                scene.segment.write_bytes(data[:cut])
                scene.head.unlink(missing_ok=True)
                scene.checkpoint.unlink(missing_ok=True)
                if known is not None:
                    scene.head.write_bytes(head_at(lines, known))
                if with_checkpoint:
                    scene.checkpoint.write_bytes(checkpoint)
                acknowledged = last if with_checkpoint else known
                counts[name, self.cut_at(scene, cut, ends, acknowledged, has_head=known is not None)] += 1
        kinds = ("whole", "healed", "adopted", "refused")
        show(
            f"The last {LAST_COMMITS} commits of {len(ends)} cut at {len(cuts)} bytes of {len(data) - begin + 1}",
            ("", *kinds),
            [(name, *(counts[name, kind] for kind in kinds)) for name in witnesses],
        )

    def cut_at(self, scene: Any, cut: int, ends: list[tuple[int, int]], known: int | None, *, has_head: bool) -> str:
        """Open a truncated journal, and return the result."""
        seq, whole = max(end for end in ends if end[1] <= cut)
        if known is not None and seq < known:
            for _ in range(2):
                with pytest.raises(TruncatedJournalError) as refused:
                    journal_of(scene)
                assert (refused.value.seq, refused.value.head_seq) == (seq, known), cut
            assert scene.segment.stat().st_size == cut, "who refuses changes nothing"
            return "refused"
        journal = journal_of(scene)
        assert journal.tail.seq == seq, cut
        assert scene.segment.stat().st_size == cut, "a reader changes nothing"
        assert sum(len(commit.events) for commit in journal.replay()) == seq
        with journal.locked():
            assert scene.segment.stat().st_size == whole, cut
        said = " ".join(journal.notices)
        assert ("dropped a torn final commit" in said) == (cut > whole), cut
        assert ("no head file" in said) == (not has_head), cut
        assert json.loads(scene.head.read_bytes())["seq"] == seq
        again = journal_of(scene)
        assert again.notices == []
        if cut == whole:
            assert again.verify() == seq
        return "adopted" if not has_head else "healed" if cut > whole else "whole"

    def test_a_whole_store_does_the_same(self, scene: Any) -> None:
        lines = scene.lines
        data, ends = b"".join(lines), commit_ends(lines)
        scene.checkpoint.unlink()
        for cut in (ends[-1][1] - 1, ends[-2][1] + 1, ends[-2][1]):
            scene.segment.write_bytes(data[:cut])
            scene.head.write_bytes(head_at(lines, ends[-2][0]))
            with scene.open() as store:
                assert store.verify() == ends[-2][0]
                digest = store.digest()
                store.rebuild()
                assert store.digest() == digest != scene.digest
            scene.checkpoint.unlink(missing_ok=True)


class TestFlippedAnywhere:
    def test_each_byte_of_each_line(self, scene: Any, is_long: bool, show: Any) -> None:
        key = FileKeys(scene.keys_home).key(scene.store_id)
        chain = Chain(scene.store_id)
        undetected: list[tuple[int, int, int]] = []
        flips = 0
        reasons: Counter[str] = Counter()
        for number, ended in enumerate(scene.lines):
            line = ended.removesuffix(b"\n")
            for at in range(len(line)):
                for bit in range(8) if is_long else ((number + at) % 8,):
                    flips += 1
                    flipped = bytearray(line)
                    flipped[at] ^= 1 << bit
                    try:
                        unseal(bytes(flipped), chain, key)
                    except (LineError, JournalError) as error:
                        reasons["".join(char for char in str(error) if not char.isdigit())[:40]] += 1
                    else:
                        undetected.append((number, at, bit))
            _, chain = unseal(line, chain, key)
        show(f"{flips} flips, {len(undetected)} undetected", ("refused because", "flips"), reasons.most_common(12))
        assert undetected == []

    def test_each_byte_of_the_file(self, scene: Any, is_long: bool, show: Any) -> None:
        """The same through the opening of a journal, including the line endings."""
        data = scene.segment.read_bytes()
        newlines = {at for at, byte in enumerate(data) if byte == ord("\n")}
        places = [at for at in range(len(data)) if is_long or at % 151 == 0 or at in newlines]
        undetected = []
        for checkpoint in (scene.checkpoint.read_bytes(), None):
            scene.checkpoint.unlink(missing_ok=True)
            if checkpoint:
                scene.checkpoint.write_bytes(checkpoint)
            for at in places:
                flipped = bytearray(data)
                flipped[at] ^= 1 << at % 8
                scene.segment.write_bytes(bytes(flipped))
                try:
                    journal_of(scene)
                except JournalError:
                    continue
                undetected.append(at)
        show("", ("bytes flipped, by an opening journal", "undetected"), [(2 * len(places), len(undetected))])
        assert undetected == []

    def test_a_sample_of_them_through_the_whole_store(self, scene: Any, is_long: bool) -> None:
        data = scene.segment.read_bytes()
        files = scene.files()
        for at in range(0, len(data), 17 if is_long else 199):
            flipped = bytearray(data)
            flipped[at] ^= 1 << at % 8
            scene.segment.write_bytes(bytes(flipped))
            with pytest.raises(JournalError):
                scene.open()
        scene.segment.write_bytes(data)
        assert scene.files() == files, "who refuses changes nothing"
        with scene.open() as store:
            assert store.digest() == scene.digest


def disorders(lines: list[bytes]) -> Iterator[tuple[str, list[bytes]]]:
    """Every swap, rotation, reversal, omission and repetition of lines."""
    count = len(lines)
    for first in range(count):
        for second in range(first + 1, count):
            swapped = list(lines)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            yield "two swapped", swapped
    for by in range(1, count):
        yield "rotated", lines[by:] + lines[:by]
    for first in range(count):
        for end in range(first + 2, count + 1):
            yield "a run reversed", lines[:first] + lines[first:end][::-1] + lines[end:]
        for end in range(first + 1, count + 1):
            if end < count:  # without its end a journal is truncated, not disordered
                yield "a run dropped", lines[:first] + lines[end:]
            yield "a run repeated", lines[:end] + lines[first:end] + lines[end:]
        for place in range(count + 1):
            yield "one repeated elsewhere", [*lines[:place], lines[first], *lines[place:]]


class TestInAnyOtherOrder:
    @pytest.mark.parametrize("has_head", [True, False])
    def test_it_is_refused(self, scene: Any, show: Any, is_long: bool, has_head: bool) -> None:
        lines = scene.lines
        scene.checkpoint.unlink()
        if not has_head:
            scene.head.unlink()
        self.refused(scene, islice(disorders(lines), 0, None, 1 if is_long else 4), show)

    def test_foreign_lines_are_refused(self, scene: Any, stranger: Any, tmp_path: Path, show: Any) -> None:
        older = scene.copy(tmp_path / "older")  # the same store, with another history from here on
        for place, text in ((older, "there"), (scene, "here")):
            with place.open() as store:
                store.insert_memory({"type": "episodic", "content": text})
        lines = scene.lines
        foreign = {
            "of another store and key": stranger.lines[3],
            "of an older copy": older.lines[-1],
            "blank": b"\n",
            "null": b"null\n",
            "JSON": b"{}\n",
            "text": b"hello\n",
            "zeros": bytes(64) + b"\n",
            "a comment": b"# nothing\n",
            "half a line": lines[3][:200] + b"\n",
        }
        scene.checkpoint.unlink()
        found = (
            (name, [*lines[:place], line, *lines[place:]])
            for name, line in foreign.items()
            for place in range(len(lines) + 1)
        )
        self.refused(scene, found, show)
        tails = (("of an older copy, in its place", [*lines[:-1], older.lines[-1]]),)
        self.refused(scene, iter(tails), show)

    def test_other_line_endings_are_refused(self, scene: Any, show: Any) -> None:
        data = scene.segment.read_bytes()
        scene.checkpoint.unlink()
        self.refused(
            scene,
            iter(
                [
                    ("CRLF", [data.replace(b"\n", b"\r\n")]),
                    ("CR", [data.replace(b"\n", b"\r")]),
                    ("a byte order mark", [b"\xef\xbb\xbf" + data]),
                    ("UTF-16", [data.decode().encode("utf-16")]),
                    ("trailing spaces", [data.replace(b"\n", b" \n")]),
                    ("a leading blank line", [b"\n" + data]),
                    ("a blank line at the end", [data + b"\n"]),
                    ("garbage and an end of line at the end", [data + b"garbage\n"]),
                ]
            ),
            show,
        )

    def refused(self, scene: Any, disordered: Iterator[tuple[str, list[bytes]]], show: Any) -> None:
        counts: Counter[str] = Counter()
        accepted: Counter[str] = Counter()
        said_short: Counter[str] = Counter()
        whole = b"".join(scene.lines)
        for kind, lines in disordered:
            data = b"".join(lines)
            if data == whole:
                continue
            scene.segment.write_bytes(data)
            counts[kind] += 1
            try:
                journal = journal_of(scene)
            except TruncatedJournalError:
                said_short[kind] += 1
            except JournalError:
                continue
            else:
                accepted[kind] += 1
                print(kind, journal.tail.seq, journal.notices)
        show(
            "Journals in disorder", ("", "tried", "accepted"), [(kind, counts[kind], accepted[kind]) for kind in counts]
        )
        assert not accepted
        assert said_short.keys() <= {"CR"}  # there all is one line without its end
        scene.segment.write_bytes(whole)
