"""The fold of tasks, of pins, of the sessions that work on tasks, and of the agents that hand them over."""

from memgraph.fold.tasks.handoffs import (
    CARRIED_BY as CARRIED_BY,
    COMPLETED_BY as COMPLETED_BY,
    HANDOFF as HANDOFF,
    LEARNED_BY as LEARNED_BY,
    LEDGER as LEDGER,
    ledger_key as ledger_key,
)
from memgraph.fold.tasks.sessions import (
    CONTEXT as CONTEXT,
    SESSION as SESSION,
    TRANSIENT as TRANSIENT,
    WORKING as WORKING,
    is_recent_switch as is_recent_switch,
    mismatches_after as mismatches_after,
    note_key as note_key,
    session_key as session_key,
)
from memgraph.fold.tasks.tasks import (
    CLOSINGS as CLOSINGS,
    HAS_ITEM as HAS_ITEM,
    ITEM as ITEM,
    LINKED as LINKED,
    OPENINGS as OPENINGS,
    PIN as PIN,
    REMOVAL as REMOVAL,
    TASK as TASK,
    held_key as held_key,
    is_pin as is_pin,
    is_registered as is_registered,
    task_key as task_key,
    touch as touch,
)
