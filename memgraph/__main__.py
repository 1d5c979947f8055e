"""``python -m memgraph``, and the program ``memgraph``: the command line, which may be interrupted from the first import on."""

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; end with 130 and one line if Ctrl-C strikes before it can answer, while its modules are imported."""
    # numpy's threads would spin for a while after each product, which doubles the CPU time of a recall
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    try:
        from memgraph.interfaces.cli import main as run_command

        run_command()
    except KeyboardInterrupt:  # the command itself answers one, but for the moments before and after it
        print("memgraph: interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
