"""Evidence: the episodes in force, the memories derived from them, and the one mechanism that makes, grows, ends and restores these."""
