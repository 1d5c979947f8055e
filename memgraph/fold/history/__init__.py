"""History in one pass over the journal: what charts, timelines and the page replay."""
