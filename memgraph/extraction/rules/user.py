"""What a user states beyond the request at hand: rules, preferences, decisions, facts. No model.

A request asks for one thing now; a question asks; a report describes what is seen. None of them holds tomorrow. A statement does, and says so
by itself: it quantifies ("always", "every commit"), forbids a kind of thing ("no emojis"), contrasts ("X, not Y"), tells a preference or what the
team does, or reports a decision. What may hold only for what was being done ("make sure that …"), or describes ("the port is …", "my timezone is
CET"), is no memory: the turn is a record, and the agent is asked what of it to keep. Only sentences that are the user's own count: not marked,
quoted, pasted, attributed or refused; a list of rules counts only behind a head of known words, and not below something pasted.

A pattern is here because labelled turns of public sessions miss it (`tests/benchmarks/sentences.py`), or a test; every repetition is bounded or runs
over one sentence, which is truncated first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import Literal, NamedTuple

from memgraph.extraction.statements import is_action, sentences
from memgraph.text import lazy_re as re
from memgraph.text.cutting import cut_at_word
from memgraph.text.sentences import ended
from memgraph.text.words import content_words

StatementKind = Literal["instruction", "statement"]

_MAX_CHARS = 500
_MAX_ITEM_CHARS = 300
_MAX_STATEMENTS = 12
_MOST_WORDS = 60
_MOST_GENERAL_WORDS = 35
"""Longer sentences tell a story, in which "always" and "never" are about something else."""
_LEAST_WORDS = 2
_RETRACTED_OVERLAP = 0.5
_MOST_COMPARED = 1 << 13
_MOST_LIFTED = 3
"""An earlier statement of more words, for each of those that lift it, is about something else too."""
_OF_LIFTING = frozenset(
    str.split("you may can fine ok okay allowed feel free we there no not never always longer need run any more please")
)
_MAX_BEFORE_CHARS = 300
"""Of what a sentence points to."""

_OPENER = re.compile(
    r"^\W{0,4}(?:(?:\d{1,2}(?=\.\s)|ok(?:ay)?|yes|very good|excellent|awesome|yeah|yep|sure|right|good|great|nice|cool|perfect|because|thanks?|thank you|please|pls|plz|also|and|but|so(?! far\b)|well|m?hmm+|mmm+|uh+|wait|w8|kk?|y[eu]p|look|moreover|additionally|in addition|therefore|instead(?=,)|(?:fantastic|phenomenal|great+|wonderful|amazing)(?=[,.!]| !)|hello|hi|"
    r"actually|oh|hey|just|again|i think|i guess|imo|imho|no(?=[,.!;:]| no\b)|nope|then|however|one (?:more|last) thing|ps|btw|by the way)\b[\s,:;.!-]{0,4}){1,6}",
    re.IGNORECASE,
)  # fmt: skip
_MARKED = re.compile(
    r"^(?:notice (?:how|that)\b|(?:remember|note|keep in mind|be aware|bear in mind)(?:\s+that\b|\s*:)|remember\s+to\b|remember(?=\s+(?:we|the|our|my|i)\b)|(?:fyi|heads[- ]?up|reminder|important|rule|gotcha|"
    r"careful|watch out|beware|caution|(?:for |some |a bit of )?(?:background|context)|(?:(?:quick|small|one|a|minor) )*correction|for the record|nb|for your (?:info\w*|reference))\s*[:,!–—-]|"
    r"(?:just )?so (?:that )?you know\b,?|fyi\b)\s*",
    re.IGNORECASE,
)
_LOWER_CASE_SENTENCE = re.compile(r"(?<=[\w)`'\"][\w)`'\"][.!?])(?<!etc\.)(?<!vs\.)\s+(?=[a-z`~(@]|[./]\w)")
_INCOMPLETE = re.compile(
    r"[:,]\W*$|\b(?:the|an?|of|and|or)\W*$|^(?:will|can|could|is|are|was|were|has|have|does|did|seems|looks)\s",
    re.IGNORECASE,
)
"""A fragment: what follows or the subject is missing."""
_NO_OR_DASH = re.compile(r"^no\s|\s[-–—]+\s", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:]\s+|\s+(?:--?|–|—)\s+|\s+(?:but|and|so|because|since)\s+", re.IGNORECASE)

_QUESTION = re.compile(
    r"\?\W{0,3}$|^(?!do (?:it|this|that)\b)(?:can|could|would|will|wouldn'?t|do|does|did|is|are|was|were|should|shall|may|have|has|isn'?t|aren'?t|don'?t)\s+"
    r"(?:you|i|we|the|it|this|that|there|they|these|those|our|my|your|any\w{0,4})\b|^(?:what|why|how|where|which|who|whose|when(?=\s+(?:is|are|was|do|does|did|will)\b))\b",
    re.IGNORECASE,
)
_POLITE = re.compile(r"^(?:can|could|would|will) (?:you|we) (?:please |pls |maybe )?", re.IGNORECASE)
_ONCE = re.compile(
    r"\b(?:for now|right now|for the moment|(?:in|for|during) this (?:\w+ ){0,2}(?:phase|sess?ion)|you (?:ran|used|did|wrote|made|proposed) (?:previously|before|above|earlier|there)|at this (?:time|point|stage)|(?:take|make|write|change|do|implement) any(?:thing|\s(?:actions?|changes?|code|edits?))|^(?:the |my )?(?:last|next|first|final) (?:task|step|thing) (?:is|was)|this time|just this once|today|tonight|yet|later|once more|one more time|next step|in this (?:session|turn|"
    r"commit|pr|step)|until (?:i|we)(?:'ve| have)? \w{1,12}|^now\s(?!that\b|i\b)|continue|go ahead|let me (?:know|see|try|check|think)|give me|show me|tell me)\b",
    re.IGNORECASE,
)
"""What ties a sentence to the moment."""
_HEDGED = re.compile(
    r"^(?:imagine|suppose|assume|pretend|let'?s (?:say|assume|pretend))\b|^for example\b|^(?:for|on|in|with|to) (?:#|(?:number|option|item|step|line|point|question) )?\d+[,:]?\s(?!(?:percent|days|hours|minutes|seconds|of)\b)|\b(?:we could|maybe|perhaps|probably|not sure|i wonder|wondering|my (?:naive )?(?:thinking|guess)|i assume|leaning|might|could be|contemplating|i don'?t kno?w\w?)\b|\*\*|^[*#]|</?\w{1,40}_\w{1,40}>",
    re.IGNORECASE,
)
"""Doubt, answers to numbered items, and marks of pasted documents."""
_TROUBLE = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|errors?|crash\w{0,3}|broken|breaks? again|not working|does(?:n'?t| not) (?:work|show|load|seem|exist|function|match)|blocked by|uncaught|did(?:n'?t| not)|"
    r"won'?t|nothing happens|weird|strange|bugs?|hangs?|stuck|looks? like|seems?|(?:got|have) (?:some |an? )?(?:problem|issue)s?|works? (?:if|when|for) i|i (?:see|get|got|have seen|noticed|ran|tried)|still)\b",
    re.IGNORECASE,
)
"""A report of what is seen."""

_POINTING = re.compile(r"^(?!it(?:'s| is) (?:\w+ )?(?:important|critical|crucial|essential|vital|mandatory|fine|ok(?:ay)?|allowed) (?:to|that)\b|there(?:'s| are| is) (?:no|one|two|three|four|several|only|an?)\b|this (?:project|repo|repository|code ?base|service|app|machine|box|team|company|library|package|tool|site|system)\b)(?:it|its|it's|this|that|that's|thats|these|those|they|them|he|she|there|here|same|the (?:same|other|first|second|last|latter) one|(?:none|some|all|any|each|most|both|neither|one) of (?:them|these|those|which))\b", re.IGNORECASE)  # fmt: skip
_POINTS_AS_OBJECT = re.compile(r"^(?:\w+\s){1,2}(?:it|this|that|them)\b", re.IGNORECASE)
_HERE = r"(?:in|for|across) (?:this|our|the whole) (?:project|repo|repository|code ?base|team|company)"
"""Where something holds. At the end of a request it does not make a rule of it."""
_PLACED = re.compile(_HERE, re.IGNORECASE)
_GENERAL = re.compile(
    r"\b(?:(?:always|never)(?![-\w])|whenever|every ?time|each time|any ?time|from now on|going forward|from here on|in general|as a rule|rule of thumb|at all times|"
    r"no matter (?:what|how|which)|under no circumstances|by default|(?:do not|don'?t|not) ever|only ever|until further notice|"
    rf"^{_HERE}|\bnot?\s\w+\s{_HERE}|(?:use|write|format|spell|prefer)\s.{{1,80}}\severywhere|make (?:it|that|this) a habit|(?:use|prefer|avoid|stick to|keep)\s[^,;]{{1,80}}\s{_HERE}|"
    r"(?:before|after) (?:every|each|any)\s\w+|(?:for|on|in|at|with) every\s(?:\w+ )?(?:commit|pr|pull request|push|release|build|run|change|branch|call|new|deploy\w*|message|answer|request)s?\b|^(?:for )?every\s\w+|"
    r"\bnext time\b(?!\W*$)|as per (?:our|the|my)|according to (?:our|my)|(?:every|each) (?:day|week|month|night|sprint|quarter)|out of bounds|"
    r"(?:your|our) (?:directives?|instructions?|guidelines?|principles?) (?:are|is|says?|state)|^you (?:keep|constantly|repeatedly) \w+ing\b|^that'?s how (?:we|i|things|it)\b|^in (?:the )?future\b|(?:our|the|my) (?:rule|convention|policy|standard|workflow|house style)\b|"
    r"(?:i remind you|not allowed to|forbidden|off[- ]limits|mandatory|anywhere in (?:this|our|the) \w+|no more (?!than\b)\w+)|you (?:should|shouldn'?t|must|may|can|are)\b.{0,160}\bunless|before (?:you )?(?:commit|push|merg|deploy|releas|install|delet|open|touch|edit|writ|tell|say|claim|report)\w{0,4})\b",
    re.IGNORECASE,
)
_NOT_GENERAL = re.compile(
    r"^now\s(?!that\b|i\b)|^i (?:also |just )?(?:noticed|was|see|saw|reali[sz]ed|found|thought|wonder)\b|\bnever ?mind\b|\b(?:as|like) (?:always|never)\b|(?<=\w\s)(?<!please\s)always (?:the same|been|was|were|has|have|had|fails?|crash\w*|get|gets|shows?|returns?)\b|"
    r"\b(?:i|i've|i have|you|it|that|this|which|they) (?:have |had |has )?(?:never|always) (?:seen?|said|had|heard|did|got|knew|thought|worked?|works|asked|told|see|saw|happen\w*|noticed|finish\w*|return\w*|end\w*)\b|"
    r"\bnever (?:worked|happened|finished|returned|ends?|seen|heard)\b|\bi (?:hate|love) (?:wast|los)ing\b|should have been\b|\bi'?ve reached\b|^you'?re right\b",
    re.IGNORECASE,
)
_OTHER = r"(?!(?:it|this|that|them|these|those|the same)\b)"
"""Before an object that the sentence itself names."""

_FORBIDS = re.compile(
    r"^(?:please\s+)?(?:(?:do not|don'?t|dont)\s+(?!(?:worry|forget|bother|mind|know|think|see|care|understand|get|want|have|need|believe|remember|like|you|we|i|be|give|hesitate|tell|lose|loose|stop|wait|ask why)\b)(?!\w+\s+(?:it|this|that|them|these|those)\b)\w+\s+\S|"
    r"(?:you (?:must not|mustn'?t|must never)|(?:you|we) should(?:n'?t| not)|(?:i|we) (?:do not|don'?t|dont) want(?: to)?|let'?s not)\s+"
    r"(?!(?:it|this|that|them|these|those|you|any)\b)\w+\s+\S|i (?:already |just )?(?:said|told you|asked you)\s+(?:not to|never to|to (?:only|always|never))\s+\w+\s+\S|avoid\s+\w|stop\s+(?!being|doing)\w{2,20}ing\s+\S|leave\s.{2,60}\s(?:alone|as (?:it|they) (?:is|are)|untouched|unchanged)\b|"
    r"there(?:'s| is) no (?:longer (?:any )?)?need (?:to|for)\s(?!(?:do|look|see|wait|worry|continue)\b)\S+\s\S|no need (?:to|for)\b.{3,100}?(?:[,;:]|\s[-–—]+|\sbecause|\ssince)\s+(?!i'?m\b)\w+\s\S)",
    re.IGNORECASE,
)
_FORBIDS_A_KIND = re.compile(
    r"^no\s+(?!way|worries|changes|results|errors|warnings|logs|issues|problems)(?:[\w'-]+\s){0,3}?[\w'-]{3,}s\b"
    r"(?!.{0,120}\b(?:is|are|was|were|found|ran|returned|possible|appear\w*|has|have)\b)",
    re.IGNORECASE,
)
"""Things of a kind: what is missing in a report, or in the deliverable that is asked for, is one thing."""
_OF_THIS_TASK = re.compile(
    r"\b(?:else|existing|current(?:ly)?|displayed|shown)\b|^(?:please )?(?:do not|don'?t|dont|no need to) (?:display|show|render)\b",
    re.IGNORECASE,
)
"""What a prohibition forbids of the work at hand: that other things be touched, or what a feature shows."""
_ALLOWS = re.compile(
    r"^(?:you (?:may|can|are allowed to)|feel free to|it(?:'s| is) (?:now )?(?:fine|ok(?:ay)?|allowed) to|\S+(?: \S+){0,4} (?:is|are) (?:fine|ok(?:ay)?|allowed))\s(?:.{0,80}\s)?again\b|"
    r"^(?:there(?:'s| is) )?no (?:longer (?:any )?)?need (?:to|for)\s(?!(?:do|look|see|wait|worry|continue|write)\b)\S+\s.{0,80}?\b(?:any ?more|from now on)\b|"
    r"^(?:we|the team)(?:'ve| have)? (?:no longer|(?:do not|don't) \w+ .{2,60} any ?more|(?:\w+ )?(?:switched|moved|migrated) (?:\w+ )?from)\s\S",
    re.IGNORECASE,
)
"""What allows again what was forbidden, or gives up what was in use."""
_PRODUCTS = r"(?:(?:answer|response|explanation|message|commit|comment|docstring|name|function|test|file|pr|pull request|branch(?:e)?|diff|change|log|variable|step|plan|module|migration)s|replies|summaries|patches|classes|docs|code)"
_STYLE = re.compile(
    r"^(?:please\s+|always\s+)?(?:be\s+(?:(?:more|less)(?!\s+\w+\s+and\s+help)|brief|concise|terse|short|shorter|explicit|blunt|direct|succinct|polite|critical|honest)\b|"
    r"(?:answer|reply|respond|speak|talk|write|explain)(?:\s+to me)?\s+(?:in\s+(?!detail|the (?:file|readme|docs?)|a (?:file|new))\w|short|brief|concise|plain|less\b)|"
    rf"(?:write|make|name|format|phrase|word|limit|structure|group|split|squash|sign|prefix|base)\s+(?:\w+\s+)?{_PRODUCTS}\s+(?:in|as|to|by|with|"
    r"short|shorter|small|smaller|long|concise|minimal|simple|under|below|within|without|atomic|lower|first|like|so|after|from)\b|"
    rf"use\s{_OTHER}\S{{2,40}}\sfor\s(?:all\s|the\s)?(?:\w+\s)?names\b|(?:\w+\s+)?{_PRODUCTS}\s+(?:in|as|under|below|without)\s+\w|keep\s+(?:\w+\s+)?{_PRODUCTS}\s\S|stick\s+(?:to|with)\s+\S|treat\s.{{2,60}}\sas\s|"
    r"follow\s+.{0,60}\b(?:style|conventions?|guides?|guidelines?|patterns?|pep|standards?)\b|only\s(?:use|run|edit|touch|change|commit|write|test|import|call|add|delete|remove|push|deploy|install)\s(?!it\b|this\b|that\b|the (?:first|second|last)\b)\S|"
    r"(?:ask|check with|warn|consult|tell)\s+(?:me|us)?\s?(?:first\s)?(?:before|whenever|if)\b)|"
    r"^(?!(?:all|both|none)\b)(?:anything|everything|whoever|anyone|everyone)\s(?:(?:that|which|who|not|else|said|in|from|with|under|outside|new|old)\s)(?:\S+\s){0,10}?(?:is|are|counts?|goes|go|belongs?|must|should|can|stays?|increments?|means)\s(?!(?:fine|ok|good|working|done|great)\b)\S|"
    r"^(?:anything|everything|all) else\s\w+\s\S|^(?:nobody|no one)\s(?!knows|is\b|has\b)\w+s\s(?!it\b|this\b|that\b)\S+\s\S",
    re.IGNORECASE,
)
"""How to answer and how to write, and what holds of all there is."""
_CONTRASTS = re.compile(
    rf"^(?:please\s+|always\s+)?prefer\s+{_OTHER}\S|"
    r"\buses?\s+(?!it\b|that\b|this\b).{1,80}?(?:,?\s+(?:and\s+)?not\s+|\s+(?:instead of|over)\s+|\s+instead\b)|^(?:it'?s|that'?s)?\s?\S{1,40}(?: \S{1,20})?, not \S{1,40}(?: \S{1,20})?\W*$|"
    r"\b(?:is|are) (?:an? |in )?\S{2,30},? not (?:an? |in )?\S{2,30}\W*(?:$|[,;])|\s(?:rather than|in favou?r of)\s(?!(?:it|this|that)\b)\S|"
    r"^(?:use|keep|leave|skip|ignore|call|treat|let'?s (?:not )?(?:use|keep|go with|stick|drop|avoid|add|leave|skip|stay))\b(?!\s(?:this|these|the same)\b).{3,240}\b(?:because|since|otherwise|or else|so that|instead of|rather than|as (?:it|they|we|the)|it'?s important)\b|"
    r"^(?:use|let'?s (?:not |go )?\w+)\s+(?!it\b|that\b|this\b|(?:the|my|your)\s(?:\w+\s)?(?:one|option|version|first|second|third|other|same|token)\b).{1,45}?(?:[,;:]|\s[-–—]+)\s+(?:\S+\s){1,5}?(?:is|are|was|has|have|had|caused|breaks?|does(?:n'?t)?|do(?:n'?t)?|can(?:'?t|not)?|isn'?t|aren'?t|won'?t)\b|"
    rf"\b(?:i|we)\s(?:really |also |just |only |still |much |usually |generally |strongly |absolutely |typically |do not |don'?t ){{0,3}}(?:"
    rf"(?:dislike|hate|loathe|insist on|can'?t stand|(?<=n't )like|(?<=not )like)\s+(?:{_OTHER}(?!wasting|to say|losing)|it when )\S|prefer\s+(?!if\b|to (?:see|hear)\b)\S|"
    r"(?:like|love)\s(?:\w+\s)?[a-z]{4,}s\s\w+\s\S)|\bi(?:'d| would) (?:rather\s+(?!not (?:say|know)\b|see\b)\w+|prefer)\s+\S",
    re.IGNORECASE,
)
_DECIDED = re.compile(
    r"\b(?:we|the team|i)(?:'ve| have| had|'re| are| all)?\s+(?:already |once )?(?:decided|agreed|chose|chosen|settled on|opted (?:for|against)|standardi[sz]ed on|went with|going with|moved (?:\w+ ){0,3}?(?:away from|off|to)|migrated|switched|dropped|committed to|ruled out|stick(?:ing)? (?:to|with))\b(?!\s+(?:it|that|this)\W*$)|"
    r"\bwe (?:decide|agree) (?:to|on)\b|\b(?:decision|decided)\s*:|^we (?:have )?(?:tried|considered|evaluated)\s.{2,80}\b(?:went back|switched back|gave up|dropped|decided|rejected|but)\b|"
    r"^(?:here\s+|at work\s+|(?:for|in|on)\s(?:\S+\s){1,6}?)?we\s+(?:only |always |never |still |do not |don'?t |no longer |usually |currently |now |also |sometimes |often |generally |mostly |normally |typically |have a |have an |have no )?"
    r"(?!(?:see|get|got|have|had|did|dont need to|can|could|would|should|will|are|were|was|need|want|prefer|like|love|hate|dislike|expect|might|must|may|know|think|thought|talked|tried|do|go|went|came|just|already|really|ll|agree|ever|first|then|saw|took|made|say|said|look|start|continue|move|add|create|found)\b)(?:[a-z]+(?<!ed)|run|rely on)\s+(?!(?:it|this|that|the same|been|to)\b)\S|"
    r"^(?:here\s+|at work\s+)?we(?:'re| are)\s+(?:not\s+|still\s+|only\s+|just\s+|completely\s+|already\s+)*(?:practi[cs]ing|following|targeting|using|stuck (?:with|on)|limited to|on|bound to|behind|locked)\s+(?!it\b|this\b|that\b|the same\b)\S",
    re.IGNORECASE,
)
_NOUN = r"(?!(?:i|you|we|it|me|us|he|she|they|this|that|these|those|there|which|who|what|to|if|when|how|something|everything|nobody|all|nothing|\w{2,6}n't|dont|cant|wont)\b)[\w`'\"./@-]+\s+"
"""A word of a subject that names something."""
_PERSONAL = re.compile(
    r"^(?:my (?:\w+ ){0,2}?(?:name|e-?mail|address|github|timezone|time zone|team|editor|shell|os|machine|username|handle|laptop|keyboard|browser|role|job|company|language|system|server|setup)\s(?:is|has|uses?|runs?)\s+\S|call me\s+\w|"
    r"i(?:'m| am)\s+(?:on\s+(?:an?\s+)?(?:mac\w*|linux|windows|wsl|ubuntu|arch|debian|fedora|arm|m\d)|colou?r ?blind|dyslexic|new to|the (?:\w+ )?(?:user|owner|maintainer|dev\w*))\b)",
    re.IGNORECASE,
)
_HOLDS = re.compile(
    rf"^(?:{_NOUN}){{1,6}}?(?:is|are|stays?|remains?)\s+(?:not\s+|now\s+|still\s+|all\s+|already\s+)?"
    r"(?:an? |the )?(?:frozen|locked|read[- ]?only|out of bounds|obsolete|experimental|hand[- ]?written|protected|deprecated|legacy|required|mandatory|forbidden|off[- ]limits|intentional(?:ly)?|by design|on purpose|deliberate(?:ly)?|canonical|(?:single )?source of truth|"
    r"(?:auto[- ]?)?generated|vendored|retired|immutable|append[- ]only|private|internal|proprietary|case[- ]sensitive|rate[- ]limited|flaky|supposed to|broken (?:on|in|at|behind|with)|not (?:installed|available|needed)|"
    r"(?:\w+ly |only |never )?(?:shared with|(?:owned|maintained|used|consumed|called|managed|reviewed|read|written) by))\b|"
    r"\b(?:tests?|specs?|fixtures?|schema|contract|docs?|documentation|snapshots?|expectations?|requirements?|types?|assertions?|mocks?|reference)\s+(?:is|are)\s+(?:right|correct|wrong,? not)\b|"
    r"\bthere(?:'s| is| are) no\s\S+(?:\s\S+)?\s(?:on|in|at|for)\s(?:this|the|our|my|these)\s|"
    rf"^(?:{_NOUN}){{1,5}}?(?:needs?|requires?|depends? on|relies on|expects?|only (?:works?|accepts?|supports?|runs?|reads?)|breaks (?:if|when|without)|stays? until|gets its)\s+(?!(?:an?|to|some|more|better|fixing|work|updating|another|help|attention|review)\b)\S",
    re.IGNORECASE,
)
"""In what state something is that has a name."""

_TAKES_BACK = re.compile(
    r"^(?:\W*(?:ok|oh|hmm|no|wait|sorry|actually|ah)[\s,.!]+){0,3}(?:"
    r"((?:never ?mind|(?:scratch|forget|ignore|disregard) (?:that|it|what i said|my last (?:message|sentence))|i was wrong|my (?:mistake|bad)|i take (?:that|it) back|i changed my mind)\W*$)|"
    r"never ?mind|scratch that|forget (?:that|it|what i said|about|the)|ignore (?:that|what i said|my)|i was wrong|my (?:mistake|bad)|i changed my mind|on second thoughts?|"
    r"disregard|i take (?:that|it) back|we changed our minds?)|^actually\b.{0,160}\b(?:are|is) (?:fine|ok(?:ay)?|allowed|good)\b|\b(?:no longer (?:applies|true|needed)|i changed my mind|is fine after all|are fine after all)\b",
    re.IGNORECASE,
)
"""What withdraws something; alone (its group) the statement before it."""
_BANS = re.compile(r"\b(?:do not|don'?t|dont|never|no longer|stop)\s+us(?:e|ing)\s+([\w./@`-]+)", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:no|not|never|don'?t|do not|dont|avoid|stop|without|no longer|n't)\b", re.IGNORECASE)

_ASIDE = "\ufffc" * 3
"""Stands for what was set aside; long enough for a sentence of its own."""
_LISTED = "\u2063"
"""Stands before the head and each item of a list of rules."""
_JOINED = "\u2060"
"""Stands for white space in a quotation: no sentence ends there."""
_FENCED = re.compile(r"(```|~~~|'{3}|\"{3}).{0,8000}?(?:\1|\Z)|<!--.{0,8000}?(?:-->|\Z)", re.DOTALL)
_ELEMENT = re.compile(
    r"<([A-Za-z][\w:.-]{0,40})(?:\s[^<>]{0,400})?>(?!\W{0,3}(?:[\w-]+\W{0,3}){0,3}</\1).{0,8000}?(?:</\1\s{0,3}>|\Z)",
    re.DOTALL,
)
"""An element with its content, unless that is a word or two."""
_PASTED = re.compile(
    r"\s*(?:[-*]?\s?\[[ xX]\]\s|/[/*]|[$%|│➜❯λ●■✓✔✗✘✅❌×⎿─═╭╰├└┌⏭♻✨☁💡👀]|[+-]{2,}\S?|={2,}|[#%]\s*$)|.{0,60}\bgit:\([^)\n]{1,60}\)|\[[^\]\n]{0,80}[~/][^\]\n]{0,200}\]|"
    r"\w{1,40}@[\w.-]{1,60}[ :][^\n]{0,80}[%$#] |\s*\[?(?:\d{4}-\d\d-\d\d[T ]?\d|[(\[]?\d{1,2}:\d\d\b|[A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d)|\s*\d{1,6}\.\d{2,3}\s|\s*(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|TRACE)\b|"
    r"\s*\[[A-Za-z][\w. -]{1,30}\](?:\s|$)(?!\S+ #)|\s*(?:npm|yarn|pnpm) (?:ERR!|WARN|error|warn|notice)|\s*(?:at \S{1,200}(?:$| [(<\[])|at async |File \"|Traceback |caused by:)|"
    r"[\w.]{1,80}(?:Error|Exception|Warning)(?: \[?\w+\]?)?: |\s*(?:\S{1,200}[:(]\d{1,6}[:,]\d{1,6}[):]?|\S{1,200}\.\w{1,5}:\d{1,6})(?:\s|$)|@?[\w/-]{1,60}[:#][\w-]{1,40}:|\(\w{1,40}:\d+\)|"
    r"(?:def|class|import|return|export|const|let|var|func|package) \w{1,60}\s?[(:={.]|from \w{1,60} import |\s{0,40}\d{1,6}\s?[│|→]|\s{4,}(?![-*•]\s|\d{1,2}[.)]\s|[a-z]\)\s)\S|\s{2,}\S+\s{2,}\S|"
    r"[^\n]{0,400}(?:\S\s{3,}\S|\serror [A-Z]{1,4}\d{3,6}:|[)\]}'\"]\s?;$|[{}]$|\.{6,}|</\w+>)|\s*(?:\S{1,20}=\S{1,80}\s){2}"
)
"""Lines of the shapes that programs print and people do not write."""
_PROMPT = re.compile(
    r"(?:\w{1,40}@[\w.-]{1,60}[ :][^\n]{0,80}[%$#]|\s*[$%➜❯λ])\s[A-Za-z~./]|"
    r"\s{0,8}(?:-\s)?[\w.-]{1,40}\s?[:=](?:\s[^\n]*)?\n\s{0,8}(?:-\s)?[\w.-]{1,40}\s?[:=](?:\s|$)"
)
"""A command in a terminal, or two fields of a file: what stands below is its output, or more of the file, up to a blank line."""
_REPEATED_CHARS = 40
"""Lines at least this long that occur again were printed by a program."""
_MOST_LINES_BETWEEN = 4
"""So many lines that look like prose may lie within one pasted output."""
_DOCUMENT = re.compile(
    r"\s{0,3}(?:#{1,6}\s+\S|[-=_*~]{3,}|[A-Z]{2,}(?: [A-Z]{2,})+\W*$)|(?:From|To|Cc|Bcc|Date|Sent|Subject|Reply-To|Message-ID|Return-Path):\s|[^\n]{1,200}\n\s{0,3}(?:={3,}|-{3,})\s*$"
)
"""What begins a document that lasts to the end: a heading, a rule, the header of a mail."""
_QUOTES = re.compile(
    r"\"[^\"\n]{1,600}\"|`(?:[^`\s]+[ ]){3,60}[^`\s]+`|[“„][^”“\n]{1,600}[”“]|[«‹][^»›\n]{1,600}[»›]|「[^」\n]{1,600}」|‘[^’\n]{1,600}’(?!\w)|(?<![\w'])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)){1,600}(?<=\S)'(?![\w'])"
)
_TEXT = r"(?:paragraphs?|comments?|texts?|messages?|e-?mails?|prompts?|sentences?|wiki|readme|articles?|answers?|tickets?|snippets?|quotes?|posts?|threads?|reviews?|notes?|letters?|docs?|documents?|sto(?:ry|ries)|guidelines|transcripts?|logs?|output)"
_SAYS = (
    r"(?:says|said|(?<!stop )saying|tells|told|writes|wrote|states|stated|asks|asked|claims|claimed|suggests|suggested|recommends|recommended|advises|advised|insists|insisted|argues|argued|mentions|mentioned|"
    r"warns|warned|instructs|instructed|demands|demanded|replies|replied|answered|responded|commented|proposes|proposed|complains?|complained|thinks|believes|reminds|reminded|quotes|quoted|wants (?:us|me|you|everyone|them) to)"
)
_OF_OWN = re.compile(
    rf"\b(?:i|we)(?:['’]ve|['’]d|\s(?:have|had))?(?:\s(?!was\b|were\b|am\b|been\b|got\b)\w+)?\s{_SAYS}\b|\byou(?:['’]re|\sare|\swere|\shave\sbeen)\s(?:\w+\s)?{_SAYS}\b|"
    rf"\b(?:if|when|whenever|unless|until|once|before|after|what|whatever|whoever|anyone|everyone|nobody|without)\s(?:[^\s,]+\s){{0,5}}?{_SAYS}\b",
    re.IGNORECASE,
)
"""Where the user says something, or where it depends on what somebody says."""
_ATTRIBUTED = re.compile(
    rf"\b{_SAYS}\b|\w+s\s(?:say|claim|suggest|recommend|insist|advise|warn)\b(?!\s(?:why|what|how)\b)|\bthey\s(?:say|claim|want|insist|suggest|recommend|tell)\b|"
    r"\b(?:i|we)\s(?:\w+\s)?(?:read|heard|saw|found)\s(?:\w+\s){0,2}that\b|\b(?:dis)?agree\b|^from\s(?!now\b|here\b|\w+\son\b)|\b(?:according\sto|as\sper|in\sthe\swords\sof|quoting|citing)\s(?!our\b|my\b)|^(?:per|via)\s(?!our\b|my\b)\S|"
    rf"(?:\b(?:his|her|their)|(?<!\bour )\b(?!(?:project|repo(?:sitory)?|code ?base|team|company|house|here)\b)\w+['’]s)\s(?:\w+\s){{0,2}}?(?:rule|advice|opinion|view|motto|policy|preference|suggestion|request|instruction|guideline|demand|idea|words)s?\b",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"^(?:please |also |and |just |so |always |quick |short )*(?:(?:remember|keep in mind|bear in mind|note|be aware|follow|observe|respect|stick to|from now on|going forward|from here on|in general|by default|always|as a rule|whenever|also|please|ps|p\.s|btw|"
    r"fyi|nb|important|warning|rules?|styles?|preferences?|conventions?|constraints?|requirements?)\b|(?:for|in|on|when|if|before|after|while|regarding|about|as for)\s(?:this|our|my|all|any|every|each|new|future|you|we|i|it|the (?:future|record)|\w+ing|\w+s|\w+ \w+s)\b)|"
    r"\bhow (?:we|i)\s|\bmake (?:it|this|that) a (?:habit|rule)\b|\b(?:i|we)\s(?:\w+\s)?(?:told you|said|mentioned|asked you)\b|\b(?:my|our|these|some|few|couple of|several|one|two|three|four|five|six|another|\d)\s(?:\w+\s){0,3}?(?:rule|convention|preference|constraint|requirement|guideline|principle|remark|polic(?:y|ie)|thing|point|note|reminder|request|decision|wish)(?:e?s)?\b",
    re.IGNORECASE,
)
"""What stands before words of the user's own and a colon."""
_REFUSED = re.compile(
    r"\b(?:not|never|no|ignore|disagree|against|drop|remove|delete|wrong|bad|terrible|forget|refuse|reject|disregard|nonsense|false|untrue|opposite|by|from(?! now\b| here\b)|their|his|her|its)\b|n['’]t\b|\w['’]s\b",
    re.IGNORECASE,
)
"""What denies the words behind a colon, or says whose they are."""
_COLON = re.compile(r":[*_]{0,2}\s+|\s(?:→|[-=]>)\s|\s[-–—]\s(?=(?i:always|never|you (?:must|should))\b)")
_SHOWS_TEXT = re.compile(
    rf"(?:\b(?:this|these)\b|\b(?:here(?:'s|’s| is| are)|found|got|received|copied|pasted|attached)\b.{{0,40}})(?:\s[\w'’-]+){{0,3}}?\s{_TEXT}\b|\b{_SAYS}\W*$|\bthe following\b|\bbelow\W*$",
    re.IGNORECASE,
)
"""A sentence that shows a text: what follows is that text, as after a colon."""


@dataclass(frozen=True, slots=True)
class UserStatement:
    """What a user's message states, understandable by itself: how to work (an instruction), or a decision or fact (a statement)."""

    kind: StatementKind
    text: str
    head: str = ""
    items: tuple[str, ...] = ()
    """Of a list of rules."""

    @classmethod
    def listed(cls, kind: StatementKind, head: str, items: Sequence[str]) -> UserStatement:
        """Return a list of rules as one statement."""
        return cls(kind, f"{head}: {'; '.join(items)}", head, tuple(items))


def statements_in(message: str) -> list[UserStatement]:
    """Return what a message states beyond its request; linear in its length."""
    found: list[UserStatement] = []
    before, was_kept = "", False
    for part in _parts(message):
        if not part or part.startswith(_LISTED):
            found += _statements_of(*part.split(_LISTED)[1:]) if part else ()
            before, was_kept = "", False
            continue
        text, kind = _bare(part), _kind(part)
        starts = _POINTING.match(text) is not None
        points = starts or (_POINTS_AS_OBJECT.match(text) is not None and len(content_words(text)) < 3)
        if points and not (before and starts):
            kind = None
        told = f"{ended(before)} {text}" if points and before else text
        is_reason = was_kept and starts and not (_QUESTION.search(part) or _ONCE.search(part))
        if stated := kind or (found[-1].kind if is_reason else None):
            found = found[:-1] if points and was_kept else found
            found.append(UserStatement(stated, told))
        was_kept = kind is not None
        before = "" if _QUESTION.search(part) else told if len(told) <= _MAX_BEFORE_CHARS else text
    return found[:_MAX_STATEMENTS]


def what_is_left(message: str, earlier: UserStatement, *, is_latest: bool) -> UserStatement | None:
    """Return an earlier statement without what a message withdraws: of a list of rules it may be single ones."""
    if _takes_back(message, earlier.head or earlier.text, is_latest=is_latest):
        return None
    if not earlier.items:
        return earlier
    lead = "" if content_words(earlier.head) else f"{earlier.head} "  # "Do NOT", "Always"
    left = [item for item in earlier.items if not _takes_back(message, f"{lead}{item}", is_latest=False)]
    return UserStatement.listed(earlier.kind, earlier.head, left) if left else None


def _takes_back(message: str, earlier: str, *, is_latest: bool) -> bool:
    """Return whether a message withdraws an earlier statement: the latest one, or one about the same thing, or by stating its opposite."""
    now, then = _gist_of(message[:_MAX_CHARS]), _gist_of(earlier)
    its = then.words
    shared = len(now.words & its)
    if now.takes_back:
        return shared > 0 or (is_latest and bool(now.takes_back[1]))
    for lifted in now.lifts:
        is_about = len(lifted & its) > _RETRACTED_OVERLAP * len(lifted)
        if is_about and len(its - _OF_LIFTING) <= _MOST_LIFTED * len(lifted):
            return True
    if not then.denies and any(name in earlier for name in now.bans):
        return True
    return now.denies != then.denies and shared >= max(2, 0.8 * len(its)) and bool(statements_in(message))


class _Gist(NamedTuple):
    """What comparing a text needs: its words, whether it denies and takes back, the words of what it allows again, and the names it bans."""

    words: frozenset[str]
    denies: bool
    takes_back: re.Match[str] | None
    lifts: list[frozenset[str]]
    bans: list[str]


@lru_cache(maxsize=_MOST_COMPARED)
def _gist_of(text: str) -> _Gist:
    """Return a text's gist. Cached, because each message is compared with all statements before it."""
    named = [match[1].strip("`.") for match in _BANS.finditer(text)]
    return _Gist(
        frozenset(content_words(text)),
        _NEGATION.search(text) is not None,
        _TAKES_BACK.search(text),
        [frozenset(content_words(part)) - _OF_LIFTING for part in sentences(text) if _ALLOWS.match(part)],
        [name for name in named if not (name.isalpha() and name.islower())],
    )


def _kind(sentence: str) -> StatementKind | None:
    """Return the kind of statement that a sentence makes, if it makes one."""
    text = _QUOTES.sub('"…"', _OPENER.sub("", sentence).strip())
    marked = _MARKED.match(text)
    text = text[marked.end() :].strip() if marked else text
    polite = _POLITE.match(text)
    if polite and (_GENERAL.search(_PLACED.sub("", text)) or _FORBIDS.match(text[polite.end() :])):
        text = text[polite.end() :].rstrip(" ?")
    words = text.split()
    if not _LEAST_WORDS <= len(words) <= _MOST_WORDS or _QUESTION.search(text):
        return None
    if _INCOMPLETE.search(text) or text.count('"') % 2:
        return None
    is_general = (
        len(words) <= _MOST_GENERAL_WORDS and _GENERAL.search(text) is not None and not _NOT_GENERAL.search(text)
    )
    if _HEDGED.search(text) or (_ONCE.search(text) and not is_general):
        return None
    parts = [text, *(one for raw in _CLAUSE.split(text) if " " in (one := _OPENER.sub("", raw).strip()))]
    clauses = [part for part in parts if not _QUESTION.search(part)]
    untroubled = clauses if is_general or not _TROUBLE.search(text) else []
    if _any_of(clauses, _DECIDED, _HOLDS) or _any_of(untroubled, _PERSONAL):
        return "statement"
    if is_general or _is_forbidding(text) or _any_of(clauses, _CONTRASTS, _ALLOWS) or _any_of(untroubled, _STYLE):
        return "instruction"
    is_told = marked and not _TROUBLE.search(text) and not _POINTING.match(text)
    return "statement" if is_told and len(content_words(text)) >= _LEAST_WORDS else None


def _any_of(clauses: Sequence[str], *patterns: re.Pattern[str]) -> bool:
    return any(pattern.search(one) for pattern in patterns for one in clauses)


def _is_forbidding(text: str) -> bool:
    """Return whether a sentence forbids a kind of thing; after a request, a dash or "and" that is part of what is asked for."""
    if _TROUBLE.search(text) or _OF_THIS_TASK.search(text):
        return False
    parts = [text] if is_action(text) else [text, *re.split(r"[,:] (?:so )?", text)]
    kinds = [text] if _NO_OR_DASH.search(text) else parts
    return any(map(_FORBIDS.match, parts)) or any(map(_FORBIDS_A_KIND.match, kinds))


def _bare(sentence: str) -> str:
    """Return a sentence without greeting or assent before it."""
    text = _OPENER.sub("", sentence).strip() or sentence
    return text[:1].upper() + text[1:] if text.split(maxsplit=1)[0].isalpha() else text


_TITLE = re.compile(
    r"\n[A-Z](?!(?:\S+ ){6})[^\n.!?:,;]{2,50}\n|.?\n[^\n:]{1,60}\s[(\[]?\d{1,2}:\d\d(?::\d\d)?(?:\s?[AaPp]\.?[Mm]\.?)?[)\]]?[ \t]*(?:\n.*)?"
)
"""A line that stands alone, or says who wrote the message below and when."""
_VERSE = re.compile(r"(?:^(?![-*•\d]).{10,60}\n){1,40}(?:.{10,60},\n(?![-*•\d])){1,40}.{10,60}$", re.MULTILINE)
"""Short lines that a sentence runs over."""
_ITEM = re.compile(r"\s*(?:[-*•]|(?:[-*•]\s)?[❌✅]\ufe0f?|(?:\d{1,2}|[a-hA-H])[.)])\s+")
_HEAD = re.compile(r"(?:#{1,6}\s+|[^\w\s\"'“‘`(\[<>]{1,3}\s)?([^\s>].{0,120}?)([\s*_]*:)?[\s*_]*")
"""A line that may be the head of a list: behind the mark of a heading, before a colon."""
_NAMES_RULES = re.compile(r"\b(?:rules?|constraints?|conventions?|guidelines|principles)\b", re.IGNORECASE)
_RULES = re.compile(
    r"(?:(?:here|are|is|some|a few|the|these|our|my|your|this|project|repo|team|house|hard|strict|important|critical|absolute|general|basic|core|key|additional|coding|code|development|style|naming|commit|git|testing|test|api|database|security|documentation|workflow)(?:['’]s)? )*"
    rf"{_NAMES_RULES.pattern}(?: (?:from now on|for (?:you|(?:this|our) \w+|all (?:our |the )?(?:code|changes|commits|files|tests|work)|every \w+)|(?:that )?(?:to|you (?:must|should|need to)|i (?:want|expect|need) you to|we) (?:follow|keep|obey|respect|observe)))?(?: ?\((?:do not|never|must|all|strict|mandatory|important|non-negotiable)\b[^()]*\))?|(?:important|critical)(?: (?:notes?|points?|things|reminders?))?(?: to (?:remember|know|note|keep|follow|respect|observe))?\W*",
    re.IGNORECASE,
)
"""Head of a list of rules that are in force: words of a closed list, as any other may say that they are somebody else's, past, or asked for."""


def spoken(message: str) -> list[str]:
    """Return the sentences and lists of rules that are the user's own, and "" where something was set aside; linear in the length of the message."""
    return [part.removeprefix(_LISTED).replace(_LISTED, ": ", 1).replace(_LISTED, "\n") for part in _parts(message)]


def _parts(message: str) -> list[str]:
    """Return the sentences; a list of rules is one part, with a mark before its head and each item."""
    found: list[str] = []
    is_shown = False
    for paragraph in map(str.strip, re.split(r"\n{2,}", own_text(message))):
        for part in [paragraph] if paragraph.startswith(_LISTED) else _own_sentences(paragraph):
            is_aside = _ASIDE in part
            if is_shown and not is_aside:
                return [*found, ""]
            found.append("" if is_aside else part.replace(_JOINED, " "))
            is_shown = part.rstrip(" *_").endswith(":") or _SHOWS_TEXT.search(part) is not None
            is_shown = is_shown and not part.startswith(_LISTED) and not _introduces(part.rstrip(" *_:"))
    return found


def own_text(message: str) -> str:
    """Return a message with a mark of "\ufffc" in place of what is pasted, quoted as a block, or of another speaker."""
    text = message.replace("\r\n", "\n").replace("**", "")
    for pattern in (_FENCED, _ELEMENT):
        text = pattern.sub(f"\n{_ASIDE}\n", text)
    text = _QUOTES.sub(lambda match: re.sub(r"\s", _JOINED, match[0]), _VERSE.sub(f"{_ASIDE}\n", text))
    return "\n".join(_own_lines(text.split("\n")))


def _own_lines(lines: list[str]) -> list[str]:
    """Return the lines with a mark instead of those that are pasted, quoted as a block, of another speaker, or introduced by a colon."""
    times = Counter(line.strip() for line in lines if len(line) >= _REPEATED_CHARS)
    is_hunk = any(line[:1] == "+" and line[1:2].strip() for line in lines)
    pasted = {
        place
        for place, line in enumerate(lines)
        if line.strip() and (_PASTED.match(line[:1_000]) or times[line.strip()] > 1)
    }
    for one, other in pairwise(sorted(pasted)):
        between = range(one + 1, other)
        if sum(1 for place in between if lines[place].strip()) <= _MOST_LINES_BETWEEN:
            pasted.update(between)
    first = min(pasted, default=len(lines))
    kept, until, read = [], "", 0
    for place, line in enumerate(lines):
        if place < read:
            continue
        before, two = lines[place - 1] if place else "x", "\n".join(lines[place : place + 2])
        is_pasted = place in pasted or _ASIDE in line or (is_hunk and line[:1] in "+-@\\ ")
        if not until and (listed := _list_at(lines, place)):
            part, read = listed
            is_shown = is_pasted or is_hunk or place > first
            kept.append(f"\n{_ASIDE if is_shown else part}\n")
            continue
        is_title = _TITLE.fullmatch("\n".join([before[:1], two]))
        if not line.strip() or until == "end":
            until = "" if until == "blank" else until
        elif (
            _DOCUMENT.match(two) and not is_hunk and not (line.isupper() and _kind(line))  # "NEVER PUSH"
        ) or (is_title and not _kind(line)):
            until = "end"
        elif (
            line.lstrip()[:1] == ">"
            or _PROMPT.match(two[:1_000])
            or (before.rstrip().endswith("?") and _ITEM.match(line))
        ):
            until = "blank"
        kept.append(
            f"\n{_ASIDE}\n" if (until and line.strip()) or is_pasted else line + "\n" * line.rstrip(" *_").endswith(":")
        )
    return kept


def _list_at(lines: Sequence[str], place: int) -> tuple[str, int] | None:
    """Return what stands for the list that a line heads, and the place after it; None if there is none, or its items are read one by one.

    Head and items of a list of rules become one part. What a request lists is set aside, as it is about this task.
    """
    head, items, after = _HEAD.fullmatch(lines[place]), [], place + 1
    if head is None or _ITEM.match(lines[place]):
        return None
    for number in range(after, len(lines)):
        line = lines[number]
        if mark := _ITEM.match(line):
            items.append(line[mark.end() :].strip())
        elif items and line[:1].isspace() and line.strip():
            items[-1] += f" {line.strip()}"
        elif line.strip():
            break
        after = number + 1 if line.strip() else after
    told = head[1].strip(" *_")
    if not items or (told.endswith(".") and not head[2]) or _QUESTION.search(told) or _is_attributed(told):
        return None
    names_rules = _NAMES_RULES.search(told) is not None
    begun = [one for one in (f"{told} {item}" for item in items) if _GENERAL.match(one) or _FORBIDS.match(one)]
    are_begun = 2 * sum(_kind(one) == "instruction" for one in begun) > len(items)
    if (are_begun and head[2] and not names_rules) or _RULES.fullmatch(told):
        return _LISTED.join(["", told, *items]), after
    is_text = _introduces(told) or _SHOWS_TEXT.search(told)
    is_set_aside = names_rules or (head[2] and not is_text)
    return (f"{lines[place]}\n\n{_ASIDE}", after) if is_set_aside else None


def _statements_of(told: str, *items: str) -> Iterator[UserStatement]:
    """Yield a list of rules, in parts if it is long: each has the head and as many items as fit."""
    is_fact = told.casefold().startswith(("important", "critical")) and "instruction" not in map(_kind, items)
    kind: StatementKind = "statement" if is_fact else "instruction"
    part: list[str] = []
    for item in filter(None, (cut_at_word(item, _MAX_ITEM_CHARS).rstrip(" .;,") for item in items)):
        if part and len(f"{told}: {'; '.join(part)}; {item}") > _MAX_CHARS - 1:
            yield UserStatement.listed(kind, told, part)
            part = []
        part.append(item)
    if part:
        yield UserStatement.listed(kind, told, part)


def _own_sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph without those that are attributed, and without what a colon introduces that is not the user's."""
    for sentence in chain.from_iterable(map(_LOWER_CASE_SENTENCE.split, sentences(paragraph))):
        bare = _QUOTES.sub(_ASIDE, sentence)
        said, *introduced = _COLON.split(_OPENER.sub("", bare).strip(), maxsplit=1)
        is_own = not introduced or _introduces(said) or bare.casefold().startswith(("no,", "no.", "no "))
        if _is_attributed(said if introduced else bare) or not bare.strip(f"{_ASIDE} .!?,"):
            yield _ASIDE + sentence
            is_own = not introduced
        else:
            yield sentence if is_own else said
        if not is_own and introduced[0].strip(f"{_ASIDE} .!?,"):
            yield _ASIDE
            return


def _is_attributed(text: str) -> bool:
    return _ATTRIBUTED.search(_OF_OWN.sub("", text)) is not None


def _introduces(text: str) -> bool:
    """Return whether what stands before a colon introduces the user's own words; in doubt it does not."""
    is_marked = _MARKED.match(f"{text}:") is not None
    is_refused = _is_attributed(text) or (_REFUSED.search(text) is not None and not is_marked)
    return not is_refused and (is_marked or _INTRODUCES.search(text) is not None)
