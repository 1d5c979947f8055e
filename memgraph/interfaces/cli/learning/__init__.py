"""Commands that learn: ingest, sleep and its steps, contradictions, proposals, work orders."""
