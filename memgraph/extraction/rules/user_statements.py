"""What a user states beyond the request at hand: rules, preferences, decisions, facts. No model.

A request asks for one thing now; a question asks; a report describes what is seen. None of them holds tomorrow. A statement does: it quantifies
("always", "every commit"), forbids a kind of thing ("no emojis"), contrasts ("X, not Y"), reports a decision, or says in what state something is or
where it lives. A sentence that points elsewhere ("it", "that one") is kept only with the sentence it points to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from memgraph.extraction.rules.subjects import content_words
from memgraph.extraction.statements import sentences

StatementKind = Literal["instruction", "statement"]

_MAX_CHARS = 500
_MAX_STATEMENTS = 6
_MOST_WORDS = 60
_MOST_GENERAL_WORDS = 35
"""Longer sentences tell a story, in which "always" and "never" are about something else."""
_LEAST_WORDS = 2
_RETRACTED_OVERLAP = 0.5

_FENCED = re.compile(
    r"```[^`]{0,8000}(?:```|$)|^(?:>|\$|%|\||│|[+-]{2,}|\s{4,}\S|\s{0,8}(?:at |File \")).{0,400}$", re.MULTILINE
)
"""Pasted code, quotations, prompts, tables and stack traces: not the user's own words."""
_OPENER = re.compile(
    r"^\W{0,4}(?:(?:ok(?:ay)?|yes|very good|excellent|awesome|yeah|yep|sure|right|good|great|nice|cool|perfect|because|thanks?|thank you|please|pls|plz|also|and|but|so|well|hmm+|wait|w8|"
    r"actually|oh|hey|just|again|i think|i guess|imo|imho|no(?=[,.!;:])|nope|then|however|one (?:more|last) thing|ps|btw|by the way)\b[\s,:;.!-]{0,4}){1,6}",
    re.IGNORECASE,
)  # fmt: skip
_MARKED = re.compile(
    r"^(?:(?:remember|note|keep in mind|be aware|bear in mind)(?:\s+that\b|\s*:)|remember\s+to\b|(?:fyi|heads[- ]?up|reminder|important|rule|gotcha|"
    r"careful|watch out|beware|caution)\s*[:,!-])\s*",
    re.IGNORECASE,
)
_LOWER_CASE_SENTENCE = re.compile(r"(?<=[\w)`'\"][\w)`'\"][.!?])(?<!etc\.)(?<!vs\.)\s+(?=[a-z`~])")
_CLAUSE = re.compile(r"[,;:]\s+|\s+(?:--?|–|—)\s+|\s+(?:but|and|so|because|since)\s+", re.IGNORECASE)

_QUESTION = re.compile(
    r"\?\W{0,3}$|^(?:can|could|would|will|wouldn'?t|do|does|did|is|are|was|were|should|shall|may|have|has|isn'?t|aren'?t|don'?t)\s+"
    r"(?:you|i|we|the|it|this|that|there|they|these|those|our|my|your|any\w{0,4})\b|^(?:what|why|how|where|which|who|whose|when(?=\s+(?:is|are|was|do|does|did|will)\b))\b",
    re.IGNORECASE,
)
_ONCE = re.compile(
    r"\b(?:for now|right now|for the moment|at this (?:time|point|stage)|this time|just this once|today|tonight|yet|later|once more|one more time|next step|in this (?:session|turn|"
    r"commit|pr|step)|until (?:i|we)(?:'ve| have)? \w{1,12}|continue|go ahead|let me (?:know|see|try|check|think)|give me|show me|tell me)\b",
    re.IGNORECASE,
)
"""What ties a sentence to the moment."""
_HEDGED = re.compile(
    r"\b(?:maybe|perhaps|probably|not sure|i wonder|wondering|my (?:naive )?(?:thinking|guess)|i assume|leaning|might|could be|i don'?t kno?w\w?)\b|\*\*|^[*#]|</?\w{1,40}_\w{1,40}>",
    re.IGNORECASE,
)
"""Doubt, and marks of pasted documents."""
_TROUBLE = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|errors?|crash\w{0,3}|broken|breaks? again|not working|does(?:n'?t| not) (?:work|show|load|seem|exist)|did(?:n'?t| not)|"
    r"won'?t|nothing happens|weird|strange|bugs?|hangs?|stuck|looks? like|seems?|i (?:see|get|got|have seen|noticed|ran|tried)|still)\b",
    re.IGNORECASE,
)
"""A report of what is seen."""

_POINTING = re.compile(r"^(?:it|its|it's|this|that|that's|thats|these|those|they|them|he|she|there|here|same|the (?:same|other|first|second|last|latter) one)\b", re.IGNORECASE)  # fmt: skip
_POINTS_AT_END = re.compile(
    r"\b(?:that|this|it|them|those|these|so|one|either|both)(?:\s+(?:again|anymore|any ?more|now|ever|here|there|either|too|please|then|way|like that))*\W*$",
    re.IGNORECASE,
)

_NOUN = r"(?!(?:i|you|we|it|me|us|he|she|they|this|that|these|those|there|which|who|what|to|if|when|how|something|everything|nobody|all|nothing|\w{2,6}n'?t)\b)[\w`'\"./@-]+\s+"
"""A word of a subject that names something."""
_PRODUCTS = (
    r"(?:answers|responses|replies|explanations|summaries|messages|commits|comments|docstrings|names|functions|tests|files|prs|pull requests|branches|diffs|changes|"
    r"patches|logs|variables|docs|steps|plans|code|classes|modules|migrations)"
)
_GENERAL = re.compile(
    r"\b(?:always|never|whenever|every ?time|each time|any ?time|from now on|going forward|from here on|in general|as a rule|rule of thumb|at all times|"
    r"no matter (?:what|how|which)|under no circumstances|by default|(?:do not|don'?t|not) ever|only ever|until further notice|in this (?:project|repo|repository|codebase)|"
    r"(?:for|on|in|at|before|after) (?:every|each|any)\s\w+|^(?:every|each)\s\w+|^in (?:the )?future\b|(?:our|the|my) (?:rule|convention|policy|standard|workflow|house style)\b|"
    r"(?:not allowed|forbidden|off[- ]limits|mandatory|no more \w+)|you (?:should|shouldn'?t|must|may|can|are)\b.{0,160}\bunless|before (?:you )?(?:commit|push|merg|deploy|releas|install|delet|open)\w{0,4})\b",
    re.IGNORECASE,
)
_NOT_GENERAL = re.compile(
    r"^i (?:also |just )?(?:noticed|was|see|saw|reali[sz]ed|found|thought|wonder)\b|\bnever ?mind\b|\b(?:as|like) (?:always|never)\b|\balways (?:the same|been|was|were|has|have|had|fails?|crash\w*|get|gets|shows?|returns?)\b|"
    r"\b(?:i|i've|i have|you|it|that|this|which|they) (?:have |had |has )?(?:never|always) (?:seen?|said|had|heard|did|got|knew|thought|worked?|works|asked|told|see|saw|happen\w*|noticed|finish\w*|return\w*|end\w*)\b|"
    r"\bnever (?:worked|happened|finished|returned|ends?|seen|heard)\b|\bi (?:hate|love) (?:wast|los)ing\b",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"^(?:please\s+)?(?:(?:do not|don'?t|dont)\s+(?!(?:worry|forget|bother|mind|know|think|see|care|understand|get|want|have|need|believe|remember|like|you|we|i|be|give|hesitate|tell|lose|loose|stop|wait|ask why)\b)(?!\w+\s+(?:it|this|that|them|these|those)\b)\w+\s+\S|"
    r"avoid\s+\w|stop\s+(?!being|doing)\w{2,20}ing\s+\S|leave\s.{2,60}\s(?:alone|as (?:it|they) (?:is|are)|untouched|unchanged)\b|"
    r"no\s+(?!problem|worries|need|idea|rush|thanks|thank|longer|way|one|luck|changes?\b|errors?|difference|clue|doubt|wonder|matter|more\b|it\b|that|this|i\b|we\b|you\b|the\b|not\b|don|"
    r"output|results?|response|logs?|warnings?|sign|such|data|tests? (?:ran|found)|point|reason|comment\b|biggie|sweat|hurry|no\b|lol|yes)\w[\w'-]*(?!.{0,120}\b(?:is|are|was|were|found|ran|appear\w*|has|have)\b))",
    re.IGNORECASE,
)
_STYLE = re.compile(
    r"^(?:please\s+|always\s+)?(?:(?:keep|leave)\s+(?!(?:only|both|just|going|on|up|it|this|that|them|working|trying|iterating|running|doing|looking|at|in|me|reading|digging|pushing|the change)\b)\S+\s+\S|"
    r"be\s+(?:more|less|brief|concise|terse|short|shorter|explicit|blunt|direct|succinct|polite|critical|honest)\b|"
    r"(?:answer|reply|respond|speak|talk|write|explain)(?:\s+to me)?\s+(?:in\s+(?!detail|the (?:file|readme|docs?)|a (?:file|new))\w|short|brief|concise|plain|less\b)|"
    r"(?:write|make|name|format|phrase|word|limit|structure|group|split|squash|sign|prefix|base)\s+(?:\w+\s+)?"
    + _PRODUCTS
    + r"\s+(?:in|as|to|by|with|"
    r"short|shorter|small|smaller|long|concise|minimal|simple|under|below|within|without|atomic|lower|first|like|so|after|from)\b|(?:\w+\s+)?"
    + _PRODUCTS
    + r"\s+(?:in|as|under|below|without)\s+\w|"
    r"prefer\s+\S|stick\s+(?:to|with)\s+\S|follow\s+.{0,60}\b(?:style|conventions?|guides?|guidelines?|patterns?|pep|standards?)\b|"
    r"(?:ask|check with|warn|consult|tell)\s+(?:me|us)?\s?(?:first\s)?(?:before|whenever|if)\b|treat\s.{2,60}\sas\s)",
    re.IGNORECASE,
)
_CONTRASTS = re.compile(
    r"\buse\s+(?!it\b|that\b|this\b).{1,60}?(?:,?\s+(?:and\s+)?not\s+|\s+(?:instead of|rather than|over)\s+|\s+instead\b)|\bnot\s+\S{1,40}\s+but\s+\S|^(?:it'?s|that'?s)?\s?\S{1,40}(?: \S{1,20})?, not \S{1,40}(?: \S{1,20})?\W*$|"
    r"^instead of\s.{2,60}\b(?:use|run|call|write|put)\b",
    re.IGNORECASE,
)
_REASONED = re.compile(
    r"^(?:use|keep|leave|skip|ignore|call|treat|let'?s (?:use|keep|go with|stick|drop|avoid|not|leave|skip|stay))\b.{3,240}\b(?:because|since|otherwise|or else|so that|instead of|rather than|as (?:it|they|we|the)|it'?s important)\b",
    re.IGNORECASE,
)
_DEONTIC = re.compile(
    r"^(?:"
    + _NOUN
    + r"){1,8}(?:must(?:n'?t)?(?: not)?|may not|needs? to stay|(?:has|have) to (?:stay|remain|be|keep|pass|work)|shall(?: not)?|(?:is|are) (?:not )?(?:allowed|supposed) to)\s+\w",
    re.IGNORECASE,
)
_SHOULD = re.compile(
    r"^(?!(?:the|this|these|those|it|let)\b)(?:(?:all|every|each|any|our|new|public|private|commit|test|error|code)\s+)?(?:\w+\s+)?(?:\w{3,}s|everything|code|documentation|nothing|nobody)\s+should(?:n'?t| not| never| always| only)?\s+\w",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"^(?:" + _NOUN + r"){1,6}(?:is|are|was|were|stays?|remains?)\s+(?:not\s+|now\s+|still\s+|all\s+|already\s+)?"
    r"(?:frozen|locked|read[- ]?only|protected|deprecated|legacy|required|mandatory|forbidden|off[- ]limits|intentional(?:ly)?|by design|on purpose|deliberate(?:ly)?|canonical|the (?:single )?source of truth|"
    r"(?:auto[- ]?)?generated|vendored|retired|immutable|append[- ]only|private|internal|proprietary|case[- ]sensitive|rate[- ]limited|flaky|shared with|owned by|maintained by|used by|consumed by|a (?:fork|mirror|copy|symlink|submodule) of|supposed to)\b",
    re.IGNORECASE,
)
_IS_RIGHT = re.compile(
    r"\b(?:tests?|specs?|fixtures?|schema|contract|docs?|documentation|snapshots?|expectations?|requirements?|types?|assertions?|mocks?|reference)\s+(?:is|are)\s+(?:right|correct|wrong,? not)\b",
    re.IGNORECASE,
)
_NEEDS = re.compile(
    r"^(?:"
    + _NOUN
    + r"){1,5}?(?:needs?|requires?|depends? on|relies on|rely on|expects?|only (?:works?|accepts?|supports?|runs?|reads?)|reads? from|breaks (?:if|when|without))\s+"
    r"(?!(?:an?|to be|some|more|better|fixing|work|updating|another|help|attention|review)\b)\S",
    re.IGNORECASE,
)
_DAYS = re.compile(r"\bon (?:mon|tues|wednes|thurs|fri|satur|sun)days\b", re.IGNORECASE)
_SCHEDULE = re.compile(r"\b(?:deploys?|releases?|backups?|jobs?|freezes?|meetings?|crons?|builds?)\b.{1,60}\b(?:on (?:mon|tues|wednes|thurs|fri|satur|sun)days?|every|nightly|daily|weekly|at \d{1,2})\b", re.IGNORECASE)  # fmt: skip
_PLACE = re.compile(
    r"^(?:"
    + _NOUN
    + r"){1,6}?(?:is|are|lives?|runs?|listens?|sits?|(?:is|are) (?:stored|kept|located|configured|served|hosted|mounted|deployed|run|built))\s+"
    r"(?:only\s+|now\s+|still\s+)?(?:at|in|on|under|from|by|to|with|via|behind|port)\s(?=.{0,120}(?:\bport\s+\d{2,5}\b|:\d{2,5}\b|\b\d{4,5}\b|https?://|`[^`]{2,80}`|~?/[\w.-]+/|~/|\b[\w-]+\.(?:json|ya?ml|toml|env|sh|py|[jt]sx?|md|ini|cfg|conf|sql|lock|db|local)\b|\.env|\b[A-Z][A-Z0-9]+_[A-Z0-9_]+\b|\b[\w-]+/[\w./-]+))",
    re.IGNORECASE,
)
_SECRET_PLACE = re.compile(
    r"\b(?:keys?|passwords?|credentials?|tokens?|secrets?|certs?|certificates?|logins?)\s+(?:is|are|lives?|come|comes|sits?|go|goes)\s+(?:kept |stored |only )?(?:in|at|under|on|with|from|into)\s+\S",
    re.IGNORECASE,
)
_RUNS_ON = re.compile(
    r"^(?:(?:the|our)\s+)?(?:prod(?:uction)?|staging|ci|dev|server|cluster|db|database|app|api|site|backend|frontend|bot|service|worker)\s+(?:runs?|is (?:deployed|hosted|served)|lives)\s+(?:only\s+)?(?:on|in|at|behind|under)\s+\S",
    re.IGNORECASE,
)
_PREFERS = re.compile(
    r"\b(?:i|we)\s+(?:really |strongly |much |usually |generally |absolutely )?(?:prefer\s+(?!if\b|that you\b|you\b|to (?:see|hear)\b)\S|(?:dislike|hate|loathe|insist on|can'?t stand)\s+(?!it\b|this\b|that\b|wasting|to say)\S|"
    r"(?:do not|don'?t|never)\s+(?:like|want)\s+(?!you to|it\b|this\b|that\b|to\b(?!\s+(?:commit|have|use|depend|ship|support|rely|introduce)\b)|the (?:same|idea)\b)\S|"
    r"want\s+(?:us |you )?to be\s+\w+ing\b)",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"\b(?:we|the team|i)(?:'ve| have| had|'re| are| all)?\s+(?:already |once )?(?:decided|agreed|chose|chosen|settled on|opted|standardi[sz]ed on|went with|going with|moved (?:away from|off|to)|migrated|switched|dropped|committed to|ruled out|stick(?:ing)? (?:to|with))\b(?!\s+(?:it|that|this)\W*$)|"
    r"\b(?:decision|decided)\s*:|\bit (?:was|is|has been) decided\b",
    re.IGNORECASE,
)
_CONVENTION = re.compile(
    r"^(?:here\s+|at work\s+)?we(?:'re| are)\s+(?:not\s+)?(?:practi[cs]ing|following|targeting|using)\s+(?!it\b|this\b|that\b)\S|"
    r"^(?:here\s+|at work\s+)?we\s+(?:only |always |never |still |do not |don'?t |no longer |usually |currently )?(?:use|support|ship|target|deploy|pin|host|store|release|publish|test|write|rely on|depend on|follow|sign|squash|rebase|merge|allow|accept|maintain|own)\s+(?!it\b|this\b|that\b|the same\b)\S",
    re.IGNORECASE,
)
_PERSONAL = re.compile(
    r"^(?:my (?:full |first |last |git |github )?(?:name|e-?mail|address|github|timezone|time zone|team|editor|shell|os|machine|username|handle|laptop|keyboard|browser|role|job|company|native language)\s+is\s+\S|call me\s+\w|"
    r"i(?:'m| am)\s+(?:an?\s+(?!bit|little|fan|few|lot|moron|idiot|paster|master)\S|on\s+(?:an?\s+)?(?:mac\w*|linux|windows|wsl|ubuntu|arch|debian|fedora|arm|m\d)\b|(?:running|using|based|located|colou?r ?blind|dyslexic)\b)|"
    r"i\s+(?:always |only |never |usually |mostly )?(?:use|work (?:on|at|in|with|for)|live|speak|develop)\s+(?!it\b|this\b|that\b)\S)",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"\bi (?:already |just )?(?:said|told you|asked you)\s+(?:not to|never to|to (?:only|always|never))\s+\w+\s+\S", re.IGNORECASE)  # fmt: skip
_INSTRUCTS = (_FORBIDS, _STYLE, _CONTRASTS, _REASONED, _DEONTIC, _SHOULD, _PREFERS, _REPEATED)
_STATES = (
    _DECIDED,
    _STATE,
    _IS_RIGHT,
    _NEEDS,
    _DAYS,
    _SCHEDULE,
    _PLACE,
    _SECRET_PLACE,
    _RUNS_ON,
    _CONVENTION,
    _PERSONAL,
)
_HARD = (_DECIDED, _STATE, _IS_RIGHT, _PREFERS, _CONTRASTS, _REASONED, _PLACE)
"""Statements also where the sentence mentions trouble, as their reason."""

_TAKES_BACK = re.compile(
    r"^(?:\W*(?:ok|oh|hmm|no|wait|sorry|actually|ah)[\s,.!]+){0,3}(?:never ?mind|scratch that|forget (?:that|it|what i said|about|the)|ignore (?:that|what i said|my)|i was wrong|my (?:mistake|bad)|i changed my mind|on second thoughts?|"
    r"disregard|i take (?:that|it) back|we changed our minds?)|^actually\b.{0,160}\b(?:are|is) (?:fine|ok(?:ay)?|allowed|good)\b|\b(?:no longer (?:applies|true|needed)|i changed my mind|is fine after all|are fine after all)\b",
    re.IGNORECASE,
)
_ONLY_TAKES_BACK = re.compile(
    r"\W*(?:(?:ok|oh|hmm|no|wait|sorry|actually|ah)[\s,.!]+){0,3}(?:never ?mind|(?:scratch|forget|ignore|disregard) (?:that|it|what i said|my last (?:message|sentence))|i was wrong|"
    r"my (?:mistake|bad)|i take (?:that|it) back|i changed my mind)\W*$",
    re.IGNORECASE,
)
_PROPOSES = re.compile(r"^let'?s\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:no|not|never|don'?t|do not|dont|avoid|stop|without|no longer|n't)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UserStatement:
    """What a user's message states.

    Attributes
    ----------
    kind : str
        ``instruction``: how to work; ``statement``: a decision or a fact.
    text : str
        One sentence or more, understandable by itself.
    """

    kind: StatementKind
    text: str


def statements_in(message: str) -> list[UserStatement]:
    """Return what a message states beyond its request; linear in its length."""
    found: list[UserStatement] = []
    before, was_kept = "", False
    parts = (one for part in sentences(_FENCED.sub("\n\n", message)) for one in _LOWER_CASE_SENTENCE.split(part))
    for part in parts:
        if _points_elsewhere(part) and ": " in part:
            part = max(part.split(": ", 1), key=lambda half: (_kind(half) is not None, not _points_elsewhere(half)))  # noqa: PLW2901
        kind, points = _kind(part), _points_elsewhere(part)
        text = _bare(part)
        starts = _POINTING.match(text) is not None
        if kind and points and not (before and starts):
            kind = None
        is_reason = bool(was_kept and starts and not kind and not _QUESTION.search(part) and not _ONCE.search(part))
        if (
            (kind or is_reason)
            and was_kept
            and (is_reason or kind == found[-1].kind)
            and len(found[-1].text) + len(text) < _MAX_CHARS
        ):
            if is_reason or points:
                found[-1] = UserStatement(found[-1].kind, f"{_ended(found[-1].text)} {text}")
            elif kind:
                found.append(UserStatement(kind, text))
        elif kind:
            found.append(UserStatement(kind, f"{_ended(before)} {text}" if points else text))
        was_kept = kind is not None
        before = "" if _QUESTION.search(part) else text
    return found[:_MAX_STATEMENTS]


def takes_back(message: str, earlier: UserStatement, *, is_latest: bool) -> bool:
    """Return whether a message withdraws an earlier statement: the latest one, or one about the same thing, or by stating its opposite."""
    words, its = set(content_words(message[:_MAX_CHARS])), set(content_words(earlier.text))
    shared = len(words & its)
    if _TAKES_BACK.search(message[:_MAX_CHARS]):
        return (shared > 0 and shared >= _RETRACTED_OVERLAP * min(len(its), 2)) or (
            is_latest and _ONLY_TAKES_BACK.match(message) is not None
        )
    other = (bool(_NEGATION.search(said)) for said in (message[:_MAX_CHARS], earlier.text))
    return shared >= max(2, 0.8 * len(its)) and len(set(other)) == 2 and bool(statements_in(message))


def _kind(sentence: str) -> StatementKind | None:
    """Return the kind of statement that a sentence makes, if it makes one."""
    text = _OPENER.sub("", sentence).strip()
    marked = _MARKED.match(text)
    text = text[marked.end() :].strip() if marked else text
    words = text.split()
    if not _LEAST_WORDS <= len(words) <= _MOST_WORDS or _QUESTION.search(text):
        return None
    is_general = (
        len(words) <= _MOST_GENERAL_WORDS and _GENERAL.search(text) is not None and not _NOT_GENERAL.search(text)
    )
    if _HEDGED.search(text) or (_ONCE.search(text) and not is_general):
        return None
    clauses = [text, *(part for raw in _CLAUSE.split(text) if len((part := _OPENER.sub("", raw).strip()).split()) > 1)]
    if _TROUBLE.search(text) and not is_general:
        clauses = [clause for clause in clauses if any(pattern.search(clause) for pattern in _HARD)]
    if not clauses:
        return None
    clauses = [clause for clause in clauses if not _QUESTION.search(clause)]
    if _PROPOSES.match(text) and not is_general:
        clauses = [clause for clause in clauses if _REASONED.search(clause) or _DECIDED.search(clause)]
    if any(pattern.search(clause) for clause in clauses for pattern in _STATES):
        return "statement"
    if is_general or any(pattern.search(clause) for clause in clauses for pattern in _INSTRUCTS):
        return "instruction"
    return "statement" if marked and len(content_words(text)) > 2 and not _POINTING.match(text) else None


def _points_elsewhere(sentence: str) -> bool:
    """Return whether a sentence cannot be understood without another one."""
    text = _OPENER.sub("", sentence).strip()
    return bool(_POINTING.match(text)) or bool(_POINTS_AT_END.search(text) and len(content_words(text)) < 3)


def _bare(sentence: str) -> str:
    """Return a sentence without greeting or assent before it."""
    text = _OPENER.sub("", sentence).strip() or sentence
    return text[:1].upper() + text[1:] if text.split(maxsplit=1)[0].isalpha() else text


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."
