"""Readers: turn sources (build logs, histories, transcripts, trials, reports) into build logs, one at a time, resumably."""

from memgraph.extraction.readers.builds import BuildLogReader as BuildLogReader
from memgraph.extraction.readers.ci_log import CiLogReader as CiLogReader
from memgraph.extraction.readers.history.git import GitReader as GitReader
from memgraph.extraction.readers.history.saved_git_log import SavedGitLogReader as SavedGitLogReader
from memgraph.extraction.readers.junit import JunitReader as JunitReader
from memgraph.extraction.readers.source import Reader as Reader, SourceRecord as SourceRecord
from memgraph.extraction.readers.transcripts import TranscriptReader as TranscriptReader
from memgraph.extraction.readers.trials.alfworld import AlfworldReader as AlfworldReader
from memgraph.extraction.readers.trials.hotpotqa import HotpotqaReader as HotpotqaReader
from memgraph.extraction.readers.trials.mbpp import MbppReader as MbppReader
from memgraph.extraction.readers.trials.reflexion import reflexion_reader as reflexion_reader
from memgraph.extraction.readers.trials.taubench import TauBenchReader as TauBenchReader
from memgraph.extraction.readers.trials.trajectories import TrajectoryReader as TrajectoryReader
