"""Tokens: who may call, for which agent, on which store. The file holds their hashes; a token is shown once, when it is made."""

from __future__ import annotations

import hashlib
import secrets
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hmac import compare_digest
from pathlib import Path
from threading import Lock
from typing import Annotated, Literal, get_args

import orjson
from pydantic import AfterValidator, Field

from memgraph.disk.files import make_private_folder, read_own, write_private
from memgraph.disk.lock import ProcessLock
from memgraph.errors import ConfigError, InvalidInputError, NotFoundError
from memgraph.interfaces.http.access.refusals import RefusedTokenError
from memgraph.interfaces.operations import Caller
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Model, Name, Text, Timestamp
from memgraph.model.timestamps import to_iso

Scope = Literal["read", "write", "admin"]
"""What a token allows; each includes those before it. ``admin`` also allows maintenance of the whole store."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
FOLDER = "server"
"""Directory in a store, or in the root of several, for what the server keeps."""
MAX_DAYS = 36_500
_PREFIX = "mg"
_LOCK_S = 5.0


def _tenant(name: str) -> str:
    allowed = "abcdefghijklmnopqrstuvwxyz0123456789-_"
    if not name or len(name) > 63 or name[0] in "-_" or set(name) - set(allowed):
        raise ValueError("must be 1 to 63 small letters, digits, - or _, and begin with a letter or digit")
    return name


Tenant = Annotated[str, AfterValidator(_tenant)]
"""The name of a store under a root: it is the name of its directory."""


class Token(Model):
    """What is known of a token; not the token itself.

    Attributes
    ----------
    sha256 : str
        Hash of the token, hexadecimal. It has 256 random bits, so that a slow hash would add nothing.
    scope : {"read", "write", "admin"}
    tenant : str or None
        The store under the root; None: the one store of a server without a root.
    agent, justification, project : str or None
        For whom it acts; see `Caller`. The project is fixed.
    """

    id: str
    sha256: str
    scope: Scope
    tenant: Tenant | None = None
    agent: Name = UNNAMED
    justification: Text | None = None
    project: Name | None = None
    created_at: Timestamp
    expires_at: Timestamp | None = None

    @property
    def client(self) -> str:
        """The client in whose share of the server's limits it is: its tenant, or this token; empty for a server without tokens."""
        return self.tenant or (self.id if self.sha256 else "")

    def allows(self, scope: Scope) -> bool:
        """Return whether this scope is within the token's."""
        return SCOPES.index(scope) <= SCOPES.index(self.scope)

    def caller(self) -> Caller:
        """Return for whom the token acts."""
        return Caller(
            agent=self.agent,
            justification=self.justification,
            project=self.project,
            is_project_fixed=self.project is not None,
        )


class _Tokens(Model):
    tokens: Annotated[list[Token], Field(default_factory=list)]


def token_file(place: Path) -> TokenFile:
    """Return the tokens of a server, given its root or its one store."""
    return TokenFile(place / FOLDER / "tokens.json")


def _now() -> datetime:
    return datetime.now(UTC)


class TokenFile:
    """The tokens of a server, in a private file. Changes of other processes are seen at the next request.

    Parameters
    ----------
    path : Path
        The file; it need not exist.
    """

    def __init__(self, path: Path, *, now: Callable[[], datetime] = _now) -> None:
        self.path = path
        self._now = now
        self._guard = Lock()
        self._read: tuple[tuple[int, int, int], dict[str, Token]] | None = None

    @property
    def exists(self) -> bool:
        """Whether a token was ever made: the file stays when the last one is revoked."""
        return self.path.is_symlink() or self.path.exists()

    def create(
        self,
        scope: Scope,
        *,
        tenant: str | None = None,
        agent: str | None = None,
        justification: str | None = None,
        project: str | None = None,
        days: float | None = None,
    ) -> tuple[Token, str]:
        """Make a token; return what is kept of it, and the token.

        Raises
        ------
        InvalidInputError
            An argument is invalid.
        StorageError
            The file cannot be written.
        """
        if days is not None and not 0 < days <= MAX_DAYS:
            raise InvalidInputError(f"must be more than 0 and at most {MAX_DAYS:,}", field="days", value=days)
        number, now = secrets.token_hex(4), self._now()
        secret = f"{_PREFIX}_{number}_{secrets.token_urlsafe(32)}"
        given = {"agent": agent, "justification": justification, "tenant": tenant, "project": project}
        made = Token(
            id=number,
            sha256=_hash(secret),
            scope=scope,
            created_at=to_iso(now),
            expires_at=None if days is None else to_iso(now + timedelta(days=days)),
            **{name: value for name, value in given.items() if value is not None},
        )
        self._change(lambda tokens: {**tokens, number: made})
        return made, secret

    def list(self) -> list[Token]:
        """Return all tokens, the oldest first.

        Raises
        ------
        ConfigError
            The file is damaged, or others than its owner may read it.
        """
        return sorted(self._tokens().values(), key=lambda one: (one.created_at, one.id))

    def revoke(self, number: str) -> Token:
        """Remove a token; who presents it is refused from the next request on.

        Raises
        ------
        NotFoundError
        """
        found = self._tokens().get(number)
        if found is None:
            raise NotFoundError("token", number, listed_by="memgraph token list")
        self._change(lambda tokens: {name: one for name, one in tokens.items() if name != number})
        return found

    def verified(self, secret: str) -> Token:
        """Return what is known of a token that a client presents.

        Raises
        ------
        RefusedTokenError
            It is unknown, was revoked, or has expired.
        """
        prefix, _, rest = secret.partition("_")
        found = self._tokens().get(rest.partition("_")[0])
        kept = found.sha256 if found else _hash("")
        if not compare_digest(_hash(secret), kept) or found is None or prefix != _PREFIX:
            raise RefusedTokenError("the token is unknown or was revoked; ask who runs the server for another")
        if found.expires_at is not None and found.expires_at <= to_iso(self._now()):
            raise RefusedTokenError(f"the token has expired at {found.expires_at}; ask who runs the server for another")
        return found

    def _tokens(self) -> dict[str, Token]:
        """Return the tokens by number, read again if the file has changed."""
        with self._guard:
            try:
                status = self.path.stat(follow_symlinks=False)
            except FileNotFoundError:
                return {}
            state = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._read is None or self._read[0] != state:
                if stat.S_IMODE(status.st_mode) & 0o077:
                    raise ConfigError(f"{self.path} can be read or written by other users; run: chmod 600 {self.path}")
                self._read = state, self._parsed()
            return self._read[1]

    def _parsed(self) -> dict[str, Token]:
        try:
            found = _Tokens.parse(orjson.loads(read_own(self.path)))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a file of tokens"
            raise ConfigError(
                f"{self.path} cannot be read: {reason}; restore it, or remove it and make new tokens"
            ) from None
        return {one.id: one for one in found.tokens}

    def _change(self, change: Callable[[dict[str, Token]], dict[str, Token]]) -> None:
        make_private_folder(self.path.parent)
        lock = ProcessLock(self.path.with_name(f"{self.path.name}.lock"), "the file of tokens")
        lock.acquire(_LOCK_S)
        try:
            tokens = change(self._tokens())
            document = {"tokens": [one.model_dump(mode="json", exclude_none=True) for one in tokens.values()]}
            write_private(self.path, orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
        finally:
            lock.release()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
