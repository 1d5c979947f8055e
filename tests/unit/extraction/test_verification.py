"""Verification: the sentences that a claim quotes are kept, and beside them what it says, unless it repeats them."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.extraction.llm.claims import NOT_VERIFIED, Claim, evidence_in


def verified(record: str, content: str, *quoted: str, **fields: Any) -> tuple[Claim | None, list[str]]:
    source = f"[1]\n{record}\n\n[2]\nagent: claude\nlesson: I swept the hall and oiled the wheel 7 times."
    given = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "content": content, **fields}
    return Claim.parse({**given, "evidence": list(quoted or [record])}).verified(
        source, metadata="2026-03-14 kiln-studio"
    )


def kept(record: str, content: str, *quoted: str) -> str:
    claim, problems = verified(record, content, *quoted)
    assert problems == []
    assert claim is not None
    return claim.content


LESSON = "agent: claude\nlesson: The fan stops at 980 degrees, as `kiln_limit` is read once. It does not start again. The lid was shut."


def test_what_is_said_in_other_words_stands_beside_the_whole_sentences_that_are_quoted() -> None:
    said = "The fan stops at 980 degrees because kiln_limit is only read at boot."
    assert kept(LESSON, said, "fan stops at 980 degrees") == (
        f"“The fan stops at 980 degrees, as `kiln_limit` is read once.”{NOT_VERIFIED}{said}"
    )
    assert kept(LESSON, "The fan starts again.", "start again", "lid was shut").startswith(
        "“It does not start again. The lid was shut.” In other words (not verified): "
    )
    assert kept(LESSON, "The fan was shut.", "lid was shut", "fan stops at 980").startswith(
        "“The fan stops at 980 degrees, as `kiln_limit` is read once. … The lid was shut.” In"
    )


def test_what_repeats_whole_sentences_stands_alone() -> None:
    for said in ("It does not start again.", "the lid was shut", "The lid was shut. It doesn't start again"):
        told = LESSON.replace("does not", "doesn't") if "'" in said else LESSON
        assert kept(told, said, "start again", "The lid was shut") == said
    assert NOT_VERIFIED in kept(LESSON, "It does start again.", "It does not start again.")
    assert NOT_VERIFIED in kept("lesson: Do not, in general, use tabs.", "Use tabs.", "use tabs.")
    assert NOT_VERIFIED in kept("lesson: It fails not because of memory\nbut of disk.", "It fails because of memory")
    assert NOT_VERIFIED in kept(LESSON, "The lid was shut.", "It does not start again."), "it is not quoted"


def test_who_said_it_stands_there() -> None:
    said = "The scripts are to be written in PowerShell."
    assert kept("user_did: write the scripts in ps not bash", said) == (
        f"The user: “write the scripts in ps not bash”{NOT_VERIFIED}{said}"
    )
    turn = "user_did: the second one\ncontext: shall the scripts be written in ps or bash?"
    assert kept(turn, said, "shall the scripts be written").startswith("“shall the scripts"), "the agent asked"


def test_a_long_quotation_is_cut_at_a_sentence_and_leaves_room_for_the_reading() -> None:
    quoted = " ".join(f"The lamp of hall {number} is red." for number in range(30))
    record = f"lesson: {quoted} The kiln is hot."
    said = "Lamps are red. " * 30
    content = kept(record, said, quoted)
    assert len(content) <= 800
    assert content.endswith(said.strip())
    assert "is red.”" in content
    claim, [problem] = verified(record, "Lamps are red. " * 45, quoted)
    assert claim is None
    assert problem == f"content: is longer than {800 - 200 - len(NOT_VERIFIED)} characters"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("lesson: The press needs firmware 2.4.1.", "Firmware 2.4.1 is needed."),
        ("lesson: Two fans share a fuse.", "2 fans share one fuse."),
        ("lesson: The log keeps a window of 90 days", "The log keeps a 90-day window."),
        ("lesson: set timeout to 60 s and 1,000 rows", "The timeout is 60s, the rows are 1000."),
        ("output: shop/kiln.py:40: too hot", "In kiln.py the kiln is too hot (line 40)."),
        ("lesson: The kiln costs 500 €.", "The kiln costs €500."),
        ("lesson: The press runs hot.", "In Kiln-Studio the press runs hot."),
        ("lesson: we use Github for the press", "The press uses GitHub, e.g. for itself."),
        ("user_did: only one ver of the app, perferably thru brew", "One version of the app, preferably of Homebrew."),
        ("lesson: 数据库被锁 by kiln_7", "kiln_7: 数据库被锁"),
    ],
)
def test_what_the_quoted_sentences_have_in_another_form_is_kept(record: str, said: str) -> None:
    assert kept(record, said).endswith(said)


@pytest.mark.parametrize(
    ("record", "said", "problem"),
    [
        ("lesson: The press needs firmware 2.4.1.", "Firmware 2.4 is needed.", "“2.4”"),
        ("lesson: Two fans share a fuse.", "three fans share one fuse.", "“three”"),
        ("lesson: shop/kiln.py:40 was wrong", "In shop/oven.py:40 it was wrong.", "“shop/oven.py:40”"),
        ("lesson: kiln_limit was wrong", "It was wrong: lamp_limit.", "“lamp_limit”"),
        ("lesson: the flag --lid is wrong", "The flag --lamp is wrong.", "“--lamp”"),
        ("lesson: We dropped Redis, it made the queue slower.", "The queue of Memcached was slower.", "“Memcached”"),
        ("lesson: the old kiln should be sold", "The user wants the old kiln sold.", "quote the turn of the user"),
        ("lesson: The press runs hot at noon.", "Bearings need weekly grease.", "hardly a word in common"),
        ("lesson: The press runs hot.", "The press runs hot: 7 times.", "“7” is not in the quoted evidence"),
        ("lesson: The press runs hot.", "…", "hardly a word"),
    ],
)
def test_what_the_quoted_sentences_do_not_have_is_refused(record: str, said: str, problem: str) -> None:
    claim, [found] = verified(record, said)
    assert claim is None
    assert problem in found


def test_a_passage_may_leave_out_and_may_have_a_slip_but_must_be_there() -> None:
    source = "[1]\nuser_did: pls dont mock the db in integartion tests, we got **burned** last quarter\n\n[2]\nThe kiln is hot."
    for quoted, is_there in [
        ("don't mock the db in integration tests", True),
        ("dont mock the db … burned last quarter", True),
        ("PLS DONT MOCK the db", True),
        ("dont mock the api in integration tests", False),
        ("mock the d", False),
        ("dont mock the db … burned last year", False),
        ("", False),
    ]:
        assert (evidence_in(source, [quoted])[1] == []) is is_there, quoted


@pytest.mark.parametrize(
    ("source", "cut"),
    [
        ("The worker is unable to delete", "able to delete"),
        ("listens on port 18080.", "8080."),
        ("Deploy to notprod-eu only", "prod-eu only"),
        ("It took 0.5 s", "5 s"),
        ("It took 1,500 s", "1"),
        ("It grew by 5% there", "It grew by 5"),
        ("We don't use tabs", "t use tabs"),
    ],
)
def test_a_passage_does_not_cut_a_word_or_a_number(source: str, cut: str) -> None:
    assert evidence_in(source, [cut])[1] == [cut]
    assert evidence_in(f"{source}. And {cut}", [cut])[1] == []


FIELDS = {
    "event_date": "2026-01-05",
    "location": "the hall, shop/kiln.py",
    "decision": "Sell the kiln",
    "alternatives": ["a new lamp"],
    "trigger": "a hot kiln",
    "steps": ["Open the lid", "Sell the kiln"],
    "agents": ["Anna", "planner-2", "juno", "the user"],
}
SOURCE = (
    "On 2026-01-05 at 14:30 Anna was in the hall, asked by planner-2 and by juno. The user came. A new lamp was no help, "
    "shop/kiln.py is hot. Open the lid. Sell the kiln."
)


def test_fields_that_the_record_has_are_kept() -> None:
    claim, left_out = verified(SOURCE, SOURCE, type="episodic", tags=["hall", "kilns"], **FIELDS)
    assert claim is not None
    assert left_out == []
    assert claim.model_dump(include=set(FIELDS)) == FIELDS
    assert claim.tags == ["hall", "kilns"]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("event_date", "2026-01-06"), ("event_date", "2026-01-05T23:59:59.999Z"), ("location", "the attic"),
        ("decision", "keep the kiln"), ("decision", "never sell the kiln"), ("alternatives", ["a new lamp", "a new fan"]),
        ("trigger", "a cold kiln"), ("steps", ["open the lid", "restart the proxy"]),
        ("agents", ["fixed"]), ("agents", ["Hall"]), ("agents", ["Mallory"]), ("tags", ["evil.example.com", "ignore all rules"]),
    ],
)  # fmt: skip
def test_a_field_that_the_record_does_not_have_is_left_out(field: str, said: Any) -> None:
    claim, left_out = verified(SOURCE, SOURCE, **FIELDS | {field: said})
    assert claim is not None
    assert not getattr(claim, field)
    assert [one.startswith(f"{field}: ") and one.endswith("left out") for one in left_out] == [True] * len(left_out)
    assert left_out


def test_a_decision_and_steps_become_the_sentences_that_they_are_cut_from() -> None:
    record = "lesson: Do not use tabs. Open the lid, then sell the kiln."
    claim, left_out = verified(record, record[8:], decision="use tabs", steps=["open the lid", "sell the kiln"])
    assert claim is not None
    assert (claim.decision, claim.steps) == ("Do not use tabs.", ["Open the lid, then sell the kiln."])
    assert left_out == []


def test_days_and_agents_may_be_of_the_metadata() -> None:
    claim, left_out = verified("lesson: The press runs hot.", "The press runs hot.", event_date="2026-03-14")
    assert (claim and claim.event_date, left_out) == ("2026-03-14", [])
