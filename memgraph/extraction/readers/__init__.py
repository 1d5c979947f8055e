"""Readers turn a source (build logs, a repository, a saved git log) into build logs, one at a time, resumably."""

from memgraph.extraction.readers.builds import BuildLogReader
from memgraph.extraction.readers.git import GitReader
from memgraph.extraction.readers.gitlog import SavedGitLogReader
from memgraph.extraction.readers.source import Reader, SourceRecord

__all__ = ["BuildLogReader", "GitReader", "Reader", "SavedGitLogReader", "SourceRecord"]
