"""Collection: faded memories are archived, landmarks are kept."""
