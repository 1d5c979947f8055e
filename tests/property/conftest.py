"""The laws are of memories, not of the database: stores keep their graph in memory, unless the run is a long one."""

from __future__ import annotations
