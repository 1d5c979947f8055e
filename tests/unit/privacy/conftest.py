"""Nothing here asks the database anything: stores keep their graph in memory, unless the run is a long one."""

from __future__ import annotations
