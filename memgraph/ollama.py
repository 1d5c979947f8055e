"""Connection to an Ollama server: its two calls."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memgraph.model_server import BYTES_A_TOKEN, PAUSE_S, TIMEOUT_S, ModelServer, count
from memgraph.ports import ModelReply

DEFAULT_HOST = "http://127.0.0.1:11434"
_PORT = 11434
_BYTES_A_TEXT = 2 * 1024 * 1024
"""Maximum bytes of one text's vector in a response: the largest dimension, with 32 bytes for each number."""
_CHARS_A_TOKEN = 32
"""Maximum average characters per token; a longer reply was not limited as requested."""


class EmbedReply(NamedTuple):
    """Vectors as received, unchecked, and the tokens read, if reported."""

    vectors: Sequence[Sequence[float]]
    prompt_tokens: int | None


class OllamaConnection(ModelServer):
    """Calls one Ollama server, at ``OLLAMA_HOST``, else ``http://127.0.0.1:11434``, if no address is given."""

    KIND = "Ollama server"
    START = "start it with `ollama serve`"
    ADDRESS = f"set ollama_host to an address such as {DEFAULT_HOST}"
    CREDENTIALS = "remove the user name and password from ollama_host or OLLAMA_HOST"
    SLOW = "ollama_timeout_s"

    def __init__(self, host: str = "", *, timeout_s: float = TIMEOUT_S, pause_s: float = PAUSE_S) -> None:
        super().__init__(
            host or os.environ.get("OLLAMA_HOST") or DEFAULT_HOST,
            timeout_s=timeout_s,
            pause_s=pause_s,
        )

    def embed(self, model: str, texts: Sequence[str]) -> EmbedReply:
        """Return a model's vectors of texts, in one request."""
        request = {"model": model, "input": list(texts), "truncate": True}
        return self.ask("/api/embed", request, model=model, max_bytes=len(texts) * _BYTES_A_TEXT, read=_vectors)

    def chat(
        self,
        model: str,
        messages: Sequence[Mapping[str, str]],
        schema: Mapping[str, Any] | None,
        *,
        context_tokens: int,
        reply_tokens: int,
    ) -> ModelReply:
        """Return a model's reply, as reproducible as the server allows: temperature 0, a fixed seed. One that is longer than allowed is an error."""
        request: dict[str, Any] = {
            "model": model,
            "messages": [dict(message) for message in messages],
            "options": {"temperature": 0, "seed": 1, "num_ctx": context_tokens, "num_predict": reply_tokens},
            "think": False,
            "stream": False,
        }
        if schema is not None:
            request["format"] = dict(schema)
        reply = self.ask("/api/chat", request, model=model, max_bytes=reply_tokens * BYTES_A_TOKEN, read=_reply)
        if len(reply.text) > reply_tokens * _CHARS_A_TOKEN:
            why = f"{model} at {self.host} replied with {len(reply.text):,} characters to a request for {reply_tokens:,} tokens"
            raise self.failed(model, why)
        return reply

    def url(self) -> str:
        """Return the address that is asked: without a scheme it is one of HTTP, at Ollama's port."""
        if "://" in self._address:
            return self._address.rstrip("/")
        host, colon, port = self._address.rstrip("/").rpartition(":")
        if not colon or not port.isdecimal():
            return f"http://{self._address.rstrip('/')}:{_PORT}"
        return f"http://{host or '127.0.0.1'}:{port}"

    def refused(self, model: str, status: int, said: str) -> str:
        """Return what a status means and what to do about it."""
        if status != 404:
            return super().refused(model, status, said)
        if "page not found" in said:
            return f"the server at {self.host} does not support this request; update Ollama, or correct ollama_host"
        return f"the Ollama server at {self.host} has no model {model}; run `ollama pull {model}`"


def _vectors(answer: Any) -> EmbedReply:
    vectors = answer["embeddings"]
    if not all(isinstance(number, int | float) for vector in vectors for number in vector):
        raise TypeError("a vector holds what is no number")
    return EmbedReply(vectors, count(answer.get("prompt_eval_count")))


def _reply(answer: Any) -> ModelReply:
    text = answer["message"]["content"] or ""
    if not isinstance(text, str):
        raise TypeError("the reply is no text")
    return ModelReply(text, count(answer.get("prompt_eval_count")), count(answer.get("eval_count")))
