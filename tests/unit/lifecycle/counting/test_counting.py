"""What is counted is true: every number of a rule's sentence is counted again here, from the records alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from math import isclose
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.lifecycle.counting.counting import FIXES, LEAST_MEASURED, Counting, about, check
from memgraph.lifecycle.counting.records import (
    HOT_SPOT,
    KNOWS,
    MENDED,
    MOST_IDS,
    REVERTED,
    TOGETHER,
    Change,
    Counted,
    FileChange,
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


def learned(records: Sequence[Change]) -> Counting:
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
        TOGETHER: f"Who changes {rule.subject} changes {rule.object} too: so did {few} commits of 2 to 20 files that changed it, the latest on {last}.",
        HOT_SPOT: f"{rule.subject} is a hot spot: {whole} were fixes or closed an issue, {few}; the latest of these was on {last}.",
        KNOWS: f"{rule.object} knows {rule.subject}: made {len(hits)} of the {len(all_of_it)} changes to it by people, {few}; the latest is of {last}.",
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


def contains(actions: Sequence[str], pattern: Sequence[str]) -> bool:
    return any(part == tuple(pattern) for part in combinations(actions, len(pattern)))


@settings(max_examples=30)
@given(histories)
def test_asking_changes_nothing(changes: list[Change]) -> None:
    asked = Counting()
    for record in changes:
        asked.questions(record)
        asked.rules()
        asked.learn(record)
    assert asked.rules() == learned(changes).rules()


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


def test_a_revert_that_is_reverted_takes_nothing_back() -> None:
    history = [change(n, "a.py") for n in range(4)]
    history += [change(4, "a.py", reverts=sha(0)), change(5, "a.py", reverts=sha(1))]
    assert [rule.support for rule in learned(history).rules() if rule.kind == REVERTED] == [2]
    history.append(change(6, "a.py", reverts=sha(4)))
    found = [rule for rule in learned(history).rules() if rule.kind == REVERTED]
    assert [(rule.support, rule.evidence) for rule in found] == [(2, ("c4", "c1"))], "the revert itself was taken back"


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
    history.append(change(len(history), "14.py", is_fix=True))  # on another branch, before the removal was merged
    assert "14.py" not in [rule.subject for rule in learned(history).rules()]
    history.append(change(len(history), FileChange("14.py", "A")))
    assert "14.py" in [rule.subject for rule in learned(history).rules() if rule.kind == HOT_SPOT]
    few = [rule.subject for rule in learned(history[:10]).rules() if rule.kind == HOT_SPOT]
    assert few == ["4.py", "3.py"]


def test_a_sweep_over_many_files_is_one_of_their_changes_and_no_fix_of_theirs() -> None:
    history = [change(place, "a.py", is_fix=True) for place in range(5)]
    history.append(change(5, "a.py", *(f"{number}.py" for number in range(150)), is_fix=True))
    rules = {rule.kind: rule.text for rule in learned(history).rules() if rule.subject == "a.py"}
    assert "5 of its 6 changes" in rules[HOT_SPOT]
    assert "5 of the 5 changes" in rules[KNOWS]  # who sweeps knows none of them


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
