"""Grounds: whether a sentence about a change states something that a reader can act on.

A statement names a cause, a symptom with its condition, a consequence for users, a rule, a choice with what was not
chosen, or how things were before. Everything else narrates the change, speculates, or concerns the looks of the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from memgraph.text import lazy_re as re

_CAUSE = re.compile(
    r"\b(?:because|due to|caused? by|causes \S+|(?:can|could|would|will|may|might) (?:\w+ )?(?:cause|break|leak|crash|deadlock|fail)\b|caused (?:\w+ ){1,}|root cause|(?:it )?turns out|turned out|as a result|consequently|therefore|result(?:s|ed|ing) in|lead(?:s|ing)? to|led to|"
    r"which (?:means|meant|made|makes|causes?|caused|breaks?|broke|prevents?|prevented|fails?|failed|triggers?|triggered)|"
    r"(?:this|that|it) (?:causes?|caused|breaks?|broke|means|meant|prevents?|prevented|made|triggers?|triggered|conflicts?|fails?|failed)|"
    r"(?:causing|making it (?:im|un|hard|difficult|fail|slow|too|so)\w*|breaking|preventing|triggering) (?:\w+ ){1,}|"
    r"the (?:real |actual |underlying |main |root )?(?:problem|issue|bug|cause|reason|culprit|trouble|catch|motivation|rationale|idea) (?:is|was|here|with|being)|"
    r"otherwise|the reasons? (?:why|we|for (?:this|that|the|doing|not)|being|that|this|it)|if (?:it|they|we|not|this|that)\b.{0,60}? would|for (?:this|that) reason|that(?:'s| is) why|"
    r"since (?:it|they|we|the|this|that|there|a|an|some|python|not|no|otherwise|\w+ (?:is|are|was|were|does|do|did|has|have|can|may|will))\b|"
    r"so we (?!can )\w+|"
    r"so (?:that )?(?:it|we|they|the|this|users?|that|there) (?:\w+ )?(?:is|are|was|were|does|do|did|has|have|had|can|could|cannot|can't|couldn't|will|would|won't|never|must|may|might|no longer|fail\w{0,3}|breaks?|broke|crash\w{0,3}|started|stopped)\b|"
    r"regressed (?:in|by|from|since|when|with)|regression (?:\w+ )?(?:in|from|since|introduced|caused)(?: (?:in|by))? (?:v?\d|#\d|[0-9a-f]{7}|commit|version|the|when)|(?:was|were|been|got|is) (?:introduced|broken|regressed) (?:in|by|with|since)|"
    r"broke[n]? (?:in|by|since|on|when|with|because)|(?<!are )(?<!is )(?<!be )(?<!was )(?<!been )(?<!were )used to|work(?:s|ed|ing)? ?around|workaround)\b",
    re.IGNORECASE,
)
_BARE_WORKAROUND = re.compile(r"workaround$", re.IGNORECASE)
_GUARD = re.compile(
    r"\b(?:to (?:avoid|prevent|guard against|protect|stop|not (?:break|lose|fail|leak|crash))|avoids|avoiding|prevents|(?<!is )(?<!was )(?<!were )preventing|mitigat(?:e|es|ing)|in case|so as not to)\b"
    r".{8,}",
    re.IGNORECASE,
)
_COMPATIBILITY = re.compile(
    r"(?:re)?(?:name|place|move)[sd]?\b.{3,}|(?:use|switch|avoid|pin|drop|disable|require|do(?: not|n't))\w{0,3}\b.{3,}",
    re.IGNORECASE,
)
_COMPATIBLE = re.compile(
    r"\b(?:for|to (?:keep|maintain|preserve)) .{0,40}?compatib\w+|\b(?:in)?compatible with \S", re.IGNORECASE
)
_SUBJECT_RULE = re.compile(
    r"(?:(?!(?:that|which|where|if|when|why|what|how|for|to)\b)\S{1,60} ){0,6}(?:must|should|shall)(?:n't| not| never| only| always)? \S.{3,}"
    r"|(?:\S{1,60} ){1,6}(?:is|are) (?:now )?\w+ed\b.{3,}\b(?:instead of|rather than)\b"
    r"|(?:\S{1,60} ){1,6}(?<!can )now (?:raises?|returns?|requires?|defaults?|rejects?|refuses?)\b",
    re.IGNORECASE,
)
_NO_RULE = re.compile(r"(?:this|that|it|we|they|these|those|there|try|protect|no|not|nuke|work)\b", re.IGNORECASE)
_PRECEDENCE = re.compile(
    r"(?=.*(?:(?<!\S)-{1,2}\w|`)).*\b(?:conflict(?:s|ing)? with|overrid(?:e|es|ing)|takes? precedence|mutually exclusive)\b",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"\b(?:in order to|so that|to (?:ensure|make sure|allow|let|enable|make)|this (?:allows|lets|ensures|enables|avoids))\b",
    re.IGNORECASE,
)
_CONSEQUENCE = re.compile(
    r"\b(?:no longer|now (?:raises?|returns?|requires?|fails?|errors?|emits?|defaults?|rejects?|refuses?|warns?|must)|(?:users?|callers?|plugins?|projects?|code|applications?|anyone|you|downstream)\b.{0,40} "
    r"(?:must|needs? to|should|can(?:not| no longer)|ha(?:s|ve) to|will (?:need|have|no longer|break|fail))|(?:breaking|major) changes?|behaviou?r(?:al)? changes?|changes? (?:in|of) behaviou?r|backwards?[- ](?:in)?compatib\w+|"
    r"incompatib\w+|deprecated|will be removed|(?:was|were|is|are|been) (?:fully |now |since )?(?:replaced|superseded) by|end[- ]of[- ]life|EOL|unsupported|not supported|vulnerab\w+|CVE-\d+|GHSA-\w+|exploit\w*|attacker)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"\b(?:must(?: not|n't)?|should(?: not|n't| never| always| only)|(?:if|when|whenever|unless) .{3,200}? should|should .{3,200}? (?:if|when|whenever|unless)|never|always|do not|don't|doesn't (?:work|support|allow|handle|exist|know|have)|does not (?:work|support|allow|handle|exist|know|have)|"
    r"not allowed|forbidden|cannot|can't|is not possible|only (?:works?|when|if|works|supports?|available)|requires?|relies on|depends on|takes? precedence|(?:is|are|was|were) (?:\w+ )?(?:expensive|costly|inefficient)|assum(?:es|ed|ing|ption)|guarantee[sd]?|there(?:'s| is| was) no (?:need|reason|way|point) (?:to|for|in|of)|not (?:thread|async|type)?-?safe|undefined behaviou?r)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:instead of|rather than|in favou?r of|as opposed to|prefer(?:red|able)?|decided|chose|opted|trade-?offs?|alternatives?|not worth|better than|simpler than)\b",
    re.IGNORECASE,
)
_SYMPTOM = re.compile(
    r"\b(?:(?:bugs?|issues?|problems?|case) (?:where|when|that|in which|whereby)|crash\w{0,4}|hang(?:s|ing)?|hung|deadlock\w{0,3}|leak\w{0,3}|race(?: condition)?s?|regress\w{0,4}|fail(?:s|ed|ing|ure|ures)?|[A-Z]\w{1,60}(?:Error|Exception|Warning)|traceback|exceptions?|panic\w{0,4}|segfault\w{0,3}|"
    r"infinite(?:ly)?|recursion|loop(?:s|ing)? forever|ignor(?:e|es|ed|ing)|lost|los(?:es|ing)|missing|miss(?:es|ed)|wrong(?:ly)?|incorrect(?:ly)?|invalid|broken|breaks?|breaking|broke|duplicat\w{1,5}|twice|truncat\w{1,4}|"
    r"corrupt\w{0,4}|mangl\w{1,3}|skipp(?:ed|ing)|not \w{3,20}(?:ed|ing)|(?:does|do|did|is|are|was|were|has|could|would|should|ca|wo)(?:n't| not)|cannot|never|unable|unexpected\w{0,2}|spurious|inconsistent\w{0,2}|mis\w{4,12}ed|"
    r"stale|stuck|slow|quadratic|exponential|memory usage|overflow\w{0,3}|out of (?:range|bounds|memory)|off[- ]by[- ]one|swallow\w{1,3}|overwr\w{2,6}|flak\w{1,5}|timeouts?|time(?:s|d)? out|unclosed|undefined|null pointer|nil pointer|"
    r"false (?:positives?|negatives?)|raises?|raised|raising|throws?|incompatib\w+|instead of|escap(?:ed|ing)|bypass\w{0,3}|too (?:many|much|few|early|late|long|short|large|small|strict|broad)|only the (?:first|last))\b"
)
_CONDITION = re.compile(
    r"\b(?:when|whenever|if|while|where|after|before|during|unless|on|with|without|under|inside|outside|within|in|for|using|between|across|containing|from|through|via|at|upon|once|that|whose|having|given|combined|as)\s+\S",
    re.IGNORECASE,
)
_SHARP_CONDITION = re.compile(
    r"\b(?:when|whenever|if|while|where|after|before|during|unless|on (?:windows|linux|mac\w*|macos|osx|python|pypy|cygwin|android|\w+ \d)|with(?:out)? (?:a |an |the |no |multiple |empty |non\W)?\S|under|inside|outside|within|using|between|containing|once|that|whose|having|given|combined)\s?\S",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"^(?:(?:(?:bug ?)?fix(?:e[sd]|ing)?|handle)(?: for)?:? )?(?:an? |the )?(?:broken|wrong|incorrect|invalid|miss(?:ing|ed)|too (?:many|much))\b|\bincorrect behaviou?r\b"
    r"|\b(?:bugs?|issues?|problems?) (?:when|with)\b|\b(?:even (?:after|on)|without)(?: an?)? failures?\b",
    re.IGNORECASE,
)
_UNNAMED = re.compile(
    r"(?:(?:bug ?)?fix(?:e[sd]|ing)?(?: for)? (?:an?|some|several|various|another|more|(?:\w+ )?(?:bugs|issues|problems)) (?!(?:\w+ )?(?:bugs?|issues?|problems?) (?:where|when|that|which|in)\b)|by \w+ing\b)",
    re.IGNORECASE,
)
"""Fixes of something that they do not name."""
_VAGUE_MANY = re.compile(
    r"(?:\w+ )?(?:several|various|some|a few|more|many|misc\w*|multiple|minor|small|slight|numerous|temporary|fixes)\b(?!.*\b(?:because|due to)\b)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?<!\w)[`'\"“]\S|\w[_./:#@]\w|\(\)|\b[a-z\d]+[A-Z]|\b[A-Z][a-z\d]+[A-Z]|\b[A-Z]{2}|(?<!\w)-{1,2}[a-z]|\d"
)
"""Something that can be looked up: an identifier, a path, an option, an acronym, a number."""
_FORMERLY = re.compile(
    r"\b(?:was|were|wasn't|weren't|did(?:n't)?|had|hadn't|could(?:n't)?|would(?:n't)?|raised|returned|resulted|ended up)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"\b(?:previously|formerly|earlier|before (?:this|that|now)|until (?:now|this)|prior to (?:this|the)|up to now|so far|originally|historically|had been)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"(?:the|an?|some|many|most|all|every|each|nobody|no one|users|people|its?|their|our)\s.{2,80}?[a-z]{2}ed\b",
    re.IGNORECASE,
)
_SPECULATION = re.compile(
    r"\b(?:(?<!<)I\b(?![/.>])|I'm|I've|I'd|I'll|my|me|maybe|perhaps|ideally|who knows|no idea|whack-a-mole|crappy|hodgepodge|surprise\w*|suprise\w*|not (?:entirely |quite |really )?(?:sure|certain)|"
    r"hopefully|could be that|should be (?:fine|ok\w*|good|enough|safe)|TODO|FIXME|XXX|wdyt|IMHO|IIRC|AFAI[CKRU]+|kind of|sort of|(?:is|are|was)(?:n't| not) (?:really|strictly)|not really|(?:first|next|last|final|another) (?:big |small |real )?step|whatever|sorry|oops|ugh|thanks(?! to)|thank you|please|by the way|btw|let's|nice|cool|awesome|PS\.|funny|silly|stupid|ugly|lol|haha|:\)|;\)|future commits?|next commits?|follow[- ]up (?:commit|PR)|"
    r"because reasons|attached to|expected to fail|(?:later|another|separate|subsequent|previous|last|next|above) (?:commit|PR|patch|pull request)s?)\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:probably|presumably|apparently|likely|(?:it )?(?:looks?|seems?|feels?) (?:like|to|as)|seemingly)\b",
    re.IGNORECASE,
)
"""Words that weaken a statement: of a cause they are the honest form, of anything else they leave nothing."""
_EXAMPLE = re.compile(r"(?:for (?:example|instance)|e\.g)\b", re.IGNORECASE)
_HEADLESS = re.compile(r"(?:seems?|looks?|appears?) (?:to|like)\b", re.IGNORECASE)
_NARRATION = re.compile(
    r"(?:(?:this|the|these) (?:commit|PR|pull request|patch|change|branch|series|MR|merge)s?\b|(?:(?:also|and|then|this|while (?:at it|here)|additionally|finally|furthermore|minor|some|more|now|just|simply|in addition),?\s+){0,2}"
    r"(?:add|added|adds|adding|update|updated|updates|updating|remove|removed|removes|removing|fix|fixed|fixes|fixing|move|moved|moves|moving|rename|renamed|refactor|refactored|refactors|improve|improved|improves|"
    r"implement|implemented|implements|introduce|introduced|introduces|use|used|uses|using|make|makes|made|change|changed|changes|clean|cleaned|cleanup|bump|bumped|include|includes|included|create|created|extend|extended|support|supports|replace|replaced|"
    r"merge|merged|revert|reverted|convert|converted|simplify|simplified|split|extract|extracted|drop|dropped|apply|applied|address|addressed|tweak|tweaked|adjust|adjusted|allow|allows|rework|reworked|rewrite|rewrote|write|run|test|tests|document|reformat|"
    r"modif(?:y|ied|ies)|consolidate[sd]?|switch(?:ed|es)?|enable[sd]?|disable[sd]?|suggest\w*|report\w*|review\w*|credit\w*|based on|part of|see|refs?|as (?:discussed|suggested|requested|reported|mentioned|per|described)|note to)\b)",
    re.IGNORECASE,
)
_MENDS = re.compile(
    r"(?:(?:this|the)(?: (?:commit|PR|pull request|patch|change))?\s)?(?:also\s)?(?:fix(?:es|ed)?|ensures?|resolves?|prevents?|avoids?|corrects?|addresses)\b",
    re.IGNORECASE,
)
_PASSIVE_NARRATION = re.compile(
    r"\b(?:was|were|is|are|been|be) (?:also |now |just |then )?(?:added|moved|updated|removed|renamed|refactored|fixed|changed|improved|suggested|reported|found|noticed|proposed|written|rewritten|generated|copied|taken|inspired|"
    r"discussed|merged|released|documented|reviewed|tested|split|extracted|adapted|cleaned|simplified|replaced|converted|imported|based|ported|tracked|implemented|discovered|spotted|mentioned|left)\b",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"\b(?:clean(?:er|ed|up|liness|ly)?|simplif\w+|simpler|readab\w+|legib\w+|nicer|prettier|neater|tid(?:y|ier)|consisten(?:t|cy|tly)|clarity|clearer|clarif\w+|easier to (?:read|follow|maintain|understand|review|reason|grok|see|edit|extend)|easier|DRY|"
    r"boilerplate|in (?:one|a single) place|code (?:style|duplication|quality|base)|duplicat(?:e|ed|ion of) code|mypy|pyright|type[- ]?check\w*|typed|typing|annotat\w+|lint\w*|flake8|ruff|black|coverage|codecov|isort|pre-commit|(?:go )?vet|golint|gofmt|clippy|rustfmt|rubocop|eslint|pychecker|pyflakes|by mistake|accidentally (?:added|committed|checked|left|included)|typos?|wording|phrasing|refactor\w*|reformat\w*|formatter|code format\w*|"
    r"docstrings?|docs?|documentation|documented|readme|changelog|release notes?|comments?|naming|misleading name|confus\w+|spelling|grammar|sphinx|rst|markdown|website|badges?|unused|dead code|redundant|superfluous|unnecessary|not needed|unneeded|leftovers?|magic)\b",
    re.IGNORECASE,
)
_CREDIT = re.compile(
    r"\b(?:suggested|reported|noticed|reviewed|proposed|inspired|spotted|mentioned|discussed|found|written|tested) (?:by|in|on|with|here)\b",
    re.IGNORECASE,
)
_ABOUT_TESTS = re.compile(
    r"\b(?:tests?|testing|specs?|docs?|documentation|changelog|readme|comments?|typos?)\b", re.IGNORECASE
)
CONNECTIVE = re.compile(r"^(?:(?:and|but|also|however|so|then|additionally|note that),?\s+){1,2}(?=\w)", re.IGNORECASE)
"""Words that join a sentence to the one before it, without which it says the same."""
_BESIDES = re.compile(r"(?:also|additionally|while (?:at it|here)|in addition|furthermore)\b", re.IGNORECASE)
_ANAPHOR = re.compile(
    r"(?:for (?:example|instance)|this|that|these|those|it|they|he|she|so|thus|therefore|hence|then|however|but|instead|as a result|consequently|because of (?:this|that)|the (?:latter|former|same|other|second|first|reason|problem|issue|fix|solution)|such|both|there|which|otherwise|in (?:this|that|those|these|such)|"
    r"for (?:this|that)|with (?:this|that)|also|additionally|still|yet|and|or|even|turns out|similarly|likewise|furthermore|moreover|now|here|second(?:ly)?|third(?:ly)?|nevertheless|nonetheless)\b",
    re.IGNORECASE,
)


_ITSELF = r"(?: (?:commit|PR|pull request|patch|change|changeset|release|version|repo|repository|project|point|time|year|week)\b)"
_DEMONSTRATIVE = re.compile(
    rf"\b(?P<this>this|these|those)\b(?!{_ITSELF})(?: (?P<noun>(?!(?:is|was|are|were|can|could|may|might|will|would|has|have|had|does|did|do|must|should|also|in|on|at|to|for|by|and|or|only|just|now|then|would|not|never|still|way)\b|\w+(?:ed|[^s\W]s)\b)[a-z][\w-]+))?"
    r"|\bthat (?P<that>commit|patch|mechanism|approach|bug|problem|limitation|regression|branch|series|refactoring|assumption)\b"
    r"|\b(?:such an?|the same) (?P<same>problem|issue|thing|bug|reason|way|approach|case|situation|mistake)\b(?! (?:as|that)\b)"
    r"|\b(?:above|earlier|described below|aforementioned|previously (?:mentioned|described))\b(?! \S)",
    re.IGNORECASE,
)
"""Words that point to something; in front of a noun that the sentence has not named before, to another sentence."""
_THIS_CHANGE = re.compile(rf"(?:this|these){_ITSELF}", re.IGNORECASE)
_ENDED = re.compile(r"[.!;]\s")
_BARE_OBJECT = re.compile(
    r"(?:(?:we|you|one|users?|to) \S{1,20}(?: \S{1,20})?|[A-Z][a-z]{2,20}) (?:it|them|these|those)\b", re.IGNORECASE
)
_NEAR_WORDS = 7
_ORIGIN = re.compile(
    r"(?:(?:this|these|the|it|which|a|bugs?|was|were|is|has|been|regressions?|issue|problem|error|fixes|fixed)\W+(?:\w+\W+){0,4}?)?(?:introduced|caused|broken|broke|regressed|regression|since|due to)\s(?:\w+\s){0,4}?[0-9a-f]{7,40}\b",
    re.IGNORECASE,
)
_MENDED_NAME = re.compile(
    r"fix(?:e[sd])? (?=\S*[\W_]\S)(?=\S*\w)\S{3,80} (?:not )?to (?:not )?\w+ .{20,}", re.IGNORECASE
)
"""A fix that says what a named part does now."""


class Weight(IntEnum):
    """How much a sentence states."""

    NOTHING = 0
    PURPOSE = 1
    STATE = 2
    """How things are, were, must be, or what was chosen instead of what."""
    CAUSE = 3


def weight_of(text: str) -> Weight:
    """Return how much a sentence of a message states. Narration, speculation and talk about the code's looks: nothing."""
    if _SPECULATION.search(text) or len(text.split()) < 5 or text.endswith("!"):
        return Weight.NOTHING
    cause = _CAUSE.search(text)
    has_cause = cause is not None and (not _BARE_WORKAROUND.match(cause[0]) or _NAMED.search(text) is not None)
    is_guard = _GUARD.search(text) is not None
    if _HEADLESS.match(text):
        return Weight.NOTHING
    if _LOOKS.search(text):
        return Weight.NOTHING
    if has_cause:
        return Weight.STATE if _EXAMPLE.match(text) else Weight.CAUSE
    if _HEDGED.search(text):
        return Weight.NOTHING
    if _MENDED_NAME.match(text) or (_MENDS.match(text) and states_a_defect(text)):
        return Weight.STATE
    if _NARRATION.match(text) or _PASSIVE_NARRATION.search(text):
        if is_guard or (_CHOICE.search(text) and _CONDITION.search(text)):
            return Weight.STATE if is_guard else Weight.PURPOSE
        return Weight.NOTHING
    if is_guard or _CONSEQUENCE.search(text) or _RULE.search(text) or _CHOICE.search(text):
        return Weight.STATE
    if _SYMPTOM.search(text) and _SHARP_CONDITION.search(text):
        return Weight.STATE
    return Weight.PURPOSE if _PURPOSE.search(text) else Weight.NOTHING


def tells_what_was(text: str, *, is_fix: bool) -> bool:
    """Return whether a sentence says how things were before a change: in a fix this is what was wrong."""
    return (
        (_BEFORE.search(text) is not None or (is_fix and (_FORMERLY.search(text) or _PAST.match(text)) is not None))
        and not _HEDGED.search(text)
        and not _NARRATION.match(text)
        and not _PASSIVE_NARRATION.search(text)
        and not _SPECULATION.search(text)
        and not _LOOKS.search(text)
    )


def states_a_defect(text: str) -> bool:
    """Return whether a fix's subject says what was wrong, and under which condition."""
    return _SYMPTOM.search(text) is not None and _SHARP_CONDITION.search(text) is not None


def describes_a_defect(text: str) -> bool:
    """Return whether a fix's subject alone says what went wrong: more than that something did, and where."""
    return states_a_defect(_VAGUE.sub("", text)) and not (_UNNAMED.match(text) and not _NAMED.search(text))


def states_a_reason(text: str) -> bool:
    """Return whether a subject says why: what it avoids, or what made it necessary."""
    if _VAGUE_MANY.match(text):
        return False
    if weight_of(text) is Weight.CAUSE:
        return True
    if _LOOKS.search(text) or _SPECULATION.search(text):
        return False
    guard = _GUARD.search(text) or (_COMPATIBILITY.match(text) and _COMPATIBLE.search(text))
    return guard is not None and guard.start() > 0


def states_a_rule(text: str) -> bool:
    """Return whether a subject says how things must be: what belongs where, or which of two options prevails."""
    if _LOOKS.search(text) or _SPECULATION.search(text) or _HEDGED.search(text) or "?" in text or "!" in text:
        return False
    is_statement = not (_NARRATION.match(text) or _NO_RULE.match(text))
    return (is_statement and _SUBJECT_RULE.match(text) is not None) or _PRECEDENCE.match(text) is not None


def speculates(text: str) -> bool:
    """Return whether a sentence is a guess, a joke or about its author."""
    return _SPECULATION.search(text) is not None


def is_aside(text: str) -> bool:
    """Return whether a sentence beside a statement adds nothing to it: thanks, a guess, work on tests and documentation."""
    return (
        _SPECULATION.search(text) is not None
        or _CREDIT.search(text) is not None
        or text.endswith("!")
        or (_NARRATION.match(text) is not None and (_ABOUT_TESTS.search(text) or _BESIDES.match(text)) is not None)
    )


def leans_back(text: str) -> bool:
    """Return whether a sentence is understood only together with the one before it."""
    text = CONNECTIVE.sub("", text)
    if _ANAPHOR.match(text) or _BARE_OBJECT.match(text):
        return _THIS_CHANGE.match(text) is None
    for match in _DEMONSTRATIVE.finditer(text):
        before = text[: match.start()]
        noun = match["noun"] or match["that"] or match["same"]
        if noun and noun.rstrip("s").casefold() not in before.casefold() and not _ENDED.search(before):
            return True
        if not noun and len(before.split()) < _NEAR_WORDS and "," not in before:
            return True
    return False


def lists_mends(texts: Sequence[str]) -> bool:
    """Return whether sentences only count what was mended, without a cause."""
    return all(_MENDS.match(text) is not None and _CAUSE.search(text) is None for text in texts)


def tells_only_origin(text: str) -> bool:
    """Return whether a sentence only names the commit that broke something, not what broke."""
    return _ORIGIN.match(text) is not None


def concerns_looks(text: str) -> bool:
    """Return whether a text concerns the looks of the code, its types, documentation or checks."""
    return _LOOKS.search(text) is not None
