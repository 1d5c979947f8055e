"""Charts of the series, as PNG or SVG."""
