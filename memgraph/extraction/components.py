"""Components of a project that files and texts concern, in common words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from memgraph.text import lazy_re as re

_GENERIC = frozenset(
    str.split(
        "src lib libs source sources app apps pkg packages package python main index init core common utils util helpers misc "
        "tests test spec specs testing unit integration docs doc documentation examples example scripts script bin build "
        "config configs assets static public data resources include internal cmd setup readme changelog conftest base "
        "types constants version makefile github workflows vscode node modules"
    )
)
_DOC_ENDINGS = frozenset(".md .rst .rdoc .txt .adoc .png .svg .jpg .jpeg .gif .ico .css .pdf .log".split())
_DOC_NAMES = frozenset(
    "license notice authors citation cname mkdocs contributing changelog changes news history".split()
)
_DOC_PARTS = frozenset({"docs", "doc", "examples", "example", "demos"})
_TEST_PARTS = frozenset({"tests", "test", "testing", "spec", "specs", "__tests__", "conftest", "fixtures", "test_data"})
_MACHINERY = frozenset({".github", ".circleci", ".devcontainer", ".vscode", ".gitlab", "ci"})
_MACHINERY_FILES = frozenset({"codecov.yml", "tox.ini", "noxfile.py", "appveyor.yml"})
_PACKAGING = frozenset(
    "setup.py setup.cfg pyproject.toml makefile package.json cargo.toml manifest.in pipfile build.gradle pom.xml go.mod cmakelists.txt".split()
)
_LOCKS = frozenset(
    "go.mod go.sum pipfile package-lock.json npm-shrinkwrap.json pnpm-lock.yaml deno.lock bun.lock bun.lockb yarn.lock gradle.lockfile "
    "pipfile.lock poetry.lock uv.lock pdm.lock pixi.lock cargo.lock gemfile.lock composer.lock mix.lock pubspec.lock podfile.lock "
    "cartfile.resolved package.resolved packages.lock.json flake.lock chart.lock renv.lock symfony.lock rebar.lock conan.lock shard.lock".split()
)
"""Files with nothing but dependencies."""
_WORD = re.compile(r"[^\W_]+")


def is_documentation(path: str) -> bool:
    """Return whether a file is documentation or an asset of it."""
    file = PurePosixPath(path.lower())
    return not _is_list(file) and (
        file.suffix in _DOC_ENDINGS or file.stem in _DOC_NAMES or not _DOC_PARTS.isdisjoint(file.parts[:-1])
    )


def _is_list(file: PurePosixPath) -> bool:
    requires = file.suffix in {".txt", ".in", ".pip"} and (
        file.name.startswith(("requirements", "constraints"))
        or (file.parts[-2:-1] == ("requirements",) and _DOC_PARTS.isdisjoint(file.parts))
    )
    return requires or file.name in _LOCKS


def only_dependencies(paths: Iterable[str]) -> bool:
    """Return whether files list dependencies, at least one of them nothing else."""
    files = [PurePosixPath(path.lower()) for path in paths]
    return any(map(_is_list, files)) and all(_is_list(file) or file.name in _PACKAGING for file in files)


def is_test(path: str) -> bool:
    """Return whether a file is a test or part of one."""
    file = PurePosixPath(path.lower())
    stem = file.name.split(".")[0]
    return (
        not _TEST_PARTS.isdisjoint(file.parts[:-1])
        or stem in _TEST_PARTS
        or stem.startswith("test_")
        or stem.endswith(("_test", "_spec"))
        or ".test." in file.name
        or ".spec." in file.name
    )


def is_machinery(path: str) -> bool:
    """Return whether a file serves the project's development rather than the product."""
    file = PurePosixPath(path.lower())
    hidden = len(file.parts) == 1 and file.name.startswith(".")
    return hidden or not _MACHINERY.isdisjoint(file.parts[:-1]) or file.name in _MACHINERY_FILES


def goes_along(path: str) -> bool:
    """Return whether a file is changed along with others: documentation, or a test."""
    return is_documentation(path) or is_test(path)


def is_incidental(path: str) -> bool:
    """Return whether a file's changes alone say little about the product."""
    return goes_along(path) or is_machinery(path)


def is_packaging(path: str) -> bool:
    """Return whether a file says how the project is built: what it says moves to another one rather than goes."""
    return PurePosixPath(path.lower()).name in _PACKAGING


def is_sha(text: str) -> bool:
    """Return whether `text` is a commit id that is safe to pass to git."""
    return 7 <= len(text) <= 64 and not text.strip("0123456789abcdef")


def abbreviated(sha: str) -> str:
    """Return a commit's id as it is printed: its first eight characters."""
    return sha[:8]


def component_name(text: str) -> str | None:
    """Return the tag for a directory, file stem or scope; None for generic names (``src``, ``utils``)."""
    name = "-".join(_WORD.findall(text.casefold()))[:40]
    return name if len(name) > 1 and name not in _GENERIC and not name.isdigit() else None


def components_of(files: Sequence[str], *, limit: int = 3) -> list[str]:
    """Return tags for the components of these files: the innermost specific directory, and the file if there are few."""
    telling = [file for file in files[:500] if not is_incidental(file)] or list(files[:500])
    counts: Counter[str] = Counter()
    for file in telling:
        path = PurePosixPath(file)
        inner = next((name for part in reversed(path.parts[:-1]) if (name := component_name(part))), None)
        stem = component_name(path.name.lstrip(".").split(".")[0]) if len(telling) <= 2 else None
        counts.update({name for name in (inner, stem) if name})
    # a file named like its directory would otherwise take two places
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]]


def main_file(files: Sequence[str], text: str) -> str | None:
    """Return the main file of a change: the one named in its text, else the only or first relevant one."""
    if not files:
        return None
    words = set(_WORD.findall(text.casefold()))
    telling = [file for file in files[:500] if not is_incidental(file)] or list(files[:500])
    for file in telling:
        parts = set(_WORD.findall(PurePosixPath(file).name.split(".")[0].casefold())) - _GENERIC
        if parts and parts <= words:
            return file
    return telling[0] if len(telling) <= 3 else None
