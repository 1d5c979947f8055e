"""Language model behind an OpenAI-compatible server (``POST …/chat/completions``): OpenAI, vLLM, llama.cpp, LM Studio and others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import orjson

from memgraph.errors import ProviderError
from memgraph.extraction.secrets import redact
from memgraph.model.base import has_credentials, without_credentials
from memgraph.model_server import (
    BYTES_A_TOKEN,
    ENVELOPE_BYTES,
    TIMEOUT_S,
    Exchange,
    ResponseTooLongError,
    client_options,
    count,
    is_this_machine,
)
from memgraph.ollama import OllamaConnection
from memgraph.ports import CountingLanguageModel, ModelReply

KEY_VARIABLE = "MEMGRAPH_OPENAI_KEY"
"""Environment variable of the key. It is not ``OPENAI_API_KEY``, because the key is sent to whatever address is configured."""
REPLY_TOKENS = 2_048
_MAX_SAID_CHARS = 200


class ChatCompletionsModel(CountingLanguageModel):
    """Completes conversations on an OpenAI-compatible server. A `LanguageModel` that counts its tokens.

    Parameters
    ----------
    model : str
        Its name on the server.
    base_url : str
        Address up to and without ``/chat/completions``, such as ``http://127.0.0.1:8000/v1``, without user name and password.
    key : str, optional
        Default: the environment variable ``MEMGRAPH_OPENAI_KEY``; empty: no key is sent. It is only ever sent encrypted, or to this
        machine, and appears in no message.
    timeout_s : float
        Timeout of the whole request.
    reply_tokens : int
        Maximum tokens of a reply.

    Notes
    -----
    Temperature 0 and a fixed seed: as deterministic as the server allows. Redirects are not followed, and a server on this machine is
    never called through a proxy. Construction contacts no server.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        reply_tokens: int = REPLY_TOKENS,
    ) -> None:
        self._model = model
        self._base_url = base_url.strip().rstrip("/")
        self._key = (os.environ.get(KEY_VARIABLE, "") if key is None else key).strip()
        self._timeout_s = timeout_s
        self._reply_tokens = reply_tokens
        self._max_bytes = reply_tokens * BYTES_A_TOKEN + ENVELOPE_BYTES

    @property
    def name(self) -> str:
        """``openai/`` and the model."""
        return f"openai/{self._model}"

    @property
    def host(self) -> str:
        """The address for display: without user name and password."""
        return without_credentials(self._base_url)

    def reply(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> ModelReply:
        """Return the reply, JSON that matches `schema` as far as the server enforces it, with its token counts.

        Raises
        ------
        ProviderError
            The server cannot be reached, or its answer is unusable.
        """
        self._check_address()
        status, body = self._posted(self._request(messages, schema))
        if status != 200:
            raise self._refused(status, body)
        try:
            answer = orjson.loads(body)
            text = answer["choices"][0]["message"]["content"]
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError) as error:
            raise self._failed(
                f"the server at {self.host} returned an invalid answer for {self._model}; {_ADDRESS}"
            ) from error
        if not isinstance(text, str):
            raise self._failed(f"{self._model} at {self.host} returned no text")
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return ModelReply(text, count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")))

    def _request(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [dict(message) for message in messages],
            "temperature": 0,
            "seed": 1,
            "max_tokens": self._reply_tokens,
            "stream": False,
        }
        if schema is not None:
            is_strict = schema.get("additionalProperties") is False  # a server refuses to enforce a schema without it
            json_schema = {"name": "reply", "strict": is_strict, "schema": dict(schema)}
            request["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        return request

    def _posted(self, request: Mapping[str, Any]) -> tuple[int, bytes]:
        """Return the status and the body, read up to the maximum size and time."""
        import httpx

        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {self._key}"} if self._key else {})
        with (
            self._failures(),
            Exchange(timeout_s=self._timeout_s, max_bytes=self._max_bytes),
            httpx.Client(**client_options(self._base_url, timeout_s=self._timeout_s)) as client,
        ):
            response = client.post(f"{self._base_url}/chat/completions", content=orjson.dumps(request), headers=headers)
            return response.status_code, response.content

    @contextmanager
    def _failures(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise self._failed(f"no server answers at {self.host}; start it, or {_ADDRESS}") from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self._failed(
                f"the server at {self.host} did not answer for {self._model} within {self._timeout_s:g} s; raise openai.timeout_s, or "
                "use a smaller model"
            ) from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, UnicodeError) as error:
            raise self._failed(
                f"the request to {self.host} cannot be made; {_ADDRESS}, and check {KEY_VARIABLE}"
            ) from error
        except ResponseTooLongError as error:
            raise self._failed(
                f"the server at {self.host} cannot be used for {self._model}: {error}, to a request for "
                f"{self._reply_tokens:,} tokens"
            ) from error
        except (httpx.HTTPError, OSError) as error:
            raise self._failed(
                f"the server at {self.host} broke off while answering for {self._model} ({type(error).__name__}); try again"
            ) from error

    def _check_address(self) -> None:
        if has_credentials(self._base_url):
            raise self._failed(
                f"a user name and password are not accepted in the address of {self.host}; remove them from openai.base_url, and set "
                f"{KEY_VARIABLE} to the key"
            )
        parts = _split(self._base_url)
        if parts is None:
            raise self._failed(f"{self.host or 'an empty text'} is not the address of a server; {_ADDRESS}")
        if self._key and parts == "http" and not is_this_machine(self._base_url):
            raise self._failed(
                f"the key in {KEY_VARIABLE} is not sent to {self.host} without encryption; use an https address"
            )

    def _refused(self, status: int, body: bytes) -> ProviderError:
        if status in {401, 403}:
            problem = f"the server at {self.host} refused the key; set {KEY_VARIABLE} to a valid one"
        elif status == 404:
            problem = f"the server at {self.host} has no model {self._model} or no chat completions; {_ADDRESS}, and check openai.model"
        elif 300 <= status < 400:
            problem = f"the server at {self.host} answered with a redirect; set openai.base_url to its target"
        elif status == 429:
            problem = f"the server at {self.host} limits requests for {self._model}; try again later, or lower model_budget.calls"
        else:
            problem = f"the server at {self.host} refused a request for {self._model} with status {status}"
        return self._failed(problem, status=status, server_says=self._without_key(_message_in(body)))

    def _without_key(self, text: str) -> str:
        text = text.replace(self._key, "[redacted]") if self._key else text
        return " ".join(redact(text).value.split())[:_MAX_SAID_CHARS]

    def _failed(self, problem: str, *, status: int | None = None, server_says: str = "") -> ProviderError:
        return ProviderError(problem, model=self._model, host=self.host, status=status, server_says=server_says)


_ADDRESS = "set openai.base_url to an address such as http://127.0.0.1:8000/v1"


def _split(address: str) -> str | None:
    """Return the scheme of a server's address; None if it has none."""
    try:
        parts = urlsplit(address)
        return parts.scheme if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def _message_in(body: bytes) -> str:
    """Return the message of an error, in one of the usual forms."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    error = found.get("error", found) if isinstance(found, dict) else found
    said = error.get("message", "") if isinstance(error, dict) else error
    return said if isinstance(said, str) else ""


CONTEXT_TOKENS = 8_192


class OllamaLanguageModel(CountingLanguageModel):
    """Completes conversations with a model on an Ollama server. A `LanguageModel` that counts its tokens.

    Parameters
    ----------
    model : str
        Its name in ``ollama pull``.
    host : str
        As for `OllamaConnection`.
    timeout_s : float
        Timeout of the whole request.
    context_tokens, reply_tokens : int
        Size of the context window; maximum tokens of the reply, which are part of it.

    Notes
    -----
    Temperature 0, a fixed seed, no thinking: as deterministic as the server allows. Construction contacts no server.
    """

    def __init__(
        self,
        model: str,
        *,
        host: str = "",
        timeout_s: float = TIMEOUT_S,
        context_tokens: int = CONTEXT_TOKENS,
        reply_tokens: int = REPLY_TOKENS,
    ) -> None:
        self._model = model
        self._connection = OllamaConnection(host, timeout_s=timeout_s)
        self._context_tokens = context_tokens
        self._reply_tokens = min(reply_tokens, context_tokens // 2)

    @property
    def name(self) -> str:
        """``ollama/`` and the model."""
        return f"ollama/{self._model}"

    def reply(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> ModelReply:
        """Return the reply, JSON that matches `schema` as far as the server enforces it, with its token counts.

        Raises
        ------
        ProviderError
            The server cannot be reached, or its answer is unusable.
        """
        return self._connection.chat(
            self._model,
            messages,
            schema,
            context_tokens=self._context_tokens,
            reply_tokens=self._reply_tokens,
        )
