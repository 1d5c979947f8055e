"""The baseline: the rows of a journal's state at one commit, signed, so that opening and rebuilding start there."""
