"""The journal: append-only, signed, fsynced. It is the truth; everything else is projected from it."""
