"""The keys that sign a store's journal: where they come from, which one signs, and which ones verify."""
