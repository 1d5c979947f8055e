"""Redaction of secrets, recognised by their issuers' documented formats and by the names they are assigned to.

Entropy is not used: hashes, ids and paths, which memories are about, look as random as keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel

from memgraph.model.ids import lower
from memgraph.text import lazy_re as re

T = TypeVar("T")
_NO_TEXT = frozenset({bool, int, float, type(None)})


class Format(NamedTuple):
    """A documented format of secrets; the patterns and the page "security" are made from the table of them.

    `forms` are examples, separated by commas: ``<20>`` stands for 20 letters and digits, ``<20h>`` for hexadecimal digits, ``<20d>`` for
    digits, ``<20c>`` for capitals and digits, ``<20w>`` for letters, digits, ``_`` and ``-``, and ``<20b>`` for base64. More of them at the
    end belong to the secret, too. Every such secret begins with one of `signs`, which are searched first, or contains what follows ``…``; the
    default is what precedes the first ``<`` of each form. A `pattern` replaces what is derived from the forms. `is_word` says that a secret is
    within one word of 16 characters or more; other secrets contain a sign.
    """

    kind: str
    forms: str
    source: str
    signs: str = ""
    pattern: str = ""
    is_word: bool = True


FORMATS = (
    Format("AWS key", "AKIA<16c>, ASIA<16c>, ABIA<16c>, ACCA<16c>", "docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html", "", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    Format("AWS key", "ABSK<100b>", "docs.aws.amazon.com/bedrock (API keys)"),
    Format("GitHub token", "ghp_<20>, gho_<20>, ghu_<20>, ghs_<20>, ghr_<20>, github_pat_<22w>", "docs.github.com/authentication (token formats)"),
    Format("GitLab token", "glpat-<16w>, gldt-<16w>, glrt-<16w>, glptt-<16w>, glft-<16w>, glsoat-<16w>, glcbt-<16w>, glagent-<16w>, gloas-<16w>, glimt-<16w>, glffct-<16w>", "docs.gitlab.com/security/tokens (token prefixes)"),
    Format("API key", "sk-<20w>", "platform.openai.com, docs.anthropic.com, openrouter.ai, langfuse.com", "", r"\bsk-(?=[A-Za-z0-9_-]{0,80}\d)[A-Za-z0-9_-]{20,255}"),
    Format("API key", "gsk_<40>, xai-<60>, pplx-<40>, r8_<30>, tvly-<28w>, pcsk_<40w>, lsv2_pt_<32h>_<10h>, lsv2_sk_<32h>_<10h>", "console.groq.com, docs.x.ai, docs.perplexity.ai, replicate.com, docs.tavily.com, docs.pinecone.io, docs.smith.langchain.com"),
    Format("Stripe key", "sk_live_<10>, sk_test_<10>, rk_live_<10>, rk_test_<10>, whsec_<10b>", "docs.stripe.com/keys"),
    Format("Slack token", "xoxb-<12d>, xoxp-<12d>, xapp-1-<12c>, xoxe.xoxp-1-<12c>", "api.slack.com/authentication/token-types", "xox xapp-", r"\b(?:xoxe\.)?xox[a-z]-[A-Za-z0-9-]{10,255}|\bxapp-\d-[A-Za-z0-9-]{10,255}"),
    Format("webhook address", "hooks.slack.com/services/<9>/<9>/<24>, discord.com/api/webhooks/<18d>/<68w>, acme.webhook.office.com/webhookb2/<36w>@<36w>/IncomingWebhook/<32h>/<36w>", "api.slack.com, discord.com/developers, learn.microsoft.com/microsoftteams", "…hooks.slack.com …/webhooks/ …/webhookb2/", r"\bhooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,100}|\bdiscord(?:app)?\.com/api/webhooks/[A-Za-z0-9/_-]{20,120}|\bwebhook\.office\.com/webhookb2/[A-Za-z0-9/@_-]{20,300}"),
    Format("Discord token", "MT<22w>.<6w>.<27w>", "discord.com/developers/docs/reference (authentication)", "MT Mj Mz ND NT Nj Nz OD OT", r"\b(?:M[Tjz]|N[DTjz]|O[DT])[A-Za-z0-9_-]{21,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}"),
    Format("Telegram token", "<8d>:AA<33w>", "core.telegram.org/bots/features (authorization token)", "…:AA", r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b"),
    Format("Google key", "AIza<30w>, ya29.<20w>, GOCSPX-<20w>, 1//0<40w>", "cloud.google.com/docs/authentication, developers.google.com/identity/protocols/oauth2"),
    Format("Firebase key", "AAAA<7w>:APA91b<100w>", "firebase.google.com/docs/cloud-messaging (server keys)", "…:APA91b"),
    Format("Azure secret", "<3w>8Q~<31w>", "learn.microsoft.com/purview (Microsoft Entra client secret)", "…Q~", r"(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{31,34}(?![\w~-])"),
    Format("Azure secret", "<76>AZDO<4>", "learn.microsoft.com/azure/devops (personal access tokens)", "…AZDO", r"\b[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b"),
    Format("signed address", "?sig=<40b>, &X-Amz-Signature=<64h>, &X-Goog-Signature=<64h>", "learn.microsoft.com/azure/storage, docs.aws.amazon.com/AmazonS3, cloud.google.com/storage (signed URLs)", "…sig= …Signature=", r"[?&;](?:sig|X-(?:Amz|Goog)-Signature)=(?P<value>(?=[^\s&]{0,40}\d)[A-Za-z0-9%+/_-]{20,2000}=?)"),
    Format("registry token", "npm_<30>, pypi-<50w>, rubygems_<48h>, cio<32>, oy2<43>, dckr_pat_<20w>, dckr_oat_<20w>, AKCp<69>", "docs.npmjs.com, pypi.org/help, guides.rubygems.org, crates.io, learn.microsoft.com/nuget, docs.docker.com, jfrog.com/help"),
    Format("Hugging Face token", "hf_<30>", "huggingface.co/docs/hub/security-tokens"),
    Format("mail service key", "SG.<22w>.<32w>, xkeysib-<64h>-<16>", "sendgrid.com/docs, developers.brevo.com"),
    Format("mail service key", "<32h>-us1", "mailchimp.com/developer (API keys)", "…-us", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    Format("mail service key", "key-<32h>", "documentation.mailgun.com", "", r"(?<![\w-])key-[0-9a-f]{32}\b"),
    Format("Twilio key", "SK<32h>", "twilio.com/docs/iam/api-keys"),
    Format("payment key", "EAAAE<50w>, EAAAl<50w>, sq0atp-<22w>, sq0csp-<40w>, rzp_live_<14>, FLWSECK-<32h>, access-production-<36w>, access-sandbox-<36w>, access_token$production$<16>$<32h>, shippo_live_<40h>, EZAK<50>", "developer.squareup.com, razorpay.com/docs, developer.flutterwave.com, plaid.com/docs, developer.paypal.com/braintree, docs.goshippo.com, docs.easypost.com"),
    Format("Shopify token", "shpat_<32h>, shpca_<32h>, shppa_<32h>, shpss_<32h>", "shopify.dev/docs/apps/build/authentication-authorization"),
    Format("Linear key", "lin_api_<30>, lin_oauth_<30>", "linear.app/developers"),
    Format("Notion token", "ntn_<40>, secret_<43>", "developers.notion.com/changelog (token prefix)"),
    Format("Airtable token", "pat<14>.<64h>", "airtable.com/developers/web/api/authentication", "", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b"),
    Format("Atlassian token", "ATATT3<60w>=<8c>, ATCTT3<60w>=<8c>, ATBB<32>", "support.atlassian.com (API tokens)", "", r"\bAT[AC]TT3[A-Za-z0-9_=-]{60,400}|\bATBB[A-Za-z0-9]{32}\b"),
    Format("service token", "figd_<30w>, PMAK-<24h>-<34h>, tfp_<40w>, CFPAT-<40w>, sl.<100w>, pat-na1-<36w>, pat-eu1-<36w>, EZTK<54>", "figma.com/developers, learning.postman.com, typeform.com/developers, contentful.com/developers, dropbox.com/developers, developers.hubspot.com, docs.easypost.com"),
    Format("service token", "sk.eyJ<60w>.<20w>", "docs.mapbox.com (secret tokens)", "", r"\bsk\.eyJ[A-Za-z0-9_-]{40,400}\.[A-Za-z0-9_-]{16,60}"),
    Format("Grafana token", "glsa_<32>_<8h>, glc_<32b>", "grafana.com/docs/grafana (service accounts), grafana.com/docs/grafana-cloud (access policies)"),
    Format("Sentry token", "sntrys_<60b>, sntryu_<64h>, sntrya_<64h>, sntryi_<64h>", "docs.sentry.io/security-legal-pii/security/token-formats"),
    Format("New Relic key", "NRAK-<27c>, NRII-<32w>, NRJS-<19h>", "docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys"),
    Format("New Relic key", "<36h>NRAL", "docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys", "…NRAL", r"\b[a-z0-9]{36}NRAL\b"),
    Format("Dynatrace token", "dt0c01.<24c>.<64c>, dt0s01.<8c>.<64c>", "docs.dynatrace.com (access tokens)"),
    Format("Doppler token", "dp.pt.<40>, dp.ct.<40>, dp.sa.<40>, dp.st.<40>, dp.st.prod.<40>, dp.scim.<40>", "docs.doppler.com/reference (tokens)", "", r"\bdp\.(?:pt|ct|sa|said|scim|audit|st)\.(?:[a-z0-9_-]{1,60}\.)?[A-Za-z0-9]{40,44}\b"),
    Format("HashiCorp token", "hvs.<20w>, hvb.<100w>", "developer.hashicorp.com/vault/docs/concepts/tokens"),
    Format("HashiCorp token", "<14>.atlasv1.<60w>", "developer.hashicorp.com/terraform/cloud-docs (API tokens)", "….atlasv1."),
    Format("cloud token", "dapi<32h>, pul-<40h>, dop_v1_<64h>, doo_v1_<64h>, dor_v1_<64h>, HRKU-<60w>, nfp_<36>, cfut_<40>, cfat_<40>, cfk_<40>, rnd_<32>, napi_<60>", "docs.databricks.com, pulumi.com/docs, docs.digitalocean.com, devcenter.heroku.com, docs.netlify.com, developers.cloudflare.com (token formats), render.com/docs, neon.com/docs"),
    Format("Fly token", "fm2_<100b>, fm1r_<100b>, fm1a_<100b>, fo1_<40w>", "fly.io/docs/security/tokens"),
    Format("Supabase key", "sbp_<40h>, sb_secret_<20w>", "supabase.com/docs/guides/api/api-keys"),
    Format("PlanetScale token", "pscale_tkn_<32w>, pscale_pw_<32w>, pscale_oauth_<32w>", "planetscale.com/docs (service tokens)"),
    Format("Tailscale key", "tskey-auth-<24w>, tskey-api-<24w>, tskey-client-<24w>", "tailscale.com/kb (key prefixes)"),
    Format("1Password key", "ops_eyJ<200b>, A3-<6c>-<26w>", "developer.1password.com/docs/service-accounts, support.1password.com/secret-key"),
    Format("age key", "AGE-SECRET-KEY-1<58c>", "github.com/FiloSottile/age (keys)"),
    Format("build service token", "squ_<40h>, sqp_<40h>, sqa_<40h>, CCIPAT_<50w>, CCIPRJ_<50w>, sgp_<40h>, sgp_<16h>_<40h>, API-<26c>, bkua_<40h>", "docs.sonarsource.com, circleci.com/docs, sourcegraph.com/docs, octopus.com/docs, buildkite.com/docs"),
    Format("OpenShift token", "sha256~<43w>", "docs.openshift.com (OAuth access tokens)"),
    Format("Alibaba key", "LTAI<16>", "alibabacloud.com/help (AccessKey pairs)"),
    Format("JSON web token", "eyJ<8w>.eyJ<8w>.<8w>", "RFC 7519", "", r"\beyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,4000}(?:\.[A-Za-z0-9_-]{0,1000})?"),
    Format("private key", "-----BEGIN PRIVATE KEY-----<64b>-----END PRIVATE KEY-----", "RFC 7468", "-----BEGIN", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:(?:(?!-----).){0,20000})(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?", is_word=False),
    Format("password", "https://ann:<16>@example.com", "RFC 3986", "://", r"(?i:\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,100}:(?P<value>(?!\*\*\*@|\[secret\]@|\[redacted: )[^\s/@\"']{3,255})@)", is_word=False),
    Format("password", "db.example.com:5432:shop:ann:<16>", "postgresql.org/docs (the password file)", ":5432:", r":5432:[\w*-]{1,63}:[\w.*-]{1,63}:(?P<value>(?!\*\*\*|\[)[^\s:\"']{3,255})", is_word=False),
    Format("password", '"auth": "<20b>"', "docs.docker.com/reference/cli/docker/login", '"auth" "auth\\" _auth=', r"(?:\"auth\\?\"\s{0,3}:\s{0,3}\\?\"|\b_auth\s?=\s?)(?P<value>[A-Za-z0-9+/]{12,4000}={0,2})", is_word=False),
    Format("password", "machine example.com login ann password <16>", "gnu.org/software/inetutils (the .netrc file)", "login", r"\b(?:machine\s+\S{1,255}|default)\s{1,9}login\s{1,9}\S{1,255}\s{1,9}password\s{1,9}(?P<value>(?!\*\*\*|\[)\S{3,255})", is_word=False),
    Format("seed phrase", "seed phrase: abandon ability able about above absent absorb abstract absurd abuse access accident", "github.com/bitcoin/bips (BIP 39)", "phrase mnemonic Mnemonic MNEMONIC words", r"(?i:\b(?:(?:seed|recovery|backup|secret)[\s_-](?:phrase|words)|mnemonic)\b[^\w\n]{0,4}(?:(?:phrase|words|is|are)\b[^\w\n]{0,4}){0,2})(?P<value>(?!(?:\w+ ){0,11}(?:the|and|for|with|are|not|from|your|has|was|but|all)\b)[a-z]{3,8}(?:[ \t]+[a-z]{3,8}){11,23})\b", is_word=False),
)  # fmt: skip
_SETS = {"": "A-Za-z0-9", "h": "A-Fa-f0-9", "d": "0-9", "c": "A-Z0-9", "w": "A-Za-z0-9_-", "b": "A-Za-z0-9+/=_-"}
_PART = re.compile(r"<(\d+)([hdcwb]?)>")


def _expression(form: str) -> str:
    *parts, end = _PART.split(form)
    exact = [
        f"{re.escape(text)}[{_SETS[letters]}]{{{size}}}" for text, size, letters in zip(*[iter(parts)] * 3, strict=True)
    ]
    return "".join(exact) + re.escape(end) if end else f"{''.join(exact)[:-1]},2000}}"


_SHORTEST_WORD = 16
_KEY = "api access private account signing encryption license app master subscription auth storage shared admin service root deploy server write".split()
_NAMED = rf"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|(?:{'|'.join(_KEY)})[\s_-]?key|credentials?)"
_IN_OTHER_LANGUAGES = "passwort kennwort passe contraseña contrasena senha parola пароль пароля hasło wachtwoord lösenord lösenordet adgangskode passord şifre heslo jelszó salasana 密码 密碼 口令 パスワード 비밀번호 암호".split()
_FURTHER = (
    r"(?:[_-](?!(?:[\w-]{0,20}[_-])?(?:path|file|name|id|dir|url|type|count|limit|used|length|size)s?\b)[\w-]{0,30})?"
)
"""Allowed rests of a name: `secret_key_base` holds a secret, `token_type` and `key_path` do not."""
_NOT_A_VALUE = r"(?!\$|<|\{|\[|%|\*|xxx|x{6}|None\b|null\b|true\b|false\b|undefined\b|your[_-]|example|changeme|process\.|os\.|env\.|self\.|this\.|[a-z_]\w{0,40}(?:\.[a-z_]\w{0,40}){1,5}(?![\w.]))"
_MIXED = rf"(?:`{{3}}\w{{0,12}}\s{{1,3}}|[\"'`])?(?P<value>{_NOT_A_VALUE}(?=[^\s]{{0,60}}\d)(?=[^\s]{{0,60}}[A-Za-z])(?:base64:)?[\w.~!@#$%^&*+/=-]{{8,255}})(?![\w(])"
"""A bare word with letters and digits: prose uses the same phrases."""
_OF = r"(?:\s+(?:for|of|to|on|at|de|del|do|da|du|für|voor|от|к)\s+(?:\w{2,3}\s+)?[\w./@-]{1,40})?"
_IS = r"(?:\*{0,2}\s{0,3}(?:=|:=?|[-=]>|：|—|是|为|為|は)\*{0,2}\s{0,3}|\s+(?:is|ist|lautet|est|es|è|é|är)(?::\s{0,3}|\s+)|(?<=word)\s+to\s+|(?:(?<=[_-]key)|(?<=[_-]token)|(?<=[_-]secret)|(?<=[_-]password))\s+)"


def _assignments(name: str, being: str = _IS) -> tuple[str, ...]:
    return (
        # password="…", 'api_key': '…': quoted values
        rf"(?i:{name}{_FURTHER}(?:\\?[\"'])?\s{{0,3}}(?:=|:=?|=>)\s{{0,3}}\\?[\"'](?P<value>{_NOT_A_VALUE}[^\s\"'\\]{{6,255}})\\?[\"'])",
        # password: …, password for staging is …, --token …; password …
        rf"(?i:{name}{_FURTHER}{_OF}{being}{_MIXED})",
        rf"(?i:\b(?:with|using|and|mit|und|avec|con)\s+(?:the\s+)?{name}(?<!\bpass)\s+(?:[-–]\s)?{_MIXED})",
        rf"(?i:{name}(?<!\bpass)\s+(?:[-–]\s)?(?=\S{{0,255}}[!@#$%^&*+=~/]){_MIXED})",
        # the password …: a word of one piece
        rf"(?i:\bpass(?:word|wd|phrase)\s+(?=[^\s`_-]{{8,255}}(?:[\s.,;:)]|\Z)){_MIXED})",
        # <password>…</password>
        rf"(?i:<{name}>(?P<value>{_NOT_A_VALUE}[^<\s]{{6,255}})</)",
    )


_NAME_ENDS = r"[\w-]{0,30}+[\\\"'*]{0,2}(?:\sis)?\s{0,3}[=:：>]|[^\n]{0,150}?\d"
_ASSIGNED: tuple[tuple[Sequence[str], str, Sequence[str]], ...] = (
    (
        ("key", "token", "secret", "pass", "pwd", "credential"),
        _NAME_ENDS,
        (
            # DB_PASSWORD=…: the style of environments and shells
            (rf"\b[A-Z0-9_]{{0,40}}(?:PASS(?:WORD|WD|PHRASE)|_PWD|_PASS|SECRET|TOKEN|(?:SECRET|CLIENT|{'|'.join(_KEY).upper()})_KEY)"
            r"(?:_(?!(?:[A-Z0-9_]{0,20}_)?(?:PATH|FILE|NAME|ID|DIR|URL|TYPE|COUNT|LIMIT|USED|LENGTH|SIZE)=)[A-Z0-9_]{0,30})?"
            rf"=[\"']?(?P<value>{_NOT_A_VALUE}[^\s\"'&|;,)]{{6,255}})"),
            *_assignments(_NAMED),
            # Server=db;Password=…, --password=…, -passin pass:…
            rf"(?i:;\s{{0,3}}(?:password|pwd)\s{{0,3}}=\s{{0,3}}|\s--(?:password|token|secret|api-key)=|\s-pass(?:in|out)?\s+pass:)(?P<value>{_NOT_A_VALUE}[^;\"'\s]{{4,255}})",
        ),
    ),
    (_IN_OTHER_LANGUAGES, _NAME_ENDS, _assignments(rf"(?:{'|'.join(_IN_OTHER_LANGUAGES)})(?:\sd'ordine)?", _IS.replace("|är)", "|är|to)"))),
    (
        ("bearer", "authorization"),
        r"[\\\"']{0,2}\s{0,3}[:=]?\s{0,3}[\\\"']{0,2}\w",
        (
            r"(?i:\b(?:authorization[\\\"']{0,2}\s{0,3}[:=]\s{0,3}[\\\"']{0,2}(?:bearer|basic|token|bot|ssws)|bearer)\s+(?P<value>(?=[^\s]{0,80}\d)[A-Za-z0-9._~+/=-]{16,4000}))",
        ),
    ),
    (
        ("curl", "sshpass", "mysql", "mariadb", "redis-cli", "docker login"),
        r"\w{0,8}\s",
        # curl -u ann:…, mysql -p…, docker login -p …
        (
            r"\b(?:sshpass\s+-p\s?|curl\b[^\n]{0,120}?\s(?:-u|--user)\s?[\w.@-]{1,60}:|(?:mysql\w{0,8}|mariadb)\b[^\n]{0,120}?\s-p|redis-cli\b[^\n]{0,120}?\s-a\s?|docker\slogin\b[^\n]{0,120}?\s-p\s?)(?P<value>(?!\*\*\*|\[)[^\s\"']{4,255})",
        ),
    ),
)  # fmt: skip
"""Words that every one of the patterns contains, in lower case; their continuation, since few texts about keys assign one; the patterns."""


class _Form(NamedTuple):
    kind: str
    signs: Sequence[str]
    pattern: re.Pattern[str]


def _form(one: Format) -> _Form:
    forms = one.forms.split(", ")
    expression = one.pattern or rf"\b(?:{'|'.join(map(_expression, forms))})"
    signs = one.signs.split() or [form.partition("<")[0] for form in forms]
    return _Form(one.kind, signs, re.compile(expression if "(?P<value>" in expression else f"(?P<value>{expression})"))


_FORMS = [_form(one) for one in FORMATS if not one.is_word]
_WORDS = [_form(one) for one in FORMATS if one.is_word]
_SIGNS = {sign for form in _WORDS for sign in form.signs}
_SIGNS_WITHIN = [sign[1:] for sign in _SIGNS if sign[0] == "…"]
_SIGN_AT_BEGIN = re.compile(rf"\b(?:{'|'.join(re.escape(sign) for sign in sorted(_SIGNS) if sign[0] != '…')})")
_LONG_WORD = re.compile(rf"(?<!\S)\S{{{_SHORTEST_WORD},}}")
_NAMES = [
    (
        words,
        re.compile(goes_on),
        [_Form("secret", (), re.compile(pattern)) for pattern in patterns],
    )
    for words, goes_on, patterns in _ASSIGNED
]
_BEFORE, _AFTER = 64, 200
"""Characters around a name within which a secret that it names begins."""
_SPACE = re.compile(r"\s")


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
    return _redact_any(value) if kinds_of_secrets(value) else Redacted(value, 0)


def kinds_of_secrets(value: Any) -> list[str]:
    """Return the kinds of the secrets in a text, a model, or a list or dictionary of them, each once."""
    texts: list[str] = []
    _collect(value, texts)
    return list(dict.fromkeys(_redact("\n".join(texts))[1]))


def _redact(text: str) -> tuple[str, list[str]]:
    """Return a text without its secrets, and the kind of each secret."""
    kinds: list[str] = []
    text = _without(text, _FORMS, kinds)
    words = " ".join([word for word in text.split() if len(word) >= _SHORTEST_WORD])
    if _is_suspect(words):
        text = _LONG_WORD.sub(
            lambda found: _without(found.group(), _WORDS, kinds) if _is_suspect(found.group()) else found.group(), text
        )
    for names, goes_on, forms in _NAMES:
        end, parts = 0, []
        for start, stop in _suspected(text, names, goes_on):
            parts += [text[end:start], _without(text[start:stop], forms, kinds)]
            end = stop
        if parts:
            text = "".join([*parts, text[end:]])
    return text, kinds


def _is_suspect(words: str) -> bool:
    return bool(_SIGN_AT_BEGIN.search(words)) or any(sign in words for sign in _SIGNS_WITHIN)


def _without(text: str, forms: Iterable[_Form], kinds: list[str]) -> str:
    """Return a text without the secrets of these forms; add their kinds to the list."""
    for form in forms:
        if not form.signs or any(sign.removeprefix("…") in text for sign in form.signs):
            text, found = form.pattern.subn(lambda match, kind=form.kind: _replaced(match, kind), text)  # type: ignore[misc]
            kinds += [form.kind] * found
    return text


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
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list | tuple):
        for item in value:
            _collect(item, texts)
    elif isinstance(value, BaseModel | Mapping):
        for item in (vars(value) if isinstance(value, BaseModel) else value).values():
            if type(item) not in _NO_TEXT:
                _collect(item, texts)


def _suspected(text: str, names: Sequence[str], goes_on: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return the parts of a text in which one of these names may be given a value."""
    lowered = lower(text)
    ends = sorted((end - len(name), end) for name in names if name in lowered for end in _ends(lowered, name))
    found: list[tuple[int, int]] = []
    for begin, end in ends:
        known = found[-1][1] if found else 0
        if end + _AFTER > known and goes_on.match(lowered, end):
            space = _SPACE.search(text, end + _AFTER)
            start, stop = max(0, begin - _BEFORE), space.start() if space else len(text)
            if start < known:
                start = found.pop()[0]
            found.append((start, stop))
    return found


def _ends(text: str, name: str) -> Iterator[int]:
    """Yield where each occurrence of a name ends."""
    at = text.find(name)
    while at >= 0:
        yield at + len(name)
        at = text.find(name, at + len(name))


def _replaced(match: re.Match[str], kind: str) -> str:
    begin, (start, end), whole = match.start(), match.span("value"), match.group()
    return f"{whole[: start - begin]}{_stand_in(kind, end - start)}{whole[end - begin :]}"


def _stand_in(kind: str, length: int) -> str:
    """Return the placeholder of a secret, never longer than it: its field may already have its maximum length."""
    return next((text for text in (f"[redacted: {kind}]", "[secret]") if len(text) <= length), "***")
