"""Language models behind servers: OpenAI-compatible ones (OpenAI, vLLM, llama.cpp, LM Studio and others) and Ollama."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
    """Completes conversations on an OpenAI-compatible server, at an address up to and without ``/chat/completions``.

    The key is that of the environment by default; empty, none is sent. It is only ever sent encrypted, or to this machine, and appears in
    no message. Temperature 0 and a fixed seed: as deterministic as the server allows. Redirects are not followed, and a server on this
    machine is never called through a proxy. Construction contacts no server.
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
        """Return the reply, JSON that matches `schema` as far as the server enforces it, with its token counts."""
        self._check_address()
        status, body = self._posted(self._request(messages, schema))
        if status != 200:
            raise self._refused(status, body)
        try:
            answer = orjson.loads(body)
            text = answer["choices"][0]["message"]["content"]
        except (orjson.JSONDecodeError, KeyError, IndexError, TypeError) as error:
            problem = f"the server at {self.host} returned an invalid answer for {self._model}; {_ADDRESS}"
            raise self._failed(problem) from error
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
        try:
            with (
                Exchange(timeout_s=self._timeout_s, max_bytes=self._max_bytes),
                httpx.Client(**client_options(self._base_url, timeout_s=self._timeout_s)) as client,
            ):
                address, content = f"{self._base_url}/chat/completions", orjson.dumps(request)
                response = client.post(address, content=content, headers=headers)
                return response.status_code, response.content
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, OSError, ResponseTooLongError) as error:
            cause = error
        server = f"the server at {self.host}"
        match cause:
            case httpx.ConnectError() | httpx.ConnectTimeout():
                why = f"no server answers at {self.host}; start it, or {_ADDRESS}"
            case TimeoutError() | httpx.TimeoutException():
                why = f"{server} did not answer for {self._model} within {self._timeout_s:g} s; raise openai.timeout_s, or use a smaller model"
            case httpx.InvalidURL() | httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | UnicodeError():
                why = f"the request to {self.host} cannot be made; {_ADDRESS}, and check {KEY_VARIABLE}"
            case ResponseTooLongError():
                why = f"{server} cannot be used for {self._model}: {cause}, to a request for {self._reply_tokens:,} tokens"
            case _:
                why = f"{server} broke off while answering for {self._model} ({type(cause).__name__}); try again"
        raise self._failed(why) from cause

    def _check_address(self) -> None:
        scheme = _scheme(self._base_url)
        if has_credentials(self._base_url):
            why = f"a user name and password are not accepted in the address of {self.host}; remove them from openai.base_url, and set {KEY_VARIABLE} to the key"
        elif scheme is None:
            why = f"{self.host or 'an empty text'} is not the address of a server; {_ADDRESS}"
        elif self._key and scheme == "http" and not is_this_machine(self._base_url):
            why = f"the key in {KEY_VARIABLE} is not sent to {self.host} without encryption; use an https address"
        else:
            return
        raise self._failed(why)

    def _refused(self, status: int, body: bytes) -> ProviderError:
        server = f"the server at {self.host}"
        problem = f"{server} refused a request for {self._model} with status {status}"
        if status in {401, 403}:
            problem = f"{server} refused the key; set {KEY_VARIABLE} to a valid one"
        elif status == 404:
            problem = f"{server} has no model {self._model} or no chat completions; {_ADDRESS}, and check openai.model"
        elif 300 <= status < 400:
            problem = f"{server} answered with a redirect; set openai.base_url to its target"
        elif status == 429:
            problem = f"{server} limits requests for {self._model}; try again later, or lower model_budget.calls"
        return self._failed(problem, status=status, server_says=self._without_key(_message_in(body)))

    def _without_key(self, text: str) -> str:
        text = text.replace(self._key, "[redacted]") if self._key else text
        return " ".join(redact(text).value.split())[:_MAX_SAID_CHARS]

    def _failed(self, problem: str, *, status: int | None = None, server_says: str = "") -> ProviderError:
        return ProviderError(problem, model=self._model, host=self.host, status=status, server_says=server_says)


_ADDRESS = "set openai.base_url to an address such as http://127.0.0.1:8000/v1"


def _scheme(address: str) -> str | None:
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
    """Completes conversations with a model on an Ollama server: temperature 0, a fixed seed, no thinking. The reply is part of the context."""

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
        """Return the reply, JSON that matches `schema` as far as the server enforces it, with its token counts."""
        return self._connection.chat(
            self._model,
            messages,
            schema,
            context_tokens=self._context_tokens,
            reply_tokens=self._reply_tokens,
        )
