"""Verification: what a source says holds in other words; a changed number, name, path or denial, and an invented cause do not.

Each case has a record, what is quoted of it, a true statement and a false one.
"""

from __future__ import annotations

import sys
import unicodedata
from itertools import pairwise
from typing import NamedTuple

import pytest

from memgraph.extraction.llm.claims import Claim, evidence_in, item_pattern, may_stand_for, unsupported


class Case(NamedTuple):
    """A record, what is quoted of it (all of it if empty), a true statement and a false one."""

    record: str
    quoted: str
    true: str
    false: str


def problems(record: str, quoted: str, content: str) -> list[str]:
    source = f"[1]\n{record}\n\n[2]\nagent: claude\nlesson: I swept the hall and oiled the wheel 7 times."
    given = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "content": content}
    return Claim.parse({**given, "evidence": [quoted or record]}).problems(source, metadata="2026-03-14 kiln-studio")


CASES = {
    "a user's abbreviation and slip": Case(
        "user_did: only one ver of the glaze app, perferably thru brew", "only one ver of the glaze app, perferably thru brew",
        "The user wants one version of the glaze app, preferably through Homebrew.",
        "The user wants one version of the glaze app, preferably through Chocolatey.",
    ),
    "capitals": Case(
        "user_did: you WILL NOT fire wet clay", "you WILL NOT fire wet clay",
        "The agent must not fire wet clay.", "The agent should fire wet clay.",
    ),
    "initials": Case(
        "user_did: write the kiln scripts in ps not bash", "",
        "The kiln scripts are to be written in PowerShell, not bash.",
        "The kiln scripts are to be written in bash, not PowerShell.",
    ),
    "two denials": Case(
        "user_did: never ship a bowl without signing it", "never ship a bowl without signing it",
        "Every bowl that ships must be signed.", "Bowls may be shipped without signing.",
    ),
    "a choice": Case(
        "user_did: 3\ncontext: Which clay?\n1. Stoneware\n3. Porcelain (no grog in it)", "3. Porcelain (no grog in it)",
        "The user chose Porcelain, because there is no grog in it.",
        "The user chose Porcelain, because it fires at a lower heat.",
    ),
    "a root cause": Case(
        "agent: claude\nlesson: ### Root Cause\nThe fan stops at 980 degrees since `kiln_limit` is read once, at boot.", "The fan stops at 980 degrees since `kiln_limit` is read once, at boot.",
        "The fan stops at 980 degrees because kiln_limit is only read at boot.",
        "The fan stops at 890 degrees because kiln_limit is only read at boot.",
    ),
    "a path": Case(
        "agent: claude\noutput: shop/kiln.py:40: too hot\nlesson: The limit was wrong.", "The limit was wrong.",
        "In shop/kiln.py:40 the limit was wrong.", "In shop/oven.py:40 the limit was wrong.",
    ),
    "a version": Case(
        "agent: claude\nlesson: The press needs firmware 2.4.1.", "", "Firmware 2.4.1 is needed by the press.", "Firmware 2.4 is needed by the press.",
    ),
    "a number that is not quoted": Case(
        "agent: claude\nlesson: Order 20 seeds. The 30 pots are full.", "Order 20 seeds.", "20 seeds are to be ordered.", "30 seeds are to be ordered.",
    ),
    "a number in words": Case(
        "agent: claude\nlesson: Two fans share a fuse.", "", "2 fans share one fuse.", "Three fans share one fuse.",
    ),
    "a name": Case(
        "agent: claude\nlesson: We dropped Redis, it made the queue slower.", "", "Dropping Redis: it made the queue slower.", "The Memcached queue was slower.",
    ),
    "a denial of the agent's": Case(
        "agent: claude\nlesson: WARP isn't an ad blocker. Many run both.", "WARP isn't an ad blocker.",
        "WARP is not an ad blocker.", "WARP is an ad blocker.",
    ),
    "a failure to do something": Case(
        "agent: claude\nlesson: The sensor fails to detect frost.", "", "The sensor does not detect frost.", "The sensor detects frost.",
    ),
    "what to stop": Case(
        "user_did: stop adding comments to every line", "", "Do not add comments to every line.", "Add comments to every line.",
    ),
    "a contrast": Case("user_did: use brushes, not sponges", "", "Use brushes rather than sponges.", "Use sponges."),
    "a label": Case("agent: claude\nlesson: Exports: not supported", "Exports: not supported", "Exports are not supported.", "Exports are supported."),
    "an open doubt": Case(
        "user_did: i am not sure that the fan starts", "", "The user is not sure that the fan starts.", "The fan starts.",
    ),
    "an exception": Case(
        "user_did: no cloud at all, except the domain stays at cloudflare", "no cloud at all, except the domain stays at cloudflare",
        "No cloud; only the domain stays at Cloudflare.", "No cloud; the domain goes to Namecheap.",
    ),
    "a cause of another sentence": Case(
        "agent: claude\nlesson: The bowls cracked, as the clay was wet. The window was open.", "The bowls cracked, as the clay was wet.",
        "The bowls cracked because the clay was wet.", "The bowls cracked because the window was open.",
    ),
    "who says it": Case(
        "agent: claude\nlesson: the old kiln should be sold", "", "The old kiln should be sold.", "The user wants the old kiln to be sold.",
    ),
    "quoted words": Case(
        'agent: claude\noutput: error "kiln lamp missing" at start', "", 'It starts with the error "kiln lamp missing".', 'It starts with the error "kiln lamp broken".',
    ),
    "an identifier of three words": Case(
        "agent: claude\nlesson: Our bucket is called acme-prod-logs-eu.", "", "The bucket is acme-prod-logs-eu.", "The bucket is acme-prod-logs-us.",
    ),
    "the project's name": Case(
        "agent: claude\nlesson: The press runs hot.", "", "In Kiln-Studio the press runs hot.", "In Quarry-Studio-Two the press runs hot.",
    ),
    "a constant that is called None": Case(
        "agent: claude\nlesson: Handle float, bool and None for the kiln data.", "", "None, bool and float kiln data are handled.", "No float kiln data are handled.",
    ),
    "what nobody said": Case(
        "agent: claude\nlesson: The press runs hot at noon.", "", "At noon the press gets hot.", "The bearings need weekly grease.",
    ),
    "a negative word for a denial": Case(
        "agent: claude\nlesson: Alpine images have no full ICU.", "", "Alpine images lack a full ICU.", "Alpine images have a full ICU.",
    ),
    "a name in another spelling": Case(
        "agent: claude\nlesson: All GL-iNet telemetry is gone.", "", "The telemetry of GL.iNet is gone.", "The telemetry of TP.Link is gone.",
    ),
    "a name with a digit": Case(
        "agent: claude\nlesson: The 1Password CLI works. You have two vaults.", "You have two vaults.", "There are two vaults in 1Password.", "There are two vaults in 2Password.",
    ),
    "first not, then so": Case(
        "agent: claude\noutput: bun not found\nlesson: Bun was installed.", "", "Bun was not installed at first, and was then installed.", "Bun was installed from Cargo.",
    ),
    "money": Case(
        "agent: claude\nlesson: The `$3,184.35` is literally the USDC amount-out.", "", "$3,184.35 is the USDC amount-out.", "$3,148.35 is the USDC amount-out.",
    ),
    "a currency": Case("user_did: we pay €1,250 a month for the kiln", "", "The kiln costs €1,250 a month.", "The kiln costs $1,250 a month."),
    "a number with a unit": Case("user_did: the log keeps a window of 90 days", "", "The log keeps a 90-day window.", "The log keeps a 30-day window."),
    "two words of one": Case("user_did: you are using vscode in windows", "", "The user works in VS Code on Windows.", "The user works in VS Mode on Windows."),
    "a short sentence with a new word": Case("agent: claude\noutput: bash: jq: command not found", "", "jq is not installed.", "yq is not installed."),
    "in French, not the readme": Case(
        "user_did: I want the messages to be in french (not the project like readme, logs, etc in english)", "",
        "The messages are in French; the project (readme, logs, etc.) stays in English.", "The messages are in French, and so is the readme.",
    ),
    "not in one, but in the other": Case(
        "user_did: debug logging in development is fine, but not in production", "",
        "Production uses no debug logging; development may.", "Production uses debug logging.",
    ),
    "not this, only that": Case(
        "user_did: external files should not be used in production, why not for dev", "",
        "External files should not be used in production, only in development.", "External files should be used in production.",
    ),
    "a condition without a denial": Case(
        "agent: claude\noutput: API key disabled, tenant disabled\nlesson: The node now requires a key (returns `tenant disabled`).", "",
        "The node requires a key: without one it returns tenant disabled.", "The node does not require a key.",
    ),
    "a condition twice denied": Case(
        "user_did: the registry isn't reachable without VPN", "",
        "Without VPN the registry cannot be reached.", "The registry is reachable without VPN.",
    ),
    "a need": Case("user_did: no merge without two reviews", "", "A merge needs two reviews.", "A merge needs three reviews."),
    "what takes no second place": Case("user_did: use yarn, not npm", "", "npm is not used.", "yarn is not used."),
    "what it does instead": Case(
        "agent: claude\nlesson: When a host is missing the script just prints a warning and does not exit.", "",
        "The script does not exit when a host is missing.", "The script exits when a host is missing.",
    ),
    "what must stay out": Case("user_did: never commit secrets to the repository", "", "Secrets must stay out of the repository.", "Secrets are committed."),
    "what was skipped": Case("agent: claude\nlesson: cp skips hidden files", "", "Hidden files are not copied.", "Hidden files are copied to ~/kiln."),
    "whether or not": Case(
        "user_did: take the average to tell if it rains or not", "", "The average tells whether it rains.", "The average does not tell whether it rains.",
    ),
    "Chinese punctuation": Case(
        "user_did: 我們不生成 PR,改成 Evidence Panel,並列出 URL。", "",
        "不生成 PR。改成 Evidence Panel:列出 URL。", "不生成 PR。改成 Summary Panel:列出 URL。",
    ),
    "Chinese, told in English": Case(
        "agent: claude\nlesson: Weight 是我估的,不是 fit 出來的。沒有 ground truth。", "",
        "The weight was not fitted, and there is no ground truth.", "The weight of Louvain was not fitted.",
    ),
    "Japanese": Case("user_did: 本番環境では Redis を使わないことにした。", "", "本番では Redis を使わない。", "本番では Memcached を使わない。"),
    "German, told in English": Case(
        "user_did: Für die Tests benutzen wir kein Docker.", "", "No Docker is used for the tests.", "No Podman is used for the tests.",
    ),
    "a denial beside a font": Case(
        "user_did: Do not use the sans-serif font for headings.", "", "The sans-serif font is not used for headings.", "Use the sans-serif font for headings.",
    ),
    "a denial beside German": Case(
        "user_did: Do not delete the backups. Die Sicherungen sind nicht in Frankfurt.", "",
        "The backups are not to be deleted.", "Delete the backups.",
    ),
    "a denial in German beside English": Case(
        "user_did: Für die Tests benutzen wir kein Docker. The readme is long.", "", "No Docker is used for the tests.", "The readme is not long.",
    ),
    "a short denial in German": Case("user_did: Keine Docker in Tests verwenden.", "", "Docker is not used in tests.", "No Podman is used in tests."),
    "a denial beside a name in Chinese": Case(
        "user_did: Do not delete the backups of 王伟.", "", "The backups of 王伟 must not be deleted.", "Delete the backups of 王伟.",
    ),
    "a denial beside a name in Russian": Case(
        "agent: claude\nlesson: The backups of Анна Иванова are kept.", "", "The backups of Анна Иванова were kept.", "The backups of Анна Иванова are not kept.",
    ),
    "a second denial": Case(
        "agent: claude\nlesson: We do not store user tokens in plain text anywhere.", "",
        "Tokens are not stored in plain text.", "The tokens are stored in plain text, not hashed.",
    ),
    "only": Case(
        "agent: claude\nlesson: We do not store user tokens in plain text anywhere.", "",
        "No tokens are stored in plain text.", "Only the tokens are stored in plain text.",
    ),
    "a second denial, of a part": Case(
        "agent: claude\nlesson: The importer must not write temporary files to the repository.", "",
        "The importer must not write temporary files.", "The importer must write temporary files, not logs.",
    ),
    "two words, of which one is new": Case("agent: claude\nlesson: The deploy finished.", "", "The deploy is finished.", "The deploy failed."),
    "two words, of which the new one denies": Case(
        "user_did: don't list the passing tests", "", "Passing ones are hidden.", "Passing ones are green.",
    ),
    "two words, beside another language": Case(
        "agent: claude\nlesson: Backups are kept. Die Nachrichten sind nicht auf Deutsch.", "", "Backups are kept.", "Backups deleted.",
    ),
    "two words, one of them in Japanese": Case(
        "agent: claude\nlesson: 本番環境では cache は使われていない。", "", "The cache is not used in production.", "The queue is not used in production.",
    ),
    "two words, of a denial": Case("agent: claude\nlesson: The deploy failed.", "", "The deploy did not finish.", "The deploy did finish."),
    "a currency after the number": Case("user_did: the kiln costs $500", "", "The kiln costs 500$.", "The kiln costs 500€."),
    "another currency": Case("user_did: the kiln costs 500 €", "", "The kiln costs €500.", "The kiln costs ₹500."),
    "a cause in Chinese": Case(
        "agent: claude\nlesson: 登录失败，因为缓存过期。", "", "登录 failed because 缓存 expired.", "登录 failed because the 磁盘 expired.",
    ),
    "without, after the main clause": Case(
        "agent: claude\nlesson: The release was deployed after running the tests.", "",
        "After running the tests, the release was deployed.", "The release was deployed, without running the tests.",
    ),
    "without, in the source": Case(
        "agent: claude\nlesson: The release was deployed, without running the tests.", "",
        "The tests were not run.", "The tests were running.",
    ),
    "other scripts": Case("agent: claude\nlesson: 数据库被锁 by kiln_7", "", "kiln_7: 数据库被锁", "kiln_8: 数据库被锁"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_the_source_says_holds_and_what_it_does_not_say_is_refused(case: str) -> None:
    record, quoted, true, false = CASES[case]
    assert problems(record, quoted, true) == []
    assert problems(record, quoted, false)


@pytest.mark.parametrize(
    ("record", "statement"),
    [
        ("user_did: use ps, not bash", "Use bash on Monday instead of PowerShell."),
        ("lesson: The valve refuses wet clay.", "The valve accepts wet clay."),
        ("lesson: Redis replaced Postgres.", "Postgres replaced Redis."),
    ],
)
def test_words_are_compared_not_meanings(record: str, statement: str) -> None:
    said = problems(record, "", statement)
    assert not any("deny" in one or "denies" in one for one in said)


def test_a_passage_may_leave_out_and_may_correct_a_slip_but_must_be_there() -> None:
    source = "[1]\nuser_did: pls dont mock the db in integartion tests, we got **burned** last quarter\n\n[2]\nThe kiln is hot."
    for quoted, is_there in [
        ("don't mock the db in integration tests", True),
        ("dont mock the db … burned last quarter", True),
        ("PLS DONT MOCK the db", True),
        ("dont mock the api in integration tests", False),
        ("mock the d", False),
        ("dont mock the db … burned last year", False),
        ("", False),
    ]:
        assert (evidence_in(source, [quoted])[1] == []) is is_there, quoted


def test_a_refusal_says_what_to_do() -> None:
    record = "agent: claude\nlesson: The kiln is hot. The lid was shut at noon."
    for statement, told in [
        ("The kiln is hot at 8080.", "“8080” is not in the quoted evidence: quote the passage that has it"),
        ("The user says the kiln is hot.", "“user” is not in the quoted evidence: quote the turn of the user, or say who said it"),
        ("The bearings squeak.", "“bearings”, “squeak” are not in the source: say it in its words"),
        ("The kiln is not hot.", "the quoted evidence does not deny “hot”"),
        ("The lid was shut because rain fell.", "states no cause “rain fell”: quote the passage that does, or leave it out"),
    ]:  # fmt: skip
        assert told in "; ".join(problems(record, "", statement)), statement


def test_a_name_that_several_records_have_may_be_given_without_a_quotation() -> None:
    records = ["Start Deckard.", "Deckard is up.", "The lamp was red.", "Stop Deckard now, and Rachael."]
    evidence, _ = evidence_in("\n\n".join(records), ["The lamp was red."])
    assert unsupported("The lamp of Deckard was red.", evidence) == []
    assert unsupported("The lamp of Rachael was red.", evidence)


@pytest.mark.parametrize(
    "said",
    [
        "Nothing else. The list is a ceiling, not a floor.",
        "The page shows a hint when no user is there; it disables the start until signed in.",
    ],
)
def test_what_is_copied_word_for_word_denies_nothing_else(said: str) -> None:
    evidence, missing = evidence_in(f"Kiln notes. {said} Oil the wheel.", [said])
    assert (unsupported(said, evidence), missing) == ([], [])


def test_the_name_of_the_project_is_no_new_word() -> None:
    evidence, _ = evidence_in("Fix redirects.", ["Fix redirects."], known="2026-03-14 kilnlib")
    assert unsupported("In kilnlib, redirects broke.", evidence) == []
    assert unsupported("In quarry, redirects broke.", evidence)


def test_what_only_names_something_denies_nothing() -> None:
    evidence, _ = evidence_in("Paint the hall, not the attic.", ["Paint the hall, not the attic."])
    assert unsupported("the attic", evidence)
    assert unsupported("the attic", evidence, names_only=True) == []
    assert unsupported("the cellar", evidence, names_only=True)


@pytest.mark.parametrize(
    ("item", "text", "stands"),
    [
        ("ada/kiln", "see https://git.example.org/ada/kiln.git", True), ("ada/kiln", "see /ada/kilns", False),
        ("kiln.py", "shop/kiln.py:40", True), ("shop/kiln.py:41", "shop/kiln.py:40", False), ("--glaze", "--no-glaze", False),
        ("benchpress", "-bench=benchpress", True), ("-c", "press-c", False), ("3.3", "3.3.5", False), ("v3.3.5", "3.3.5", True),
        ("v2", "phase 2", False), ("5", "-5", False), ("5", "5%", False), ("60s", "60 s", True), ("60", "60s", True), ("6s", "60 s", False),
        ("40", "kiln.py:40", True), ("2", "press 2>&1", True), ("-5", "exit code -5", True), ("14", "2026-03-14", False),
        ("$500", "a limit of $500.", True), ("$500", "$5,000", False), ("$500", "€500", False), ("500", "$500", True),
        ("€500", "€1500", False), ("€500k", "€500", False),
        ("缓存", "因为缓存过期", True), ("缓存", "磁盘过期", False),
    ],
)  # fmt: skip
def test_an_exact_item_may_be_a_part_of_a_longer_one(item: str, text: str, stands: bool) -> None:
    assert (item_pattern(item).search(text) is not None) is stands


def test_another_currency_is_another_amount() -> None:
    signs = [chr(at) for at in range(sys.maxunicode) if unicodedata.category(chr(at)) == "Sc"]
    for sign, other in pairwise(signs):
        record = f"agent: claude\nlesson: The kiln costs {sign}500 now."
        for amount in (f"{sign}500", f"500{sign}", f"500 {sign}"):
            assert problems(record, "", f"The kiln costs {amount} now.") == [], amount
        for amount in (f"{other}500", f"500{other}", f"500 {other}"):
            if unicodedata.normalize("NFKC", sign) != unicodedata.normalize("NFKC", other):
                assert problems(record, "", f"The kiln costs {amount} now."), (sign, amount)


@pytest.mark.parametrize(
    ("written", "word", "may"),
    [
        ("auth", "authentication", True), ("brew", "homebrew", True), ("ps", "powershell", True), ("db", "database", True),
        ("thougth", "thought", True), ("comited", "committed", False), ("cuupboard", "cupboard", True), ("parsed", "passed", False),
        ("imports", "import", False), ("a", "authentication", False), ("to", "torch", False), ("v2", "version", False),
    ],
)  # fmt: skip
def test_short_forms_and_slips(written: str, word: str, may: bool) -> None:
    assert may_stand_for(written, word) is may
