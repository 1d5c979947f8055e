"""Commands that draw and export."""
