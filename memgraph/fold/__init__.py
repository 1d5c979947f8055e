"""The fold: (old rows, event) → changed rows. Pure: no clock, no model, no input or output."""

from memgraph.fold.fold import fold, links_named
from memgraph.fold.projection import Projection, project
from memgraph.fold.workspace import EmptyRows, RowSource, Workspace

__all__ = ["EmptyRows", "Projection", "RowSource", "Workspace", "fold", "links_named", "project"]
