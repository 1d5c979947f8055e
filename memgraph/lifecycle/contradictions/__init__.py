"""Which memories conflict, and how that is resolved."""
