"""``audit``: what agents were refused, and which sensitive memories they got with a justification."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit, plain

if TYPE_CHECKING:
    from memgraph.model.events.records import AccessAudited


@click.command(cls=Command)
@click.option("--agent", metavar="NAME", help="Only what this agent asked.")
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="Maximum number of records.")
@pass_settings
def audit(settings: Settings, agent: str | None, limit: int) -> None:
    """Print the latest records of the audit, the newest last."""
    with opened(settings, reads=True) as memory:
        found = memory.audit(agent=agent, limit=limit)
    lines = [plain(_line(one)) for one in found] or ["No agent was refused anything."]
    emit(settings, [one.model_dump(mode="json", exclude_none=True) for one in found], lines)


def _line(one: AccessAudited) -> str:
    """Return a record as one line."""
    what = " ".join(filter(None, [one.operation, one.tier, one.domain]))
    if one.is_refused:
        return f"{one.audited_at}  {one.agent}  {what}: refused. {one.reason or ''}".rstrip()
    count = len(one.disclosed_ids)
    return f"{one.audited_at}  {one.agent}  {what}: {count} {'memory' if count == 1 else 'memories'}, justified by: {one.justification}"
