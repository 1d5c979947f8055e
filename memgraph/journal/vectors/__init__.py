"""Vector files beside the journal: raw float32 rows, synced before the event that names them."""
