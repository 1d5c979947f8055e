"""The ``memgraph`` command. Importing this package imports click and little else."""

from memgraph.interfaces.cli.group import cli as cli, main as main
