"""Statements and their sources: what says the contrary is refused, and a faithful paraphrase holds.

Each case has a source and a statement about it, and where the evidence is only a part of the source, this part.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from memgraph.extraction.llm.claims import Claim
from memgraph.extraction.verification.support import is_misspelt


class Case(NamedTuple):
    """A source, a statement about it, and the part of the source that is given as evidence."""

    source: str
    content: str
    evidence: str = ""


def problems(case: Case, **fields: object) -> list[str]:
    given = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "evidence": [case.evidence or case.source]}
    return Claim.parse({**given, "content": case.content, **fields}).problems(case.source)


CONTRARY = {
    "a denial dropped": Case("The kiln does not reach full heat.", "The kiln reaches full heat."),
    "a denial added": Case("The kiln reaches full heat.", "The kiln does not reach full heat."),
    "a denial moved to another subject": Case(
        "The oak shelf is not painted. The pine shelf is painted.", "The pine shelf is not painted."
    ),
    "a statement moved to a denied subject": Case(
        "Clay is fired twice. Porcelain is not allowed.", "Porcelain is fired twice."
    ),
    "a subject of two words": Case(
        "The north gate does not open by itself. The south gate is wide.", "The south gate does not open by itself."
    ),
    "an owner": Case("Ada's kiln is not safe. Ben sold a kiln.", "Ben's kiln is not safe."),
    "never": Case("Never fire wet clay.", "Fire wet clay."),
    "nobody": Case("Nobody cleaned the studio.", "Anna cleaned the studio."),
    "none": Case("None of the bowls cracked.", "The bowls cracked."),
    "no": Case("The glaze has no lead.", "The glaze has lead."),
    "the stated half of a contrast": Case("Use brushes, not sponges.", "Do not use brushes."),
    "the denied half of a contrast": Case("Use brushes, not sponges.", "Use sponges."),
    "both halves denied": Case("Use brushes, not sponges.", "Do not use brushes or sponges."),
    "a contrast turned, without a comma": Case("Ask about colours not prices.", "Ask about prices, not colours."),
    "a preference turned": Case("Use brushes instead of sponges.", "Use sponges instead of brushes."),
    "a carried denial": Case("Do not:\n- open the kiln\n- move the bowls", "Move the bowls."),
    "a denial after a label": Case("Exports: not supported", "Exports are supported."),
    "a cut denial": Case("Do not open the kiln while it is hot.", "Open the kiln.", "open the kiln"),
    "a cut topic": Case("Sponges are not washed at night.", "Sponges are washed.", "Sponges"),
    "a cut denial in emphasis": Case(
        "The press **never actually stops** at noon.", "The press actually stops at noon.", "actually stops"
    ),
    "a denial denied": Case("It is unable to lift the lid.", "It is able to lift the lid."),
    "a failure": Case("The fan fails to start.", "The fan starts."),
    "an open doubt": Case("I am not sure that the fan starts.", "The fan starts."),
    "a number": Case("Fire the bowls at 980 degrees.", "Fire the bowls at 890 degrees."),
    "a number of one digit more": Case("Fire 12 bowls.", "Fire 120 bowls."),
    "a version": Case("The press needs firmware 2.4.1.", "The press needs firmware 2.4.2."),
    "a shorter version": Case("The press needs firmware 2.4.1.", "The press needs firmware 2.4."),
    "a name": Case("Marta closed the studio.", "Martha closed the studio."),
    "an identifier": Case("Call openKiln first.", "Call openKilns first."),
    "an identifier in snake case": Case("Set kiln_limit first.", "Set kiln_limits first."),
    "an option": Case("Start it with --no-glaze.", "Start it with --glaze."),
    "a path": Case("The plan is in docs/kiln.md.", "The plan is in docs/kilns.md."),
    "a line of a path": Case("It broke in shop/kiln.py:40.", "It broke in shop/kiln.py:41."),
    "a line that is not given": Case("It broke in shop/kiln.py.", "It broke in shop/kiln.py:40."),
    "another path, same line": Case("It broke in shop/kiln.py:40.", "It broke in shop/oven.py."),
    "a direction": Case("Move the shelf from left to right.", "Move the shelf from right to left."),
    "an order": Case("Glaze the bowl before you fire it.", "Glaze the bowl after you fire it."),
    "a replacement": Case("Replace gas with wood.", "Replace wood with gas."),
    "up and down": Case("Scale the fans up.", "Scale the fans down."),
    "must": Case("Guests may enter the studio.", "Guests must enter the studio."),
    "may": Case("Guests must wear gloves.", "Guests may wear gloves."),
    "may, though another sentence allows something": Case(
        "Can we wear hats? Guests must wear gloves.", "Guests may wear gloves."
    ),
    "should": Case("Guests should wear gloves.", "Guests may wear gloves."),
    "on": Case("The fan is off at night.", "The fan is on at night."),
    "off": Case("The fan is on at night.", "The fan is off at night."),
    "disabled": Case("The fan is disabled.", "Turn on the fan."),
    "a condition": Case("Open the kiln only if it is cold.", "Open the kiln."),
    "a condition before it": Case("Only when the lamp is green, open the kiln.", "Open the kiln."),
    "a condition of few words": Case("It runs only on Fridays.", "It runs."),
    "a condition of the user": Case("user_did: only if the lamp is green, open the kiln.", "Open the kiln."),
    "a denied condition": Case("Do not open the kiln unless it is cold.", "Never open the kiln."),
    "a denial of two subjects, turned": Case("Ada can't weld, and Ben can't paint.", "Ada can't paint."),
    "an exception": Case("Open the kiln unless the lamp is red.", "Open the kiln."),
    "a condition that was cut off": Case("Open the kiln only if it is cold.", "Open the kiln.", "Open the kiln"),
    "a decision that was a question": Case("user: Should we buy a wood kiln?", "The user decided to buy a wood kiln."),
    "a decision that was a proposal": Case("user: maybe buy a wood kiln", "The user decided to buy a wood kiln."),
    "a wish of the contrary": Case("user: do not paint the wall", "The user wants you to paint the wall."),
    "a wish that was denied": Case("user: paint the wall", "The user does not want you to paint the wall."),
    "a wish of somebody else": Case("user: paint the wall", "Marta wants you to paint the wall."),
    "a word with another prefix": Case("The wheel is symmetric.", "The wheel is asymmetric."),
    "a word with another letter": Case("The label was parsed.", "The label was passed."),
    "a cause": Case("The bowl cracked. The glaze was thin.", "The bowl cracked because the glaze was thin."),
}  # fmt: skip

FAITHFUL = {
    "a subject in more words": Case(
        "The kiln was bought in May. The kiln does not reach full heat.", "The kiln of May does not reach full heat."
    ),
    "a subject of another sentence": Case(
        "This is about the studio. The kiln does not reach full heat.", "In the studio, the kiln does not reach full heat."
    ),
    "the subject of a contrast": Case(
        "The sign showed 9 bowls: it counts bowls on shelves, not orders.", "The bowls are not orders: it counts bowls on shelves."
    ),
    "a contrast without a comma": Case("i mean about colours not prices", "It is about colours, not prices."),
    "the stated half, without a comma": Case("we should use the wheel not build a new one", "We should use the wheel."),
    "a condition of a denial": Case(
        "if I use the gas kiln the glaze is not smooth", "If I use the gas kiln, the glaze is not smooth."
    ),
    "a request after a doubt": Case(
        "not sure why the shelf is empty please move it back to the studio", "Move it back to the studio."
    ),
    "a doubt of the user": Case("user_did: i'm not sure the fan works", "The user is not sure the fan works."),
    "an answer to a question": Case(
        'Where should it go, or doesn\'t it matter?"="Top shelf". Ask "What colour?"="Ochre"', "The colour is ochre."
    ),
    "an answer to a denied question": Case(
        '"Should bowls that are not dry wait?"="Dry them first"', "Dry them first."
    ),
    "a denial in emphasis": Case(
        "No. **The stove heats the hall**, but **never actually heats the attic**.", "The stove heats the hall, but never actually heats the attic."
    ),
    "what stands before an emphasised denial": Case(
        "- **The stove** heats the hall, but **never heats the attic**. It smokes.", "The stove heats the hall."
    ),
    "a short denial of a label": Case("- **Attic side** — no equivalent fan (too small)", "The attic side has no equivalent fan."),
    "a label": Case("sh: line 1: glaze: command not found", "The command glaze was not found."),
    "a relative clause": Case(
        "by post), which the studio doesn't use - it calls instead", "The studio doesn't use post."
    ),
    "you": Case(
        "Keep the studio key safe but you don't need to carry it anywhere.", "The studio key need not be carried anywhere."
    ),
    "another verb form": Case("Sponges are not allowed.", "Do not allow sponges."),
    "no and not": Case("The press uses no oil.", "The press does not use oil."),
    "not and no": Case("The press does not use oil.", "The press uses no oil."),
    "more than": Case("if the number of bowls will not be more then 20, wait", "The number of bowls is not more than 20."),
    "swapped letters": Case("user: i thougth the studio was shut", "The user thought the studio was shut."),
    "a letter too few": Case("any label should be clickble", "Any label should be clickable."),
    "a letter too many": Case("move the bowls to the cuupboard", "Move the bowls to the cupboard."),
    "a path without its line": Case("It broke in shop/kiln.py:40:7: too hot", "It broke in shop/kiln.py: too hot."),
    "a path without its lines": Case("See heat() (shop/kiln.py:40-52).", "See heat() in shop/kiln.py."),
    "the end of a path without its line": Case("It broke in shop/kiln.py:40.", "It broke in kiln.py."),
    "the case of a name": Case("we send them by parcelpost", "We send them by ParcelPost."),
    "the case of a name, turned": Case("we send them by ParcelPost", "We send them by parcelpost."),
    "a wish": Case("user_did: can we paint the wall?", "The user wants you to paint the wall."),
    "a request": Case("user_did: please paint the wall", "The user asked to paint the wall."),
    "a denied wish": Case("user_did: don't paint the wall", "The user does not want you to paint the wall."),
    "a decision": Case("user_did: ok, buy the wood kiln", "The user decided to buy the wood kiln."),
    "a decision of we": Case("We buy the wood kiln.", "It was decided to buy the wood kiln."),
    "a saying": Case("user_did: the wall is wet", "The user said that the wall is wet."),
    "a doubt that is no condition": Case(
        "unless I'm mistaken, the kiln needs gas, so buy gas", "The kiln needs gas, so buy gas."
    ),
    "a kept condition": Case("Open the kiln only if it is cold.", "If the kiln is cold, open it."),
    "a condition in other words": Case("Open the kiln only with gloves.", "To open the kiln you need gloves."),
    "a place of another sentence": Case(
        "There is no list of the glazes. The table is long.", "There is no list of the glazes in the table."
    ),
    "a statement without the condition of another": Case(
        "Open the kiln only if it is cold. Clean the press.", "Clean the press."
    ),
    "a fact stated again without its condition": Case(
        "Open the kiln only if it is cold. It is cold: open the kiln now.", "Open the kiln now."
    ),
}  # fmt: skip
REFUSED_THOUGH_FAITHFUL = {
    "other words": Case("The lid is heavy.", "The lid weighs a lot."),
    "a short word misspelt": Case("move the bowls to the shlef", "Move the bowls to the shelf."),
    "what follows": Case("Only reading is supported.", "Writing is not supported."),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRARY)
def test_the_contrary_of_a_source_is_refused(case: str) -> None:
    assert problems(CONTRARY[case])
    assert problems(CONTRARY[case]._replace(content=CONTRARY[case].source, evidence="")) == []


@pytest.mark.parametrize("case", FAITHFUL)
def test_a_faithful_paraphrase_holds(case: str) -> None:
    assert problems(FAITHFUL[case]) == []


@pytest.mark.parametrize("case", REFUSED_THOUGH_FAITHFUL)
def test_words_are_compared_not_meanings(case: str) -> None:
    assert problems(REFUSED_THOUGH_FAITHFUL[case])


def test_a_place_may_be_one_of_which_something_is_denied_if_the_statement_says_so() -> None:
    source = "Paint the hall, not the attic. The lid of shop/kiln.py does not fit."
    for content, location, holds in [
        ("Paint the hall, not the attic.", "attic", True),
        ("The lid does not fit.", "shop/kiln.py", True),
        ("Paint the hall.", "attic", False),
        ("Paint the hall.", "cellar", False),
    ]:
        assert (problems(Case(source, content), location=location) == []) is holds


@pytest.mark.parametrize(
    ("word", "right", "is_it"),
    [
        ("thougth", "thought", True), ("clickble", "clickable", True), ("comited", "committed", False), ("comitted", "committed", True),
        ("biggre", "bigger", True), ("unload", "upload", False), ("parsed", "passed", False), ("imports", "import", False),
        ("asynchronous", "synchronous", False), ("Marten", "Martena", False), ("kiln_1", "kilns_1", False), ("shlef", "shelf", False),
        ("blocked", "locked", False), ("thought", "thought", False), ("1234567", "1234576", False), ("--force", "--froce", False),
    ],
)  # fmt: skip
def test_a_misspelt_word_has_one_slip(word: str, right: str, is_it: bool) -> None:
    assert is_misspelt(word, right) is is_it
    assert is_misspelt(right, word) is is_it
