"""History, collected in one pass over the journal, for charts, timelines and the page."""
