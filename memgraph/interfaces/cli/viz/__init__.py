"""Commands that write charts, the page, series and exports."""
