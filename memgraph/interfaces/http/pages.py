"""Pages for people: the learning page and a page of reading queries, as the agent of a token may see them. Signing in needs a token."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import time
from collections.abc import Mapping
from functools import partial
from html import escape
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memgraph.errors import InvalidInputError, MemGraphError
from memgraph.interfaces.http.access.gate import Gate, check
from memgraph.interfaces.http.access.refusals import status_of
from memgraph.interfaces.http.access.tokens import Token
from memgraph.interfaces.http.problems import problem
from memgraph.interfaces.http.routes import caller_of, safely, token_of
from memgraph.interfaces.operations import Caller
from memgraph.interfaces.refusals import remote_message_of
from memgraph.text.safe import visible_line

COOKIE = "memgraph_session"
_SIGNED_IN_S = 8 * 3600
_MOST_SESSIONS = 1_000
_FIELDS = ("cypher", "name", "params")
_META_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "textarea,select,input{font:inherit;width:100%;box-sizing:border-box}textarea{font-family:monospace}"
    "table{border-collapse:collapse;display:block;overflow-x:auto}"
    "td,th{border:1px solid #999;padding:.2rem .5rem;text-align:left;vertical-align:top}"
    "label{display:block;margin-top:1rem}.problem{color:#a00}"
)
_POLICY = f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"


class Pages:
    """The pages and who is signed in, which is forgotten when the server ends."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._signed_in: dict[str, tuple[str, float]] = {}

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/", safely(self._learning), methods=["GET"], name="learning page"),
            Route("/query", safely(self._query), methods=["GET", "POST"], name="query page"),
            Route("/login", safely(self._login), methods=["GET", "POST"], name="login page"),
            Route("/logout", safely(self._logout), methods=["POST"], name="logout"),
        ]

    def has(self, path: str) -> bool:
        """Return whether a path is a page that takes the cookie of who is signed in. What changes memories never does."""
        return path in {"/", "/query", "/logout"}

    def secret_of(self, request: Request) -> str | None:
        """Return the token with which a browser has signed in."""
        secret, until = self._signed_in.get(_hash(request.cookies.get(COOKIE, "")), ("", 0.0))
        return secret if time.time() < until else None

    def to_login(self) -> Response:
        """Return a redirection to the page for signing in."""
        return Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": "/login"})

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return _page("Sign in", _LOGIN)
        secret = (await _form(request)).get("token", "").strip()
        try:
            self._gate.token_of(secret)
        except MemGraphError as error:
            return _refused("Sign in", error, _LOGIN)
        now, session = time.time(), secrets.token_urlsafe(32)
        kept = {name: one for name, one in self._signed_in.items() if one[1] > now}
        self._signed_in = dict(list(kept.items())[-_MOST_SESSIONS:])
        self._signed_in[_hash(session)] = secret, now + _SIGNED_IN_S
        response = Response(status_code=HTTPStatus.SEE_OTHER, headers={"Location": "/"})
        is_secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, session, max_age=_SIGNED_IN_S, httponly=True, samesite="strict", secure=is_secure, path="/"
        )
        return response

    async def _logout(self, request: Request) -> Response:
        self._signed_in.pop(_hash(request.cookies.get(COOKIE, "")), None)
        response = self.to_login()
        response.delete_cookie(COOKIE, path="/")
        return response

    async def _learning(self, request: Request) -> Response:
        token = token_of(request)
        try:
            check(token, "read")
            caller = caller_of(token, request)
            project = caller.chosen_project(request.query_params.get("project"))
            text = await self._gate.in_thread(token, "query", partial(self._rendered, token, caller, project))
        except MemGraphError as error:
            return _refused("Learning", error)
        found = _META_POLICY.search(text)
        if found is None:
            return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "the page has no policy: reinstall memgraph")
        policy = found[1].replace("&#x27;", "'").replace("&#39;", "'")
        return Response(
            text, headers={"Content-Security-Policy": f"{policy}; frame-ancestors 'none'"}, media_type="text/html"
        )

    def _rendered(self, token: Token, caller: Caller, project: str | None) -> str:
        from memgraph.viz.page.data import page_data
        from memgraph.viz.page.limits import MEMORIES
        from memgraph.viz.page.page import render
        from memgraph.viz.page.wording import title_of

        memory = self._gate.stores.memory(token.tenant)
        with memory.as_agent(caller.agent, justification=caller.justification) as view:
            shown = {"sensitive", "private"}  # those that the agent may have: the view has no others
            data = page_data(view.store, project_id=project, include=shown, limit=MEMORIES)
            return render(data, title_of(data.project_id, data.memories))

    async def _query(self, request: Request) -> Response:
        given = await _form(request) if request.method == "POST" else {}
        if not given:
            return _page("Queries", _query_form({}))
        token = token_of(request)
        try:
            arguments = _arguments(given)
            call = partial(self._gate.run, token, caller_of(token, request), "query", arguments)
            answer, _ = await self._gate.in_thread(token, "query", call)
        except MemGraphError as error:
            return _refused("Queries", error, _query_form(given))
        rows, total = answer.data["rows"], answer.data["total"]
        shown = f"<p>{len(rows)} of {total} rows</p>" if total > len(rows) else f"<p>{total} rows</p>"
        return _page("Queries", _query_form(given) + shown + _table(rows))


def _arguments(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of the form as arguments of the operation."""
    filled = {name: given[name].strip() for name in _FIELDS if given.get(name, "").strip()}
    if "params" in filled:
        try:
            return {**filled, "params": orjson.loads(filled["params"]), "limit": 1_000}
        except orjson.JSONDecodeError as error:
            raise InvalidInputError(f"must be a JSON object: {error}", field="params") from None
    return {**filled, "limit": 1_000}


async def _form(request: Request) -> dict[str, str]:
    found = parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in found.items()}


def _page(title: str, body: str, *, problem: str | None = None, status: int = HTTPStatus.OK) -> Response:
    said = f'<p class="problem">{_shown(problem)}</p>' if problem else ""
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} - memgraph</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>{said}{body}</body></html>"
    )
    return Response(text, status, {"Content-Security-Policy": _POLICY}, "text/html")


def _refused(title: str, error: MemGraphError, body: str = "") -> Response:
    return _page(title, body, problem=remote_message_of(error), status=status_of(error))


def _query_form(given: Mapping[str, str]) -> str:
    from memgraph.graph.queries import named_queries

    chosen = given.get("name", "")
    options = "".join(
        f'<option value="{escape(one.name)}"{" selected" if one.name == chosen else ""}>'
        f"{escape(one.name)}: {escape(one.purpose)}</option>"
        for one in named_queries().values()
    )
    cypher, params = (escape(given.get(name, "")) for name in ("cypher", "params"))
    return (
        '<nav><a href="/">Learning</a></nav><form method="post" action="/query">'
        f'<label>A reading Cypher query<textarea name="cypher" rows="6">{cypher}</textarea></label>'
        f'<label>or a named query<select name="name"><option value=""></option>{options}</select></label>'
        f'<label>Parameters, as JSON<textarea name="params" rows="2">{params}</textarea></label>'
        '<p><button>Run</button></p></form><form method="post" action="/logout"><button>Sign out</button></form>'
    )


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{_shown(name)}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{_shown(value)}</td>" for value in row.values()) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: object) -> str:
    """Return a value as safe HTML: escaped, and without characters that hide or reorder others."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return escape(visible_line(text))


def _hash(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()


_LOGIN = (
    '<form method="post" action="/login"><label>Token<input type="password" name="token" autocomplete="off" required>'
    "</label><p><button>Sign in</button></p></form>"
)
