"""Ledgers of agents, handoffs between them, and the page from which an agent continues."""

from memgraph.tasks.handoffs.handoffs import Handoffs as Handoffs
from memgraph.tasks.handoffs.ledgers import Ledgers as Ledgers
