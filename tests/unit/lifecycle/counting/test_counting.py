"""What is counted is true: every number of a rule's sentence is counted again here, from the records alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from math import isclose
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.lifecycle.counting.counting import FIXES, LEAST_MEASURED, Counting, about, check, named_in
from memgraph.lifecycle.counting.outcomes import MOST_ACTIONS, closed_patterns
from memgraph.lifecycle.counting.records import (
    ALIKE,
    FLAKY,
    FOLLOWS,
    HOT_SPOT,
    KNOWS,
    MENDED,
    MOST_IDS,
    RETURNS,
    REVERTED,
    TOGETHER,
    WORKS,
    Change,
    Counted,
    FileChange,
    Outcome,
    Record,
    Session,
    Tally,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
PATHS = ["a.py", "src/b.py", "docs/c.md", "d.toml", "src/e.py"]
PERSONS = ["Ada", "Grace", ""]


def sha(number: int) -> str:
    return f"{number:040x}"[::-1]


def change(number: int, *files: str | FileChange, person: str = "Ada", **fields: object) -> Change:
    changed = tuple(FileChange(file) if isinstance(file, str) else file for file in files)
    return Change(f"c{number}", sha(number), START + timedelta(days=number), person, changed, **fields)  # type: ignore[arg-type]


def outcome(number: int, name: str, *, ok: bool, session: str = "s", kind: str = "test", **fields: object) -> Outcome:
    return Outcome(f"o{number}", START + timedelta(hours=number), name, kind, ok, session, **fields)  # type: ignore[arg-type]


def history_of(seed: int) -> list[Change]:
    """Make a history such as git could have: only files that are there are changed, renamed or removed."""
    random, there, found = Random(seed), set[str](), list[Change]()
    for number in range(random.randrange(5, 40)):
        files, free = [], [path for path in PATHS if path not in there]
        for path in sorted(there):
            step = random.choice("MMMMM..RD")
            if step == "M":
                files.append(FileChange(path))
            elif step == "D":
                files.append(FileChange(path, "D"))
                there.discard(path)
            elif step == "R" and free:
                target = free.pop(random.randrange(len(free)))
                there ^= {path, target}
                files.append(FileChange(target, "R", was=path))
        for path in free:
            if random.random() < 0.5:
                files.append(FileChange(path, "A"))
                there.add(path)
        random.shuffle(files)
        earlier = [None, None, *(sha(n)[:length] for n in range(number) for length in (9, 40))]
        flags = {"is_fix": random.random() < 0.5, "mends": random.choice(earlier), "reverts": random.choice(earlier)}
        found.append(change(number, *files, person=random.choice(PERSONS), **flags))
    return found


histories = st.integers(0, 2**32).map(history_of)
outcomes = st.lists(
    st.builds(
        lambda name, ok, session, fingerprint, state, mended: (name, ok, session, fingerprint, state, mended),
        st.sampled_from([("t1", "test"), ("t2", "test"), ("make", "command")]),
        st.booleans(),
        st.sampled_from("xyzw"),
        st.sampled_from([None, "f1", "f2"]),
        st.sampled_from([None, "11", "22"]),
        st.sampled_from([None, "a patch", "a restart"]),
    ),
    max_size=40,
).map(
    lambda rows: [
        outcome(n, name, ok=ok, kind=kind, session=session, fingerprint=fingerprint, state=state, mended_by=mended)
        for n, ((name, kind), ok, session, fingerprint, state, mended) in enumerate(rows)
    ]
)
sessions = st.lists(st.tuples(st.lists(st.sampled_from("abcd"), max_size=6), st.booleans()), max_size=14).map(
    lambda rows: [
        Session(f"s{n}", START + timedelta(days=n), tuple(actions), well) for n, (actions, well) in enumerate(rows)
    ]
)


def learned(records: Sequence[Record]) -> Counting:
    counting = Counting()
    for record in records:
        counting.learn(record)
    return counting


def past_of(path: str, history: Sequence[Change]) -> list[int]:
    """Return the numbers of the changes of the file that now has this name, by going back from the end."""
    found, name = [], path
    for number in range(len(history) - 1, -1, -1):
        for one in history[number].files:
            if one.path == name:
                found.append(number)
                if one.kind == "R":
                    name = one.was
                    break
                if one.kind == "A":
                    ends = [
                        other.kind
                        for earlier in reversed(history[:number])
                        for other in earlier.files
                        if (other.kind == "D" and other.path == name) or other.was == name
                    ]
                    if ends[:1] != ["D"]:
                        return found[::-1]
                break
    return found[::-1]


def present(history: Sequence[Change]) -> set[str]:
    there: set[str] = set()
    for one in history:
        there -= {file.was or file.path for file in one.files if file.kind in "RD"}
        there |= {file.path for file in one.files if file.kind in "AR"}
    return there


def day(at: datetime) -> str:
    return at.strftime("%d %B %Y").lstrip("0")


def named(history: Sequence[Change], abbreviated: str | None, before: int) -> int | None:
    same = [n for n in range(before) if abbreviated and history[n].sha[: len(abbreviated)] == abbreviated]
    return same[0] if len(same) == 1 else None


def expected_of_change(rule: Counted, history: Sequence[Change]) -> str:
    """Write the rule's sentence with numbers that are counted from the history alone."""
    all_of_it = past_of(rule.subject, history)
    reached = {n: named(history, one.mends, n) for n, one in enumerate(history)}
    if rule.kind == TOGETHER:
        all_of_it = [n for n in all_of_it if 2 <= len(history[n].files) <= 20]
        hits = [n for n in all_of_it if n in past_of(rule.object, history)]
    elif rule.kind == HOT_SPOT:
        hits = [n for n in all_of_it if history[n].is_fix]
    elif rule.kind == KNOWS:
        all_of_it = [n for n in all_of_it if history[n].person]
        hits = [n for n in all_of_it if history[n].person == rule.object]
    elif rule.kind == MENDED:
        hits = [n for n in all_of_it if any(reached[later] == n for later in all_of_it)]
    else:
        state = dict.fromkeys(all_of_it, False)
        for later in range(len(history)):
            undone = named(history, history[later].reverts, later)
            if undone is not None and later in state and undone in state:
                state[undone] = True
            if undone is not None and later in state:
                restored = named(history, history[undone].reverts, undone)
                if restored in state:
                    state[restored] = False
        hits = [n for n in all_of_it if state[n]]
    lately = all_of_it[-10:]
    few = f"{len(set(lately) & set(hits))} of the last {len(lately)}"
    last = day(history[hits[-1]].at)
    whole = f"{len(hits)} of its {len(all_of_it)} changes"
    if rule.kind == MENDED:
        lags = sorted(min(later for later in all_of_it if reached[later] == n) - n for n in hits)
        assert sum(lag <= (rule.lag_days or 0) for lag in lags) * 2 >= len(lags), (
            "each change is a day after the one before"
        )
        assert sum(lag < (rule.lag_days or 0) for lag in lags) * 2 <= len(lags)
    assert (rule.support, rule.occasions) == (len(hits), len(all_of_it))
    assert rule.evidence == tuple(history[n].id for n in reversed(hits))
    assert rule.counterexamples == tuple(history[n].id for n in reversed(all_of_it) if n not in hits)
    return {
        TOGETHER: f"Who changes {rule.subject} changes {rule.object} too: so did {few} commits that changed {rule.subject} and 1 to 19 other files, the latest on {last}.",
        HOT_SPOT: f"{rule.subject} is a hot spot: {whole} were fixes, {few}; the latest fix was on {last}.",
        KNOWS: f"{rule.object} knows {rule.subject}: made {whole}, {few}; the latest is of {last}.",
        MENDED: f"{rule.subject} needs a second look: {whole} were mended by a later commit that names them, at least half of these within {rule.lag_days} days; the latest that was mended is of {last}.",
        REVERTED: f"{len(hits)} of {len(all_of_it)} changes of {rule.subject} were taken back; the latest of these is of {last}.",
    }[rule.kind]


@settings(max_examples=80)
@given(histories)
def test_every_number_about_files_is_true(history: list[Change]) -> None:
    rules = learned(history).rules()
    for rule in rules:
        assert rule.subject in present(history)
        assert rule.kind != TOGETHER or rule.object in present(history)
        assert rule.text == expected_of_change(rule, history)
    assert len({rule.key for rule in rules}) == len(rules)


@given(outcomes)
def test_every_number_about_outcomes_is_true(history: list[Outcome]) -> None:
    for rule in learned(history).rules():
        names = set(rule.names)
        own = [one for one in history if one.name in names]
        mended = [one.mended_by for one in own if one.mended_by and not one.ok]
        tail = f"; the last time it was mended by {mended[-1]}" if mended else ""
        if rule.kind == RETURNS:
            builds = {one.session for one in own}
            failed = {one.session: one for one in own if not one.ok}
            latest = max(one.at for one in failed.values())
            text = f"{rule.subject} failed in {len(failed)} of {len(builds)} builds or sessions that ran it, the latest on {day(latest)}{tail}."
            assert set(rule.evidence) == {one.id for one in failed.values()}
        elif rule.kind == ALIKE:
            prints = {one.fingerprint for one in own if one.id in rule.evidence}
            assert len(prints) == 1
            alike = [one for one in history if not one.ok and {one.fingerprint} == prints]
            firsts = list({one.session: one for one in reversed(alike)}.values())
            mended = [one.mended_by for one in alike if one.mended_by]
            tail = f"; the last time it was mended by {mended[-1]}" if mended else ""
            assert names == {one.name for one in firsts}
            dates = sorted(one.at for one in firsts)
            text = f"The same failure came in {len(firsts)} builds or sessions, from {day(dates[0])} to {day(dates[-1])}, in {', '.join(sorted(names))}{tail}."
        elif rule.kind == FLAKY:
            again = []
            for place, one in enumerate(own):
                before = [other for other in own[:place] if one.state and other.state == one.state]
                again += [(one, before[-1].ok != one.ok)] if before else []
            other = [one for one, differs in again if differs]
            text = f"{rule.subject} is flaky: {len(other)} of {len(again)} times that it ran again on what it had run on, the result was another one, the latest on {day(other[-1].at)}."
        else:
            good = [one for one in own if one.ok]
            tail = f"; after a failure it was made to work by {mended[-1]}" if mended else ""
            text = f"`{rule.subject}` works here: it succeeded in {len(good)} of {len(own)} runs, {sum(one.ok for one in own[-10:])} of the last {len(own[-10:])}; the latest success was on {day(good[-1].at)}{tail}."
            assert rule.kind == WORKS
            assert rule.counterexamples == tuple(one.id for one in reversed(own) if not one.ok)
        assert rule.text == text


def contains(actions: Sequence[str], pattern: Sequence[str]) -> bool:
    return any(part == tuple(pattern) for part in combinations(actions, len(pattern)))


@given(sessions)
def test_every_number_about_sessions_is_true(history: list[Session]) -> None:
    for rule in learned(history).rules():
        rest = re.findall(r"`(.)`", rule.object)
        did = [one for one in history if rule.subject in one.actions]
        well = [one for one in did if contains(one.actions, [rule.subject, *rest]) and one.ended_well]
        assert rule.text == (
            f"After `{rule.subject}` comes {', then '.join(f'`{one}`' for one in rest)}: {len(well)} of {len(did)} sessions with the "
            f"former went on so and ended well, the latest on {day(well[-1].at)}."
        )
        assert rule.evidence == tuple(one.id for one in reversed(well))


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=6), st.integers(2, 3))
def test_patterns_are_the_closed_ones(sequences: list[list[str]], least: int) -> None:
    """All sequences of 2 to 5 actions are counted, those that repeat an action at once left out."""
    support: dict[tuple[str, ...], list[int]] = {}
    for place, actions in enumerate(sequences):
        parts = {part for length in range(2, MOST_ACTIONS + 1) for part in combinations(actions, length)}
        for part in parts:
            if all(one != other for one, other in pairwise(part)):
                support.setdefault(part, []).append(place)
    often = {part: places for part, places in support.items() if len(places) >= least}
    closed = {
        part: places
        for part, places in often.items()
        if not any(
            len(other) > len(part) and contains(other, part) and places == there for other, there in often.items()
        )
    }
    assert dict(closed_patterns(sequences, least)) == closed


@settings(max_examples=30)
@given(histories, outcomes, sessions)
def test_asking_changes_nothing_and_order_between_sorts_does_not_count(
    changes: list[Change], results: list[Outcome], done: list[Session]
) -> None:
    asked, one_by_one = Counting(), [*done, *results, *changes]
    for record in one_by_one:
        list(asked.questions(record))
        asked.rules()
        asked.learn(record)
    assert asked.rules() == learned([*changes, *results, *done]).rules()


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=40))
def test_a_tally_weighs_what_it_holds(steps: list[tuple[int, bool]]) -> None:
    tally, held = Tally(half_life=10), set[int]()
    for now, (number, is_added) in enumerate(steps, 50):
        (tally.add if is_added else tally.discard)(number, now)
        held = held | {number} if is_added else held - {number}
    assert tally.numbers == sorted(held)
    assert isclose(tally.faded(100), sum(0.5 ** ((100 - number) / 10) for number in held), abs_tol=1e-9)


def test_a_file_is_one_under_all_its_names() -> None:
    """It was moved twice, and another file has taken its first name."""
    moved = [FileChange("lib/old.py", "R", was="old.py"), FileChange("lib/new.py", "R", was="lib/old.py")]
    history = [change(n, "old.py", "x.md") for n in range(3)]
    history += [change(3, moved[0]), change(4, FileChange("old.py", "A")), change(5, moved[1])]
    rules = learned(history).rules()
    together = [rule for rule in rules if rule.kind == TOGETHER and rule.subject == "lib/new.py"]
    assert [(rule.object, rule.support, rule.names) for rule in together] == [
        ("x.md", 3, ("lib/new.py", "lib/old.py", "old.py"))
    ]
    counting = learned(history)
    assert counting.names_of("lib/old.py") == ("lib/new.py", "lib/old.py", "old.py")
    assert (counting.names_of("old.py"), counting.names_of("nothing.py")) == (("old.py",), ())
    earlier = {rule.key for rule in learned(history[:3]).rules() if rule.subject == "old.py"}
    assert earlier == {rule.key for rule in rules if rule.subject == "lib/new.py"}, "keys stay"
    for name in ("lib/new.py", "lib/old.py", "old.py", "new.py", "lib", "lib/"):
        assert together[0] in about(name, rules), name
    assert about("nothing.py", rules) == []


def test_the_newest_ids_are_listed() -> None:
    history = [change(n, "a.py", is_fix=n % 2 == 0) for n in range(2 * MOST_IDS + 20)]
    rule = next(rule for rule in learned(history).rules() if rule.kind == HOT_SPOT)
    assert rule.evidence == tuple(f"c{n}" for n in range(2 * MOST_IDS + 18, 18, -2))
    assert rule.counterexamples == tuple(f"c{n}" for n in range(2 * MOST_IDS + 19, 19, -2))


def test_at_most_three_rules_are_chosen_and_of_several_kinds() -> None:
    history = [change(n, "a.py", "b.py", "c.py", "d.py", is_fix=True) for n in range(6)]
    rules = learned(history).rules()
    chosen = about("a.py", rules)
    assert [rule.kind for rule in chosen] == [TOGETHER, HOT_SPOT, KNOWS]
    assert [rule.kind for rule in about("a.py", rules, most=4)].count(TOGETHER) == 2


def test_a_last_part_that_two_files_have_names_neither() -> None:
    rules = learned([change(n, "a/x.py", "b/x.py") for n in range(4)]).rules()
    assert rules
    assert about("x.py", rules) == []


def test_names_are_found_as_whole_tokens_only() -> None:
    names = ["src/api.py", "docs/api.md", "tests/test_api.py::test_get", "make test", "build", "lib/x.py", "bin/x.py"]
    text = 'Change (src/api.py:12), then "make test", and run test_get. Not api.pyc, x.py or src/api.py2; build it.'
    assert named_in(text, names) == ["src/api.py", "make test", "tests/test_api.py::test_get"]
    assert named_in("run `build` on api.md.", names) == ["build", "docs/api.md"]
    assert named_in("api.md's first line, tests/test_api.py::test_get", names) == names[1:3]
    assert named_in("make a test", names) == []
    assert named_in("", names) == named_in("src/api.py", []) == []


def test_a_revert_that_is_reverted_takes_nothing_back() -> None:
    history = [change(n, "a.py") for n in range(4)]
    history += [change(4, "a.py", reverts=sha(0)), change(5, "a.py", reverts=sha(1))]
    assert [rule.support for rule in learned(history).rules() if rule.kind == REVERTED] == [2]
    history.append(change(6, "a.py", reverts=sha(4)))
    found = [rule for rule in learned(history).rules() if rule.kind == REVERTED]
    assert [(rule.support, rule.evidence) for rule in found] == [(2, ("c4", "c1"))], "the revert itself was taken back"


def test_a_test_that_changed_with_the_code_is_not_flaky() -> None:
    """What it ran on has changed in between, or is not known."""
    for states in (["1", "2", "3", "4", "5", "6"], [None] * 6):
        runs = [outcome(n, "t", ok=n % 2 == 0, session=str(n), state=state) for n, state in enumerate(states)]
        assert [rule.kind for rule in learned(runs).rules()] == [RETURNS]
    runs = [outcome(n, "t", ok=n % 2 == 0, state=str(n // 2)) for n in range(6)]
    assert [(rule.kind, rule.support, rule.occasions) for rule in learned(runs).rules()] == [(FLAKY, 3, 3)]


def test_commits_of_2_to_20_files_say_what_changes_together() -> None:
    for many, are_counted in ((1, False), (2, True), (20, True), (21, False)):
        history = [change(n, *(f"{place}.py" for place in range(many))) for n in range(10)]
        assert (TOGETHER in {rule.kind for rule in learned(history).rules()}) == are_counted, many
        assert (check(history)[TOGETHER].asked > 0) == are_counted, many


def test_a_machine_knows_nothing() -> None:
    history = [change(n, "a.py", person="" if n % 2 else "Ada") for n in range(40)]
    assert [rule.object for rule in learned(history).rules() if rule.kind == KNOWS] == ["Ada"]
    held = check(history)[KNOWS]
    assert (held.asked, held.answered, held.right) == (4, 4, 4)


def test_a_sha_is_named_by_at_least_seven_digits_and_only_if_it_is_one_change() -> None:
    for digits, are_counted in ((6, False), (7, True), (40, True)):
        history = [change(n, "a.py", mends=sha(n - 1)[:digits] if n else None) for n in range(10)]
        assert (MENDED in {rule.kind for rule in learned(history).rules()}) == are_counted, digits
    twice = [change(n // 2, "a.py", mends=sha(0) if n > 1 else None) for n in range(10)]
    assert MENDED not in {rule.kind for rule in learned(twice).rules()}


def test_the_rules_of_a_folder_are_the_most_confident_ones() -> None:
    history = [change(n, "lib/a.py", "lib/b.py" if n % 4 else "lib/c.py", person="") for n in range(40)]
    assert [rule.subject for rule in about("lib", learned(history).rules(), most=2)] == ["lib/b.py", "lib/c.py"]


def test_a_check_asks_before_it_learns() -> None:
    """In the last fifth a.py is changed with b.py as always, then with the unknown c.py; d.py had never been seen together with anything."""
    history = [change(n, "a.py", "b.py") for n in range(16)]
    history += [
        change(16, "a.py", "b.py"),
        change(17, "a.py", "c.py"),
        change(18, "d.py", "e.py"),
        change(19, "d.py", "e.py"),
    ]
    held = check(history)[TOGETHER]
    assert (held.asked, held.answered, held.right) == (8, 3, 2)
    assert sum(level.answered for level in held.levels) == 3


def test_a_check_counts_the_fixes_that_fall_in_a_hot_spot() -> None:
    history = [change(n, "a.py", is_fix=n < 8) for n in range(16)]
    history += [
        change(16, "a.py", is_fix=True),
        change(17, "new.py", is_fix=True),
        change(18, "a.py"),
        change(19, "b.py"),
    ]
    held = check(history)
    assert (held[FIXES].asked, held[FIXES].answered, held[FIXES].right) == (2, 2, 1)
    assert (held[HOT_SPOT].asked, held[HOT_SPOT].answered, held[HOT_SPOT].right, held[HOT_SPOT].usual) == (4, 2, 1, 1)


def test_a_mending_after_the_question_counts() -> None:
    """Whether a change had to be mended is known later, but the rule is asked before the change."""
    history = [change(n, "a.py", mends=sha(n - 1) if n in (2, 5, 18) else None) for n in range(20)]
    held = check(history)[MENDED]
    assert (held.asked, held.answered, held.right, held.usual) == (4, 4, 1, 1)


def test_hot_spots_are_the_ten_files_with_the_most_fixes_that_are_there() -> None:
    """File n has n fixes; the one with the most is removed, and no fewer than three make a hot spot."""
    fixes = [(number, f"{number}.py") for number in range(15) for _ in range(number)]
    history = [change(place, path, is_fix=True) for place, (_, path) in enumerate(fixes)]
    history.append(change(len(history), FileChange("14.py", "D")))
    spots = [rule.subject for rule in learned(history).rules() if rule.kind == HOT_SPOT]
    assert sorted(spots) == sorted(f"{number}.py" for number in range(4, 14))
    few = [rule.subject for rule in learned(history[:10]).rules() if rule.kind == HOT_SPOT]
    assert few == ["4.py", "3.py"]


def test_a_command_that_works_is_told_with_what_made_it_work() -> None:
    runs = [(True, None), (False, "uv sync"), (True, None), (True, None)]
    history = [outcome(n, "make", ok=ok, kind="command", mended_by=by) for n, (ok, by) in enumerate(runs)]
    works = [rule for rule in learned(history).rules() if rule.kind == WORKS]
    assert works[0].text == (
        "`make` works here: it succeeded in 3 of 4 runs, 3 of the last 4; the latest success was on 1 January 2026; "
        "after a failure it was made to work by uv sync."
    )
    assert (works[0].evidence, works[0].counterexamples) == (("o3", "o2", "o0"), ("o1",))
    assert [rule.kind for rule in learned(history[:3]).rules()] == [], "three successes are needed"


def test_the_same_failure_of_several_tests_is_one() -> None:
    history = [outcome(n, f"t{n}", ok=False, session=str(n), fingerprint="f") for n in range(3)]
    history += [outcome(3, "t9", ok=False, session="3", fingerprint="g")] * 2
    found = [(rule.kind, rule.names, rule.support) for rule in learned(history).rules()]
    assert found == [(ALIKE, ("t0", "t1", "t2"), 3)]


def test_a_failure_is_asked_for_once_a_build() -> None:
    """It fails in every second build, then succeeds when it is run again there."""
    runs = [(n, ok) for n in range(20) for ok in ((False, True) if n % 2 else (True,))]
    history = [outcome(place, "t", ok=ok, session=str(n)) for place, (n, ok) in enumerate(runs)]
    held = check(history)[RETURNS]
    assert (held.asked, held.answered, held.right, held.usual) == (4, 4, 2, 2)
    assert learned(history).rules()[0].text.startswith("t failed in 10 of 20 builds")


def test_confidence_is_what_such_rules_had() -> None:
    """Two files change together in two of three commits, to the end: a share of .6 is right in two thirds of the cases."""
    history = [change(n, "a.py", "b.py" if n % 3 else "c.py") for n in range(300)]
    held = check(history)
    rule = next(rule for rule in learned(history).rules(held) if rule.kind == TOGETHER and rule.subject == "a.py")
    level = held[TOGETHER].levels[6]
    assert level.answered >= LEAST_MEASURED
    assert (rule.object, rule.confidence) == ("b.py", level.right / level.answered)
    assert isclose(rule.confidence, 2 / 3, abs_tol=0.02)
    unmeasured = next(rule for rule in learned(history[:9]).rules(check(history[:9])) if rule.kind == TOGETHER)
    assert unmeasured.confidence == min(unmeasured.share, 0.9)


def test_what_a_check_disproves_is_not_said() -> None:
    """The two files have parted: together in most commits, and in none of the last fifth."""
    history = [change(n, "a.py", "b.py") for n in range(100)] + [change(n, "a.py", f"{n}.py") for n in range(100, 161)]
    pairs = [(rule.subject, rule.object) for rule in learned(history).rules() if rule.kind == TOGETHER]
    assert ("a.py", "b.py") in pairs
    left = [(rule.subject, rule.object) for rule in learned(history).rules(check(history)) if rule.kind == TOGETHER]
    assert ("a.py", "b.py") not in left


def test_sequences_are_asked_before_they_are_learned() -> None:
    """`c` is everywhere, so that it follows `d` says nothing; `b` follows `a` alone."""
    rows = [("a", "b", "c") if n % 2 else ("d", "c") for n in range(20)]
    rows[19] = ("a", "d")
    history = [Session(f"s{n}", START + timedelta(days=n), row, ended_well=True) for n, row in enumerate(rows)]
    held = check(history)[FOLLOWS]
    assert (held.asked, held.answered, held.right) == (4, 2, 1)
    rules = learned(history[:16]).rules()
    assert [(rule.subject, rule.object, rule.support, rule.share) for rule in rules] == [
        ("a", "`b`, then `c`", 8, 8 / 9)
    ]
