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
TELLING = frozenset(
    "say says said saying state states stated tell tells told report reports reported ask asks asked asking answer answered reply replied "
    "request requests requested want wants wanted wish wishes wished like likes liked expect expects expected observe "
    "observed notice noticed mention mentioned note noted describe described explain explained confirm confirmed agree agrees agreed approve "
    "approved accept accepted decide decides decided choose chose chosen propose proposed suggest suggested consider considered think thinks "
    "thought know known prefer prefers preferred plan planned "
    "after before first next last finally previous previously earlier later now currently once soon until already again today then "
    "plus besides otherwise whereas regardless together "
    "get gets got give gives gave given go goes went gone become becomes became take takes took taken put come comes came bring brings "
    "brought make makes made making hold holds held keep keeps kept let lets end ends ended part".split()
)
"""Words of telling, of order and time, and light verbs: they are free, as function words are."""
FREE_WORDS = FUNCTION_WORDS | TELLING
NEGATIONS = frozenset("not no never none nobody nothing neither without doubt doubts doubted".split())
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
        "buy bought,eat ate eaten,fight fought,fly flew flown,forget forgot forgotten,grow grew grown,hear heard,ride rode ridden,"
        "rise rose risen,sell sold,shake shook shaken,shoot shot,sleep slept,slide slid,spin spun,steal stole stolen,tear tore torn,"
        "wake woke woken,wear wore worn,win won,overwrite overwrote overwritten,rewrite rewrote rewritten,rebuild rebuilt,undo undid undone,"
        "index indices,vertex vertices,matrix matrices,criterion criteria,child children,person people,analysis analyses,before after".split(
            ","
        ),
    )
    for form in forms
}
"""The order of “before” and “after” is compared with that of the evidence."""
_DERIVED = tuple("ment abl iti anc enc ion ur at er or al".split())
"""Endings of stems that make another word class of a word: fail and failure, import and importer."""
_LEAST_ROOT = 4
_STEMMER = snowballstemmer.stemmer("english")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return what the forms and derivations of a word in lower case have in common: “failures” and “failed” are “fail”."""
    root = str(_STEMMER.stemWord(IRREGULAR.get(word, word)))
    for ending in _DERIVED:
        if root.endswith(ending) and len(root) - len(ending) >= _LEAST_ROOT:
            return root.removesuffix(ending)
    return root
