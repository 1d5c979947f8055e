"""`MemGraph`: a store with the components that operate on it. Its groups of methods are imported when they are first used."""

from memgraph.facade.memory import MemGraph as MemGraph
