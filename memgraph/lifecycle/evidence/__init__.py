"""Input of learning: episodes in force, and what was learned from them before."""
