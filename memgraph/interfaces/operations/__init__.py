"""The operations that every door offers: their arguments, limits, errors, permissions and answers, defined once."""

from memgraph.interfaces.operations.catalogue import OPERATIONS as OPERATIONS, offered as offered, perform as perform
from memgraph.interfaces.operations.operation import Answer as Answer, Caller as Caller, Operation as Operation
