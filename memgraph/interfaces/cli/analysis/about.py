"""``about``: what is known about a file, a component, a test, a person, a release, an issue or a commit; ``learning``: how such rules have held."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit, notice, plain

if TYPE_CHECKING:
    from memgraph.extraction.readers import GitReader
    from memgraph.facade import MemGraph
    from memgraph.lifecycle.counting.records import Counted
    from memgraph.ports import Row
    from memgraph.store.query import Reader

_HEAD = "Confidence (how often such rules were right about the last fifth of the history, else estimated from the counts), and rule:"
_ALL, _OF_ONE = 1_000, 10
"""Maximum numbers of lines: of rules about a name, and of what a person knows, or of files of one name."""


@click.command(cls=Command)
@click.argument("name")
@click.option("--project", metavar="NAME", help="The project of the history.  [default: the only one that knows it]")
@pass_settings
def about(settings: Settings, name: str, project: str | None) -> None:
    """Print what a history shows about NAME: a file, component, test, person, release, issue or commit.

    A file may have a former name, and a component is a folder; a person has a name or an e-mail; an issue or pull request is such as #12; a
    commit is the beginning of its hash, at least seven characters.

    Counted are: what changes together with a file, its changes that are fixes or close an issue, those that were mended or taken back, and
    who knows it; whether a test is flaky, or returns as a failure. Before each rule stands its confidence: how often such rules were right about the last fifth
    of the same history, where enough were asked.
    """
    from memgraph.lifecycle.counting.counting import about as chosen
    from memgraph.lifecycle.counting.kept import facts_of, records_of, rules_of

    if not name.strip():
        raise Refused("the name is empty: name a file, a test, a person, a release, an issue or a commit")
    found, tagged = {}, list[str]()
    with opened(settings, reads=True) as memory:
        reader = memory.store.reader
        for one, runs in _projects(memory, project).items():
            rules = rules_of(records_of(reader, one, runs))
            facts, known = facts_of(reader, one, name), chosen(name, rules, most=_ALL)
            if not facts and not known:
                facts = facts_of(reader, one, _person(reader, one, name))
            persons = {fact.name for fact in facts if fact.kind == "person"}
            of_persons = [rule for rule in rules if rule.object in persons]
            if facts or known:
                found[one] = facts, known, of_persons
            else:
                tagged += [git.locator for git in _repositories(reader, one) if git.has_tag(name)]
    if not found:
        beside = "; {} has a tag of that name; of its commits only those of HEAD are read, each in its first release"
        raise Refused(
            f"nothing is known about {plain(name)}: no commit changed a file of that name or is of a person, release, issue or hash of that "
            f"name, and no test of that name has enough failures{beside.format(plain(tagged[0])) if tagged else ''}"
        )
    if len(found) > 1:
        raise _several(found)
    ((facts, known, of_persons),) = found.values()
    files = [plain(fact.name) for fact in facts if fact.kind == "file"]
    if len(files) > 1:
        named = ", ".join(files[:_OF_ONE]) + (f" and {len(files) - _OF_ONE:,} more" if len(files) > _OF_ONE else "")
        raise Refused(f"several files have or had the name {plain(name)}; give one with its folder: {named}")
    told = [fact.document() for fact in facts]
    lines = [line for fact in told for line in (plain(fact["text"]), *(f"  {plain(one)}" for one in fact["latest"]))]
    document = {"name": name, "facts": told, "rules": [_document(rule) for rule in (*known, *of_persons)]}
    more = [f"… and {len(of_persons) - _OF_ONE:,} more"] if len(of_persons) > _OF_ONE else []
    emit(settings, document, [*lines, *_lines([*known, *of_persons[:_OF_ONE]]), *more])


def _person(reader: Reader, project: str, name: str) -> str:
    """Return the person whom a name or an e-mail means in the repositories that were read for a project; itself, where none says so."""
    from memgraph.errors import SourceError

    asked = name.strip().casefold()
    for repository in _repositories(reader, project):
        try:
            people = repository.people()
        except SourceError as error:
            notice(f"spellings and e-mails of persons are unknown: {error}")
            continue
        for spelling, person in people.items():
            if asked in {one.casefold() for one in spelling}:
                return person
    return name


def _repositories(reader: Reader, project: str) -> list[GitReader]:
    """Return the repositories that were read for a project."""
    from memgraph.extraction.readers import GitReader

    sources = (one for one in reader.every_record("Source") if one["project_id"] == project)
    return [GitReader(one["locator"]) for one in sources if one["kind"] == GitReader.kind]


@click.command(cls=Command)
@click.option(
    "--project",
    metavar="NAME",
    help="The project of the history.  [default: the only one that has commits, or runs of tests]",
)
@click.option("--check", is_flag=True, help="Hold the rules against the last fifth of the history.")
@pass_settings
def learning(settings: Settings, project: str | None, *, check: bool) -> None:
    """List the rules that the commits of a history and runs of tests show; with --check, how often such rules were right.

    Checked is every commit, and every result of a test, of the last fifth, asked before it was learned: the share of right answers
    among those that a rule gave.
    """
    from memgraph.lifecycle.counting.counting import check as checked
    from memgraph.lifecycle.counting.kept import records_of, rules_of

    with opened(settings, reads=True) as memory:
        records = records_of(memory.store.reader, *_project(memory, project))
    if not check:
        rules = rules_of(records)
        emit(settings, {"rules": [_document(rule) for rule in rules]}, _lines(rules))
        return
    held = checked(records)
    document = {
        kind: one._asdict() | {"levels": [level._asdict() for level in one.levels]} for kind, one in held.items()
    }
    lines = [
        f"{kind:20} {one.answered:,} of {one.asked:,} questions answered, {one.right / one.answered:.0%} right"
        for kind, one in held.items()
        if one.answered
    ]
    emit(settings, {"kinds": document}, lines or ["There are too few commits to check anything."])


def _projects(memory: MemGraph, given: str | None) -> dict[str, list[Row]]:
    """Return the projects to choose from, each with its runs of tests."""
    from memgraph.lifecycle.counting.kept import runs_of

    found = runs_of(memory.store.reader)
    if not found:
        raise Refused("there are no commits or runs of tests yet: read them with `memgraph ingest git PATH` or `junit`")
    if given is not None and given not in found:
        raise _several(found)
    return found if given is None else {given: found[given]}


def _project(memory: MemGraph, given: str | None) -> tuple[str, list[Row]]:
    from memgraph.lifecycle.counting.kept import projects_of

    found = _projects(memory, given)
    for only in ([*found], projects_of(memory.store.reader)):
        if len(only) == 1:
            return only[0], found[only[0]]
    raise _several(found)


def _several(projects: Iterable[str]) -> Refused:
    return Refused(f"name a project with --project: {', '.join(map(plain, projects))}")


def _document(rule: Counted) -> dict[str, Any]:
    times = {"first": rule.first.isoformat(), "last": rule.last.isoformat()}
    return rule._asdict() | {"text": rule.text, **times}


def _lines(rules: Iterable[Counted]) -> list[str]:
    said = [plain(f"{rule.confidence:.2f} {rule.text}") for rule in rules]
    return [_HEAD, *said] if said else []
