"""Event payloads: one strict class per (type, version), one module per family."""
