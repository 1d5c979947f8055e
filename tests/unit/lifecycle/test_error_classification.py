"""Whose fault an error is: messages of tools, labelled by hand."""

from __future__ import annotations

import pytest

from memgraph.lifecycle.errors import error_text, kind_of
from memgraph.model.events.registry import attempt_in

LABELLED = {
    "external": """
        requests.exceptions.ConnectionError: connection refused by 10.0.0.1:443
        Error: connect ECONNREFUSED 127.0.0.1:5432
        ConnectionResetError: [Errno 104] Connection reset by peer
        TimeoutError: [Errno 110] Connection timed out
        requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='api.x.org', port=443): Read timed out.
        dial tcp 10.0.0.4:5432: i/o timeout
        curl: (28) Operation timed out after 30001 milliseconds with 0 bytes received
        urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>
        Could not resolve host: pypi.org
        The hosted runner lost communication with the server.
        psycopg2.OperationalError: server closed the connection unexpectedly
        Error response from daemon: net/http: TLS handshake timeout
        openai.RateLimitError: Too Many Requests
        toomanyrequests: You have reached your pull rate limit.
        API rate limit exceeded for installation ID 12
        You exceeded your current quota, please check your plan and billing details
        HTTP 503: Service Unavailable
        HTTP Error 502: Bad Gateway
        anthropic.APIStatusError: Error code: 529 - overloaded_error
    """,
    "configuration": """
        FileNotFoundError: [Errno 2] No such file or directory: 'config.toml'
        ModuleNotFoundError: No module named 'kuzu'
        ImportError: cannot import name 'soft_unicode' from 'markupsafe'
        Error: Cannot find module 'express'
        bash: make: command not found
        sh: 1: node: not found
        error: linker `cc` not found
        /usr/bin/ld: cannot find -lssl
        ERROR: Could not find a version that satisfies the requirement
        npm ERR! ERESOLVE unable to resolve dependency tree
        error: package requires Python '>=3.12' but the running Python is 3.11.4
        go: go.mod requires go >= 1.22 (running go 1.20)
        PermissionError: [Errno 13] Permission denied: '/etc/hosts'
        remote: Permission to a/b.git denied to bot.
        HTTP 401 Unauthorized
        fatal: Authentication failed for 'https://git.x.org/a.git/'
        botocore.exceptions.NoCredentialsError: Unable to locate credentials
        the environment variable DATABASE_URL is not set
        KeyError: 'DATABASE_URL'
        ValueError: OPENAI_API_KEY is missing
        yaml.scanner.ScannerError: mapping values are not allowed here in "config.yml", line 3
        OSError: [Errno 28] No space left on device
        OSError: [Errno 98] Address already in use
    """,
    "internal": """
        KeyError: 'currency' in checkout/totals.py:88
        AssertionError: expected 3, got 5
        AssertionError: "connection refused" not in ''
        expected status 401, got 200
        SyntaxError: unmatched ')'
        ValueError: invalid token '(' at column 3
        error TS2322: Type 'string' is not assignable to type 'number'.
        Segmentation fault (core dumped)
        EXECUTION TIMED OUT
        Timeout - Async callback was not invoked within the 5000 ms timeout specified by jest.setTimeout
        The connection pool is sized wrongly, error 5030
        The session did not time out after the user had logged out
        Error: payment amount does not add up, total price is 305, but paid 255
    """,
}


@pytest.mark.parametrize(
    ("error", "kind"), [(line.strip(), kind) for kind, lines in LABELLED.items() for line in lines.strip().splitlines()]
)
def test_the_class_of_an_error(error: str, kind: str) -> None:
    assert kind_of(error) == kind


def test_questions_and_fixes_are_no_errors() -> None:
    asked = "Failed trial: Who was overloaded after the connection was lost? Lesson: I should have searched each film."
    assert kind_of(error_text({"content": asked, **attempt_in(asked)})) == "internal"
    failed = f"{asked} Last error: HTTP 503: Service Unavailable"
    assert kind_of(error_text({"content": failed, **attempt_in(failed)})) == "external"
    assert (
        kind_of(error_text({"content": "Reverted “Retry when the connection was reset”.", "git_commit": "a1"}))
        == "internal"
    )
