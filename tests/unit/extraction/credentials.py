"""Made-up credentials of more than 150 kinds, each in three texts as they occur: an assignment, prose, and a command, address or log.

They are put together when they are needed, from characters that a fixed seed draws: no scanner of a repository takes this file for a leak.
"""

from __future__ import annotations

import random
import re
import string

_CHARACTERS = {
    "": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
    "c": string.ascii_uppercase + "234567",
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
}
_UUID = "<8h>-<4h>-<4h>-<4h>-<12h>"
ASSIGNED = 'settings.value = "{}"'
TOLD = "Ann sent {} for the deployment, so use that from now on."
LOGGED = 'level=info msg="GET https://api.example.com/v1/items?auth={} took 3 ms" status=200'

# what the issuers publish; the texts around them say nothing of a secret
_ISSUED = {
    "AWS access key id": "AKIA<16c>",
    "AWS temporary key id": "ASIA<16c>",
    "Amazon Bedrock key": "ABSK<109b>AA==",
    "GitHub personal token": "ghp_<36>",
    "GitHub OAuth token": "gho_<36>",
    "GitHub app token": "ghs_<36>",
    "GitHub fine-grained token": "github_pat_<22>_<59>",
    "GitLab personal token": "glpat-<20w>",
    "GitLab routable token": "glpat-<27w>.01.<9l>",
    "GitLab runner token": "glrt-<20w>",
    "GitLab job token": "glcbt-<2h>_<20w>",
    "GitLab OAuth secret": "gloas-<64h>",
    "GitLab incoming mail token": "glimt-<25l>",
    "OpenAI key": "sk-<20>T3BlbkFJ<20>",
    "OpenAI project key": "sk-proj-<74w>T3BlbkFJ<74w>",
    "Anthropic key": "sk-ant-api03-<93w>AA",
    "OpenRouter key": "sk-or-v1-<64h>",
    "Groq key": "gsk_<52>",
    "xAI key": "xai-<80>",
    "Perplexity key": "pplx-<48>",
    "Replicate token": "r8_<37>",
    "Tavily key": "tvly-<32>",
    "Pinecone key": "pcsk_<6>_<63>",
    "LangSmith key": "lsv2_pt_<32h>_<10h>",
    "Hugging Face token": "hf_<34>",
    "Stripe secret key": "sk_live_<24>",
    "Stripe restricted key": "rk_live_<99>",
    "Stripe webhook secret": "whsec_<32>",
    "Slack bot token": "xoxb-<12d>-<12d>-<24>",
    "Slack user token": "xoxp-<12d>-<12d>-<12d>-<32h>",
    "Slack app token": "xapp-1-A<10c>-<12d>-<64h>",
    "Slack configuration token": "xoxe.xoxp-1-<163c>",
    "Slack webhook": "https://hooks.slack.com/services/T<8c>/B<8c>/<24>",
    "Discord webhook": "https://discord.com/api/webhooks/<18d>/<68w>",
    "Discord bot token": "MT<22>.<6w>.<38w>",
    "Teams webhook": f"https://acme.webhook.office.com/webhookb2/{_UUID}@{_UUID}/IncomingWebhook/<32h>/{_UUID}",
    "Telegram bot token": "<10d>:AA<33w>",
    "Google API key": "AIza<35w>",
    "Google access token": "ya29.<160w>",
    "Google client secret": "GOCSPX-<28w>",
    "Google refresh token": "1//0<2d><97w>",
    "Firebase server key": "AAAA<7w>:APA91b<134w>",
    "Azure client secret": "<3>8Q~<34w>",
    "Azure shared access signature": "https://acme.blob.core.windows.net/data?sv=2024-11-04&sp=r&sig=<40>%2B<2>%3D",
    "Azure DevOps token": "<76>AZDO<4>",
    "npm token": "npm_<36>",
    "PyPI token": "pypi-AgEIcHlwaS5vcmc<70w>",
    "RubyGems key": "rubygems_<48h>",
    "crates.io token": "cio<32>",
    "NuGet key": "oy2<43l>",
    "Docker Hub token": "dckr_pat_<27w>",
    "Artifactory key": "AKCp<69>",
    "SendGrid key": "SG.<22w>.<43w>",
    "Mailchimp key": "<32h>-us12",
    "Mailgun key": "key-<32h>",
    "Brevo key": "xkeysib-<64h>-<16>",
    "Twilio API key": "SK<32h>",
    "Shopify token": "shpat_<32h>",
    "Square access token": "EAAAE<59w>",
    "Square OAuth secret": "sq0csp-<43w>",
    "Plaid access token": f"access-production-{_UUID}",
    "Braintree token": "access_token$production$<16l>$<32h>",
    "Razorpay key": "rzp_live_<14>",
    "Flutterwave key": "FLWSECK-<32h>-X",
    "Linear key": "lin_api_<40>",
    "Notion token": "ntn_<11d><35>",
    "Notion former token": "secret_<43>",
    "Airtable token": "pat<14>.<64h>",
    "Atlassian token": "ATATT3<180w>=<8c>",
    "Bitbucket app password": "ATBB<32>",
    "Figma token": "figd_<40w>",
    "HubSpot token": f"pat-na1-{_UUID}",
    "Postman key": "PMAK-<24h>-<34h>",
    "Typeform token": "tfp_<44w>_<14>",
    "Contentful token": "CFPAT-<43w>",
    "Mapbox secret token": "sk.eyJ<80>.<22w>",
    "Dropbox token": "sl.<130w>",
    "Grafana service account token": "glsa_<32>_<8h>",
    "Grafana cloud token": "glc_eyJ<100b>==",
    "Sentry organization token": "sntrys_eyJ<120b>_<43b>",
    "Sentry user token": "sntryu_<64h>",
    "New Relic user key": "NRAK-<27c>",
    "New Relic insert key": "NRII-<32w>",
    "New Relic license key": "<36h>NRAL",
    "Dynatrace token": "dt0c01.<24c>.<64c>",
    "Doppler token": "dp.pt.<43>",
    "Doppler service token": "dp.st.production.<43>",
    "Vault service token": "hvs.<95w>",
    "Vault batch token": "hvb.<140w>",
    "Terraform token": "<14>.atlasv1.<67w>",
    "Pulumi token": "pul-<40h>",
    "Databricks token": "dapi<32h>",
    "DigitalOcean token": "dop_v1_<64h>",
    "Heroku key": "HRKU-AA<58w>",
    "Fly token": "FlyV1 fm2_<160b>==",
    "Fly former token": "fo1_<43w>",
    "Supabase token": "sbp_<40h>",
    "Supabase secret key": "sb_secret_<22w>_<8w>",
    "PlanetScale token": "pscale_tkn_<43w>",
    "PlanetScale password": "pscale_pw_<43w>",
    "Netlify token": "nfp_<36>",
    "Cloudflare token": "cfut_<40><8h>",
    "Tailscale key": "tskey-auth-<11>CNTRL-<32>",
    "1Password service account": "ops_eyJ<260b>",
    "1Password secret key": "A3-<6c>-<11c>-<5c>-<5c>-<5c>",
    "age secret key": "AGE-SECRET-KEY-1<58c>",
    "SonarQube token": "squ_<40h>",
    "CircleCI token": "CCIPAT_<22>_<40h>",
    "Sourcegraph token": "sgp_<16h>_<40h>",
    "Octopus key": "API-<26c>",
    "OpenShift token": "sha256~<43w>",
    "Alibaba key": "LTAI<20>",
    "JSON web token": "eyJ<34>.eyJ<80w>.<43w>",
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----\n<64b>\n<64b>\n-----END RSA PRIVATE KEY-----",
}
# secrets without a form of their own: the texts name them
_NAMED = {
    "AWS secret access key": ("<40b>", "AWS_SECRET_ACCESS_KEY={}", "The AWS secret access key is {}, keep it.", "aws configure set aws_secret_access_key {}"),
    "Twilio auth token": ("<32h>", 'twilio_auth_token: "{}"', "The auth token of Twilio is {}.", "TWILIO_AUTH_TOKEN={} python send.py"),
    "Datadog key": ("<32h>", "DD_API_KEY={}", "The Datadog API key is {} since Monday.", 'curl -H "DD-API-KEY: {}" https://api.datadoghq.com'),
    "Heroku former key": (_UUID, "HEROKU_API_KEY={}", "The Heroku API key is {}.", "HEROKU_API_KEY={} heroku ps"),
    "Azure storage key": ("<86b>==", "AccountKey={};EndpointSuffix=core.windows.net", "The storage account key is {}", "az storage blob list --account-key {}"),
    "Okta token": ("00<40w>", 'okta.client.token = "{}"', "For Okta the API token is {}.", "Authorization: SSWS {}"),
    "Postmark token": (_UUID, "POSTMARK_SERVER_TOKEN={}", "The Postmark server token is {}.", "X-Postmark-Server-Token: {}"),
    "Algolia key": ("<32h>", 'ALGOLIA_ADMIN_KEY="{}"', "The Algolia admin key is {}.", "X-Algolia-API-Key: {}"),
    "Laravel key": ("base64:<43b>=", "APP_KEY={}", "The app key is {}.", "APP_KEY={} php artisan serve"),
    "Rails master key": ("<32h>", "RAILS_MASTER_KEY={}", "The master key is {}, in config/master.key.", "docker run -e RAILS_MASTER_KEY={} shop"),
    "WireGuard key": ("<43b>=", "PrivateKey = {}", "The private key is {}", "PrivateKey={}"),
    "one-time password secret": ("JBSW<28c>", "TOTP_SECRET={}", "The TOTP secret is {}.", "otpauth://totp/acme:ann?secret={}&issuer=acme"),
    "Docker login": ("<24b>==", '"registry.example.com": {{"auth": "{}"}}', 'In ~/.docker/config.json stands {{"auths": {{"r.example.com": {{"auth": "{}"}}}}}}', "docker login -u ann -p {} r.example.com"),
    "netrc password": ("<16>", "machine api.example.com login ann password {}", "The file has the line machine api.example.com login ann password {} at the end", "machine api.example.com\n  login ann\n  password {}"),
    "pgpass password": ("<16>", "db.local:5432:shop:ann:{}", "The .pgpass has db.local:5432:shop:ann:{} in it", "PGPASSWORD={} psql -h db.local shop"),
    "npmrc token": (_UUID, "//registry.example.com/:_authToken={}", "The .npmrc has _authToken={} in it", "npm config set //r.example.com/:_authToken={}"),
    "connection string": ("Cor+rect!horse", "Server=db;User Id=sa;Password={};", "It connects with Server=db;User Id=sa;Password={};Encrypt=true", "sqlcmd 'Server=db;Uid=sa;Pwd={};'"),
    "password in an address": ("<14>", "DATABASE=postgres://ann:{}@db.local/shop", "It connects to redis://:{}@cache.local:6379/0 at the start", "git clone https://ann:{}@git.example.com/shop.git"),
    "password in prose": ("Blue-Horse-42", "password: {}", "Log in as ann with password {} on the staging server.", "I signed in with the password {} and it worked"),
    "password of a command": ("S3cret<6>", "sshpass -p {} ssh ann@shop", "Run mysql -u root -p{} shop to look.", "redis-cli -h cache -a {} ping"),
    "credentials of curl": ("S3cret<6>", "curl -u ann:{} https://shop.local", "I used curl --user ann:{} https://shop.local there", "curl -sS -X POST -u ann:{} https://shop.local"),
    "key file password": ("S3cret<6>", "ssl.keystore.password={}", "The passphrase is {}, for the key.", "openssl rsa -passin pass:{} -in key.pem"),
    "bearer token": ("<40w>9", "Authorization: Bearer {}", "It sends the header Authorization: Bearer {} each time", 'curl -H "Authorization: Bearer {}" https://shop.local'),
    "basic authorization": ("YW5u<20>9==", 'headers = {{"Authorization": "Basic {}"}}', "It sends Authorization: Basic {} each time", 'curl -H "Authorization: Basic {}" https://shop.local'),
    "API key in a header": ("<32w>7", "X-Api-Key: {}", "Send the header X-Api-Key: {} with it", 'curl -H "Ocp-Apim-Subscription-Key: {}" https://api.example.com'),
    "seed phrase": ("ripple candy useless marble velvet often turtle harvest gossip pluck orchard zebra", "seed phrase: {}", "My recovery phrase is {}", 'mnemonic = "{}"'),
    "German": ("Sommer2024!", "Passwort: {}", "Das Passwort für den Server ist {}.", "Das Kennwort lautet {}"),
    "French": ("Bonjour1789!", "mot de passe : {}", "Le mot de passe est {}.", "mot de passe = {}"),
    "Spanish": ("Clave-2024-x", "contraseña: {}", "La contraseña es {}.", "La contraseña del servidor es {}"),
    "Italian": ("Estate2024!", "password: {}", "La password è {}.", "parola d'ordine: {}"),
    "Portuguese": ("Verao2024!", "senha: {}", "A senha é {}.", "A senha do servidor é {}"),
    "Russian": ("Leto2024!x", "пароль: {}", "Пароль от сервера: {}", "пароль — {}"),
    "Polish": ("Lato2024!x", "hasło: {}", "Hasło to {}.", "Hasło do serwera to {}"),
    "Dutch": ("Zomer2024!", "wachtwoord: {}", "Het wachtwoord is {}.", "Het wachtwoord voor de server is {}"),
    "Chinese": ("Xiatian2024", "密码：{}", "密码是{}", "数据库密码为 {}"),
    "Japanese": ("Natsu2024x", "パスワード：{}", "パスワードは {} です", "パスワード = {}"),
    "Turkish": ("Yaz2024!xy", "şifre: {}", "Şifre: {}", "parola = {}"),
    "Swedish": ("Sommar2024!", "lösenord: {}", "Lösenordet är {}.", "Lösenord: {}"),
}  # fmt: skip


def drawn(form: str, seed: str) -> str:
    """Return a form with its places filled: ``<20h>`` are 20 hexadecimal digits."""
    chance = random.Random(seed)
    return re.sub(
        r"<(\d+)(\w?)>",
        lambda one: "".join(chance.choices(_CHARACTERS[one[2]], k=int(one[1]))),
        form,
    )


def credentials() -> dict[str, list[tuple[str, str]]]:
    """Return the kinds; of each the secret, and the text that holds it, three times."""
    kinds = {name: (form, ASSIGNED, TOLD, LOGGED) for name, form in _ISSUED.items()} | _NAMED
    return {
        name: [(secret, text.format(secret)) for text in texts for secret in (drawn(form, f"{name} {text}"),)]
        for name, (form, *texts) in kinds.items()
    }


def is_left(secret: str, redacted: str) -> bool:
    """Return whether a third of a secret or more, without what everybody knows of an address, is still to be read."""
    part = re.split(r"/|sig=", secret)[-1] if secret.startswith("https:") else secret
    length = max(6, len(part) // 3)
    return any(part[start : start + length] in redacted for start in range(max(1, len(part) - length + 1)))
