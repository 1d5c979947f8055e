"""Thresholds from which memories are compared as duplicates. They only propose: texts merge if they state the same fact (`same_fact`).

The threshold of findings of build logs is a setting: `ConsolidationConfig.deduplication_threshold`, 0.82 (seed 0).
"""

from __future__ import annotations

OBSERVATION_COSINE = 0.85
"""Minimum cosine of two observations, which agents word as whole statements (seed 2)."""
SLEEP_COSINE = 0.9
"""Minimum cosine in sleep: the strictest, because there each memory is compared with all of its group, whatever their sources."""
SLEEP_OVERLAP = 0.7
"""Sleep compares texts without vectors if they share more than this fraction of their terms (seed 1)."""
