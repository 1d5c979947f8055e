"""The fold: (old rows, event) → changed rows. Pure: no clock, no model, no input or output."""

from memgraph.fold.fold import fold, links_named
from memgraph.fold.projection import Projection, project
from memgraph.fold.workspace import EmptyView, View, Workspace

__all__ = ["EmptyView", "Projection", "View", "Workspace", "fold", "links_named", "project"]
