"""The page: one HTML file that replays what was learned."""
