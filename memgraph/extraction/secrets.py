"""Secrets in text: found by the formats that their issuers document and by what they are assigned to, and taken out.

No entropy is measured: hashes, ids and paths are what memories are about, and look as random as a key does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

T = TypeVar("T")

_SUSPICIOUS = (
    "key", "secret", "token", "pass", "pwd", "credential", "bearer", "authorization", "://", "-----begin", "akia", "asia", "abia",
    "acca", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "glcbt-",
    "glagent-", "sk-", "k_live_", "k_test_", "whsec_", "xox", "xapp-", "hooks.slack", "/webhooks/", "aiza", "ya29.", "gocspx-", "npm_",
    "pypi-", "hf_", "sg.", "dapi", "_v1_", "shpat_", "shpca_", "shppa_", "shpss_", "lin_api_", "hvs.", "-us", ":aa", "eyj",
)  # fmt: skip
"""Every secret below has one of these in it, in lower case: a text without any is not searched further."""

_ISSUED = {
    "private key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^-]{0,20000}(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
    "AWS key": r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    "GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{22,255})",
    "GitLab token": r"\bgl(?:pat|dt|rt|ptt|ft|soat|cbt|agent)-[A-Za-z0-9_-]{16,128}",
    "API key": r"\bsk-[A-Za-z0-9_-]{20,255}",
    "Stripe key": r"\b(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,255}",
    "Slack token": r"\bxox[a-z]-[A-Za-z0-9-]{10,255}|\bxapp-\d-[A-Za-z0-9-]{10,255}",
    "webhook address": r"\bhooks\.slack\.com/services/[A-Za-z0-9/_-]{20,100}|\bdiscord(?:app)?\.com/api/webhooks/[A-Za-z0-9/_-]{20,120}",
    "Google key": r"\bAIza[A-Za-z0-9_-]{30,60}|\bya29\.[A-Za-z0-9_-]{20,255}|\bGOCSPX-[A-Za-z0-9_-]{20,60}",
    "registry token": r"\bnpm_[A-Za-z0-9]{30,64}|\bpypi-[A-Za-z0-9_-]{50,255}|\bhf_[A-Za-z0-9]{30,64}",
    "service token": r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}|\bdapi[a-f0-9]{32}\b|\bdo[opr]_v1_[a-f0-9]{64}\b"
    r"|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b|\blin_api_[A-Za-z0-9]{30,64}|\bhvs\.[A-Za-z0-9_-]{20,255}|\b[0-9a-f]{32}-us\d{1,2}\b"
    r"|\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]{0,1000})?",
}
_NAMED = r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key|signing[_-]?key|credentials?)"
_NOT_A_VALUE = r"(?!\$|<|\{|\[|%|\*|xxx|x{6}|None\b|null\b|true\b|false\b|undefined\b|your[_-]|example|changeme|process\.|os\.|env\.|self\.|this\.)"
_ASSIGNED = (
    # password="…", 'api_key': '…': what is quoted is a value
    ("quoted", rf"{_NAMED}[\w-]{{0,30}}[\"']?\s{{0,3}}(?:=|:=?|=>)\s{{0,3}}[\"'](?P<quoted>{_NOT_A_VALUE}[^\s\"']{{6,255}})[\"']"),
    # DB_PASSWORD=…: so do environments and shells say it
    ("environment", rf"\b[A-Z0-9_]{{0,40}}(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|_KEY)[A-Z0-9_]{{0,30}}=[\"']?(?P<environment>{_NOT_A_VALUE}[^\s\"'&|;,)]{{6,255}})"),
    # password: …, --token …: of a bare word only what has letters and digits, for prose uses these words too
    ("bare", rf"{_NAMED}(?:\s{{0,3}}(?:=|:=?)\s{{0,3}}|\s+is\s+|(?<=-token)\s+|(?<=-password)\s+)(?P<bare>{_NOT_A_VALUE}(?=[^\s]{{0,60}}\d)(?=[^\s]{{0,60}}[A-Za-z])[\w.~!@#$%^&*+/=-]{{8,255}})(?![\w(])"),
    ("header", r"\b(?:authorization\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)|bearer)\s+(?P<header>(?=[^\s]{0,80}\d)[A-Za-z0-9._~+/=-]{16,4000})"),
    ("address", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,100}:(?P<address>(?!\*\*\*@|\[secret\]@|\[redacted: )[^\s/@\"']{3,255})@"),
)  # fmt: skip
_CASELESS = "|".join(pattern for _, pattern in _ASSIGNED if not pattern.startswith(r"\b[A-Z0-9_]"))
_EXACT = "|".join(
    [*(f"(?P<issued_{at}>{pattern})" for at, pattern in enumerate(_ISSUED.values())), _ASSIGNED[1][1]],
)
_SECRETS = re.compile(f"{_EXACT}|(?i:{_CASELESS})")
_KIND = {f"issued_{at}": kind for at, kind in enumerate(_ISSUED)} | {
    "quoted": "secret", "environment": "secret", "bare": "secret", "header": "authorization", "address": "password",
}  # fmt: skip


class Redacted(NamedTuple, Generic[T]):
    """A value without its secrets, and how many were taken out."""

    value: T
    number: int


def redact(text: str) -> Redacted[str]:
    """Return `text` with every secret replaced by what kind it was, in no more characters than it had.

    Linear in the text's length; doing it again changes nothing.
    """
    if not _is_suspicious(text):
        return Redacted(text, 0)
    count = 0

    def without(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        name = match.lastgroup or ""
        begin, (start, end), whole = match.start(), match.span(name), match.group()
        return f"{whole[: start - begin]}{_stand_in(_KIND[name], end - start)}{whole[end - begin :]}"

    return Redacted(_SECRETS.sub(without, text), count)


def redact_any(value: T) -> Redacted[T]:
    """Return a text, a model, or a list or dictionary of them without secrets: the very same if there were none."""
    if not _is_suspicious("\n".join(_texts(value))):
        return Redacted(value, 0)
    return _redact_any(value)


def _redact_any(value: Any) -> Redacted[Any]:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, BaseModel):
        found = _redact_any(vars(value))
        changed = {name: item for name, item in found.value.items() if item is not getattr(value, name)}
        return Redacted(value.model_copy(update=changed) if found.number else value, found.number)
    if isinstance(value, Mapping):
        pairs = {key: _redact_any(item) for key, item in value.items()}
        return Redacted({key: item.value for key, item in pairs.items()}, sum(item.number for item in pairs.values()))
    if isinstance(value, list | tuple):
        items = [_redact_any(item) for item in value]
        return Redacted(type(value)(item.value for item in items), sum(item.number for item in items))
    return Redacted(value, 0)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from _texts(vars(value))
    elif isinstance(value, Mapping):
        for item in value.values():
            if item is not None:
                yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _is_suspicious(text: str) -> bool:
    lowered = text.lower()
    return any(sign in lowered for sign in _SUSPICIOUS)


def _stand_in(kind: str, length: int) -> str:
    """Return what stands for a secret: never longer than it was, for what holds it may be as long as it can be."""
    return next((text for text in (f"[redacted: {kind}]", "[secret]") if len(text) <= length), "***")
