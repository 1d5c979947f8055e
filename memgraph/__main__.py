"""``python -m memgraph``: the command line."""

from memgraph.interfaces.cli import main

if __name__ == "__main__":
    main()
