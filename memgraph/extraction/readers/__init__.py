"""Readers: turn sources (build logs, histories, transcripts, trials, reports) into build logs, one at a time, resumably."""

from memgraph.extraction.readers.reports import CiLogReader as CiLogReader
from memgraph.extraction.readers.git import GitReader as GitReader
from memgraph.extraction.readers.reports import JunitReader as JunitReader
from memgraph.extraction.readers.git import SavedGitLogReader as SavedGitLogReader
from memgraph.extraction.readers.source import (
    BuildLogReader as BuildLogReader,
    Reader as Reader,
    SourceRecord as SourceRecord,
)
from memgraph.extraction.readers.transcripts import TranscriptReader as TranscriptReader
from memgraph.extraction.readers.trials import (
    AlfworldReader as AlfworldReader,
    HotpotqaReader as HotpotqaReader,
    MbppReader as MbppReader,
    TauBenchReader as TauBenchReader,
    TrajectoryReader as TrajectoryReader,
    reflexion_reader as reflexion_reader,
)
