"""The state of a git work tree: read without running what the repository configures, and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest

from memgraph.errors import SourceError
from memgraph.extraction.readers.git import work_tree_state
from memgraph.model.results.tasks import MAX_FILES, GitState
from tests.unit.extraction.readers.test_git_readers import Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop")


def test_branch_commit_and_changed_files(repository: Repository) -> None:
    assert work_tree_state(repository.path) == GitState(branch="main")
    sha = repository.commit("Add it", file="app/a b.py")
    assert work_tree_state(repository.path) == GitState(branch="main", last_git_commit=sha)
    repository.git("mv", "app/a b.py", "app/c d.py")
    (repository.path / "ü\nx").write_text("1")
    state = work_tree_state(repository.path / "app")
    assert state is not None
    assert (state.uncommitted_changes, state.files_modified) == (True, ["app/c d.py", "ü\nx"])
    repository.git("checkout", "-q", "--detach")
    assert work_tree_state(repository.path).branch is None  # type: ignore[union-attr]


def test_many_files_are_named_in_part(repository: Repository) -> None:
    for number in range(MAX_FILES + 5):
        (repository.path / f"{number:03} {'x' * 200}").write_text("")
    state = work_tree_state(repository.path)
    assert state is not None
    assert (len(state.files_modified), state.has_more_files) == (MAX_FILES, True)


def test_no_filter_of_the_repository_is_run(repository: Repository) -> None:
    repository.commit("Add it")
    ran = repository.path.parent / "ran"
    (repository.path / ".git" / "info" / "attributes").write_text("* filter=any=thing\n")
    for filter_name in ("any", "any=thing"):
        for kind in ("clean", "process"):
            repository.git("config", f"filter.{filter_name}.{kind}", f"touch '{ran}'; cat")
        repository.git("config", f"filter.{filter_name}.required", "true")
    repository.git("config", "core.fsmonitor", f"touch '{ran}'; false")
    (repository.path / ".gitattributes").write_text("* filter=any\n")
    (repository.path / "app" / "main.py").write_text("Add ix\n0\n")  # as long as before, so that git compares
    state = work_tree_state(repository.path)
    assert state is not None
    assert set(state.files_modified) == {"app/main.py", ".gitattributes"}
    assert not ran.exists()


def test_a_folder_without_git_has_no_state(tmp_path: Path) -> None:
    assert work_tree_state(tmp_path) is None
    with pytest.raises(SourceError, match="is not a folder"):
        work_tree_state(tmp_path / "missing")
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    with pytest.raises(SourceError, match="git status failed"):
        work_tree_state(tmp_path)
