"""The release that first contained a commit, from the tags of a repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from memgraph.text import lazy_re as re

MAX_COMMITS = 200_000
"""Commits beyond these, which are the oldest, get no release."""
MAX_TAGS = 20_000
_VERSION = re.compile(
    r"(?:[\w.@/-]{1,60}[-_/@])?[vV]?\d{1,8}(?:[._]\d{1,8}){1,3}(?:[.-]?(?:a|b|c|rc|alpha|beta|pre|preview|post|final|m)[.-]?\d{0,4})?"
)
"""A tag that names a version: ``v2.1``, ``2.1.0rc1``, ``REL_2_1``, ``parser-2.1``, ``@shop/cart@2.1.0``."""


def tagged(lines: Iterable[str]) -> dict[str, str]:
    """Return the first release of each tagged commit, oldest release first.

    Parameters
    ----------
    lines : iterable of str
        A line per tag, oldest first: type, id, peeled type and peeled id of its object, empty where it has none, and its
        name, separated by tabs.
    """
    found: dict[str, str] = {}
    for line in lines:
        kind, sha, peeled_kind, peeled_sha, name = [*line.split("\t", 4), "", "", "", ""][:5]
        commit = sha if kind == "commit" else peeled_sha if peeled_kind == "commit" else ""
        if commit and _VERSION.fullmatch(name):
            found.setdefault(commit, name)
            if len(found) == MAX_TAGS:
                break
    return found


def first_releases(lines: Iterable[str], releases: Mapping[str, str]) -> dict[str, str]:
    """Return the first release that contains each commit, without those that none contains.

    Parameters
    ----------
    lines : iterable of str
        A line per commit with its parents, each commit after all of its children.
    releases : mapping
        As returned by `tagged`.

    Notes
    -----
    A commit is contained in what contains its children, so one pass suffices. Linear in commits and parents.
    """
    ranks = {commit: rank for rank, commit in enumerate(releases)}
    names = list(releases.values())
    none = len(names)
    first: dict[str, int] = {}
    for line in lines:
        commit, *parents = line.split()
        if len(first) >= MAX_COMMITS:
            break
        rank = first[commit] = min(first.get(commit, none), ranks.get(commit, none))
        if rank < none:
            for parent in parents:
                first[parent] = min(first.get(parent, none), rank)
    return {commit: names[rank] for commit, rank in first.items() if rank < none}
