"""The journal: append-only, signed, fsynced. It is the source of truth; everything else is a projection of it."""
