"""What the store's operations answer."""
