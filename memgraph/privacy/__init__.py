"""Privacy: a memory's tier, and which agents may read it (seed 2, v13, section 8.11).

The tiers are enforced by the store, in the filter stage of each recall and search, and in the view that an agent gets (`as_agent`).
"""
