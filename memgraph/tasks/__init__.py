"""Task memory: tasks whose memories and decisions never mix, and the sessions that work on them."""

from memgraph.tasks.tasks import Tasks as Tasks
