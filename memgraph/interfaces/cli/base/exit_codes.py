"""The exit codes of the ``memgraph`` command. Click exits with 2 on wrong usage."""

FAILED = 1
"""The command was refused or failed."""
OUTPUT_FAILED = 74
"""The command has done what it was asked, but its answer could not be written (``EX_IOERR`` of ``sysexits.h``)."""
INTERRUPTED = 130
BROKEN_PIPE = 141
"""Whoever read the output has closed it."""
TERMINATED = 143
