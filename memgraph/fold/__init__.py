"""The fold: (old rows, event) → changed rows, and beside it the checks: what may not be recorded. Pure: no clock, no model, no input or output."""

from memgraph.fold.fold import Projection as Projection, check as check, fold as fold, project as project
from memgraph.fold.workspace import EmptyRows as EmptyRows, RowSource as RowSource, Workspace as Workspace
