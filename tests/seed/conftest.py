"""Stores keep their graph in memory, unless the run is a long one; what is required of the database itself is marked."""

from __future__ import annotations
