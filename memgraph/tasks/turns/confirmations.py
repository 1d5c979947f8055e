"""Confirmations and denials: short messages that agree, or say no, and say nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from memgraph.model.results.tasks.turns import Language, TurnSettings

WORDS: Mapping[Language, str] = {
    "de": "ja, jawohl, jep, genau, richtig, korrekt, stimmt, das stimmt, das ist richtig, einverstanden, bestätigt, ganz genau, ja bitte",
    "en": (
        "yes, yep, yeah, yup, correct, agreed, i agree, right, exactly, confirmed, i confirm, that's right, thats right, that is right, "
        "that's correct, thats correct, that is correct, you are right, you're right, absolutely, definitely, of course"
    ),
    "es": "sí, si, correcto, exacto, exactamente, de acuerdo, confirmado, así es, es correcto, claro, por supuesto",
    "fr": "oui, exact, exactement, correct, c'est exact, c'est ça, c'est correct, c'est juste, d'accord, je suis d'accord, confirmé, tout à fait",
    "it": "sì, si, esatto, esattamente, corretto, giusto, è giusto, è corretto, d'accordo, sono d'accordo, confermato, confermo",
    "ja": "はい, そうです, その通りです, そのとおりです, 正しいです, 同意します",
    "nl": "ja, jawel, klopt, dat klopt, correct, juist, dat is juist, precies, akkoord, mee eens, bevestigd",
    "pl": "tak, zgadza się, zgoda, dokładnie, racja, potwierdzam, poprawnie",
    "pt": "sim, correto, exato, exatamente, certo, está certo, de acordo, concordo, confirmado, isso mesmo",
    "ru": "да, верно, правильно, точно, согласен, согласна, подтверждаю, так и есть",
    "sv": "ja, japp, stämmer, det stämmer, rätt, korrekt, precis, exakt, håller med, bekräftat",
    "zh": "是, 是的, 对, 对的, 正确, 没错, 同意, 确认",
}
"""What confirms, by language. A word that may merely acknowledge, such as “ok”, is none of them."""
DENIALS: Mapping[Language, str] = {
    "de": "nein, nee, nö",
    "en": "no, nope, nah, no way",
    "es": "no",
    "fr": "non",
    "it": "no",
    "ja": "いいえ",
    "nl": "nee",
    "pl": "nie",
    "pt": "não",
    "ru": "нет",
    "sv": "nej",
    "zh": "不, 不是, 不对",
}
"""What denies, by language."""
_COURTESY = frozenset(
    "please, thanks, thank you, danke, bitte, gracias, por favor, merci, grazie, bedankt, obrigado, obrigada, tack".split(
        ", "
    )
)
MAX_CHARS = 60
_MAX_WORDS = 8
_ASKS = "?？؟"
_NO_WORD = re.compile(r"[^\w']+")


def is_confirmation(message: str, settings: TurnSettings) -> bool:
    """Return whether a message as a whole confirms: “Yes, that's right!” does; “yes, but …”, “right?” and a longer text do not."""
    return _is_one_of(message, _phrases(tuple(settings.confirmation_languages), tuple(settings.confirmations)))


def is_denial(message: str, settings: TurnSettings) -> bool:
    """Return whether a message as a whole says no: “No, thanks.” does; “no, use the other one” does not."""
    return _is_one_of(message, _denials(tuple(settings.confirmation_languages)))


def _is_one_of(message: str, phrases: frozenset[str]) -> bool:
    """Return whether a message consists of some of these phrases and of courtesy."""
    text = message.strip()
    if not text or len(text) > MAX_CHARS or any(sign in text for sign in _ASKS):
        return False
    words = tuple(_normal(text).split())
    if not 0 < len(words) <= _MAX_WORDS:
        return False
    reached = {0: {False}}  # the number of words read: whether a phrase was among them
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            phrase = " ".join(words[start:end])
            for has_phrase in reached.get(start, ()):
                if phrase in phrases:
                    reached.setdefault(end, set()).add(True)
                elif phrase in _COURTESY:
                    reached.setdefault(end, set()).add(has_phrase)
    return True in reached.get(len(words), ())


@lru_cache(maxsize=16)
def _phrases(languages: tuple[Language, ...], further: tuple[str, ...]) -> frozenset[str]:
    listed: Iterable[str] = (phrase for language in languages for phrase in WORDS[language].split(", "))
    return frozenset(filter(None, map(_normal, (*listed, *further))))


@lru_cache(maxsize=16)
def _denials(languages: tuple[Language, ...]) -> frozenset[str]:
    return frozenset(_normal(phrase) for language in languages for phrase in DENIALS[language].split(", "))


def _normal(text: str) -> str:
    """Return a text in lower case, with plain apostrophes, and words alone."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join(_NO_WORD.sub(" ", plain).split())
