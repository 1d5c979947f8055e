"""Diagnostics: typed records of what concerns an operator, and where they go: log, JSON lines, OpenTelemetry, webhook, PagerDuty."""
