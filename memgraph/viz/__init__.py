"""Views of what was learned: time series from the journal, charts, the page, exports."""
