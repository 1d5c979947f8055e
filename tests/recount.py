"""Recompute what a store says of its raw files, from these files alone: nothing of the package is imported.

Numbers and dates of the page, the series, the named queries and the generalisations are compared with what a short, separate reading of
the raw files gives. What is derived from other statements of the store (such as which memories were chosen) is not compared, and counted.
"""

from __future__ import annotations

import argparse
import base64
import html
import json
import re
import subprocess
import sys
import zlib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

Run = Callable[..., str]
"""Runs one command of memgraph and returns what it printed."""
_MONTHS = (
    "January February March April May June July August September October November December".split()
)  # fmt: skip
_MONTH = "(?:" + "|".join(_MONTHS) + ")"
_DAY = rf"\d{{1,2}} {_MONTH} \d{{4}}"
_RULE = re.compile(
    r"(?:Who changes (?P<file>\S+) changes (?P<other>\S+) too: .*|(?P<who>.+) knows (?P<known>\S+): made .*|(?P<spot>\S+) is a hot spot: .*)"
    rf"\b(?:on|of) (?P<day>{_DAY})\.$"
)
"""What is counted over commits, up to the day of the latest that counts."""
_MANY = 8
"""With more buckets than this, the page compares the halves of their span."""


@dataclass(frozen=True)
class Attempt:
    """One build or trial: when it ended, how, and what failed and was mended in it, each with the words that tell it."""

    name: str
    at: datetime
    outcome: str
    failed: Mapping[str, str] = field(default_factory=dict)
    mended: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, str] = field(default_factory=dict)
    """Agents by the name of what they did."""
    said: str = ""
    """What tools answered in a trial, a line each."""


@dataclass(frozen=True)
class Raw:
    """What the raw files say."""

    kind: str
    attempts: Sequence[Attempt] = ()
    commits: Mapping[str, datetime] = field(default_factory=dict)
    authors: Mapping[str, str] = field(default_factory=dict)
    changed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The commits that changed a file, by the last of the names that it had, oldest first."""
    mending: frozenset[str] = frozenset()
    """The commits whose title begins with "fix", or that name an issue that they fix or close."""
    reverts: Mapping[str, str] = field(default_factory=dict)
    """The reverting commit of each reverted one."""
    sittings: Mapping[str, datetime] = field(default_factory=dict)
    """When each run of commits ended, by its name: one author's, each within three hours of the one before, at most twenty."""

    @property
    def is_of_tasks(self) -> bool:
        return self.kind in {"tau", "alfworld"}


def read_builds(paths: Sequence[Path]) -> Raw:
    """Read build logs: JSON lines. What was mended had failed with what its task failed with last."""
    found, last = [], dict[str, str]()
    for build in (json.loads(line) for path in paths for line in path.read_text().splitlines() if line.strip()):
        failed, mended, agents = {}, {}, {}
        for task in build["tasks"]:
            told = f"{' '.join(task.get('files_changed', ()))} {task['description']} {task.get('output', '')}"
            what = re.sub(r"\d+", "#", told)
            if task["outcome"] == "failure":
                failed[what] = last[task["description"]] = told
                agents[what] = task["agent_name"]
            elif task["description"].startswith("fix"):
                mended[what] = f"{told} {last.get(task['description'].removeprefix('fix: '), '')}"
                agents[what] = task["agent_name"]
        at = datetime.fromisoformat(build["completed_at"]).astimezone(UTC)
        found.append(Attempt(build["build_id"], at, build["build_outcome"], failed, mended, agents))
    return Raw("builds", found)


def read_tau(paths: Sequence[Path]) -> Raw:
    """Read tau-bench: an undated trial n is day n of 2000."""
    return _trials(
        "tau",
        (
            (
                f"task-{one['task_id']}",
                one["trial"],
                one["reward"] == 1,
                "\n".join(f"{step.get('name', step['role'])}: {step['content']}" for step in one["traj"]),
            )
            for path in paths
            for one in map(json.loads, path.read_text().splitlines())
        ),
    )


def read_alfworld(paths: Sequence[Path]) -> Raw:
    """Read ALFWorld's results of Reflexion, a file a trial."""
    return _trials(
        "alfworld",
        (
            (one["name"], int(re.findall(r"\d+", path.stem)[-1]), one["is_success"], "")
            for path in paths
            for one in json.loads(path.read_text())
        ),
    )


def _trials(kind: str, tried: Iterable[tuple[str, int, bool, str]]) -> Raw:
    attempts = []
    for task, trial, is_solved, said in tried:
        at = datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=trial)
        failed = {} if is_solved else {task: said}
        attempts.append(Attempt(f"{task}-trial-{trial}", at, "success" if is_solved else "failure", failed, said=said))
    return Raw(kind, attempts)


def read_git(paths: Sequence[Path]) -> Raw:
    """Read the output of ``git log``."""
    commits: dict[str, datetime] = {}
    reverts, authors, files, mending = {}, {}, {}, set()
    for path in paths:
        for block in re.split(r"(?m)^commit (?=[0-9a-f]{40})", path.read_text(errors="replace"))[1:]:
            sha = block[:40]
            (when,) = re.findall(r"(?m)^Date: +(.+)$", block)[:1]
            commits[sha] = datetime.strptime(when, "%a %b %d %H:%M:%S %Y %z").astimezone(UTC)
            (authors[sha],) = re.findall(r"(?m)^Author: +(.*?) *(?:<.*)?$", block)[:1]
            files[sha] = re.findall(r"(?m)^([AMDR])\d*\t([^\t\n]+)(?:\t([^\t\n]+))?$", block)
            if re.search(r"(?i)\n\n    fix(es|ed)?\b|\b(fix|close|resolve)(s|es|d|ed)?:? #\d", block):
                mending.add(sha)
            for gone in re.findall(r"This reverts commit ([0-9a-f]{7,40})", block):
                reverts[gone] = sha
    full = {gone: next((sha for sha in commits if sha.startswith(gone)), gone) for gone in reverts}
    sittings: list[list[str]] = []
    changed: dict[str, list[str]] = defaultdict(list)
    for sha in reversed(commits):
        for _, name, moved_to in files[sha]:
            if moved_to:
                changed[moved_to] = changed.pop(name, [])
            changed[moved_to or name].append(sha)
        last = sittings[-1][-1] if sittings else sha
        is_near = authors[sha] == authors[last] and abs(commits[sha] - commits[last]) <= timedelta(hours=3)
        if sittings and is_near and len(sittings[-1]) < 20:
            sittings[-1].append(sha)
        else:
            sittings.append([sha])
    ends = {f"git-{one[0][:12]}": max(commits[sha] for sha in one) for one in sittings}
    taken_back = {full[gone]: sha for gone, sha in reverts.items()}
    told = {"authors": authors, "changed": changed, "mending": frozenset(mending), "reverts": taken_back}
    return Raw("git", commits=commits, **told, sittings=ends)


READERS = {"builds": read_builds, "tau": read_tau, "alfworld": read_alfworld, "git": read_git}


@dataclass
class Tally:
    """What was compared, what differed, and what a text states that was not compared."""

    numbers: Counter[str] = field(default_factory=Counter)
    dates: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)

    def number(self, where: str, stated: float | None, counted: float | None) -> None:
        self.numbers[where.split(":", maxsplit=1)[0]] += 1
        is_same = stated == counted if None in {stated, counted} else abs(stated - counted) < 0.0006  # type: ignore[operator]
        if not is_same:
            self.different.append(f"{where}: {stated} is stated, {counted} counted")

    def date(self, where: str, stated: object, counted: object) -> None:
        self.dates[where.split(":", maxsplit=1)[0]] += 1
        if stated != counted:
            self.different.append(f"{where}: {stated} is stated, {counted} counted")

    def lines(self) -> Iterator[str]:
        """Yield what to print."""
        compared = sum((self.numbers + self.dates).values())
        for where in sorted(self.numbers | self.dates):
            yield f"  {where}: {self.numbers[where]:,} numbers, {self.dates[where]:,} dates"
        equal = compared - len(self.different)
        numbers, dates = sum(self.numbers.values()), sum(self.dates.values())
        yield f"  {compared:,} compared ({numbers:,} numbers, {dates:,} dates), {equal:,} equal, {len(self.different):,} different; {len(self.not_compared):,} stated but not compared"
        yield from (f"  DIFFERENT {one}" for one in self.different)
        yield from (f"  not compared: {one}" for one in self.not_compared)


def recount(raw: Raw, run: Run, folder: Path) -> Tally:
    """Compare everything that a store states with what its raw files say."""
    tally = Tally()
    page = recount_page(tally, raw, run, folder)
    _queries(tally, raw, run)
    _generalisations(tally, raw, run, page)
    return tally


def recount_page(tally: Tally, raw: Raw, run: Run, folder: Path) -> dict[str, Any]:
    """Compare what the page and the series state, and return the page's document."""
    run("viz", "page", folder / "page.html")
    text = (folder / "page.html").read_text()
    page = _document(text)
    series = {one["name"]: one for one in json.loads(run("viz", "series"))}
    for name, of in (("series", series), ("page's series", {one["name"]: one for one in page["series"]})):
        _series(tally, name, raw, of)
        _memories(tally, name, page, of)
    _opening(tally, raw, text, page)
    _page(tally, raw, page)
    return page


def _document(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data"([^>]*)>(.*?)</script>', text, re.DOTALL)
    assert found, "the page has no data"
    data = json.loads(found[2])
    return json.loads(zlib.decompress(base64.b64decode(data), -15)) if "deflate" in found[1] else data


def _start(at: datetime, bucket: str) -> date:
    day = at.date()
    if bucket == "week":
        return day - timedelta(days=day.weekday())
    if bucket == "day":
        return day
    if bucket == "month":
        return day.replace(day=1)
    return date(day.year if bucket == "year" else day.year // 10 * 10, 1, 1)


def _failures(raw: Raw) -> list[tuple[datetime, str]]:
    """Return every failure in order of time, once for each attempt."""
    return sorted((one.at, what) for one in raw.attempts for what in one.failed)


def _series(tally: Tally, name: str, raw: Raw, series: Mapping[str, Any]) -> None:
    failures = _failures(raw)
    for one in ("success_rate", "repeated_failures", "returning_failures"):
        points = series[one]["points"] if one in series else []
        bucket = series[one]["bucket"] if points else None
        met: set[str] = set()
        counted: dict[str, tuple[float | None, int]] = {}
        for point in points:
            begin, where = date.fromisoformat(point["at"]), f"{name}: {one} {point['at']} {point['group']}"
            if one == "success_rate":
                if point["group"] != "builds":
                    continue
                outcomes = [each.outcome == "success" for each in raw.attempts if _start(each.at, bucket) == begin]
                value, of = _share(outcomes)
            elif raw.kind == "git" or (one == "repeated_failures" and point["group"] != "seen before"):
                tally.not_compared.append(where)  # failures of a history are the reverts among the memories chosen
                continue
            elif one == "repeated_failures":
                value, of = _share(
                    any(what == other and (then, i) < (at, n) for i, (then, other) in enumerate(failures))
                    for n, (at, what) in enumerate(failures)
                    if _start(at, bucket) == begin
                )
            else:
                known = {what for at, what in failures if _start(at, bucket) < begin}
                again = {what for at, what in failures if _start(at, bucket) == begin}
                value, of = (len(known & again) / len(known) if known else None), len(known)
            tally.number(where, point["value"], value)
            tally.number(where, point["count"], of)
            counted[point["at"]] = value, of
            met |= {point["at"]}
        of_raw = [each.at for each in raw.attempts] if one == "success_rate" else [at for at, _ in failures]
        if of_raw and bucket:
            tally.date(f"{name}: {one} begins", min(met), str(_start(min(of_raw), bucket)))
            tally.date(f"{name}: {one} ends", max(met), str(_start(max(of_raw), bucket)))


@dataclass(frozen=True)
class _Memory:
    """A memory on the page: its kind, when it came, and when it went out of force and back, in turns."""

    kind: str
    added: int
    turns: Sequence[int]

    def is_live(self, until: float) -> bool:
        return bisect_right(self.turns, until) % 2 == 1


def _memories_of(page: Mapping[str, Any]) -> list[_Memory]:
    lives = {place: turns for place, *turns in page["lives"]}
    found, added = [], 0
    for place, kind in enumerate(page["memories"]["type"]):
        added += page["memories"]["added"][place]
        found.append(_Memory(page["types"][int(kind)], added, lives.get(place, [added])))
    return found


def _memories(tally: Tally, name: str, page: Mapping[str, Any], series: Mapping[str, Any]) -> None:
    """Compare the series of memories with the memories on the page, whose times are compared with the raw files."""
    memories = _memories_of(page)
    flat = page["links"].get("EVIDENCE", ())
    evidence = list(zip(flat[::2], flat[1::2], strict=True))
    for one, each in series.items():
        points, bucket = each["points"], each["bucket"]
        begins = sorted({point["at"] for point in points})
        for point in points:
            where, place = f"{name}: {one} {point['at']} {point['group']}", begins.index(point["at"])
            since, until = (
                (datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() - page["start"] / 1000)
                for at in (point["at"], begins[place + 1] if point["at"] != begins[-1] else "9999-01-01")
            )
            came = [memory for memory in memories if memory.kind == point["group"] and since <= memory.added < until]
            live = {number for number, memory in enumerate(memories) if memory.is_live(until - 0.5)}
            episodes = {number for number in live if memories[number].kind == "episodic"}
            made = {end for _, end in evidence if end in live}
            if one == "memories_added":
                value, of = len(came), len(came)
            elif one == "live_memories":
                value = of = sum(memories[number].kind == point["group"] for number in live)
            elif one == "survival":
                value, of = _share(memory.is_live(1e12) for memory in came)
            elif one == "compression_ratio":
                value, of = _share(any((number, end) in evidence for end in made) for number in episodes)
            elif one == "sources_per_generalisation":
                value, of = (
                    (
                        sum(end in made and memories[source].added < until for source, end in evidence) / len(made)
                        if made
                        else None
                    ),
                    len(made),
                )
            else:
                if one not in {"success_rate", "repeated_failures", "returning_failures"}:
                    tally.not_compared.append(where)
                continue
            tally.number(where, point["value"], value)
            tally.number(where, point["count"], of)
        if bucket and one == "memories_added":
            counted = [datetime.fromtimestamp(page["start"] / 1000 + memory.added, UTC) for memory in memories]
            tally.date(f"{name}: {one} begins", begins[0], str(_start(min(counted), bucket)))
            tally.date(f"{name}: {one} ends", begins[-1], str(_start(max(counted), bucket)))


def _share(hits: Iterable[bool]) -> tuple[float | None, int]:
    hits = list(hits)
    return (sum(hits) / len(hits) if hits else None), len(hits)


def _words(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _from_words(text: str) -> date:
    day, month, year = text.split()
    return date(int(year), _MONTHS.index(month) + 1, int(day))


def _time(raw: Raw, words: str) -> Callable[[datetime], bool]:
    """Return whether a time lies in a period that is told in words."""
    if found := re.fullmatch(r"in trial (\d+)", words):
        return lambda at: (at.date() - date(2000, 1, 1)).days == int(found[1])
    if found := re.fullmatch(rf"(on|in the week from) ({_DAY})", words):
        day = _from_words(found[2])
        return lambda at: day <= at.date() < day + timedelta(days=1 if found[1] == "on" else 7)
    if found := re.fullmatch(rf"in ({_MONTH}) (\d{{4}})", words):
        return lambda at: (_MONTHS[at.month - 1], str(at.year)) == found.groups()
    if found := re.fullmatch(r"in (\d{4})", words):
        return lambda at: at.year == int(found[1])
    if found := re.fullmatch(r"before trial (\d+)", words):
        return lambda at: (at.date() - date(2000, 1, 1)).days < int(found[1])
    (day,) = re.findall(_DAY, words)
    return lambda at: at.date() < _from_words(day)


def _opening(tally: Tally, raw: Raw, text: str, page: Mapping[str, Any]) -> None:
    """Compare the sentences at the head of the page."""
    (said,) = re.findall(r'class="opening">(.*?)</p>', text, re.DOTALL)
    (span,) = re.findall(r'class="span">(.*?)</p>', text, re.DOTALL)
    said, where = html.unescape(said).replace("\u00a0", " "), "page: opening"
    times = sorted([one.at for one in raw.attempts] or raw.commits.values())
    first, last = times[0].date(), times[-1].date()
    if raw.is_of_tasks:
        stated = [int(one) for one in re.findall(r"\d+", span)]
        for number, day in zip(stated, (first, last), strict=True):
            tally.number("page: span", number, (day - date(2000, 1, 1)).days)
    else:
        ends = span.split(" to ")
        tally.date("page: span", ends[0], _words(first))
        tally.date("page: span", ends[-1], _words(last))
    left = said.replace(span, "")
    for what, all_of_them in (("build", raw.attempts), ("commit", raw.commits)):
        found = re.search(rf"^([\d,]+) {what}s?\b", left)
        tally.number(f"{where}, {what}s", _int(found[1]) if found else 0, len(all_of_them))
        left = left.replace(found[0], "") if found else left
    if found := re.search(r"([\d,]+) (?:is a commit|are commits)", left):
        of_commits = sum(bool(more.get("commit")) for more in page["more"].values())
        tally.number(f"{where}, memories of commits", _int(found[1]), of_commits)
        left = left.replace(found[0], "")
    kinds = Counter(one.kind for one in _memories_of(page))
    words = {"generalisation": kinds["generalisation"], "procedure": kinds["procedural"], "fact": kinds["fact"]}
    for many, word in re.findall(r"([\d,]+) (memor|generalisation|procedure|fact)(?:y|ies|s)?\b", left):
        tally.number(f"{where}, {word}", _int(many), words.get(word, kinds.total()))
        left = left.replace(f"{many} {word}", "")
    share = r"(\d+) % \(of ([\d,]+)\)"
    if found := re.search(rf"Attempts that succeeded \w+ from {share} (.+?) to {share} (.+?)\.", left):
        begin = _time(raw, found[3])
        rest = (lambda at: not begin(at)) if found[6] == "from then on" else _time(raw, found[6])
        for percent, of, within in ((found[1], found[2], begin), (found[4], found[5], rest)):
            counted, many = _share(one.outcome == "success" for one in raw.attempts if within(one.at))
            tally.number(f"{where}, share", int(percent), round(100 * (counted or 0)))
            tally.number(f"{where}, of", _int(of), many)
        left = left.replace(found[0], "")
    failures = _failures(raw)
    if found := re.search(r"Of the ([\d,]+) \D+? (before .+?), (\S+) (?:came|failed) again from then on\.", left):
        before = _time(raw, found[2])
        known = {what for at, what in failures if before(at)}
        tally.number(f"{where}, known", _int(found[1]), len(known))
        again = {what for at, what in failures if not before(at)} & known
        tally.number(f"{where}, again", 0 if found[3] == "none" else _int(found[3]), len(again))
        left = left.replace(found[0], "")
    elif found := re.search(r"Of the ([\d,]+) (?:failures|tasks) known (?:before|to fail), ([\d,]+) \w+ again (.+?)(?:(?:; of ([\d,]+),| and) ([\d,]+) (.+?))?\.", left):  # fmt: skip
        parts = [(found[1], found[2], found[3])]
        parts += [(found[4] or found[1], found[5], found[6])] if found[5] else []
        for many, came, period in parts:
            within = _time(raw, period)
            begins = min(at for at, _ in failures if within(at))
            known = {what for at, what in failures if at < begins and not within(at)}
            tally.number(f"{where}, known", _int(many), len(known))
            tally.number(f"{where}, again", _int(came), len({what for at, what in failures if within(at)} & known))
        left = left.replace(found[0], "")
    tally.not_compared += [f"{where}: {one}" for one in re.findall(r"\d[\d,]* \S+", left)]


def _page(tally: Tally, raw: Raw, page: Mapping[str, Any]) -> None:
    """Compare the times in the page's document."""
    begin = datetime.fromtimestamp(page["start"] / 1000, UTC)

    def at(seconds: int) -> datetime:
        return begin + timedelta(seconds=seconds)

    times = sorted([one.at for one in raw.attempts] or raw.commits.values())
    tally.date("page: start", begin.date(), times[0].date())
    facts = [at(memory.added) for memory in _memories_of(page) if memory.kind == "fact"]  # what somebody typed
    tally.date("page: end", at(page["end"]).date(), max([times[-1], *facts]).date())
    _rules(tally, raw, page)
    failed: dict[str, list[datetime]] = defaultdict(list)
    for then, what in _failures(raw):
        failed[what].append(then)
    for title, _, times_failed, tried, solved in (page["failing"] or {"failures": ()})["failures"]:
        stated = [at(one) for one in times_failed]
        name = min(failed, key=lambda what: (title not in what, failed[what] != stated))
        if raw.is_of_tasks:  # the title is what was asked
            name = min(failed, key=lambda what: failed[what] != stated)
        tally.number(f"page: times that {title[:30]} failed", len(stated), len(failed[name]))
        for one, counted in zip(stated, failed[name], strict=False):
            tally.date(f"page: {title[:30]} failed", one, counted)
        if tried:
            of_task = [one for one in raw.attempts if one.name.startswith(f"{name}-trial")]
            is_alone = sum(each == failed[name] for each in failed.values()) == 1
            tally.number(f"page: attempts at {title[:30]}", len(tried), len(of_task))
            if is_alone:
                tally.number(
                    f"page: successes at {title[:30]}", len(solved), sum(one.outcome == "success" for one in of_task)
                )
    tally.number("page: failures", len((page["failing"] or {"failures": failed})["failures"]), len(failed))
    told = {place: [at(one) for one in reported] for place, *reported in page["told"]}
    memories = _memories_of(page) if raw.kind == "builds" else []
    stated: dict[tuple[datetime, ...], set[datetime]] = defaultdict(set)
    for place, memory in enumerate(memories):
        if memory.kind == "episodic":  # several memories may tell one error, with the numbers in it
            counted = _told(raw, page["memories"]["text"][place])
            tally.date(f"page: memory {place} came", at(memory.added) in counted, True)
            stated[tuple(counted)] |= {at(memory.added), *told.get(place, ())}
    for counted, times in stated.items():
        tally.number("page: builds that told an error", len(times), len(counted))
        for one, other in zip(sorted(times), counted, strict=False):
            tally.date("page: an error was told", one, other)


def _rules(tally: Tally, raw: Raw, page: Mapping[str, Any]) -> None:
    """Compare the dates of counted rules, in their text and under it, and over how many commits they were counted."""
    for memory, text in zip(_memories_of(page), page["memories"]["text"], strict=True):
        if not (one := _RULE.match(text)):
            continue
        where, of = f"page: {text[:60]}", raw.changed[one["file"] or one["known"] or one["spot"]]
        by = {sha for sha in of if raw.authors[sha] == one["who"]}
        hits = [sha for sha in of if sha in (raw.mending if one["spot"] else by or raw.changed[one["other"]])]
        for many, changes in re.findall(r": (?:made )?([\d,]+) of (?:the|its) ([\d,]+) changes", text):
            tally.number(f"{where}, hits", _int(many), len(hits))
            tally.number(f"{where}, changes", _int(changes), len(of))
        last = max((raw.commits[sha].date() for sha in hits), default=None)
        tally.date(f"{where}, latest", _from_words(one["day"]), last)
        tally.date(f"{where}, came", datetime.fromtimestamp(page["start"] / 1000 + memory.added, UTC).date(), last)


def _told(raw: Raw, text: str) -> Sequence[datetime]:
    """Return when attempts told of what a text quotes: its failure, or what mended it."""
    bare = re.sub(r"\W+", " ", re.sub(r"\d+", "#", text))
    found = []
    for one in raw.attempts:
        for what, of in ((what, told) for told in (one.failed, one.mended) for what in told):
            error = re.sub(r"\W+", " ", what.split(") ", 1)[-1]).strip()
            file = what.split()[0]
            if file in text and (of is one.failed) == (" failed at " in text) and error[:40] in bare:
                found.append(one.at)
    return sorted(set(found))


def _rows(run: Run, name: str, *params: str) -> list[dict[str, Any]]:
    return json.loads(run("query", name, *params, "--json"))


def _stated(at: str | None) -> datetime | None:
    return datetime.fromisoformat(at).replace(microsecond=0) if at else None


def _queries(tally: Tally, raw: Raw, run: Run) -> None:
    every = ("-p", "limit=100000")
    if raw.kind == "git":
        _commits(tally, raw, run)
        return
    for row in (rows := _rows(run, "failures_by_month")):
        where = f"failures_by_month: {row['month'][:7]}"
        outcomes = [one.outcome for one in raw.attempts if f"{one.at:%Y-%m}" == row["month"][:7]]
        tally.number(f"{where} builds", row["builds"], len(outcomes))
        tally.number(f"{where} failures", row["failures"], outcomes.count("failure"))
        tally.number(f"{where} partial", row["partial"], outcomes.count("partial"))
        tally.number(f"{where} share", row["share"], outcomes.count("failure") / max(1, len(outcomes)))
    tally.number("failures_by_month: months", len(rows), len({f"{one.at:%Y-%m}" for one in raw.attempts}))
    named = {one.name: one for one in raw.attempts}
    rows = _rows(run, "builds", *every)
    tally.number("builds: builds", len(rows), len(raw.attempts))
    for row in rows:
        name = re.sub(r"@[0-9a-f]{8}$", "", row["build"])
        name = next((one for one in named if name == one or name.endswith(f"-{one}")), name)
        one = named.get(name)
        tally.date(f"builds: {name} completed", _stated(row["completed_at"]), one and one.at)
        tally.date(f"builds: {name} outcome", row["outcome"], one and one.outcome)
    times = sorted(one.at for one in raw.attempts)
    for row in _rows(run, "coverage_by_project"):
        tally.number("coverage_by_project: builds", row["builds"], len(raw.attempts))
        tally.date("coverage_by_project: first", _stated(row["first_at"]), times[0])
        tally.date("coverage_by_project: last", _stated(row["last_at"]), times[-1])
    if raw.is_of_tasks:
        return
    files = {what.split()[0] for _, what in _failures(raw)}
    rows = _rows(run, "failures_by_file", *every)
    tally.number("failures_by_file: files", len(rows), len(files))
    for row in rows:
        met = [one.at for one in raw.attempts if any(what.split()[0] == row["file"] for what in one.failed)]
        tally.number(f"failures_by_file: {row['file']}", row["failures"], len(met))
        tally.date(f"failures_by_file: {row['file']} last", _stated(row["last_at"]), max(met, default=None))
    for row in _rows(run, "recurring_failures", *every):
        met = _told(raw, row["example"])
        tally.number(f"recurring_failures: {row['files']}", row["builds"], len(met))
        tally.date(f"recurring_failures: {row['files']} first", _stated(row["first_at"]), met[0] if met else None)
        tally.date(f"recurring_failures: {row['files']} last", _stated(row["last_at"]), met[-1] if met else None)
    for row in _rows(run, "failures_by_tag", *every):
        met = [one.at for one in raw.attempts if any(_has_tag(told, row["tag"]) for told in one.failed.values())]
        if row["tag"] == "failure":
            met = [one.at for one in raw.attempts if one.failed]
        mended = [one.at for one in raw.attempts if any(_has_tag(told, row["tag"]) for told in one.mended.values())]
        tally.number(f"failures_by_tag: {row['tag']}", row["failures"], len(met))
        tally.number(f"failures_by_tag: {row['tag']} reports", row["reports"], len({*met, *mended}))
        tally.date(f"failures_by_tag: {row['tag']} last", _stated(row["last_at"]), max(met, default=None))
    for row in _rows(run, "entities_by_mentions", *every, "-p", "kind=file"):
        told = [
            one.at for one in raw.attempts for what in (*one.failed, *one.mended) if what.split()[0] == row["entity"]
        ]
        tally.date(f"entities_by_mentions: {row['entity']} last", _stated(row["last_at"]), max(told, default=None))
    for row in _rows(run, "agents_by_learning"):
        told = [one.at for one in raw.attempts if row["agent"] in one.agents.values()]
        tally.date(f"agents_by_learning: {row['agent']} last", _stated(row["last_at"]), max(told, default=None))


def _has_tag(told: str, tag: str) -> bool:
    return tag in re.findall(r"[a-z0-9]+", told.lower())


def _commits(tally: Tally, raw: Raw, run: Run) -> None:
    """Compare the dates of what was learned from commits, and of its end."""
    asked = (
        "MATCH (m:Memory) WHERE m.git_commit <> '' RETURN m.git_commit AS sha, m.occurred_at AS at, "
        "m.invalid_at AS ended, m.invalidation_reason AS why"
    )
    for row in json.loads(run("query", "--cypher", asked, "--json")):
        tally.date(f"memories: {row['sha'][:12]}", _stated(row["at"]), raw.commits.get(row["sha"]))
        if row["ended"]:
            by = re.findall(r"commit ([0-9a-f]{12})", row["why"] or "") or [raw.reverts.get(row["sha"], "?")[:12]]
            counted = next((at for sha, at in raw.commits.items() if sha.startswith(by[0])), None)
            tally.date(f"ends: {row['sha'][:12]}", _stated(row["ended"]), counted)
    rows = _rows(run, "builds", "-p", "limit=100000")
    tally.number("builds: builds", len(rows), len(raw.sittings))
    for row in rows:
        tally.date(f"builds: {row['build']}", _stated(row["completed_at"]), raw.sittings.get(row["build"]))
    for row in _rows(run, "sources_read"):
        tally.number("sources_read: records", row["records"], len(raw.commits))
    times = sorted(raw.sittings.values())
    for row in _rows(run, "coverage_by_project"):
        tally.date("coverage_by_project: first", _stated(row["first_at"]), times[0])
        tally.date("coverage_by_project: last", _stated(row["last_at"]), times[-1])


def _worded(tally: Tally, where: str, page: Mapping[str, Any], memory_id: str, times: Sequence[datetime]) -> None:
    """Compare when a generalisation came and got its text: with one of its evidence, and with the last."""
    places = [
        place
        for place in range(len(page["memories"]["text"]))
        if memory_id.startswith(page["memories"]["id"][8 * place : 8 * place + 8])
    ]
    for place in places:
        came = page["start"] / 1000 + _memories_of(page)[place].added
        worded = dict(page["worded"]).get(place, _memories_of(page)[place].added)
        tally.date(f"{where} came", came in [one.timestamp() for one in times], True)
        tally.date(f"{where} worded", page["start"] / 1000 + worded, times[-1].timestamp())


def _generalisations(tally: Tally, raw: Raw, run: Run, page: Mapping[str, Any]) -> None:
    for row in _rows(run, "generalisations", "-p", "limit=100000"):
        said, where = row["content"], f"generalisations: {row['content'][:60]}"
        if raw.kind == "git" and _RULE.match(said):
            continue  # compared on the page
        met, left = _evidence(raw, said, row["id"], run), re.sub("““([^“”]*)”", r"“\1", said)
        if met is None:
            tally.not_compared.append(f"{where} (all of it)")
            continue
        tally.number(f"{where} builds", row["builds"], len(met))
        of = [then for then, *_ in met]
        if ", solved in " in said:  # of what decided it, the trials that solved it are evidence as well
            task = f"{met[0][1].rsplit('-trial-', 1)[0]}-trial-"
            solved = (one.at for one in raw.attempts if one.name.startswith(task) and one.outcome == "success")
            of = sorted([*of, *list(solved)[:1]])
        _worded(tally, where, page, row["id"], of)
        tally.date(f"{where} first", _stated(row["first_at"]), min(of))
        tally.date(f"{where} last", _stated(row["last_at"]), max(of))
        if found := re.search(rf" That mended it \(({_DAY})\)", left):
            mended = [one.at for one in raw.attempts if any(error_of(said) in told for told in one.mended.values())]
            tally.date(f"{where} mended", _from_words(found[1]), max(mended).date())
            met, left = [one for one in met if one[0] not in mended], left.replace(found[0], "", 1)
        counted = len(met)
        if found := re.search(r"\bin ([\d,]+) (?:builds|trials|changes)", left):
            tally.number(where, _int(found[1]), counted)
            left = left.replace(found[0], "", 1)
        span = rf", (?:from ({_MONTH})(?: (\d{{4}}))? to )?(?:in )?({_MONTH}) (\d{{4}})"
        if found := re.search(span, left):
            first, last = met[0][0], met[-1][0]
            begin = f"{found[1] or found[3]} {found[2] or found[4]}"
            tally.date(f"{where} from", begin, f"{_MONTHS[first.month - 1]} {first.year}")
            tally.date(f"{where} to", f"{found[3]} {found[4]}", f"{_MONTHS[last.month - 1]} {last.year}")
            left = left.replace(found[0], "", 1)
        if found := re.search(r", solved in trials? ([\d, and]+)", left):
            went_well = [one.outcome == "success" for one in raw.attempts if one.name.startswith(task)]
            solved_in = [str(number) for number, well in enumerate(went_well, start=1) if well]
            tally.date(f"{where} solved in", re.findall(r"\d+", found[1]), solved_in)
            left = left.replace(found[0], "", 1)
        if found := re.search(r"(?:Their last error|The last error of (\d+) of them) was: ([^.…]+)", left):
            last = (["", *re.findall(r"(?m)^\S+: (Error: .+)$", one[2])][-1] for one in met)
            tally.number(f"{where} last error", int(found[1] or counted), sum(found[2] in one for one in last))
            left = left.replace(found[0], "", 1)
        if found := re.search(r" came up.*, and stayed in (\d+) of them", left):
            tally.number(f"{where} stayed", int(found[1]), sum(_stayed(one[2], error_of(said)) for one in met))
            left = left.replace(found[0], "", 1)
        if raw.kind == "builds":
            for quoted, day in re.findall(rf"“([^”]+)” \(({_DAY})\)", left):
                said_first = quoted.removeprefix("What worked: ")[:30]
                days = [one[0].date() for one in met if said_first in one[2].replace("fix: ", "")]
                tally.date(f"{where} dated", _from_words(day) in days, True)
                left = left.replace(f"({day})", "", 1)
        frame = left.partition(": ")[0] if left.startswith("The same failed") else left
        outside = re.sub(r"“[^”]*”|`[^`]*`|\w+_\d+", "", frame)
        tally.not_compared += [f"{where}: {one}" for one in re.findall(r"\d[\d,]*(?: [a-z]\S*)?", outside)]


def _evidence(raw: Raw, said: str, memory_id: str, run: Run) -> list[tuple[datetime, str, str]] | None:
    """Return the time, name and words of every attempt of which a generalisation tells; None if it cannot be told from its text."""
    if raw.kind == "git":
        asked = f"MATCH (g:Memory)-[:DERIVED_FROM]->(m:Memory)-[:FROM_BUILD]->(b:Build) WHERE g.id = '{memory_id}' RETURN DISTINCT b.name AS name"
        names = [row["name"] for row in json.loads(run("query", "--cypher", asked, "--json"))]
        return sorted((raw.sittings[name], name, "") for name in names) or None
    if " came up in " in said:
        told = ((one, one.said or " ".join([*one.failed.values(), *one.mended.values()])) for one in raw.attempts)
        return sorted((one.at, one.name, text) for one, text in told if error_of(said) in text) or None
    if raw.is_of_tasks:
        names = re.findall(r"\b(env_\d+)\b", said)
        tasks = {one.name.rsplit("-trial-", 1)[0]: "" for one in raw.attempts}
        for one in raw.attempts:
            tasks[one.name.rsplit("-trial-", 1)[0]] += "".join(one.failed.values())
        quoted = next(iter(re.findall(r"“(.+?)[.?!”]", said)), "\0")
        task = names[0] if names else next((name for name, told in tasks.items() if quoted[:40] in told), None)
        met = [one for one in raw.attempts if one.name.startswith(f"{task}-trial-") and one.outcome != "success"]
        return sorted((one.at, one.name, one.said) for one in met) or None
    named = re.search(r"with `([^`]+)`", said)
    if not named:
        return None
    is_fix = said.startswith("The same had to be fixed")
    return sorted(
        (one.at, one.name, told)
        for one in raw.attempts
        for told in (one.mended if is_fix else one.failed).values()
        if named[1] in told.split()[0].split("/")
    ) or None  # fmt: skip


def error_of(said: str) -> str:
    """Return the beginning of the error that a text names first, up to its first number."""
    said = said.partition(" That mended it (")[2].partition("): ")[2] or said
    return re.split(r"[”…\d]|, ", said.removeprefix("“").removeprefix("Error: "), maxsplit=1)[0].strip()


def _stayed(said: str, error: str) -> bool:
    """Return whether no call of the tool that reported an error went well after it had done so last."""
    lines = said.split("\n")
    last = max(place for place, line in enumerate(lines) if error in line)
    tool = lines[last].partition(":")[0]
    return not any(line.startswith(f"{tool}: ") and ": Error" not in line for line in lines[last + 1 :])


def _int(text: str) -> int:
    return int(text.replace(",", ""))


@dataclass(frozen=True)
class Tested:
    """One run of a test, as a report has it: the run's end, the commit that it names, and whether the test failed and passed in it."""

    test: str
    at: datetime
    commit: str
    failed: bool
    passed: bool


def read_reports(paths: Sequence[Path]) -> list[Tested]:
    """Read JUnit's reports, oldest first."""
    found = []
    for path in paths:
        suite = ElementTree.parse(path).getroot().find("testsuite")
        assert suite is not None
        end = datetime.fromisoformat(suite.get("timestamp", "") + "+00:00") + timedelta(
            seconds=float(suite.get("time", "0"))
        )
        named = {one.get("name"): one.get("value", "") for one in suite.iter("property")}
        for case in suite.iter("testcase"):
            inside = {child.tag for child in case}
            if "skipped" not in inside:
                test, wrong = f"{case.get('classname')}::{case.get('name')}", "failure" in inside
                found.append(
                    Tested(test, end, named.get("GIT_COMMIT", ""), wrong or "flakyFailure" in inside, not wrong)
                )
    return sorted(found, key=lambda one: one.at)


def failing_tests(tested: Sequence[Tested]) -> list[dict[str, Any]]:
    """Return the rows of the query of this name."""
    rows = []
    for test in {one.test for one in tested if one.failed}:
        its = [one for one in tested if one.test == test]
        failed, passed = [one for one in its if one.failed], [one for one in its if one.passed]
        row = {"test": test, "failures": len(failed), "passes": sum(one.at >= failed[0].at for one in passed)}
        for name, last in (("failed", failed[-1:]), ("passed", passed[-1:])):
            row |= {
                f"last_{name}_at": last[0].at if last else None,
                f"last_{name}_on": last[0].commit or None if last else None,
            }
        rows.append(row | {"is_failing": not passed or passed[-1].at < failed[-1].at})
    return sorted(rows, key=lambda row: (-row["failures"], -row["last_failed_at"].timestamp(), row["test"]))


def counted_of_tests(
    tested: Sequence[Tested], commits: Sequence[tuple[str, Sequence[str]]]
) -> dict[tuple[str, str], tuple[int, int]]:
    """Return (hits, occasions) of each kind of rule and test. `commits` are hashes with their files, oldest first."""
    code, same = "", {}
    for sha, files in commits:
        if not code or not all(file.endswith(".md") for file in files):
            code = sha
        same[sha] = code
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for test in {one.test for one in tested}:
        before: list[tuple[str, bool]] = []
        for number, one in enumerate(one for one in tested if one.test == test):
            ran_on = same.get(one.commit, one.commit) or f"run {number}"
            earlier = [ok for where, ok in before if where == ran_on]
            if earlier or (one.failed and one.passed):
                is_hit = (one.failed and one.passed) or earlier[-1] != one.passed
                kind = "flaky test"
            elif before and before[-1][1] and any(not ok for _, ok in before):
                is_hit, kind = not one.passed, "returning failure"
            else:
                kind = ""
            if kind:
                counts[kind, test][0] += is_hit
                counts[kind, test][1] += 1
            before.append((ran_on, one.passed))
    return {key: (hits, occasions) for key, (hits, occasions) in counts.items()}


def main() -> int:
    """Compare a store with its raw files, and print how much was compared and what differs."""
    parser = argparse.ArgumentParser(description="Compare what a store states with the raw files it was made of.")
    parser.add_argument("kind", choices=READERS)
    parser.add_argument("raw", nargs="+", type=Path, help="the files that were ingested")
    parser.add_argument("--folder", type=Path, default=Path("recount"), help="where the page is written")
    parser.add_argument("--command", default="memgraph", help="the command; MEMGRAPH_HOME names the store")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)

    def run(*args: object) -> str:
        done = subprocess.run([given.command, *map(str, args)], capture_output=True, text=True, check=True)
        return done.stdout

    tally = recount(READERS[given.kind](given.raw), run, given.folder)
    print(f"{given.kind}:", *tally.lines(), sep="\n")
    return 1 if tally.different else 0


if __name__ == "__main__":
    sys.exit(main())
