"""Turns: which task a message belongs to, whether the session may switch to it, what to ask, and what was confirmed."""

from memgraph.tasks.turns.turns import Turns as Turns
