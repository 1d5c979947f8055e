"""Privacy: a memory's tier, and who may have which memories (seed 2, v13, section 8.11).

- A *public* memory is for everybody, a *sensitive* one for an agent that gives its name and a justification of more than 20 characters,
  a *private* one only for an agent whose own domain is the memory's.
- An agent's domain, and the domains that it may read, search and write, are settings of the store (``[agents.NAME]`` in ``config.toml``):
  no agent can claim them for itself.
- The owner, who holds the store's directory and key, may read everything.

The store enforces this in the filter stage of each recall and search, and in the view that an agent gets (`as_agent`). A tier follows from
the memory's domain and, in plain cases, from its text. The rules for texts are made to be right where they speak, not to find everything:
a statement about a person's health, money or identity numbers needs a person and a plain term in one sentence, or a number that proves
itself by its form. What they miss can be given a tier by hand; what they raise wrongly, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, Field

from memgraph.errors import PermissionDeniedError
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Model, Name
from memgraph.model.ids import canonical_name, lower
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
_OTHER_NAMES = {
    "financial": ("finance", "finances", "personal finance", "personal finances", "money", "bank", "banking"),
    "relationships": ("relationship",),
    "health": ("healthcare", "health care", "medical", "medicine", "mental health"),
    "journal": ("journals", "diary", "diaries"),
}
_SAME_DOMAIN = {name: domain for domain, names in _OTHER_NAMES.items() for name in names}
_RESTRICTED = [*(name for name, tier in DOMAIN_TIERS.items() if tier != "public"), *_SAME_DOMAIN]
_ALIKE = 0.85
"""Similarity (`difflib`) from which an unknown domain is taken for a mistyped one."""
TEXT_FIELDS = (
    "content title tags cues archive_summary reason asked lesson pattern conditions correct_approach incorrect_approach goal constraints situation "
    "reasoning action decision alternatives_considered user_feedback location action_log errors_encountered artifacts_produced "
    "trigger_pattern steps prerequisites common_errors exit_criteria"
).split()
"""Fields whose text decides about the tier, of every type of memory."""

_RELATIVE = r"(?:wife|husband|partner|son|daughter|mother|father|mom|mum|dad|brother|sister|friend)"
_PERSON = re.compile(
    rf"\b(?:(?i:I|I'm|I've|me|my|mine|he|she|his|her)|(?:[Tt]he )?[Uu]ser(?:'s| is| was| has| had| takes| took)|patient's|[A-Z][a-z]+'s|"
    rf"[A-Z][a-z]+ (?:is|was|has|had|takes|took)|{_RELATIVE}(?:'s)?)\b"
)
_NEAR_CHARS = 60
_SENTENCE_END = re.compile(r"[.!?\n]")
_CONDITION = re.compile(
    r"\b"
    r"(?:diabet(?:es|ic)|asthma|cancer|tumou?r|chemotherapy|epilep(?:sy|tic)|migraines?|arthritis|hypertension|hiv|depress(?:ion|ed)|"
    r"bipolar|schizophrenia|adhd|autis(?:m|tic)|dementia|alzheimer's|anxiety disorder|panic attacks?|eating disorder|pregnan(?:t|cy)|"
    r"miscarriage|menopause|coeliac|celiac|crohn's|insulin|antidepressants?|antibiotics|metformin|statins?|ssris?|blood pressure|blood sugar|"
    r"blood test|biops(?:y|ies)|psychiatrist|oncologist|cardiologist|psychotherap(?:y|ist)|therapy session|medical (?:history|record|condition)s?|"
    r"heart (?:attack|disease|condition)|chronic (?:pain|illness|fatigue)|allerg(?:y|ic) to (?:nuts?|peanuts?|penicillin|shellfish|"
    r"pollen|latex|gluten|dairy|milk|eggs?|soy|wheat|bees?|cats?|dogs?|walnuts?))\b"
)
"""In lower case: many times as fast as without regard to case."""
_DIAGNOSED = re.compile(
    rf"(?i:\b(?:I|he|she|they|user|{_RELATIVE})(?:'ve|'s)?(?: (?:was|am|is|were|has|have|had|been|got|just|recently)){{0,3}} diagnosed with\b)"
)
_HOLDINGS = (
    r"(?:salary|income|wages?|net worth|mortgage|pension|bank balance|bank account|savings account|credit score|credit card debt|debts?|"
    r"tax returns?|inheritance|overdraft|student loans?)"
)
_OF_MONEY = (
    "salary", "income", "wage", "worth", "mortgage", "pension", "bank", "savings", "credit", "debt", "tax", "inherit", "overdraft", "loan",
    "earn", "owe", "mak", "made", "paid",
)  # fmt: skip
"""One of these is in every text in lower case that concerns money."""
_POSSESSIVE = r"\b(?:(?i:my|our|his|her|their|the (?:user|client|customer)'s)|[A-Z][a-z]+'s)"
_MONEY = re.compile(
    rf"{_POSSESSIVE}(?: \w+){{0,2}} (?i:{_HOLDINGS})\b|"
    r"(?i:\b(?:earns?|earned|owes?|owed)\b) (?:about |around |over |only )?(?:[$€£]\s?\d|\d[\d,.]*\s?(?:k|dollars|euros|pounds|USD|EUR|GBP)\b)|"
    rf"(?i:\b(?:I|he|she|{_RELATIVE}) (?:makes?|made|earns?|earned|(?:am|is|was|gets?|got) paid) (?:about |around |over |only )?"
    r"(?:[$€£]\s?\d[\d,.]*\s?k?|\d[\d,.]*\s?(?:k|grand|dollars|euros|pounds|USD|EUR|GBP)|\d{2,3},?\d{3}) (?:a|an|per|each) (?:hour|day|week|month|year|annum)\b)"
)
_LONG_NUMBER = re.compile(r"\d(?:[ -]?\d){8}")
"""What every social security and card number has; searching it takes a tenth of the time."""
_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_CARD = re.compile(
    r"(?<![\d.-])[3-6]\d{3}([ -])\d{4}\1\d{4}\1\d{4}(?![\d.-])|"
    r"(?<![\w.-])(?:4\d{15}|5[1-5]\d{14}|3[47]\d{13}|6(?:011|5\d\d)\d{12})(?![\w-]|\.\d)"
)
"""Card numbers in groups, and without them those of the large issuers."""
_NAMED_NUMBER = re.compile(
    r"(?i:\b(?:passport|driver'?s? licen[cs]e|national insurance|social security|ssn|nhs|tax id(?:entification)?|identity card|id card)"
    r"(?: (?:number|no\.?|#))?(?: is|:)?) (?=[A-Z0-9 -]*\d)[A-Z0-9][A-Z0-9 -]{5,}"
)


_OF_NUMBERS = ("passport", "licen", "insurance", "security", "ssn", "nhs", "tax id", "card")
"""One of these is in every text in lower case that names a number."""


class Finding(NamedTuple):
    """What a text plainly concerns: the tier and domain that follow, and words for the caller."""

    tier: PrivacyTier
    domain: str
    what: str


class Inferred(NamedTuple):
    """A tier and domain, and the notice for the caller where the text raised the tier, or the domain may be mistyped."""

    tier: PrivacyTier
    domain: str | None
    notice: str | None = None


def tier_of_domain(domain: str | None) -> PrivacyTier:
    """Return the tier of a domain; an unknown one, and none, is public."""
    return DOMAIN_TIERS.get(known_domain(domain), "public")


def known_domain(domain: str | None) -> str:
    """Return a domain's name for comparison, ``general`` if there is none: without case, and one of several names of one domain."""
    name = canonical_name(domain) if domain else "general"
    return _SAME_DOMAIN.get(name.replace("-", " ").replace("_", " "), name)


def text_of(memory: AgentMemory, fields: Iterable[str] = TEXT_FIELDS) -> str:
    """Return the texts of some fields of a memory, one a line."""
    values = vars(memory)
    return "\n".join(text for name in fields if (value := values.get(name)) for text in _texts(value))


def strictest(*tiers: PrivacyTier) -> PrivacyTier:
    """Return the strictest of some tiers."""
    return max(tiers, key=TIER_ORDER.index)


def domain_of(*memories: tuple[PrivacyTier, str | None]) -> str | None:
    """Return the domain of what is made of some memories, given their tiers and domains: that of the first of the strictest tier.

    Another domain would give its agents what is not of it.
    """
    strict = strictest(*(tier for tier, _ in memories))
    return next(domain for tier, domain in memories if tier == strict)


def finding_of(text: str) -> Finding | None:
    """Return what a text plainly concerns, the strictest first; None if nothing. Linear in the length of the text."""
    lowered, has_long_number = lower(text), _LONG_NUMBER.search(text)
    if (has_long_number and _SSN.search(text)) or (_has(lowered, _OF_NUMBERS) and _NAMED_NUMBER.search(text)):
        return Finding("private", "identity", "an identity number")
    if any(_is_iban(found.group()) for found in _IBAN.finditer(text)):
        return Finding("private", "identity", "an account number")
    if has_long_number and any(_passes_luhn(found.group()) for found in _CARD.finditer(text)):
        return Finding("private", "identity", "a card number")
    is_diagnosed = "diagnosed with" in lowered and _DIAGNOSED.search(text)
    if is_diagnosed or any(_is_of_a_person(text, found) for found in _CONDITION.finditer(lowered)):
        return Finding("private", "health", "a health matter")
    if _has(lowered, _OF_MONEY) and _MONEY.search(text):
        return Finding("sensitive", "financial", "money matters")
    return None


def _has(lowered: str, words: Iterable[str]) -> bool:
    return any(word in lowered for word in words)


def classified(memory: M) -> M:
    """Return a memory with the tier that follows from its domain and texts, unless it was given one.

    A text that raises the tier gives the memory its domain as well, if it has none.
    """
    if "privacy_tier" in memory.model_fields_set:
        return memory
    found = inferred(memory.domain, text_of(memory))
    if found.tier == "public":
        return memory
    return memory.model_copy(update={"privacy_tier": found.tier, "domain": found.domain})


def inferred(domain: str | None, text: str) -> Inferred:
    """Return the tier of a text of a domain, and why, if the text raised it."""
    tier, finding = tier_of_domain(domain), finding_of(text)
    if finding is None or strictest(tier, finding.tier) == tier:
        return Inferred(tier, domain, _mistyped(domain) if tier == "public" else None)
    notice = f"stored as {finding.tier}, because it concerns {finding.what}; `memgraph edit ID --privacy public` changes that"
    return Inferred(finding.tier, domain or finding.domain, notice)


@lru_cache(maxsize=1_024)
def _mistyped(domain: str | None) -> str | None:
    """Return the notice for an unknown domain whose name is almost that of a restricted one; None for others."""
    name = known_domain(domain)
    meant = [] if name in DOMAIN_TIERS else get_close_matches(name, _RESTRICTED, n=1, cutoff=_ALIKE)
    if not meant:
        return None
    known = known_domain(meant[0])
    return (
        f"stored as public, because its domain {domain!r} is unknown; did you mean {known}, which is {DOMAIN_TIERS[known]}? "
        f"`memgraph edit ID --domain {known}` changes that"
    )


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a field's value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from _texts([one for _, one in value])
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _is_of_a_person(text: str, found: re.Match[str]) -> bool:
    """Return whether a person is named near a term, in its sentence."""
    first, last = max(0, found.start() - _NEAR_CHARS), min(found.end() + _NEAR_CHARS, len(text))
    ends = [end.end() for end in _SENTENCE_END.finditer(text, first, found.start())]
    if _PERSON.search(text, ends[-1] if ends else first, found.start()):
        return True
    if end := _SENTENCE_END.search(text, found.end(), last):
        last = end.start()
    while last < len(text) and last - found.end() < 2 * _NEAR_CHARS and text[last].isalnum():
        last += 1  # a word is not cut
    return _PERSON.search(text, found.end(), last) is not None


def _is_iban(text: str) -> bool:
    """Return whether the check digits of an IBAN are right (ISO 7064, mod 97)."""
    code = text.replace(" ", "")
    digits = "".join(str(int(one, 36)) for one in code[4:] + code[:4])
    return 15 <= len(code) <= 34 and int(digits) % 97 == 1


def _passes_luhn(text: str) -> bool:
    digits = [int(one) for one in text if one.isdigit()][::-1]
    return sum(digits[::2]) % 10 == -sum(sum(divmod(2 * one, 10)) for one in digits[1::2]) % 10


Operation = Literal["read", "search", "write"]
EVERY_DOMAIN = "*"
MIN_JUSTIFICATION_CHARS = 20
"""A justification must be longer than this (seed 2)."""
_finding_of = lru_cache(maxsize=10_000)(finding_of)
"""Texts of tasks are read again with each turn, and the rules take a millisecond for a long one."""


class AgentPermissions(Model):
    """What an agent may do, by domain. A memory without a domain belongs to ``general``; ``*`` stands for every domain.

    The agent may have the private memories of its own domain. It may read memories of the domains of `read` by id, in lists and in queries,
    find those of `search` in recalls and searches, and store those of `write`.
    """

    domain: Name | None = None
    read: list[Name] = Field(default_factory=lambda: [EVERY_DOMAIN])
    search: list[Name] = Field(default_factory=lambda: [EVERY_DOMAIN])
    write: list[Name] = Field(default_factory=lambda: [EVERY_DOMAIN])


@dataclass(frozen=True, slots=True)
class Access:
    """Who asks (no agent: the owner of the store), and why it needs what is sensitive."""

    agent: str | None = UNNAMED
    justification: str | None = None
    permissions: AgentPermissions = field(default_factory=AgentPermissions)

    @property
    def is_owner(self) -> bool:
        """Whether everything may be read."""
        return self.agent is None

    @property
    def is_justified(self) -> bool:
        """Whether sensitive memories may be read."""
        given = (self.justification or "").strip()
        return self.agent not in (None, UNNAMED) and len(given) > MIN_JUSTIFICATION_CHARS

    @property
    def is_unrestricted(self) -> bool:
        """Whether every public memory may be read and searched."""
        return EVERY_DOMAIN in self.permissions.read and EVERY_DOMAIN in self.permissions.search

    def may(self, operation: Operation, tier: PrivacyTier, domain: str | None) -> bool:
        """Return whether a memory of this tier and domain may be read, found or stored. A tier does not restrict storing."""
        if self.is_owner:
            return True
        listed = {one if one == EVERY_DOMAIN else known_domain(one) for one in getattr(self.permissions, operation)}
        if EVERY_DOMAIN not in listed and known_domain(domain) not in listed:
            return False
        if operation == "write" or tier == "public":
            return True
        if tier == "sensitive":
            return self.is_justified
        return domain is not None and self.permissions.domain is not None and self._own == known_domain(domain)

    def may_read_text(self, *texts: str | None) -> bool:
        """Return whether texts that are no memories may be shown: what plainly concerns private matters only where a memory of it may."""
        if self.is_owner:
            return True
        finding = _finding_of("\n".join(filter(None, texts)))
        return finding is None or self.may("read", finding.tier, finding.domain)

    def check_justification(self) -> None:
        """Reject a justification that justifies nothing."""
        if self.justification is None or self.is_owner or self.is_justified:
            return
        if self.agent == UNNAMED:
            raise PermissionDeniedError("a justification needs the name of the agent that gives it", agent=self.agent)
        problem = f"the justification must have more than {MIN_JUSTIFICATION_CHARS} characters: say what the memories are needed for"
        raise PermissionDeniedError(problem, agent=self.agent)

    def check_asked(self, operation: Operation, *, tier: PrivacyTier | None = None, domain: str | None = None) -> None:
        """Reject a request for a tier or domain of which nothing may be had, whether or not the store holds any."""
        if self.is_owner:
            return
        who = "an unnamed agent" if self.agent == UNNAMED else f"agent {self.agent!r}"
        if tier == "sensitive" and not self.is_justified:
            problem = f"{who} may not {operation} sensitive memories without its name and a justification of more than {MIN_JUSTIFICATION_CHARS} characters"
            raise PermissionDeniedError(problem, agent=self.agent)
        if tier == "private" and self.permissions.domain is None:
            problem = f"{who} may not {operation} private memories: config.toml gives it no domain of its own"
            raise PermissionDeniedError(problem, agent=self.agent)
        if domain is not None and not self.may(operation, tier_of_domain(domain), domain):
            problem = f"{who} may not {operation} memories of the domain {domain!r}; permissions are in config.toml, [agents.NAME]"
            raise PermissionDeniedError(problem, agent=self.agent)

    @property
    def _own(self) -> str:
        return known_domain(self.permissions.domain)


OWNER = Access(agent=None)


def access_of(agents: Mapping[str, AgentPermissions], agent: str, justification: str | None = None) -> Access:
    """Return the access of an agent, with its permissions from the settings, or with those of an agent that has none there."""
    return Access(agent, justification, agents.get(agent, AgentPermissions()))
