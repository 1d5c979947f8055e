"""Readers turn a source (build logs, histories, transcripts, trials, reports) into build logs, one at a time, resumably."""

from memgraph.extraction.readers.alfworld import AlfworldReader
from memgraph.extraction.readers.builds import BuildLogReader
from memgraph.extraction.readers.cilog import CiLogReader
from memgraph.extraction.readers.git import GitReader
from memgraph.extraction.readers.gitlog import SavedGitLogReader
from memgraph.extraction.readers.hotpotqa import HotpotqaReader
from memgraph.extraction.readers.junit import JunitReader
from memgraph.extraction.readers.mbpp import MbppReader
from memgraph.extraction.readers.source import Reader, SourceRecord
from memgraph.extraction.readers.taubench import TauBenchReader
from memgraph.extraction.readers.trajectories import TrajectoryReader
from memgraph.extraction.readers.transcripts import TranscriptReader
from memgraph.extraction.readers.trials import reflexion_reader

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
