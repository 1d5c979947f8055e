"""What learning works on: episodes in force, and what was learned of them before."""
