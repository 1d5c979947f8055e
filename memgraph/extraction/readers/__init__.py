"""Readers: turn sources (build logs, histories, transcripts, trials, reports) into build logs, one at a time, resumably."""

from memgraph.extraction.readers.builds import BuildLogReader
from memgraph.extraction.readers.ci_log import CiLogReader
from memgraph.extraction.readers.history.git import GitReader
from memgraph.extraction.readers.history.saved_git_log import SavedGitLogReader
from memgraph.extraction.readers.junit import JunitReader
from memgraph.extraction.readers.source import Reader, SourceRecord
from memgraph.extraction.readers.transcripts import TranscriptReader
from memgraph.extraction.readers.trials.alfworld import AlfworldReader
from memgraph.extraction.readers.trials.hotpotqa import HotpotqaReader
from memgraph.extraction.readers.trials.mbpp import MbppReader
from memgraph.extraction.readers.trials.reflexion import reflexion_reader
from memgraph.extraction.readers.trials.taubench import TauBenchReader
from memgraph.extraction.readers.trials.trajectories import TrajectoryReader

__all__ = [
    "AlfworldReader",
    "BuildLogReader",
    "CiLogReader",
    "GitReader",
    "HotpotqaReader",
    "JunitReader",
    "MbppReader",
    "Reader",
    "SavedGitLogReader",
    "SourceRecord",
    "TauBenchReader",
    "TrajectoryReader",
    "TranscriptReader",
    "reflexion_reader",
]
