"""Event payloads: one strict class per (type, version), a module a family."""
