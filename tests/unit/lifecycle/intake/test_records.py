"""Records: each commit of a history is kept whole, found, and no memory until it earns it."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import ConsolidationPipeline, MemGraph
from memgraph.model.memory import RECORD_SOURCE
