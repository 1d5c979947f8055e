"""Language model served by Ollama."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memgraph.model_server import TIMEOUT_S
from memgraph.ollama import OllamaConnection
from memgraph.ports import CountingLanguageModel, ModelReply

CONTEXT_TOKENS = 8_192
REPLY_TOKENS = 2_048


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
