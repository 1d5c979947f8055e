"""Pictures and files of what was learned: series from the journal, charts, the page, exports."""
