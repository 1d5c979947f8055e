"""The clients whose hooks are answered."""

from __future__ import annotations

from collections.abc import Mapping

from memgraph.interfaces.agents.clients.claude_shape import ClaudeShape
from memgraph.interfaces.agents.events import HookClient

HOOK_CLIENTS: Mapping[str, HookClient] = {one.name: one for one in (ClaudeShape("claude-code"),)}
