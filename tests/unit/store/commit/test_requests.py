"""Commits are found by the request that made them, and by no other."""

from __future__ import annotations

from threading import Thread

import pytest

from memgraph import SemanticMemory
from memgraph.errors import PermissionDeniedError
from memgraph.model.agent_input import UNNAMED

FIRST, SECOND = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"


def test_a_requests_commits_are_found_after_a_new_opening(open_store):
    store = open_store()
    requests = store.auditing.requests
    store.insert_memory(SemanticMemory(content="Before", source="test"))
    seq = requests.seq
    with requests.naming(FIRST):
        ids = [store.insert_memory(SemanticMemory(content=text, source="test")).id for text in ("One", "Two")]
    other = store.insert_memory(SemanticMemory(content="Between", source="test")).id
    with requests.naming(SECOND):
        store.suppress(other)
    store.close()
    found = open_store().auditing.requests
    assert [one.payload.memory.id for one in found.made_by(FIRST, after=seq)] == ids
    assert [one.payload.id for one in found.made_by(SECOND, after=seq)] == [other]
    assert found.made_by(FIRST, after=found.seq) == []


def test_another_thread_commits_for_itself(store):
    requests = store.auditing.requests
    with requests.naming(FIRST):
        thread = Thread(target=lambda: store.insert_memory(SemanticMemory(content="Aside", source="test")))
        thread.start()
        thread.join()
    assert requests.made_by(FIRST, after=0) == []


def test_a_recorded_refusal_is_no_commit_of_the_request(store):
    requests = store.auditing.requests
    with requests.naming(FIRST), pytest.raises(PermissionDeniedError):
        store.auditing.check_asked(store.access_of(UNNAMED), "read", domain="health")
    assert len(store.audit()) == 1
    assert requests.made_by(FIRST, after=0) == []
