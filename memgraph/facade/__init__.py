"""`MemGraph`: a store with the components that operate on it, and its groups of methods."""

from memgraph.facade.contradictions import Contradictions
from memgraph.facade.curation import Curation
from memgraph.facade.distillation import Distillation
from memgraph.facade.maintenance import Maintenance
from memgraph.facade.memory import MemGraph
from memgraph.facade.procedures import Procedures

__all__ = ["Contradictions", "Curation", "Distillation", "Maintenance", "MemGraph", "Procedures"]
