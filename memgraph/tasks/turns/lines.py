"""A turn as lines of text."""

from __future__ import annotations

from memgraph.model.results.tasks import Decision, TurnControl
from memgraph.text.safe import visible_line

_WHY: dict[Decision, str] = {
    "nothing_inferred": "",
    "same_task": "",
    "switched": "The session switched to it.",
    "autoswitch_off": "Autoswitch is off, so the task stays.",
    "low_confidence": "That is not sure enough to switch, so the task stays.",
    "ambiguous": "Others match about equally well, so the task stays.",
    "guarded": "The session went to and fro or matched other tasks too often, so the task stays; `session autoswitch on` starts anew.",
}


def turn_lines(turn: TurnControl) -> list[str]:
    """Return what a turn decided, confirmed and asks, as lines of visible characters."""
    lines = [f"Task: {visible_line(turn.resolved_task)}" if turn.resolved_task else "No task."]
    if why := _WHY[turn.decision]:
        inferred = visible_line(turn.inferred_task or "")
        lines.append(f"The message seems to belong to {inferred} ({round(100 * turn.confidence)} %). {why}")
    for one in turn.confirmations:
        what = f" ({visible_line(one.confirmed)})" if one.confirmed else ""
        lines.append(f"Confirmed in {visible_line(one.task_id)}: {visible_line(one.message)}{what}")
    if turn.nudge:
        lines.append(f"? {visible_line(turn.nudge.question)}")
        for option in turn.nudge.options:
            command = f"  `{visible_line(option.command)}`" if option.command else ""
            lines.append(f"  {option.key}  {visible_line(option.label)}{command}")
    return lines
