"""Commands that write charts, pages and exports."""
