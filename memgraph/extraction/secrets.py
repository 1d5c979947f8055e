"""Redaction of secrets, recognised by their issuers' documented formats and by the names they are assigned to.

Entropy is not used: hashes, ids and paths, which memories are about, look as random as keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from memgraph.text import lazy_re as re

T = TypeVar("T")
_NO_TEXT = frozenset({bool, int, float, type(None)})

_ISSUED = {
    "private key": (("-----BEGIN",), r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:(?:(?!-----).){0,20000})(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"),
    "AWS key": (("AKIA", "ASIA", "ABIA", "ACCA"), r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    "GitHub token": (("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), r"\b(?:gh[pousr]_[A-Za-z0-9]{20,2000}|github_pat_[A-Za-z0-9_]{22,2000})"),
    "GitLab token": (("glpat-", "gldt-", "glrt-", "glptt-", "glft-", "glsoat-", "glcbt-", "glagent-"), r"\bgl(?:pat|dt|rt|ptt|ft|soat|cbt|agent)-[A-Za-z0-9_-]{16,128}"),
    "API key": (("sk-",), r"\bsk-(?=[A-Za-z0-9_-]{0,80}\d)[A-Za-z0-9_-]{20,255}"),
    "Stripe key": (("k_live_", "k_test_", "whsec_"), r"\b(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{10,255}"),
    "Slack token": (("xox", "xapp-"), r"\bxox[a-z]-[A-Za-z0-9-]{10,255}|\bxapp-\d-[A-Za-z0-9-]{10,255}"),
    "webhook address": (("hooks.slack.com", "/webhooks/"), r"\bhooks\.slack\.com/services/[A-Za-z0-9/_-]{20,100}|\bdiscord(?:app)?\.com/api/webhooks/[A-Za-z0-9/_-]{20,120}"),
    "Google key": (("AIza", "ya29.", "GOCSPX-"), r"\bAIza[A-Za-z0-9_-]{30,60}|\bya29\.[A-Za-z0-9_-]{20,255}|\bGOCSPX-[A-Za-z0-9_-]{20,60}"),
    "registry token": (("npm_", "pypi-", "hf_"), r"\bnpm_[A-Za-z0-9]{30,64}|\bpypi-[A-Za-z0-9_-]{50,255}|\bhf_[A-Za-z0-9]{30,64}"),
    "service token": (
        ("SG.", "dapi", "_v1_", "shpat_", "shpca_", "shppa_", "shpss_", "lin_api_", "hvs.", "-us", ":AA"),
        (r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}|\bdapi[a-f0-9]{32}\b|\bdo[opr]_v1_[a-f0-9]{64}\b"
        r"|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b|\blin_api_[A-Za-z0-9]{30,64}|\bhvs\.[A-Za-z0-9_-]{20,255}|\b[0-9a-f]{32}-us\d{1,2}\b"
        r"|\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    ),
    "JSON web token": (("eyJ",), r"\beyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]{0,1000})?"),
}  # fmt: skip
"""By kind of secret: a substring that every such secret contains, searched first, and its pattern."""
_NAMED = r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key|signing[_-]?key|credentials?)"
_FURTHER = (
    r"(?:[_-](?!(?:[\w-]{0,20}[_-])?(?:path|file|name|id|dir|url|type|count|limit|used|length|size)s?\b)[\w-]{0,30})?"
)
"""Allowed rests of a name: `secret_key_base` holds a secret, `token_type` and `key_path` do not."""
_NOT_A_VALUE = r"(?!\$|<|\{|\[|%|\*|xxx|x{6}|None\b|null\b|true\b|false\b|undefined\b|your[_-]|example|changeme|process\.|os\.|env\.|self\.|this\.|[a-z_]\w{0,40}(?:\.[a-z_]\w{0,40}){1,5}(?![\w.]))"
_NAME_ENDS = re.compile(r"[\w-]{0,30}(?:[\\\"']{0,2}\s{0,3}(?:[=:]|is\s)|\s(?:for|of|to)\s)")
_OPTION_ENDS = re.compile(r"(?:word|wd|phrase)?[\s=]")
_SPEAKING = {
    **dict.fromkeys(("key", "token", "secret", "pass", "pwd", "credential"), _NAME_ENDS),
    "bearer": re.compile(r"\s"),
    "authorization": re.compile(r""),
    **dict.fromkeys(("curl", "sshpass", "mysql", "mariadb"), re.compile(r"\w{0,8}\s")),
}
"""Words contained in every assignment below, and their continuation: few texts about keys assign one."""
_ASSIGNED = {
    # password="…", 'api_key': '…': quoted values
    "quoted": rf"(?i:{_NAMED}{_FURTHER}(?:\\?[\"'])?\s{{0,3}}(?:=|:=?|=>)\s{{0,3}}\\?[\"'](?P<value>{_NOT_A_VALUE}[^\s\"'\\]{{6,255}})\\?[\"'])",
    # DB_PASSWORD=…: the style of environments and shells
    "environment": r"\b[A-Z0-9_]{0,40}(?:PASS(?:WORD|WD|PHRASE)|_PWD|_PASS|SECRET|TOKEN|(?:API|ACCESS|SECRET|PRIVATE|SIGNING|ENCRYPTION|ACCOUNT|AUTH|SERVICE|MASTER|DEPLOY|CLIENT)_KEY)"
    r"(?:_(?!(?:[A-Z0-9_]{0,20}_)?(?:PATH|FILE|NAME|ID|DIR|URL|TYPE|COUNT|LIMIT|USED|LENGTH|SIZE)=)[A-Z0-9_]{0,30})?"
    rf"=[\"']?(?P<value>{_NOT_A_VALUE}[^\s\"'&|;,)]{{6,255}})",
    # password: …, password for staging is …, --token …: bare words need letters and digits, since prose uses such phrases too
    "bare": rf"(?i:{_NAMED}{_FURTHER}(?:\s+(?:for|of|to)\s+[\w./@-]{{1,40}})?(?:\s{{0,3}}(?:=|:=?)\s{{0,3}}|\s+is\s+|(?<=-token)\s+|(?<=-password)\s+)[\"']?"
    rf"(?P<value>{_NOT_A_VALUE}(?=[^\s]{{0,60}}\d)(?=[^\s]{{0,60}}[A-Za-z])[\w.~!@#$%^&*+/=-]{{8,255}})(?![\w(]))",
    "header": r"(?i:\b(?:authorization\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token)|bearer)\s+(?P<value>(?=[^\s]{0,80}\d)[A-Za-z0-9._~+/=-]{16,4000}))",
    # curl -u ann:…, sshpass -p …, mysql -p…
    "argument": r"\b(?:curl\b[^\n]{0,120}?\s(?:-u|--user)\s?[\w.@-]{1,60}:|sshpass\s+-p\s?|(?:mysql\w{0,8}|mariadb)\b[^\n]{0,120}?\s-p|\s--(?:password|token|secret|api-key)=)(?P<value>(?!\*\*\*|\[)[^\s\"']{4,255})",
}  # fmt: skip
_ADDRESS = r"(?i:\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,100}:(?P<value>(?!\*\*\*@|\[secret\]@|\[redacted: )[^\s/@\"']{3,255})@)"


class _Form(NamedTuple):
    kind: str
    signs: tuple[str, ...]
    pattern: re.Pattern[str]


_FORMS = [_Form(kind, signs, re.compile(f"(?P<value>{pattern})")) for kind, (signs, pattern) in _ISSUED.items()]
_FORMS.append(_Form("password", ("://",), re.compile(_ADDRESS)))
_WORDS = [_Form("secret", (), re.compile(pattern)) for pattern in _ASSIGNED.values()]


class Redacted(NamedTuple, Generic[T]):
    """A redacted value, and the number of secrets removed."""

    value: T
    number: int


def redact(text: str) -> Redacted[str]:
    """Return `text` with every secret replaced by its kind, in at most as many characters.

    Linear in the text's length; idempotent.
    """
    text, kinds = _redact(text)
    return Redacted(text, len(kinds))


def redact_any(value: T) -> Redacted[T]:
    """Return a text, a model, or a list or dictionary of them without secrets: the same object if there were none."""
    texts: list[str] = []
    _collect(value, texts)
    joined = "\n".join(texts)
    if not any(form.pattern.search(joined) for form in _suspected(joined)):
        return Redacted(value, 0)
    return _redact_any(value)


def kinds_of_secrets(value: Any) -> list[str]:
    """Return the kinds of the secrets in a text, a model, or a list or dictionary of them, each once."""
    texts: list[str] = []
    _collect(value, texts)
    return list(dict.fromkeys(_redact("\n".join(texts))[1]))


def _redact(text: str) -> tuple[str, list[str]]:
    """Return a text without its secrets, and the kind of each secret."""
    kinds: list[str] = []
    for form in _suspected(text):
        text, found = form.pattern.subn(lambda match, kind=form.kind: _without(match, kind), text)  # type: ignore[misc]
        kinds += [form.kind] * found
    return text, kinds


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


def _collect(value: Any, texts: list[str]) -> None:
    kind = type(value)
    if kind is str:
        texts.append(value)
    elif kind in _NO_TEXT:
        return
    elif isinstance(value, BaseModel):
        _collect(vars(value), texts)
    elif isinstance(value, Mapping):
        for item in value.values():
            if item is not None:
                _collect(item, texts)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, texts)


def _suspected(text: str) -> list[_Form]:
    """Return the patterns of secrets that a text may contain, judged by their substrings."""
    found = [form for form in _FORMS if any(sign in text for sign in form.signs)]
    if _assigns(text.lower()):
        found += _WORDS
    return found


def _assigns(lowered: str) -> bool:
    for word, goes_on in _SPEAKING.items():
        at = lowered.find(word)
        while at >= 0:
            after = at + len(word)
            if goes_on.match(lowered, after) or (lowered[at - 1 : at] == "-" and _OPTION_ENDS.match(lowered, after)):
                return True
            at = lowered.find(word, after)
    return False


def _without(match: re.Match[str], kind: str) -> str:
    begin, (start, end), whole = match.start(), match.span("value"), match.group()
    return f"{whole[: start - begin]}{_stand_in(kind, end - start)}{whole[end - begin :]}"


def _stand_in(kind: str, length: int) -> str:
    """Return the placeholder of a secret, never longer than it: its field may already have its maximum length."""
    return next((text for text in (f"[redacted: {kind}]", "[secret]") if len(text) <= length), "***")
