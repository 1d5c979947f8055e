"""Words of English that the verification of claims treats by themselves, and stems. Pure."""

from __future__ import annotations

from functools import lru_cache

import snowballstemmer

FUNCTION_WORDS = frozenset(
    "a an the this that these those it its itself he she they them their we us our you your i me my one who whom whose which what where "
    "is are was were be been being am do does did done has have had having will would shall should can could may might must need needs "
    "needed of to in on at by for from with into onto over under out up off as than about via per between during through within against "
    "and or nor but so if then else when while because since although though whether both also too just very still again there here how given "
    "instead rather longer why more most some such same other another each own way ways s ve re ll d m yes please "
    "therefore thus hence due thereby however even unable e.g i.e etc".split()
)
NEGATIONS = frozenset("not no never none nobody nothing neither without".split())
INTERJECTION = "no"
CLAIMS_A_CAUSE = frozenset("because therefore thus hence due".split())
CAUSAL = CLAIMS_A_CAUSE | frozenset(
    "since as so by cause causes caused causing reason why otherwise fix fixes fixed leads led results resulted means makes made".split()
)
NUMBERS = {
    word: str(number)
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
    if word != "one"
}
IRREGULAR = {
    form: verb
    for verb, *forms in map(
        str.split,
        "begin began begun,bind bound,break broke broken,bring brought,build built,catch caught,choose chose chosen,come came,deal dealt,"
        "draw drew drawn,drive drove driven,fall fell fallen,feel felt,find found,freeze froze frozen,get got gotten,give gave given,"
        "go went gone,hang hung,hide hid hidden,hold held,keep kept,know knew known,lead led,leave left,lose lost,make made,mean meant,"
        "meet met,pay paid,run ran,say said,see saw seen,seek sought,send sent,show shown,speak spoke spoken,spend spent,stand stood,"
        "stick stuck,take took taken,teach taught,tell told,think thought,throw threw thrown,understand understood,write wrote written,"
        "index indices,vertex vertices,matrix matrices,criterion criteria,child children,person people,analysis analyses,before after".split(
            ","
        ),
    )
    for form in forms
}
"""The order of “before” and “after” is compared with that of the evidence."""
DERIVED = frozenset("ur ion at ation ment er or al anc enc abl iti".split())
"""Endings of stems that make another word class of a word: fail and failure, import and importer."""
_STEMMER = snowballstemmer.stemmer("english")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return the stem of a word in lower case; irregular forms have that of their base."""
    return str(_STEMMER.stemWord(IRREGULAR.get(word, word)))
