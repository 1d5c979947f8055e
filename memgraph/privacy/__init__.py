"""Privacy: a memory's tier, and which agents may read it.

- `tiers`: the tier of a domain, and of texts that plainly concern health, money or a person's identity numbers.
- `access`: who asks, with the agent's permissions from the settings and the justification given.

The tiers are those of seed 2 (v13, section 8.11). They are enforced by the store (`memgraph.store.access`), in the filter stage of
each recall and search, and in the view of the store that an agent gets (`AgentMemoryStore.as_agent`).
"""
