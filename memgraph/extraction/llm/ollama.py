"""A language model of an Ollama server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.ollama import TIMEOUT_S, OllamaConnection
from memgraph.ports import ModelReply

CONTEXT_TOKENS = 8_192
REPLY_TOKENS = 2_048


class OllamaLanguageModel:
    """Completes conversations with a model of an Ollama server. A `LanguageModel` that counts its tokens.

    Parameters
    ----------
    model : str
        As ``ollama pull`` knows it.
    host : str
        As `OllamaConnection` takes it.
    timeout_s : float
        How long the server may take for a reply.
    context_tokens, reply_tokens : int
        Tokens read and written at a time; tokens of the reply among them, at most.

    Notes
    -----
    Temperature 0, a fixed seed, no thinking: as nearly deterministic as the server is. Constructing asks nobody.
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

    def complete(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> str:
        """Return the reply's text, which is JSON that fits `schema` as far as the server holds the model to it.

        Raises
        ------
        ProviderError
            The server cannot be asked, or its answer cannot be used.
        """
        return self.reply(messages, schema).text

    def reply(self, messages: Sequence[Mapping[str, str]], schema: Mapping[str, Any] | None = None) -> ModelReply:
        """Return the reply with its tokens.

        Raises
        ------
        ProviderError
            As `complete` does.
        """
        return self._connection.chat(
            self._model,
            messages,
            schema,
            context_tokens=self._context_tokens,
            reply_tokens=self._reply_tokens,
        )
