"""A memory's privacy tier: by its domain and, for the plain cases, by its text.

The rules for texts are made to be right where they speak, not to find everything: a statement about a person's health, money or
identity numbers needs a person and a plain term in one sentence, or a number that proves itself by its form. What they miss can be given
a tier by hand; what they raise wrongly, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeVar, get_args

from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory, PrivacyTier

M = TypeVar("M", bound=AgentMemory)

TIER_ORDER: tuple[PrivacyTier, ...] = get_args(PrivacyTier)
"""From the most open to the strictest."""
DOMAIN_TIERS: dict[str, PrivacyTier] = {
    "shopping": "public",
    "travel": "public",
    "dining": "public",
    "events": "public",
    "content": "public",
    "financial": "sensitive",
    "relationships": "sensitive",
    "health": "private",
    "journal": "private",
    "identity": "private",
}
"""Seed 2's domains and their tiers, and ``identity`` for numbers that identify a person. Any other domain is public."""
_SAME_DOMAIN = {
    "finance": "financial",
    "finances": "financial",
    "money": "financial",
    "medical": "health",
    "diary": "journal",
}

_PERSON = (
    r"\b(?:I|I'm|I've|me|[Mm]y|mine|[Hh]e|[Ss]he|[Hh]is|[Hh]er|(?:[Tt]he )?[Uu]ser(?:'s| is| was| has| had| takes| took)|patient's|[A-Z][a-z]+'s|"
    r"[A-Z][a-z]+ (?:is|was|has|had|takes|took)|(?:wife|husband|partner|son|daughter|mother|father|mom|mum|dad|brother|sister|friend)(?:'s)?)\b"
)
_NEAR = r"[^.!?\n]{0,60}?"
_CONDITION = (
    r"(?:diabet(?:es|ic)|asthma|cancer|tumou?r|chemotherapy|epilep(?:sy|tic)|migraines?|arthritis|hypertension|hiv|depress(?:ion|ed)|"
    r"bipolar|schizophrenia|adhd|autis(?:m|tic)|dementia|alzheimer's|anxiety disorder|panic attacks?|eating disorder|pregnan(?:t|cy)|"
    r"miscarriage|menopause|coeliac|celiac|crohn's|insulin|antidepressants?|antibiotics|metformin|statins?|ssris?|blood pressure|blood sugar|"
    r"blood test|biops(?:y|ies)|psychiatrist|oncologist|cardiologist|psychotherap(?:y|ist)|therapy session|medical (?:history|record|condition)s?|"
    r"heart (?:attack|disease|condition)|chronic (?:pain|illness|fatigue)|allerg(?:y|ic) to (?:nuts?|peanuts?|penicillin|shellfish|"
    r"pollen|latex|gluten|dairy|milk|eggs?|soy|wheat|bees?|cats?|dogs?|walnuts?))"
)
_HEALTH = re.compile(rf"(?:(?i:{_CONDITION})\b{_NEAR}{_PERSON}|{_PERSON}{_NEAR}\b(?i:{_CONDITION})\b)")
_HOLDINGS = (
    r"(?:salary|income|wages?|net worth|mortgage|pension|bank balance|bank account|savings account|credit score|credit card debt|debts?|"
    r"tax returns?|inheritance|overdraft|student loans?)"
)
_POSSESSIVE = r"\b(?:(?i:my|our|his|her|their|the (?:user|client|customer)'s)|[A-Z][a-z]+'s)"
_MONEY = re.compile(
    rf"{_POSSESSIVE}(?: \w+){{0,2}} (?i:{_HOLDINGS})\b|"
    r"(?i:\b(?:earns?|earned|owes?|owed)\b) (?:about |around |over |only )?(?:[$€£]\s?\d|\d[\d,.]*\s?(?:k|dollars|euros|pounds|USD|EUR|GBP)\b)"
)
_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_CARD = re.compile(r"(?<![\d.-])[3-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?![\d.-])")
_NAMED_NUMBER = re.compile(
    r"(?i:\b(?:passport|driver'?s? licen[cs]e|national insurance|social security|ssn|nhs|tax id(?:entification)?|identity card|id card)"
    r"(?: (?:number|no\.?|#))?(?: is|:)?) (?=[A-Z0-9 -]*\d)[A-Z0-9][A-Z0-9 -]{5,}"
)


class Finding(NamedTuple):
    """What a text plainly concerns: the tier and domain that follow, and words for the caller."""

    tier: PrivacyTier
    domain: str
    what: str


class Inferred(NamedTuple):
    """A tier and domain, and the notice for the caller where the text raised the tier."""

    tier: PrivacyTier
    domain: str | None
    notice: str | None = None


def tier_of_domain(domain: str | None) -> PrivacyTier:
    """Return the tier of a domain; an unknown one, and none, is public."""
    return DOMAIN_TIERS.get(known_domain(domain), "public")


def known_domain(domain: str | None) -> str:
    """Return a domain's name for comparison, ``general`` if there is none: without case, and one of several names of one domain."""
    name = canonical_name(domain) if domain else "general"
    return _SAME_DOMAIN.get(name, name)


def strictest(*tiers: PrivacyTier) -> PrivacyTier:
    """Return the strictest of some tiers."""
    return max(tiers, key=TIER_ORDER.index)


def finding_of(text: str) -> Finding | None:
    """Return what a text plainly concerns, the strictest first; None if nothing. Linear in the length of the text."""
    if _SSN.search(text) or _NAMED_NUMBER.search(text):
        return Finding("private", "identity", "an identity number")
    if any(_is_iban(found.group()) for found in _IBAN.finditer(text)):
        return Finding("private", "identity", "an account number")
    if any(_passes_luhn(found.group()) for found in _CARD.finditer(text)):
        return Finding("private", "identity", "a card number")
    if _HEALTH.search(text):
        return Finding("private", "health", "a health matter")
    if _MONEY.search(text):
        return Finding("sensitive", "financial", "money matters")
    return None


def classified(memory: M) -> M:
    """Return a memory with the tier that follows from its domain and text, unless it was given one.

    A text that raises the tier gives the memory its domain as well, if it has none.
    """
    if "privacy_tier" in memory.model_fields_set:
        return memory
    found = inferred(memory.domain, memory.content)
    if found.tier == "public":
        return memory
    return memory.model_copy(update={"privacy_tier": found.tier, "domain": found.domain})


def inferred(domain: str | None, text: str) -> Inferred:
    """Return the tier of a text of a domain, and why, if the text raised it."""
    tier, finding = tier_of_domain(domain), finding_of(text)
    if finding is None or strictest(tier, finding.tier) == tier:
        return Inferred(tier, domain)
    notice = f"stored as {finding.tier}, because it concerns {finding.what}; `memgraph edit ID --privacy public` changes that"
    return Inferred(finding.tier, domain or finding.domain, notice)


def _is_iban(text: str) -> bool:
    """Return whether the check digits of an IBAN are right (ISO 7064, mod 97)."""
    code = text.replace(" ", "")
    digits = "".join(str(int(one, 36)) for one in code[4:] + code[:4])
    return 15 <= len(code) <= 34 and int(digits) % 97 == 1


def _passes_luhn(text: str) -> bool:
    digits = [int(one) for one in text if one.isdigit()][::-1]
    return sum(digits[::2]) % 10 == -sum(sum(divmod(2 * one, 10)) for one in digits[1::2]) % 10
