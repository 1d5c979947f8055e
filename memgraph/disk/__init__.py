"""Files: private and atomic writes, locks, seals, temporary folders, free space."""
