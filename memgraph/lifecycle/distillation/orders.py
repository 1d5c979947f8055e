"""Reading work orders: which are open, and what is needed to answer one."""

from __future__ import annotations

import numpy as np

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.llm.claims import FIELDS, MAX_EVIDENCE_CHARS, MAX_EVIDENCE_SPANS, REQUIRED, claim_schema
from memgraph.extraction.llm.prompt import DATA, fenced
from memgraph.fold.records import WORK_ORDER
from memgraph.model.base import MAX_CONTENT_CHARS, Limit, Name, checked
from memgraph.model.ids import canonical_name
from memgraph.model.results.learning import OrderState, WorkOrder, WorkSheet
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader

MAX_ASKED = 3
"""Orders that an agent is asked to answer in one session."""
MAX_STATEMENTS = 8
MAX_ATTEMPTS = 3
"""An order is closed by this many answers of which statements were refused; one that adds nothing to an untouched order does not count."""
_LEAST_ID_CHARS = 4

_INSTRUCTIONS = """\
{question}

Reply with JSON: {{"statements": [...]{verdict}}}, at most {most} statements, the most useful first; an empty list if nothing is worth keeping.
Each statement has:
{fields}

{data}"""


def work_orders(
    store: AgentMemoryStore, *, state: OrderState | None = "open", project: str | None = None, limit: int | None = None
) -> list[WorkOrder]:
    """Return work orders, most valuable first, ties by time and id.

    An order is withheld while a memory that it is about is forgotten, deleted or not public, or its excerpt of a session has the text of
    such a memory of that build; an open one about a contradiction also while one of the two is no longer in force.

    Parameters
    ----------
    state : {"open", "answered", "skipped"} or None
        None: in any state. Open ones are those that are due: further parts of long sessions are on one of the days after.
    project : str, optional
        Only of this project.
    """
    state = checked(OrderState | None, state, "state")
    project, limit = checked(Name | None, project, "project"), checked(Limit | None, limit, "limit")
    reader = store.reader
    with reader.frozen():
        rows = [row for row in reader.every_record(WORK_ORDER) if project is None or row.get("project_id") == project]
        now = store.now()
        due = [row for row in rows if state != "open" or row["requested_at"] <= now]
        chosen = [row for row in due if (state is None or row["state"] == state) and is_current(reader, row)]
    chosen.sort(key=lambda row: (-row["value"], row["requested_at"], row["id"]))
    return [order_of(row) for row in chosen[:limit]]


def known_order(store: AgentMemoryStore, order_id: str) -> WorkOrder:
    """Return a work order by its id or the beginning of it, at least four characters.

    Raises
    ------
    NotFoundError
        No order has this id, or it is withheld.
    InvalidInputError
        More than one order has an id with this prefix.
    """
    wanted = checked(Name, order_id, "id").strip().lower()
    reader = store.reader
    with reader.frozen():
        named = [row for row in reader.every_record(WORK_ORDER) if _is_named(row, wanted)]
        found = [row for row in named if is_current(reader, row)]
    if len(named) > 1:
        raise InvalidInputError(
            f"is the beginning of {len(named)} work orders' ids; give more of it", field="id", value=order_id
        )
    if not found:
        raise NotFoundError("open work order" if named else "work order", order_id, listed_by="memgraph distil list")
    return order_of(found[0])


def work_sheet(store: AgentMemoryStore, order_id: str) -> WorkSheet:
    """Return a work order with the instructions, the fenced excerpt and the schema of an answer.

    Raises
    ------
    NotFoundError, InvalidInputError
        As for `known_order`.
    """
    return sheet_of(known_order(store, order_id))


def sheet_of(order: WorkOrder) -> WorkSheet:
    """Return a work order with what is needed to answer it."""
    fence, fenced_excerpt = fenced(order.excerpt)
    is_conflict = order.kind == "contradiction"
    return WorkSheet(
        order=order,
        instructions=_INSTRUCTIONS.format(
            question=order.question,
            verdict=', "verdict": "both hold", "older holds", "newer holds" or ""' if is_conflict else "",
            most=MAX_STATEMENTS,
            fields=FIELDS,
            data=DATA.format(fence=fence),
        ),
        fenced_excerpt=fenced_excerpt,
        reply_schema=_reply_schema(is_conflict=is_conflict),
        limits={
            "statements": MAX_STATEMENTS,
            "content_chars": MAX_CONTENT_CHARS,
            "evidence_spans": MAX_EVIDENCE_SPANS,
            "evidence_chars": MAX_EVIDENCE_CHARS,
        },
    )


def is_current(reader: Reader, row: Row) -> bool:
    """Return whether an order may be shown, and if it is open, whether its answer would change something."""
    ids = row.get("subject_ids", ())
    rows = reader.rows(ids)
    if len(rows) < len(ids):
        return False
    if any(one.get("is_suppressed") or one.get("privacy_tier", "public") != "public" for one in rows):
        return False
    if row["kind"] == "long session" and _quotes_hidden(reader, row):
        return False
    if row["kind"] != "contradiction" or row["state"] != "open" or row.get("verdict"):
        return True
    in_force = reader.listed() & ~reader.superseded()
    both = (tuple(ids), tuple(ids[::-1]))
    is_answered = any(reader.record(name, ends) is not None for name in ("RELATED_TO", "SUPERSEDES") for ends in both)
    return not is_answered and all(in_force[reader.index.slot(one)] for one in ids)


def _quotes_hidden(reader: Reader, row: Row) -> bool:
    """Return whether the excerpt of a session has the text of a memory of its build that is forgotten or not public."""
    index = reader.index
    is_hidden = index.column("is_live") & (index.column("is_suppressed") | (index.column("tier") > 0))
    hidden = reader.rows([index.ids.names[slot] for slot in np.flatnonzero(is_hidden).tolist()])
    excerpt = canonical_name(row["excerpt"])
    return any(
        one.get("build_id") == row["build_id"]
        and one.get("project_id") == row.get("project_id")
        and canonical_name(one["content"]) in excerpt
        for one in hidden
    )


def order_of(row: Row) -> WorkOrder:
    """Return a row as a work order."""
    return WorkOrder.parse(row)


def _is_named(row: Row, wanted: str) -> bool:
    return row["id"] == wanted or (len(wanted) >= _LEAST_ID_CHARS and row["id"].startswith(wanted))


def _reply_schema(*, is_conflict: bool) -> dict[str, object]:
    properties: dict[str, object] = {
        "statements": {"type": "array", "items": claim_schema(required=REQUIRED), "maxItems": MAX_STATEMENTS}
    }
    if is_conflict:
        properties["verdict"] = {"type": "string", "enum": ["both hold", "older holds", "newer holds", ""]}
    return {"type": "object", "properties": properties, "required": ["statements"], "additionalProperties": False}
