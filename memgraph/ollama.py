"""Connection to an Ollama server: the only module that imports its client, and that handles the client's errors.

Importing this module imports neither the client nor httpx, which would take a third of a second.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from memgraph.errors import ProviderError
from memgraph.model.base import has_credentials, without_credentials
from memgraph.model_server import (
    BYTES_A_TOKEN,
    CONNECT_TIMEOUT_S,
    ENVELOPE_BYTES,
    TIMEOUT_S,
    Exchange,
    ResponseTooLongError,
    client_options,
    count,
)
from memgraph.ports import ModelReply

if TYPE_CHECKING:
    from ollama import Client, ResponseError

DEFAULT_HOST = "http://127.0.0.1:11434"
_UNANSWERED = 2
PAUSE_S = 15.0
_MAX_SAID_CHARS = 200
_OF_THE_CLIENT = ("OLLAMA_HOST", "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Environment variables read by its client and by httpx."""
_BYTES_A_TEXT = 2 * 1024 * 1024
"""Maximum bytes of one text's vector in a response: the largest dimension, with 32 bytes for each number."""
_CHARS_A_TOKEN = 32
"""Maximum average characters per token; a longer reply was not limited as requested."""


class EmbedReply(NamedTuple):
    """Vectors as received, unchecked, and the tokens read, if reported."""

    vectors: Sequence[Sequence[float]]
    prompt_tokens: int | None


class OllamaConnection:
    """Calls one Ollama server. Every failure of client, network or server is a `ProviderError`.

    No connection is kept open between calls, so nothing has to be closed and a forked process shares no socket.
    Redirects are not followed, and a server on this machine is never called through a proxy: texts are sent only to the
    configured address, which is ``OLLAMA_HOST``, else ``http://127.0.0.1:11434``, if none is given. `timeout_s` is for a whole request.
    After two unanswered calls in a row, calls fail immediately for `pause_s`: otherwise hundreds of batches would each wait for
    an absent server.
    """

    def __init__(
        self,
        host: str = "",
        *,
        timeout_s: float = TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._address = host or os.environ.get("OLLAMA_HOST") or DEFAULT_HOST
        self.timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._unanswered = 0
        self._asked_again_at = 0.0
        self._problem = ""

    @property
    def host(self) -> str:
        """The address for display: without user name and password."""
        return without_credentials(self._address)

    def embed(self, model: str, texts: Sequence[str]) -> EmbedReply:
        """Return a model's vectors of texts, in one request."""
        with self._failures(model, max_bytes=len(texts) * _BYTES_A_TEXT + ENVELOPE_BYTES):
            made = self._open().embed(model, input=list(texts), truncate=True)
            return EmbedReply(made.embeddings, count(made.prompt_eval_count))

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
        options = {"temperature": 0, "seed": 1, "num_ctx": context_tokens, "num_predict": reply_tokens}
        with self._failures(model, max_bytes=reply_tokens * BYTES_A_TOKEN + ENVELOPE_BYTES):
            made = self._open().chat(
                model,
                messages=[dict(message) for message in messages],
                format=None if schema is None else dict(schema),
                options=options,
                think=False,
                stream=False,
            )
            text = made.message.content or ""
        if len(text) > reply_tokens * _CHARS_A_TOKEN:
            raise self._failed(
                model,
                f"{model} at {self.host} replied with {len(text):,} characters to a request for {reply_tokens:,} tokens",
            )
        return ModelReply(text, count(made.prompt_eval_count), count(made.eval_count))

    def _open(self) -> Client:
        """Return the client, created on first use; an invalid address is always reported as `InvalidURL`."""
        with self._lock:
            if self._client is None:
                import httpx
                from ollama import Client

                try:
                    self._client = Client(
                        self._address,
                        **client_options(
                            self._address, timeout_s=self.timeout_s, connect_timeout_s=self._connect_timeout_s
                        ),
                    )
                except ValueError as error:
                    raise httpx.InvalidURL(str(error)) from error
            return self._client

    @contextmanager
    def _failures(self, model: str, *, max_bytes: int) -> Iterator[None]:
        try:
            import httpx
            from ollama import ResponseError  # imported here: the module creates a client from the environment
        except (ImportError, OSError, ValueError) as error:
            raise self._unusable(model, error) from error
        if self._unanswered >= _UNANSWERED and time.monotonic() < self._asked_again_at:
            raise self._failed(model, self._problem)
        if has_credentials(self._address):
            remedy = "remove the user name and password from ollama_host or OLLAMA_HOST"
            raise self._failed(model, f"credentials are not accepted in an address of {self.host}; {remedy}")
        try:
            with Exchange(timeout_s=self.timeout_s, max_bytes=max_bytes):
                yield
            self._unanswered = 0
        except ResponseError as error:
            raise self._refused(model, error) from error
        except (ConnectionError, httpx.ConnectError, httpx.ConnectTimeout) as error:
            remedy = "start it with `ollama serve`, or set ollama_host to its address"
            raise self._no_answer(model, f"no Ollama server answers at {self.host}; {remedy}") from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            said = f"{self.host} is not the address of an Ollama server; set ollama_host to an address such as {DEFAULT_HOST}"
            raise self._failed(model, said) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            remedy = "raise ollama_timeout_s, or use a smaller model"
            said = f"the Ollama server at {self.host} did not answer for {model} within {self.timeout_s:g} s; {remedy}"
            raise self._no_answer(model, said) from error
        except ResponseTooLongError as error:
            said = f"the Ollama server at {self.host} cannot be used for {model}: {error}"
            raise self._failed(model, said) from error
        except httpx.HTTPError as error:
            said = f"the Ollama server at {self.host} closed the connection while answering for {model} ({type(error).__name__}); try again"
            raise self._failed(model, said) from error
        except (ImportError, OSError) as error:
            raise self._unusable(model, error) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            # not JSON, JSON of another shape, invalid bytes: the client raises a different error for each
            said = (
                f"the server at {self.host} returned an invalid answer for {model} ({type(error).__name__}); "
                "set ollama_host to the address of an Ollama server"
            )
            raise self._failed(model, said) from error

    def _refused(self, model: str, error: ResponseError) -> ProviderError:
        said = " ".join(str(error.error).split())[:_MAX_SAID_CHARS]
        status = error.status_code
        if status == 404 and "page not found" not in said:
            problem = f"the Ollama server at {self.host} has no model {model}; run `ollama pull {model}`"
        elif status == 404:
            problem = f"the server at {self.host} does not support this request; update Ollama, or correct ollama_host"
        elif 300 <= status < 400:
            problem = f"the server at {self.host} answered with a redirect; set ollama_host to its target"
        else:
            problem = f"the Ollama server at {self.host} refused a request for {model} with status {status}"
        return self._failed(model, problem, status=status, server_says=said)

    def _unusable(self, model: str, error: Exception) -> ProviderError:
        # the client's message is left out: an address in it may contain a password
        said = f"Ollama's client cannot be used for {model} in this environment ({type(error).__name__})"
        remedy = f"correct or unset {', '.join(_OF_THE_CLIENT[:-1])} and {_OF_THE_CLIENT[-1]}"
        return self._failed(model, f"{said}: {remedy}")

    def _no_answer(self, model: str, problem: str) -> ProviderError:
        self._unanswered += 1
        self._asked_again_at = time.monotonic() + self._pause_s
        self._problem = problem
        return self._failed(model, problem)

    def _failed(self, model: str, problem: str, *, status: int | None = None, server_says: str = "") -> ProviderError:
        return ProviderError(problem, model=model, host=self.host, status=status, server_says=server_says)
