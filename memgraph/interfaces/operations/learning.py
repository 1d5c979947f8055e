"""Operations of learning: sleep, and work orders for what rules cannot judge."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field, JsonValue

from memgraph.errors import NotFoundError
from memgraph.interfaces.operations.operation import Answer, Arguments, Call, Operation, Traced
from memgraph.model.base import MAX_ITEMS, Name, Prose
from memgraph.model.results.learning import WorkOrder


class Sleep(Arguments):
    """Arguments of `sleep`."""

    max_seconds: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=60.0, description="Start no further step after this time."
    )


class NextOrder(Arguments):
    """Arguments of `next_work_order`."""

    project: Name | None = None
    order_id: Name | None = Field(default=None, description="This open order instead of the most valuable one.")
    except_ids: Annotated[list[Name], Field(max_length=MAX_ITEMS)] = Field(
        default_factory=list, description="Orders to pass over."
    )


class AnswerOrder(Arguments):
    """Arguments of `answer_work_order`."""

    order_id: Name
    answer: dict[str, JsonValue] | None = Field(
        default=None, description="As the order's schema says; leave out to skip the order."
    )
    reason: Prose | None = Field(default=None, description="Why the order is skipped.")


def _sleep(call: Call, given: Sleep) -> Answer:
    report = call.memory.maintenance.sleep(max_seconds=given.max_seconds, progress=call.progress)
    data = report.model_dump(mode="json")
    return Answer(text=json.dumps(data, ensure_ascii=False), data=data)


def _next(call: Call, given: NextOrder) -> Answer:
    project = None if given.order_id else call.project(given.project)
    orders = call.memory.distillation.list(project=project)
    wanted = [one for one in orders if given.order_id in (None, one.id) and one.id not in given.except_ids]
    order = next((one for one in wanted if _is_for(call, one)), None)
    if order is None:
        return Answer(text="There are no open work orders.", data={"order": None})
    sheet = call.memory.distillation.show(order.id)
    return Answer(text=sheet.prompt, data={"order": sheet.model_dump(mode="json")})


def _is_for(call: Call, order: WorkOrder) -> bool:
    """Return whether the caller may have all memories that an order is about, and the task and project that it belongs to."""
    is_theirs = order.task_id in (None, call.caller.task) and call.caller.may_have(order.project_id)
    return is_theirs and call.may_read(order.subject_ids)


def _answer(call: Call, given: AnswerOrder) -> Answer:
    if not _is_for(call, call.memory.distillation.show(given.order_id).order):
        raise NotFoundError("work order", given.order_id, listed_by="next_work_order")
    if given.answer is None:
        order = call.memory.distillation.skip(given.order_id, reason=given.reason, actor="agent")
        return Answer(text=f"Skipped: {order.id}", data={"order_id": order.id, "is_skipped": True})
    found = call.memory.distillation.answer(given.order_id, given.answer, answered_by=call.caller.agent)
    data = found.model_dump(mode="json")
    return Answer(text=json.dumps(data, ensure_ascii=False), data=data)


OPERATIONS = (
    Operation(
        name="sleep",
        description="Consolidate: merge duplicates, generalise, learn procedures, find contradictions, collect what has faded.",
        arguments=Sleep,
        run=_sleep,
        effect="maintain",
        is_store_wide=True,
        is_destructive=True,
        is_idempotent=True,
    ),
    Operation(
        name="next_work_order",
        description=(
            "Return the most valuable open work order: an excerpt of a source, a question about it and the schema of the answer. "
            "Answer it with answer_work_order from the excerpt alone."
        ),
        arguments=NextOrder,
        run=_next,
        effect="read",
        is_idempotent=True,
    ),
    Operation(
        name="answer_work_order",
        description="Answer or skip a work order. Statements that the excerpt does not support are refused, with the reason.",
        arguments=AnswerOrder,
        run=_answer,
        effect="write",
        is_idempotent=True,
        traced=Traced(
            "create_memory", lambda data: [*data.get("new_memory_ids", []), *data.get("merged_memory_ids", [])]
        ),
    ),
)
