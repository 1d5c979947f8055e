"""Paraphrases: what says the same in other words holds, and the same paraphrase with one thing turned is refused.

Each case has a source, the part of it that is quoted as evidence (all of it if empty), a faithful paraphrase, and a contrary one.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from memgraph.extraction.llm.claims import Claim
from memgraph.extraction.verification.exact import stands_in


class Case(NamedTuple):
    """A source, what is quoted of it, and what is said of it, once rightly and once wrongly."""

    source: str
    quoted: tuple[str, ...]
    right: str
    wrong: str


def problems(case: Case, content: str) -> list[str]:
    given = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "evidence": [*case.quoted] or [case.source]}
    return Claim.parse({**given, "content": content}).problems(case.source)


CASES = {
    "an opposite word": Case(
        "user_did: the new kiln is slow on cold mornings, so start it early", (),
        "The user finds the new kiln slow on cold mornings, so it is to be started early.",
        "The user finds the new kiln fast on cold mornings, so it is to be started early.",
    ),
    "an opposite word that stands elsewhere": Case(
        "[1]\nThe lid of the tank is open at noon.\n\n[2]\nThe door of the studio is closed.", ("The lid of the tank is open at noon.",),
        "In the studio, the lid of the tank is open at noon.",
        "In the studio, the lid of the tank is closed at noon.",
    ),
    "an opposite by its prefix": Case(
        "The guard keeps the glaze cabinet locked at night.", (),
        "At night the glaze cabinet is kept locked by the guard.",
        "At night the glaze cabinet is kept unlocked by the guard.",
    ),
    "an opposite by its suffix": Case(
        "[1]\nuser_did: the manual for the wheel was useless to my students of the spring course", (),
        "The user reported that the manual for the wheel was useless to the students of the spring course.",
        "The user reported that the manual for the wheel was useful to the students of the spring course.",
    ),
    "more and less": Case(
        "The second fan increased the heat of the hall a lot.", (),
        "The heat of the hall was increased a lot with the second fan.",
        "The heat of the hall was decreased a lot with the second fan.",
    ),
    "success": Case(
        "The repair of the old press failed twice in May.", (),
        "Repairing the old press failed twice in May.",
        "Repairing the old press succeeded twice in May.",
    ),
    "a number of another turn": Case(
        "[1]\nFire the bowls at 980 degrees.\n\n[2]\nThe tiles need 890 degrees.", ("Fire the bowls at 980 degrees.",),
        "The bowls are to be fired at 980 degrees.",
        "The bowls are to be fired at 890 degrees.",
    ),
    "a name of another turn": Case(
        "[1]\nIn May, Marta ordered clay at the quarry.\n\n[2]\nLater, Jonas sold the wheel.", ("Marta ordered clay at the quarry.",),
        "It was Marta who ordered the clay of the studio at the quarry.",
        "It was Jonas who ordered the clay of the studio at the quarry.",
    ),
    "a day": Case(
        "[1]\ndate: 2026-03-04\ntask: Clean the press\n\n[2]\ndate: 2026-03-05\ntask: Oil the press", ("task: Clean the press",),
        "The press was cleaned on 2026-03-04.",
        "The press was cleaned on 2026-03-05.",
    ),
    "the value of an option": Case(
        "command: press run --slow -n=4 -bench=BenchmarkPress", (),
        "BenchmarkPress was run slow with the press, n being 4.",
        "BenchmarkPress was run slow with the press, n being 40.",
    ),
    "an owner in a URL": Case(
        "user_did: look at https://git.example.org/ada/kiln/issues/7 please", (),
        "The user asked to look at issue 7 of ada/kiln.",
        "The user asked to look at issue 7 of ben/kiln.",
    ),
    "a subject": Case(
        "The apprentice glazes the bowls, and the master fires the kiln.", (),
        "In the studio the kiln is what the master fires, and the apprentice glazes the bowls.",
        "The master glazes the bowls.",
    ),
    "who says it": Case(
        "[1]\nagent: claude\nlesson: the old kiln should be sold\n\n[2]\nuser_did: is the wheel still here?",
        ("the old kiln should be sold",),
        "It was suggested that the old kiln should be sold.",
        "The user wants the old kiln to be sold.",
    ),
    "an obligation": Case(
        "Visitors of the studio may take photographs of the wheel.", (),
        "Taking photographs of the wheel is something visitors of the studio may do.",
        "Visitors of the studio have to take photographs of the wheel.",
    ),
    "a permission": Case(
        "Every apprentice must wear gloves at the kiln.", (),
        "At the kiln, gloves have to be worn by every apprentice.",
        "At the kiln, gloves may be worn by every apprentice.",
    ),
    "a condition": Case(
        "The master rents out the studio only while it is winter. It has a wheel.", (),
        "Only in winter is the studio rented out by the master.",
        "The studio is rented out by the master.",
    ),
    "for and against": Case(
        "We decided against gas and for wood.", (),
        "The team decided for wood and against gas.",
        "The team decided for gas and against wood.",
    ),
    "a preference": Case(
        "user_did: I prefer wood over gas for the big kiln", (),
        "For the big kiln, the user prefers wood over gas.",
        "For the big kiln, the user prefers gas over wood.",
    ),
    "a denial of the user": Case(
        "user_did: i dont want the kiln to run at night", (),
        "The user does not want the kiln to be run at night.",
        "The user wants the kiln to be run at night.",
    ),
    "a misspelt denial": Case(
        "user_did: the press works withput oil since May", (),
        "The user said that the press works without oil since May.",
        "The user said that the press works with oil since May.",
    ),
    "a denial, then a statement": Case(
        "user_did: I am not a trained potter but I have to paint a lot of tiles for friends", (),
        "The user is not a trained potter and paints a lot of tiles for friends.",
        "The user is a trained potter and does not paint a lot of tiles for friends.",
    ),
    "a denial dropped before a statement": Case(
        "user_did: I am not a trained potter but I have to paint a lot of tiles for friends", (),
        "The user is not a trained potter and has to paint a lot of tiles for friends.",
        "The user is a trained potter and has to paint a lot of tiles for friends.",
    ),
    "a version": Case(
        "[1]\ndate: 2026-03-25\nlesson: The list of glazes is fixed for v1, and sorted in phase 2.", ("The list of glazes is fixed for v1, and sorted in phase 2.",),
        "In v1 the list of glazes is fixed.",
        "In v2 the list of glazes is fixed.",
    ),
    "a number that is only in a date": Case(
        "[1]\ndate: 2026-03-25\nlesson: Keep 24 bowls on the shelf.", ("date: 2026-03-25\nlesson: Keep 24 bowls on the shelf.",),
        "There should be 24 bowls on the shelf.",
        "There should be 25 bowls on the shelf.",
    ),
    "a name of the record's form": Case(
        "[1]\nuser_did: call open_kiln before the firing", (),
        "The user said to call open_kiln before the firing.",
        "The user said to call user_did before the firing.",
    ),
    "a denial of another predicate": Case(
        "user_did: I am not a trained potter but I have to paint a lot of tiles for friends", (),
        "The user paints a lot of tiles for friends.",
        "The user does not paint a lot of tiles for friends.",
    ),
    "two denials": Case(
        "output: brush-mac not found\nno kiln.conf", (),
        "In the output, brush-mac was not found and there was no kiln.conf.",
        "In the output, brush-mac was found and there was no kiln.conf.",
    ),
    "the second of two denials": Case(
        "output: brush-mac not found\nno kiln.conf", (),
        "There was no kiln.conf and brush-mac was not found.",
        "There was a kiln.conf and brush-mac was not found.",
    ),
    "a cause": Case(
        "[1]\nThe bowls of the spring batch cracked (the clay was wet).\n\n[2]\nThe window was open.",
        ("The bowls of the spring batch cracked (the clay was wet).", "The window was open."),
        "The bowls of the spring batch cracked because the clay was wet.",
        "The bowls of the spring batch cracked because the window was open.",
    ),
    "a reason": Case(
        "user_did: I do not want to glaze the tiles anymore. Too much work.\ncontext: The oven is green.", (),
        "The user does not want to glaze the tiles anymore because it is too much work.",
        "The user does not want to glaze the tiles anymore because the oven is green.",
    ),
    "a cause and its effect": Case(
        "The glaze ran down since the kiln was much too hot.", (),
        "The glaze ran down because the kiln was far too hot.",
        "The kiln was far too hot because the glaze ran down.",
    ),
    "quoted words": Case(
        '[1]\noutput: error "kiln lamp missing" at start\n\n[2]\nThe wheel is broken.', ('error "kiln lamp missing" at start',),
        'The error at the start was "kiln lamp missing".',
        'The error at the start was "kiln lamp broken".',
    ),
    "quoted words of the user": Case(
        'user_did: the user of the kiln pays for it', (),
        'The user said: "the user of the kiln pays for it".',
        'The user said: "the guest of the kiln pays for it".',
    ),
    "words of which few are quoted": Case(
        "[1]\nThe kiln is hot.\n\n[2]\nThe wheel needs fresh oil every week.", ("The kiln is hot.",),
        "The kiln of the wheel is hot.",
        "The wheel needs fresh oil every week.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_faithful_paraphrase_holds(case: str) -> None:
    assert problems(CASES[case], CASES[case].right) == []


@pytest.mark.parametrize("case", CASES)
def test_a_paraphrase_with_one_thing_turned_is_refused(case: str) -> None:
    assert problems(CASES[case], CASES[case].wrong)


def test_a_field_of_function_words_need_only_be_quoted() -> None:
    source = "[1]\nuser_did: do both\ncontext: Paint the bowls, or glaze them?"
    given = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "evidence": [source[4:]]}
    claim = Claim.parse({**given, "content": "The bowls are to be painted and glazed.", "decision": "do both"})
    assert claim.problems(source) == []
    assert claim.model_copy(update={"decision": "do neither"}).problems(source)


def test_a_refusal_says_what_to_do() -> None:
    source = (
        "[1]\nlesson: The kiln is hot.\n\n[2]\ncontext: It listens on 8080 at the open front door of Anna, who said so."
    )
    claim = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "evidence": ["The kiln is hot."]}
    for content, told in [
        ("The kiln is hot at 8080.", "“8080” is not in the quoted evidence: quote the passage that has it"),
        ("The kiln is hot for Anna.", "“Anna” is not in the quoted evidence: quote the passage that has it"),
        (
            "The user says the kiln is hot.",
            "“user” is not in the quoted evidence: quote the turn of the user, or say who said it",
        ),
        ("The kiln is purple.", "“purple” is not in the source: say it in its words"),
        ("It listens at the open front door.", "quote the passages that say it"),
        ("The kiln is not hot.", "the quoted evidence denies nothing: quote the passage that denies “hot”"),
    ]:
        problems = Claim.parse({**claim, "content": content}).problems(source)
        assert told in "; ".join(problems), (content, problems)


@pytest.mark.parametrize(
    ("item", "text", "stands"),
    [
        ("ada/kiln", "see https://git.example.org/ada/kiln.git", True), ("ada/kiln", "see /ada/kilns", False),
        ("kiln.py", "shop/kiln.py:40", True), ("kiln.py", "shop/kiln.py.bak", False), ("shop/kiln.py:41", "shop/kiln.py:40", False),
        ("benchpress", "-bench=benchpress", True), ("--glaze", "--no-glaze", False), ("-c", "press -c", True), ("-c", "press-c", False),
        ("3.3", "3.3.5", False), ("v3.3.5", "3.3.5", True), ("v2", "phase 2", False), ("5", "-5", False), ("5", "5%", False),
        ("60s", "60 s", True), ("6s", "60 s", False), ("40", "kiln.py:40", True), ("2", "press 2>&1", False), ("-5", "exit code -5", True),
    ],
)  # fmt: skip
def test_an_exact_item_may_be_a_part_of_a_longer_one(item: str, text: str, stands: bool) -> None:
    assert stands_in(item, text) is stands
