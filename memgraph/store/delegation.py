"""Methods of the store that its parts carry out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from memgraph.store.access.auditing import Auditing
from memgraph.store.analysis import Queries
from memgraph.store.backup.making import Backups
from memgraph.store.commit.insertions import Insertions
from memgraph.store.commit.writer import Writer
from memgraph.store.listing import OwnersListings
from memgraph.store.maintenance.awaiting_vectors import AwaitingVectors
from memgraph.store.maintenance.reembedding import Reembedding
from memgraph.store.maintenance.reset import Resetting
from memgraph.store.maintenance.vector_repair import DamagedVectors
from memgraph.store.maintenance.verifying import Verifying
from memgraph.store.outcomes import Usage
from memgraph.store.projection.batches import Batches
from memgraph.store.purge.purging import Purging
from memgraph.store.states import Transitions

P = ParamSpec("P")
T = TypeVar("T")


def _delegated(part: str, method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return a method that delegates to a part of the open store, with the same signature and docstring."""

    @wraps(method)
    def carried_out(store: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        is_repeatable = not any(isinstance(one, Iterator) for one in (*args, *kwargs.values()))  # they can be read once
        carry_out = store._carry_out  # noqa: SLF001 - a method of the store
        return cast("T", carry_out(lambda: method(getattr(store, part), *args, **kwargs), is_repeatable=is_repeatable))

    return carried_out


class Delegating:
    """The methods of a store that its parts carry out."""

    access_of = _delegated("_auditing", Auditing.access_of)
    audit = _delegated("_auditing", Auditing.audit)

    insert_memory = _delegated("_insertions", Insertions.insert_memory)
    insert_memories = _delegated("_insertions", Insertions.insert_memories)
    insert_parts = _delegated("_insertions", Insertions.insert_parts)
    rewrite = _delegated("_insertions", Insertions.rewrite)
    import_memories = _delegated("_insertions", Insertions.import_memories)

    without_secrets = _delegated("_writer", Writer.without_secrets)

    get_memory = _delegated("_listings", OwnersListings.get_memory)
    read_memories = _delegated("_listings", OwnersListings.read_memories)
    every_memory = _delegated("_listings", OwnersListings.every_memory)
    links = _delegated("_listings", OwnersListings.links)
    every_link = _delegated("_listings", OwnersListings.every_link)
    get_stats = _delegated("_listings", OwnersListings.get_stats)
    list_memories = _delegated("_listings", OwnersListings.list_memories)
    query_by_type = _delegated("_listings", OwnersListings.query_by_type)
    query_by_project = _delegated("_listings", OwnersListings.query_by_project)
    get_all_memories = _delegated("_listings", OwnersListings.get_all_memories)

    record_access = _delegated("_usage", Usage.record_access)
    record_retrieval = _delegated("_usage", Usage.record_retrieval)
    record_outcome = _delegated("_usage", Usage.record_outcome)

    digest = _delegated("_verifying", Verifying.digest)
    verify = _delegated("_verifying", Verifying.verify)
    inspection = _delegated("_verifying", Verifying.inspection)
    verification = _delegated("_verifying", Verifying.verification)

    batch = _delegated("_batches", Batches.batch)
    check_graph = _delegated("_batches", Batches.check_graph)
    compact = _delegated("_batches", Batches.compact)
    rebuild = _delegated("_batches", Batches.rebuild)

    reset = _delegated("_resetting", Resetting.reset)

    backup = _delegated("_backups", Backups.backup)
    backups = _delegated("_backups", Backups.backups)
    last_backup_at = _delegated("_backups", Backups.last_backup_at)

    cypher = _delegated("_queries", Queries.cypher)
    graph_lag = _delegated("_queries", Queries.graph_lag)
    query = _delegated("_queries", Queries.query)
    to_networkx = _delegated("_queries", Queries.to_networkx)

    update_memory = _delegated("_transitions", Transitions.update_memory)
    suppress = _delegated("_transitions", Transitions.suppress)
    unsuppress = _delegated("_transitions", Transitions.unsuppress)
    archive = _delegated("_transitions", Transitions.archive)
    unarchive = _delegated("_transitions", Transitions.unarchive)
    invalidate = _delegated("_transitions", Transitions.invalidate)
    revalidate = _delegated("_transitions", Transitions.revalidate)
    supersede = _delegated("_transitions", Transitions.supersede)
    supersession = _delegated("_transitions", Transitions.supersession)
    unsupersede = _delegated("_transitions", Transitions.unsupersede)
    link = _delegated("_transitions", Transitions.link)
    unlink = _delegated("_transitions", Transitions.unlink)
    delete_memory = _delegated("_transitions", Transitions.delete_memory)
    undelete = _delegated("_transitions", Transitions.undelete)
    find_id = _delegated("_transitions", Transitions.find_id)

    purge = _delegated("_purging", Purging.purge)
    preview_purge = _delegated("_purging", Purging.preview_purge)
    complete_purges = _delegated("_purging", Purging.complete_purges)
    check_receipt = _delegated("_purging", Purging.check_receipt)

    check_embedder = _delegated("_awaiting", AwaitingVectors.check_embedder)
    awaiting_vectors = _delegated("_awaiting", AwaitingVectors.awaiting_vectors)
    embed_awaiting = _delegated("_awaiting", AwaitingVectors.embed_awaiting)

    damaged_vectors = _delegated("_damaged", DamagedVectors.damaged_vectors)
    repair_vectors = _delegated("_damaged", DamagedVectors.repair_vectors)

    reembed = _delegated("_reembedding", Reembedding.reembed)
