"""LangChain: a retriever over memories. Needs the extra ``langchain``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic import Field

from memgraph.facade import MemGraph
from memgraph.interfaces.operations import Caller, perform
from memgraph.interfaces.refusals import needing
from memgraph.model.results.retrieval import MAX_TASK_CHARS

with needing("langchain-core", extra="langchain"):
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever


class MemGraphRetriever(BaseRetriever):
    """What is recalled for a query, as documents: ``MemGraphRetriever(memory=memory).invoke("deploy the shop")``.

    A document has the memory's text, its id, and its other fields as metadata, with the ``query_id`` that `record_outcome` takes. No document is
    returned if nothing belongs to the query; standing rules are documents only if they match it.

    Attributes
    ----------
    memory : MemGraph
        Stays open as long as the retriever is used.
    caller : Caller
        For whom memories are recalled, and in which project and session.
    max_tokens : int, optional
        Maximum number of tokens of text; default: the store's setting.
    also : callable, optional
        Returns up to five phrases for a query, in the words that past messages would have used: best written by a language model.
    """

    memory: MemGraph = Field(exclude=True, repr=False)
    caller: Caller = Field(default_factory=Caller)
    max_tokens: int | None = None
    also: Callable[[str], Sequence[str]] | None = Field(default=None, exclude=True, repr=False)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        if not query.strip():
            return []
        also = self.also(query) if self.also else []
        budget = {"max_tokens": self.max_tokens, "rules": "none"}
        arguments: dict[str, Any] = {"task": query[:MAX_TASK_CHARS], "also": also, **budget}
        found = perform(self.memory, self.caller, "recall", arguments).data
        return [self._document(one, found["query_id"]) for one in found["memories"]]

    def _document(self, fields: dict[str, Any], query_id: str) -> Document:
        metadata = {
            name: value for name, value in fields.items() if value is not None and name not in {"id", "content"}
        }
        return Document(fields["content"], id=fields["id"], metadata=metadata | {"query_id": query_id})
