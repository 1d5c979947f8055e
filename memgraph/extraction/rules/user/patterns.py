"""Patterns of what users state: what a sentence must say to hold beyond the request at hand, and what ties it to the moment.

Every repetition is bounded or runs over one sentence, which the caller truncates.
"""

from __future__ import annotations

import re

QUOTED = re.compile(r"[\"“](?:[^\s\"“”]{1,60}\s+){2,60}[^\"“”]{1,80}[\"”]")
OPENER = re.compile(
    r"^\W{0,4}(?:(?:ok(?:ay)?|yes|very good|excellent|awesome|yeah|yep|sure|right|good|great|nice|cool|perfect|because|thanks?|thank you|please|pls|plz|also|and|but|so(?! far\b)|well|hmm+|wait|w8|"
    r"actually|oh|hey|just|again|i think|i guess|imo|imho|no(?=[,.!;:]| no\b)|nope|then|however|one (?:more|last) thing|ps|btw|by the way)\b[\s,:;.!-]{0,4}){1,6}",
    re.IGNORECASE,
)  # fmt: skip
MARKED = re.compile(
    r"^(?:notice (?:how|that)\b|(?:remember|note|keep in mind|be aware|bear in mind)(?:\s+that\b|\s*:)|remember\s+to\b|remember(?=\s+(?:we|the|our|my|i)\b)|(?:fyi|heads[- ]?up|reminder|important|rule|gotcha|"
    r"careful|watch out|beware|caution|(?:for |some |a bit of )?(?:background|context)|(?:(?:quick|small|one|a|minor) )*correction|for the record|nb|for your (?:info\w*|reference))\s*[:,!–—-]|"
    r"(?:just )?so (?:that )?you know\b,?|fyi\b)\s*",
    re.IGNORECASE,
)
LOWER_CASE_SENTENCE = re.compile(r"(?<=[\w)`'\"][\w)`'\"][.!?])(?<!etc\.)(?<!vs\.)\s+(?=[a-z`~])")
CLAUSE = re.compile(r"[,;:]\s+|\s+(?:--?|–|—)\s+|\s+(?:but|and|so|because|since)\s+", re.IGNORECASE)

_QUESTION = re.compile(
    r"\?\W{0,3}$|^(?!do (?:it|this|that)\b)(?:can|could|would|will|wouldn'?t|do|does|did|is|are|was|were|should|shall|may|have|has|isn'?t|aren'?t|don'?t)\s+"
    r"(?:you|i|we|the|it|this|that|there|they|these|those|our|my|your|any\w{0,4})\b|^(?:what|why|how|where|which|who|whose|when(?=\s+(?:is|are|was|do|does|did|will)\b))\b",
    re.IGNORECASE,
)
TAG = re.compile(
    r"(?:\s+please|,\s+(?:right|ok(?:ay)?|yes|is that (?:possible|ok(?:ay)?)|can (?:you|we)|could you|will you|got it|clear))\s*\?\W*$",
    re.IGNORECASE,
)
"""What makes a question of a statement."""
POLITE = re.compile(r"^(?:can|could|would|will) (?:you|we) (?:please |pls |maybe )?", re.IGNORECASE)
ONCE = re.compile(
    r"\b(?:for now|right now|for the moment|(?:in|for|during) this (?:\w+ ){0,2}(?:phase|sess?ion)|^try\b|you (?:ran|used|did|wrote|made|proposed) (?:previously|before|above|earlier|there)|at this (?:time|point|stage)|this time|just this once|today|tonight|yet|later|once more|one more time|next step|in this (?:session|turn|"
    r"commit|pr|step)|until (?:i|we)(?:'ve| have)? \w{1,12}|^now\s(?!that\b|i\b)|continue|go ahead|let me (?:know|see|try|check|think)|give me|show me|tell me)\b",
    re.IGNORECASE,
)
"""What ties a sentence to the moment."""
HEDGED = re.compile(
    r"^(?:imagine|suppose|assume|pretend|let'?s (?:say|assume|pretend))\b|^for example\b|^(?:for|on|in|with|to) (?:#|(?:number|option|item|step|line|point|question) )?\d+[,:]?\s(?!(?:percent|days|hours|minutes|seconds|of)\b)|\b(?:we could|maybe|perhaps|probably|not sure|i wonder|wondering|my (?:naive )?(?:thinking|guess)|i assume|leaning|might|could be|contemplating|i don'?t kno?w\w?)\b|\*\*|^[*#]|</?\w{1,40}_\w{1,40}>",
    re.IGNORECASE,
)
"""Doubt, answers to numbered items, and marks of pasted documents."""
TROUBLE = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|errors?|crash\w{0,3}|broken|breaks? again|not working|does(?:n'?t| not) (?:work|show|load|seem|exist)|did(?:n'?t| not)|"
    r"won'?t|nothing happens|weird|strange|bugs?|hangs?|stuck|looks? like|seems?|(?:got|have) (?:some |an? )?(?:problem|issue)s?|works? (?:if|when|for) i|i (?:see|get|got|have seen|noticed|ran|tried)|still)\b",
    re.IGNORECASE,
)
"""A report of what is seen."""

POINTING = re.compile(r"^(?!it(?:'s| is) (?:\w+ )?(?:important|critical|crucial|essential|vital|mandatory)\b|there (?:are|is) (?:two|three|four|several|only|an?)\b|this (?:project|repo|repository|code ?base|service|app|machine|box|team|company|library|package|tool|site|system)\b)(?:it|its|it's|this|that|that's|thats|these|those|they|them|he|she|there|here|same|the (?:same|other|first|second|last|latter) one)\b", re.IGNORECASE)  # fmt: skip
REFERS = re.compile(
    r"^we(?:'ve|'re|'ll| have| are| will)\s(?:\S+\s){0,3}(?:it|them|this|these|those)\b|^(?:anything|everything|everyone|all|any) (?:else|other)\b",
    re.IGNORECASE,
)
"""What cannot be understood without the sentence before, although it has a subject."""
POINTS_AS_OBJECT = re.compile(r"^\w+\s(?:it|this|that|them)\b", re.IGNORECASE)
POINTS_AT_END = re.compile(
    r"\b(?:that|this|it|them|those|these|so|one|either|both)(?:\s+(?:again|anymore|any ?more|now|ever|here|there|either|too|please|then|way|like that))*\W*$",
    re.IGNORECASE,
)

_NOUN = r"(?!(?:i|you|we|it|me|us|he|she|they|this|that|these|those|there|which|who|what|to|if|when|how|something|everything|nobody|all|nothing|\w{2,6}n'?t)\b)[\w`'\"./@-]+\s+"
"""A word of a subject that names something."""
_PRODUCTS = (
    r"(?:answers|responses|replies|explanations|summaries|messages|commits|comments|docstrings|names|functions|tests|files|prs|pull requests|branches|diffs|changes|"
    r"patches|logs|variables|docs|steps|plans|code|classes|modules|migrations)"
)
GENERAL = re.compile(
    r"\b(?:(?:always|never)(?![-\w])|whenever|every ?time|each time|any ?time|from now on|going forward|from here on|in general|as a rule|rule of thumb|at all times|"
    r"no matter (?:what|how|which)|under no circumstances|by default|(?:do not|don'?t|not) ever|only ever|until further notice|(?:in|for|across) (?:this|our|the whole) (?:project|repo|repository|code ?base|team|company)|"
    r"(?:before|after) (?:every|each|any)\s\w+|(?:for|on|in|at|with) every\s(?:\w+ )?(?:commit|pr|pull request|push|release|build|run|change|branch|call|new|deploy\w*|message|answer|request)s?\b|^(?:for )?(?:every|each)\s(?!of these)\w+|"
    r"\bnext time\b(?!\W*$)|as per (?:our|the|my)|according to (?:our|my)|occasionally|regularly|periodically|from time to time|(?:every|each) (?:day|week|month|night|sprint|quarter)|out of bounds|"
    r"(?:your|our) (?:directives?|instructions?|guidelines?|principles?) (?:are|is|says?|state)|^you (?:keep|constantly|repeatedly) \w+ing\b|^that'?s how (?:we|i|things|it)\b|^in (?:the )?future\b|(?:our|the|my) (?:rule|convention|policy|standard|workflow|house style)\b|"
    r"(?:i remind you|not allowed|forbidden|off[- ]limits|mandatory|no more \w+)|you (?:should|shouldn'?t|must|may|can|are)\b.{0,160}\bunless|before (?:you )?(?:commit|push|merg|deploy|releas|install|delet|open|touch|edit|writ|tell|say|claim|report)\w{0,4})\b",
    re.IGNORECASE,
)
NOT_GENERAL = re.compile(
    r"^now\s(?!that\b|i\b)|^i (?:also |just )?(?:noticed|was|see|saw|reali[sz]ed|found|thought|wonder)\b|\bnever ?mind\b|\b(?:as|like) (?:always|never)\b|\balways (?:the same|been|was|were|has|have|had|fails?|crash\w*|get|gets|shows?|returns?)\b|"
    r"\b(?:i|i've|i have|you|it|that|this|which|they) (?:have |had |has )?(?:never|always) (?:seen?|said|had|heard|did|got|knew|thought|worked?|works|asked|told|see|saw|happen\w*|noticed|finish\w*|return\w*|end\w*)\b|"
    r"\bnever (?:worked|happened|finished|returned|ends?|seen|heard)\b|\bi (?:hate|love) (?:wast|los)ing\b|should have been\b|\bi'?ve reached\b|^you'?re right\b",
    re.IGNORECASE,
)
FORBIDS = re.compile(
    r"^(?:please\s+)?(?:(?:do not|don'?t|dont)\s+(?!(?:worry|forget|bother|mind|know|think|see|care|understand|get|want|have|need|believe|remember|like|you|we|i|be|give|hesitate|tell|lose|loose|stop|wait|ask why)\b)(?!\w+\s+(?:it|this|that|them|these|those)\b)\w+\s+\S|"
    r"avoid\s+\w|stop\s+(?!being|doing)\w{2,20}ing\s+\S|leave\s.{2,60}\s(?:alone|as (?:it|they) (?:is|are)|untouched|unchanged)\b|"
    r"no\s+(?!\S+ (?:container|file|folder|director\w+|database|column|field|row)s?\W*$|on\b|problem|worries|need|idea|rush|thanks|thank|longer|way|one|luck|changes?\b|errors?|difference|clue|doubt|wonder|matter|more\b|it\b|that|this|i\b|we\b|you\b|the\b|not\b|don|"
    r"output|results?|response|logs?|warnings?|sign|such|data|tests? (?:ran|found)|point|reason|comment\b|biggie|sweat|hurry|no\b|lol|yes)\w[\w'-]*(?!.{0,120}\b(?:is|are|was|were|found|ran|appear\w*|has|have)\b))",
    re.IGNORECASE,
)
_STYLE = re.compile(
    r"^(?:please\s+|always\s+)?(?:(?:keep|leave)\s+(?:the\s|your\s|all\s)?(?!(?:only|both|just|going|on|up|it|this|that|them|working|trying|at|in|me)\b)(?:\S+\s+){1,5}?(?:short\w*|brief\w*|small\w*|minimal|simple\w*|clean\w*|tidy|separate\w*|consistent|stable|compatible|in sync|under|below|out of|sorted|free of|pure|private|flat|thin|generic|alphabetical|untouched|as)\b|"
    r"be\s+(?:(?:more|less)(?!\s+\w+\s+and\s+help)|brief|concise|terse|short|shorter|explicit|blunt|direct|succinct|polite|critical|honest)\b|"
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
    r"\buses?\s+(?!it\b|that\b|this\b).{1,80}?(?:,?\s+(?:and\s+)?not\s+|\s+(?:instead of|rather than|over)\s+|\s+instead\b)|\bnot\s+\S{1,40}\s+but\s+\S|^(?:it'?s|that'?s)?\s?\S{1,40}(?: \S{1,20})?, not \S{1,40}(?: \S{1,20})?\W*$|"
    r"^instead of\s.{2,60}\b(?:use|run|call|write|put)\b|\b(?:is|are) (?:an? |in )?\S{2,30},? not (?:an? |in )?\S{2,30}\W*(?:$|[,;])",
    re.IGNORECASE,
)
REASONED = re.compile(
    r"^(?:use|keep|leave|skip|ignore|call|treat|let'?s (?:use|keep|go with|stick|drop|avoid|not|leave|skip|stay))\b.{3,240}\b(?:because|since|otherwise|or else|so that|instead of|rather than|as (?:it|they|we|the)|it'?s important)\b|"
    r"^use\s+(?!it\b|that\b|this\b|(?:the|my|your)\s(?:\w+\s)?(?:one|option|version|first|second|third|other|same|token)\b).{1,45}?(?:[,;:]|\s[-–—]+)\s+(?:\S+\s){1,5}?(?:is|are|was|has|have|had|caused|breaks?|does(?:n'?t)?|do(?:n'?t)?|can(?:'?t|not)?|isn'?t|aren'?t|won'?t)\b|"
    r"^no need (?:to|for)\b.{3,100}?(?:[,;:]|\s[-–—]+|\sbecause|\ssince)\s+\w+\s\S",
    re.IGNORECASE,
)
_DEONTIC = re.compile(
    r"^(?:"
    + _NOUN
    + r"){1,8}(?:must(?:n'?t)?(?: not)?|may not|needs? to stay|(?:has|have) to (?:stay|remain|be|keep|pass|work)|shall(?: not)?|(?:is|are) (?:not )?(?:allowed|supposed) to)\s+\w",
    re.IGNORECASE,
)
_SHOULD = re.compile(
    r"^(?!(?:the|this|these|those|it|let)\b)(?:(?:all|every|each|any|our|new|public|private|commit|test|error|code)\s+)?(?:\w+\s+)?(?:\w{3,}s|everything|code|documentation|nothing|nobody)\s+should(?:n'?t| not| never| always| only)?\s+(?!be (?:removed|moved|renamed|added|changed|fixed|deleted|done)\b|have been\b)\w",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"^(?:" + _NOUN + r"){1,6}(?:is|are|was|were|stays?|remains?)\s+(?:not\s+|now\s+|still\s+|all\s+|already\s+)?"
    r"(?:an? )?(?:frozen|locked|read[- ]?only|out of bounds|obsolete|experimental|hand[- ]?written|alive|protected|deprecated|legacy|required|mandatory|forbidden|off[- ]limits|intentional(?:ly)?|by design|on purpose|deliberate(?:ly)?|canonical|the (?:single )?source of truth|"
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
_OBLIGES = re.compile(
    r"^you (?:may|can)\s\w+\s.{0,80}\bwithout asking\b|^only\s(?:use|run|edit|touch|change|commit|write|test|import|call|add)\s(?!it\b|this\b|that\b|the (?:first|second|last)\b)\S|\bi(?:'d| would) prefer (?:if|that) you\s\w+\s\S|"
    r"^(?:you|one)\s+(?:(?:must ?n[o']t|must never|may not|can'?t|cannot|can not|can only|may only|are(?:n'?t| not) (?:allowed|supposed) to|should never|shouldn'?t|should not)\s+(?!(?:see|find|be|have|imagine|expect|believe)\b)(?!\w+\s+(?:it|this|that|them)\b)\w+\s+\S|"
    r"(?:probably )?(?:have to|need to|must|should)\s+\w+\s.{2,120}\b(?:when(?:ever)?|before|unless|each|every)\b)|"
    r"^we\s+(?:can(?:'?t|not)|must(?: not|n'?t)|may not|(?:are not|aren'?t) allowed to)\s+(?!(?:see|find|tell|log|reproduce|continue|proceed|do|just|really|know|believe|be)\b)(?!\w+\s+(?:it|this|that|them)\b)\w+\s+\S|"
    r"^you (?:don'?t|do not) (?:have|need) to\s\w+\s.{20,}|^(?:\S+\s){1,4}preff?err?ed\b|^it(?:'s| is) (?:\w+ )?(?:important|critical|crucial|essential|vital|mandatory) (?:that|to)\s\w+\s\S|^only\s(?:\S+\s){1,4}?(?:has|have|can|may|gets?)\s\S",
    re.IGNORECASE,
)
_CONDITIONAL = re.compile(
    r"^(?:(?:when(?:ever)?|if|before|after)\s+(?:you\s+(?!(?:want|like|need|can|think|see|agree|are|have|finish|say|read|'re)\b)\w+|an?\s|any\s|\w+ing\s|there(?:'s| is) an?\s)|in (?:the |our |all |unit |integration |e2e )?(?:\w+ )?(?:tests|scripts|docs|comments|commits|migrations|components|handlers|responses|templates)\b)"
    r"[^,]{0,100}(?:,\s(?:then |please |always )?(?:use|run|write|add|mark|open|ask|put|prefer|check|make sure|keep|name|call|update|log|leave|avoid|don'?t|do not|commit|create|wrap|return|raise|follow|tell|set|talk)|\s(?:use|prefer|avoid|don'?t|do not))\s+(?!it\b|me\b|this\b)\S",
    re.IGNORECASE,
)
_WANTS = re.compile(
    r"\bi(?:'d| would) rather\s+(?!not (?:say|know)\b|see\b)\w+\s+\S|\bi (?:want|'d like|would like)\s+(?!you|it|this|that|to\b|the\b)(?:\w+\s){1,3}to\s\w+\s\S|\bi (?:like|love)\s(?:\w+\s)?[a-z]{4,}s\s\w+\s\S|\bi (?:want|would like|need)\s+(?:only|all|every|no|us to|to (?:keep|be \w+ing|stay|avoid|micromanage))\s+\S|\bi'd like\s+(?:only|all|every|no|us to|to keep)\s+\S|"
    r"\bi(?: want|'d like| would like) you to\s+\w+\s.{0,60}\b(?:before (?:you )?\w+|only|all|every|rather than|instead of)\b|\band i (?:really )?(?:hate|dislike|don'?t like) (?:it|that|this)\b|"
    r"\bi(?:'m| am)\s+(?:\w+ )?(?:obsessive|picky|strict|particular|pedantic|allergic|not (?:that )?familiar|unfamiliar|new to|a fan of|not a fan of|used to)\s|\bi said\s+(?:only|no|all|every)\s\S",
    re.IGNORECASE,
)
_PURPOSE = re.compile(
    r"^(?:the|our|my)\s(?:main |whole |overall |original |long[- ]term )?(?:goal|aim|purpose|motivation|rationale|priority|reason (?:why |that )?(?:we|it|the|they|i)|difference between|ground truth)\s(?:\S+\s){0,12}?(?:is|are|was)\s\S|"
    r"\b(?:i|we)(?:'m| am|'re| are)?\s+(?:(?:eventually |still |only )?(?:plan|planning|intend|intending|aiming) (?:to|on|for)|targeting)\s+(?!leave|go\b|continue|look|commit|check|do\b)\S+\s\S",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"^(?:"
    + _NOUN
    + r"){1,6}?(?:is|are)\s+(?:now |still |only |just |actually )?(?:the |an? |our |my )?(?:\S+ )?(?:maintainer|owner|reviewer|mirror|successor|replacement|wrapper|subset|alias|synonym|shadow|bottleneck|entry point|same (?:thing )?as)\b|"
    r"\bthe (?:real|actual|right|correct|only|current|hard|official) (?!(?:problem|issue|question|bug|error|reason|cause|thing|way|one)\b)\S+(?: \S+){0,2}? (?:is|are|lives?)\s\S|\bthe \S+ (?:that|which) (?:counts|matters) (?:is|are)\s\S|"
    r"^(?:"
    + _NOUN
    + r"){1,6}?(?:is|are)\s+(?:only|just)\s+(?:for|used|meant)\s|\b(?:people|folks|team|we|they|users|customers|backend|frontend)\s+call(?:s|ed)?\s(?:it|them)\s\W?\w|^an?\s(?:\S+\s){1,6}?means\s|"
    r"^(?:everything|nothing|all)\s(?:\S+\s){1,6}?(?:is|are)\s(?:\w+ ){0,2}(?:by|from|in|through|via)\s",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    r"^(?:"
    + _NOUN
    + r"){1,6}?(?:is|are|gets?)\s+(?:\w+ly |only |also |not |never )?(?:called|owned|read|written|managed|handled|(?:re-?)?exported|provided|wiped|reset|reviewed|fixed|deployed|pinned|signed|synced|cached|encrypted|enforced|consumed|billed|deleted|removed|replaced|renamed|disabled|maintained|translated|limited|capped)\s+"
    r"(?:by|from|every|via|through|next|once|automatically|nightly|at|to|after|before)\b|^(?:"
    + _NOUN
    + r"){1,6}?(?:stays?|remains?)\s(?:\S+\s){0,3}until\s|^(?:"
    + _NOUN
    + r"){1,6}?will be (?:removed|deleted|replaced|renamed|dropped|frozen|shut)\b",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(
    r"\b(?:machine|box(?:es)?|laptop|mac\w*|server|ci|runners?|host|cluster|sandbox|container|network|firewall|vpn|prod(?:uction)?|staging|customers?|clients?|vendors?|partners?|drivers?)\s(?:\S+\s){0,3}?(?:ha(?:s|ve) (?:no|only)|(?:do|does)(?:n'?t| not) (?:have|support|allow|accept|know)|can(?:'?t|not| not)|blocks?|needs?|requires?|runs?|expects?)\s\S|"
    r"\bthere(?:'s| is| are) no\s\S+(?:\s\S+)?\s(?:on|in|at|for)\s(?:this|the|our|my|these)\s|\b(?:is|are) (?:broken|not (?:installed|available)|unavailable|blocked|disabled|down|slow)\s(?:on|in|at|behind|every)\s(?:this|the|our|my|\w+day)\b|"
    r"\bi (?:don'?t|do not) have (?:docker|sudo|root|admin|\w+ (?:installed|access|rights|permissions?))\b|\b(?:would not|wouldn'?t|will not|won'?t) work (?:here|for us|in (?:my|our) case|on (?:this|our|my)|with|when)|\brepo(?:sitory)? (?:moved|was moved|lives|has moved)\s",
    re.IGNORECASE,
)
_LIMITS = re.compile(
    r"^we(?:'re| are)\s+(?:not|still|only|completely|already)\s(?:\w+\s){0,2}(?:trying|locked|bound|limited|going|testing|running|building|supporting)\s|^(?:we|i)\s+(?:sometimes|usually|often|generally|mostly|normally|typically)\s\w+\s\S|^(?:i'm|we're|i am|we are)\skeeping\s|"
    r"^we\s+(?:do not|don'?t)\s+(?:really )?(?:need|want|care|have|test)\s(?!(?:it|this|that|to (?:see|do|wait|worry))\b)\S+\s\S|^(?:my|our|the)\s(?:\w+\s)?(?:system|machine|laptop|box|mac\w*|server|env\w*|setup)\s(?:has|have|uses?|runs?|comes)\s\S",
    re.IGNORECASE,
)
EXPLAINS = re.compile(
    r"\b(?:bea?ca?u?a?se|becuase)(?! (?:you|i)(?:'ve|\b))|\b(?:since (?!last\b|yesterday\b|my\b|when\b)\w+ \w+|due to|(?:is|was) caused by|that'?s (?:where|why)|for (?:this|that) reason)\b|, so (?!let|can|could|i\b|please|what|how|now|go|maybe|do\b|it seems)\w",
    re.IGNORECASE,
)
"""A reason: kept where it names something that can be looked up."""
DECLARES = re.compile(
    r"^(?:(?i:the|our|my|all|some|only|most|both|its?)\s(?:[\w`'\"./@()&-]+\s){0,5}?|(?=\S*[\w)`][_./`A-Z\d])\S+\s|(?!(?:You|We|I|It|If|There|This|That|These|What|Only|They)\b)[A-Z][a-z]+\s(?=\S+\s\S+\s\S))"
    r"(?<!\bi )(?<!\bit )(?:is|are|isn'?t|aren'?t|has|have|does(?:n'?t| not)?|contains?|uses?|runs?|lives?|works?|means?|takes?|returns?|supports?|comes?|must|can(?:'?t|not| not))\s(?!getting\b|for you\b)\S",
)
"""A statement in the present about something that has a name."""
_REQUESTED = "|".join(
    str.split(
        "add adapt adjust append apply ask build bump call change check clean click close combine commit compare convert copy create debug delete deploy describe disable do document "
        "double drop edit enable expand explain explore export extend extract find finish fix fixed format generate get give go have implement improve include inline insert install "
        "instruct investigate keep let list load look maintain make mention merge migrate modify move name note open pass paste pick play prepare print proceed pull push put read rebase "
        "recall refactor regenerate remove rename replace reproduce rerun research reset resolve restart restore return revert review rewrite run save scan search see send set ship show "
        "simplify skip sort split start stop summari[sz]e switch tag take talk tell test think track translate try turn undo update upgrade use validate verify wait walk watch work wrap write"
    )
)
_VERBS = "|".join(
    str.split(
        "accept allow apply arrive ask assume belong block break build cache call come consume contain count crash depend deploy enforce expect expire follow forget generate get give go handle "
        "happen hold ignore keep know limit listen live lock make manage match mean own point prefer provide read refer reject release require reset return review rotate run send serve "
        "share sit skip start stay stop store support sync take talk time translate trigger truncate use validate want wipe work write"
    )
)
ASSERTS = re.compile(
    r"^(?:(?:you should know|the thing is|let me explain|wrong assumption|(?:but |and )?(?:keep in mind|note))(?: that|:|,)?\s+)?"
    r"(?!(?:"
    + _REQUESTED
    + r"|i|you|it|he|she|they|this|that|these|those|which|who|how|why|when|where|if|as|not|yes|no|ok|let'?s|looks?|sounds?|seems?|\w+ing|\w+ed|don'?t|please|the (?:first|second|third|last|next|previous|other|same|new|above)|one)\b(?! (?:\w+ )?(?:repo|project|service|team|machine|customer|app)\b))"
    r"(?:we|there|what you see in (?:\S+\s){1,4}|(?!(?:i|you)\b)\S+(?:\s(?!(?:i|you|we|your|who|to|that (?:all|the|our|it|we))\b)[^\s,;]+){0,6}?)\s"
    r"(?:(?:is|are|isn'?t|aren'?t|has|have|can|can'?t|cannot|may|must|should|doesn'?t|don'?t|do(?:es)? not|will|won'?t)(?: not| only| always| never)?|(?:only |always |never |usually |also )?(?:"
    + _VERBS
    + r")(?:e?s)?|needs?(?! (?:an?|to|some)\b))\s(?!you\b)\S",
    re.IGNORECASE,
)
"""An assertion in the present about something that is named: what a user explains of the system, the team or the rules."""
OF_THE_MOMENT = re.compile(
    r"\b(?:this|that|it)\W*$|\b(?:now|just|already|again|so far|here|above|below|line \d+|currently|ready|done|finished|wrong|weird|better|worse|nice|great|good|fine|perfect|awesome|confusing|unclear|interesting|"
    r"funny|odd|odd|blank|left|green|red|gone|missing|empty|too \w+|slow|duplicated?|you(?:r|'ve|'re)?|i(?:'m|'ll|'ve|'d)?|me|idea|point|goal|question|problem|issue|we(?:'ve| have| had)(?! (?:an?|the|no|two|three|several|to|only)\b)|please|pls|plz|do the same|let'?s|shou?ld?u?l?|we(?:'ll| (?:\w+ )?(?:are|were|should|could|need|have to|can|will|do|did|had|know|just)))\b|[⏺✅✓]|\[\w*\]|[:?…]$|\.\.\.",
    re.IGNORECASE,
)
REQUESTS = re.compile(r"^(?:" + _REQUESTED + r")\b", re.IGNORECASE)
ASKS_FOR = re.compile(r"^(?:" + _REQUESTED + r"|address|handle)(?:\s\w+)?:\s", re.IGNORECASE)
NOTICED = re.compile(r"^notice (?:how|that)\b", re.IGNORECASE)
NAMED_SUBJECT = re.compile(
    r"^(?:the|our|my|some|all|most|people|we|no|each|every|an?)\s|^[a-z]{4,}s\s(?:can|must|may|have|are|need|belong|run|go|live)\b",
    re.IGNORECASE,
)
NARRATES = re.compile(
    r"^(?:i (?:\w+ )?(?:didn'?t|worry|know|don'?t know|was|disliked|need|have|had|see)|if)\b",
    re.IGNORECASE,
)
_REMINDS = re.compile(
    r"^(?:i thought|didn'?t|haven'?t|hadn'?t|but) we (?:had )?(?:agreed?|decided?|said)\b", re.IGNORECASE
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
    r"\b(?:i|we)\s+(?:really |strongly |much |usually |generally |absolutely )?(?:prefer\s+(?!if\b|that you\b|you\b|to (?:see|hear)\b)\S|(?:dislike|hate|loathe|insist on|can'?t stand)\s+(?!it\b(?! when)|this\b|that\b|wasting|to say)\S|"
    r"(?:do not|don'?t|never)\s+(?:like|want)\s+(?!you to|it\b|this\b|that\b|to\b(?!\s+(?:commit|have|use|depend|ship|support|rely|introduce)\b)|the (?:same|idea)\b)\S|"
    r"want\s+(?:us |you )?to be\s+\w+ing\b)",
    re.IGNORECASE,
)
DECIDED = re.compile(
    r"\b(?:we|the team|i)(?:'ve| have| had|'re| are| all)?\s+(?:already |once )?(?:decided|agreed|chose|chosen|settled on|opted (?:for|against)|standardi[sz]ed on|went with|going with|moved (?:\w+ ){0,3}?(?:away from|off|to)|migrated|switched|dropped|committed to|ruled out|stick(?:ing)? (?:to|with))\b(?!\s+(?:it|that|this)\W*$)|"
    r"\bwe (?:decide|agree) (?:to|on)\b|\b(?:decision|decided)\s*:|\bit (?:was|is|has been) decided\b",
    re.IGNORECASE,
)
_CONVENTION = re.compile(
    r"^we (?:have )?(?:tried|considered|evaluated)\s.{2,80}\b(?:went back|switched back|gave up|dropped|decided|rejected|but)\b|^(?:for|in|on)\s(?:\S+\s){1,6}?we\s(?:always |only |never )?(?:use|write|keep|put|store|call|run|want)\s(?!this\b|it\b|that\b)\S|"
    r"^(?:here\s+|at work\s+)?we(?:'re| are)\s+(?:not\s+)?(?:practi[cs]ing|following|targeting|using|stuck (?:with|on)|limited to|still on|bound to)\s+(?!it\b|this\b|that\b)\S|"
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
_PLANNED = re.compile(
    r"\bwe(?:'re|'ve been| are| have been)\s(?:\w+ly\s|also\s|still\s|slowly\s)?(?:going to\s(?!(?:need to\s)?(?:look|try|check|see|continue|do|fix|start|go|test|run|talk|discuss)\b)\w+|mov|migrat|replac|rewrit|split|phas|retir|merg|switch|port)\w*\s\S|"
    r"\bwe(?:'ll| will)\s(?:\w+ly\s|also\s|later\s)?(?:need|have to)\s(?!(?:it|this|that|to (?:see|check|look|test|fix|go|wait)|see|check|look|test|fix|go|wait)\b)\S+\s\S|"
    r"^(?!(?:it|this|that|they|there|you|i)\b)(?:\S+\s){1,8}?(?:is|are) (?:also )?going to\s(?:be\s)?(?:mov|migrat|replac|remov|rewrit|split|retir|merg|switch|renam|drop|go away|land)\w*\b",
    re.IGNORECASE,
)
"""What the team is about to do, or has been doing."""
_BY_MYSELF = re.compile(r"^i(?:'ll| will| want to| prefer to)\s.{3,80}\b(?:myself|on my own|by hand)\b", re.IGNORECASE)
SETTLES = re.compile(
    r"^let'?s\s(?:ship|go|stay|stick|live|start)\s(?:with|on|w/)\s(?!(?:it|that|this|these|those|option|the (?:first|second|third|last|next|other|same))\b)(?=\S*(?:[_.\d/`]|(?-i:[a-z][A-Z])))\S+",
    re.IGNORECASE,
)
"""A settlement on something that has a name."""
_OF_ALL = re.compile(
    r"^(?!(?:all|both|none)\b)(?:anything|everything|whatever|whoever|anyone|everyone)\s(?:(?:that|which|who|not|else|said|in|from|with|under|outside|new|old)\s)(?:\S+\s){0,10}?(?:is|are|counts?|goes|go|belongs?|must|should|can|stays?|increments?|means)\s(?!(?:fine|ok|good|working|done|great)\b)\S|"
    r"^(?:anything|everything|all) else\s\w+\s\S",
    re.IGNORECASE,
)
_HAVE = re.compile(
    r"\bi (?:already )?have an?\s(?:\S+\s){0,3}(?:account|licen[cs]e|subscription|server|domain)\b|^(?:\S+\s){1,4}(?:is|are) (?:already )?(?:installed|set up|configured)\W*$",
    re.IGNORECASE,
)
INSTRUCTS = (
    FORBIDS,
    _STYLE,
    _CONTRASTS,
    REASONED,
    _DEONTIC,
    _SHOULD,
    _PREFERS,
    _REPEATED,
    _OBLIGES,
    _CONDITIONAL,
    _WANTS,
    _BY_MYSELF,
    _OF_ALL,
)
STATES = (
    DECIDED,
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
    _PURPOSE,
    _ROLE,
    _PASSIVE,
    _ENVIRONMENT,
    _LIMITS,
    _PLANNED,
    SETTLES,
    _HAVE,
)
HARD = (DECIDED, _STATE, _IS_RIGHT, _PREFERS, _CONTRASTS, REASONED, _PLACE, _WANTS, _OBLIGES, _ENVIRONMENT, _PURPOSE)
"""Statements also where the sentence mentions trouble, as their reason."""

TAKES_BACK = re.compile(
    r"^(?:\W*(?:ok|oh|hmm|no|wait|sorry|actually|ah)[\s,.!]+){0,3}(?:never ?mind|scratch that|forget (?:that|it|what i said|about|the)|ignore (?:that|what i said|my)|i was wrong|my (?:mistake|bad)|i changed my mind|on second thoughts?|"
    r"disregard|i take (?:that|it) back|we changed our minds?)|^actually\b.{0,160}\b(?:are|is) (?:fine|ok(?:ay)?|allowed|good)\b|\b(?:no longer (?:applies|true|needed)|i changed my mind|is fine after all|are fine after all)\b",
    re.IGNORECASE,
)
ONLY_TAKES_BACK = re.compile(
    r"\W*(?:(?:ok|oh|hmm|no|wait|sorry|actually|ah)[\s,.!]+){0,3}(?:never ?mind|(?:scratch|forget|ignore|disregard) (?:that|it|what i said|my last (?:message|sentence))|i was wrong|"
    r"my (?:mistake|bad)|i take (?:that|it) back|i changed my mind)\W*$",
    re.IGNORECASE,
)
PROPOSES = re.compile(r"^let'?s\b", re.IGNORECASE)
PROPOSES_LATER = re.compile(r"\b(?:let'?s|so far)\b", re.IGNORECASE)
NEGATION = re.compile(r"\b(?:no|not|never|don'?t|do not|dont|avoid|stop|without|no longer|n't)\b", re.IGNORECASE)


def is_question(text: str) -> bool:
    """Return whether a sentence asks; one that reminds of an agreement does not, whatever mark ends it."""
    return _QUESTION.search(text) is not None and not _REMINDS.match(text)
