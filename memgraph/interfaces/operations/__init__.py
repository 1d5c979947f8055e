"""The operations that every door offers: their arguments, limits, errors, permissions and answers, defined once."""

from memgraph.interfaces.operations.catalogue import OPERATIONS as OPERATIONS
from memgraph.interfaces.operations.catalogue import offered as offered
from memgraph.interfaces.operations.catalogue import perform as perform
from memgraph.interfaces.operations.operation import Answer as Answer
from memgraph.interfaces.operations.operation import Caller as Caller
from memgraph.interfaces.operations.operation import Operation as Operation
