"""Language models behind servers: OpenAI-compatible ones (OpenAI, vLLM, llama.cpp, LM Studio and others) and Ollama."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.extraction.secrets import redact
from memgraph.model_server import BYTES_A_TOKEN, TIMEOUT_S, ModelServer, count, is_this_machine
from memgraph.ollama import OllamaConnection
from memgraph.ports import CountingLanguageModel, ModelReply

KEY_VARIABLE = "MEMGRAPH_OPENAI_KEY"
"""Environment variable of the key. It is not ``OPENAI_API_KEY``, because the key is sent to whatever address is configured."""
REPLY_TOKENS = 2_048


class ChatCompletionsModel(ModelServer, CountingLanguageModel):
    """Completes conversations on an OpenAI-compatible server, at an address up to and without ``/chat/completions``.

    The key is that of the environment by default; empty, none is sent. It is only ever sent encrypted, or to this machine, and appears in
    no message. Temperature 0 and a fixed seed: as deterministic as the server allows. Construction contacts no server.
    """

    ADDRESS = "set openai.base_url to an address such as http://127.0.0.1:8000/v1"
    CREDENTIALS = f"remove them from openai.base_url, and set {KEY_VARIABLE} to the key"
    SLOW = "openai.timeout_s"
    KEY_VARIABLE = KEY_VARIABLE

    def __init__(
        self,
        model: str,
        *,
        base_url: str,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        reply_tokens: int = REPLY_TOKENS,
    ) -> None:
        key = (os.environ.get(KEY_VARIABLE, "") if key is None else key).strip()
        super().__init__(base_url.strip().rstrip("/"), timeout_s=timeout_s, key=key)
        self._model = model
        self._reply_tokens = reply_tokens

    @property
    def name(self) -> str:
        """``openai/`` and the model."""
        return f"openai/{self._model}"

    def reply(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> ModelReply:
        """Return the reply, JSON that matches `schema` as far as the server enforces it, with its token counts."""
        if self._key and not (self._address.lower().startswith("https://") or is_this_machine(self._address)):
            why = f"the key in {KEY_VARIABLE} is not sent to {self.host} without encryption; use an https address"
            raise self.failed(self._model, why)
        most = self._reply_tokens * BYTES_A_TOKEN
        request = self._request(messages, schema)
        return self.ask("/chat/completions", request, model=self._model, max_bytes=most, read=self._read)

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

    def _read(self, answer: Any) -> ModelReply:
        text, usage = answer["choices"][0]["message"]["content"], answer.get("usage")
        if not isinstance(text, str):
            raise self.failed(self._model, f"{self._model} at {self.host} returned no text")
        usage = usage if isinstance(usage, dict) else {}
        return ModelReply(text, count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")))

    def refused(self, model: str, status: int, said: str) -> str:
        """Return what a status means and what to do about it."""
        server = f"the server at {self.host}"
        if status in {401, 403}:
            return f"{server} refused the key; set {KEY_VARIABLE} to a valid one"
        if status == 404:
            return f"{server} has no model {model} or no chat completions; {self.ADDRESS}, and check openai.model"
        if status == 429:
            return f"{server} limits requests for {model}; try again later, or lower model_budget.calls"
        return super().refused(model, status, said)

    def shown(self, said: str) -> str:
        """Return a server's message without the key and other secrets."""
        return super().shown(redact(said.replace(self._key, "[redacted]") if self._key else said).value)


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
