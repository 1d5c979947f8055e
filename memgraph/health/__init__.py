"""The health of a store: its files, keys, journal, projections and memories, each with a limit and a remedy."""
