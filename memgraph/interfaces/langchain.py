"""LangChain: a retriever over memories. Needs the extra ``langchain``."""

from __future__ import annotations

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
    returned if nothing belongs to the query.

    Attributes
    ----------
    memory : MemGraph
        Stays open as long as the retriever is used.
    caller : Caller
        For whom memories are recalled, and in which project and session.
    max_tokens : int, optional
        Maximum number of tokens of text; default: the store's setting.
    """

    memory: MemGraph = Field(exclude=True, repr=False)
    caller: Caller = Field(default_factory=Caller)
    max_tokens: int | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:  # noqa: ARG002
        if not query.strip():
            return []
        arguments: dict[str, Any] = {"task": query[:MAX_TASK_CHARS], "max_tokens": self.max_tokens}
        found = perform(self.memory, self.caller, "recall", arguments).data
        return [self._document(one, found["query_id"]) for one in found["memories"]]

    def _document(self, fields: dict[str, Any], query_id: str) -> Document:
        metadata = {
            name: value for name, value in fields.items() if value is not None and name not in {"id", "content"}
        }
        return Document(fields["content"], id=fields["id"], metadata=metadata | {"query_id": query_id})
