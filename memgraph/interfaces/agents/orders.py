"""The request that an agent answers the work orders that its own session caused."""

from __future__ import annotations

from memgraph.facade import MemGraph
from memgraph.interfaces.agents.sessions import SessionLog
from memgraph.interfaces.operations import Caller
from memgraph.interfaces.operations.operation import Call

MAX_ORDERS = 3
_ASKED = "asked for answers"


def orders_request(memory: MemGraph, log: SessionLog, session_id: str, *, agent: str) -> str:
    """Return the request, once in a session: "" if it was made before, or if there is no open order."""
    if log.last(_ASKED) is not None:
        return ""
    call = Call(memory, Caller(agent=agent, session=session_id))
    caused = [one for one in memory.distillation.list() if session_id in (one.build_id or "")]
    orders = [one.id for one in caused if call.may_read(one.subject_ids)][:MAX_ORDERS]
    if not orders:
        return ""
    log.add(_ASKED, orders=orders)
    return (
        "The memory has questions about this session that only its agent can answer. The user has asked for this. For each order: "
        "call next_work_order with its order_id, then answer_work_order with what the excerpt supports; skip it if there is nothing to say. "
        f"Then end your turn without further comment. Orders: {', '.join(orders)}"
    )
