"""Records: each commit of a history is kept whole, found, and no memory until it earns it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph import BuildEventLog, MemGraph
from memgraph.config import ConsolidationConfig
from memgraph.extraction.readers import SavedGitLogReader
from memgraph.fold.history import history_of
from memgraph.lifecycle import ConsolidationPipeline, ingest, sleep
from memgraph.model.memory import RECORD_SOURCE, RUN_SOURCE, SAID_SOURCE
from memgraph.model.results.learning import COUNTING_SOURCE

WHY = (
    "Cache the prices\n\nPrices were computed on every read because nothing kept them, so that each page of the shop "
    "took a second more for every customer who looked at it than it should have."
)
PLAIN = ["Wire the kettle to the new socket", "Paint the shed", "Move the ladder", "Water the ferns on the sill"]
Write = Callable[..., Path]


@pytest.fixture
def history(tmp_path: Path) -> Write:
    """Write a saved log of commits, oldest first: (message, changed files)."""

    def write(*commits: tuple[str, list[str]], author: str = "Ann") -> Path:
        entries = []
        for number, (message, files) in enumerate(commits, start=1):
            lines = "".join(f"    {line}\n" for line in message.split("\n"))
            day = f"2026-{1 + number // 28:02}-{1 + number % 28:02} 12:00:00 +0000"
            changed = "".join(f"{one}\n" for one in files)
            head = f"commit {number:040x}\nAuthor: {author} <a@shop.example>\nDate:   {day}\n\n"
            entries.append(f"{head}{lines}\n{changed}\n")
        path = tmp_path / "shop.log"
        path.write_text("".join(reversed(entries)))
        return path

    return write


def records(store: Any) -> list[Any]:
    return [one for one in store.every_memory() if one.source == RECORD_SOURCE]


def test_a_commit_that_states_nothing_is_kept_and_found_and_is_no_memory(store: Any, history: Write) -> None:
    report = ingest(store, SavedGitLogReader(history((WHY, ["M\tp.py"]), *((one, ["M\tp.py"]) for one in PLAIN))))
    assert (report.extracted, report.recorded) == (1, len(PLAIN))
    assert [one.content for one in records(store)] == PLAIN
    assert [one.source for one in store.get_all_memories()] == ["git"]
    stats = store.get_stats()
    assert (stats.total, stats.records) == (1, len(PLAIN))
    memory = MemGraph(store)
    assert memory.search_memories("kettle socket")[0].memory.content == PLAIN[0]
    recalled = memory.recall("wire the kettle to a socket", project="shop")
    assert "Commit 00000000: Wire the kettle" in memory.format_context_for_prompt(recalled, format="notes")
    assert store.awaiting_vectors() == 0


def test_a_history_is_kept_before_any_of_it_is_embedded(store: Any, embedder: Any, history: Write) -> None:
    seen: list[tuple[int, int]] = []
    log = history((WHY, ["M\tp.py"]), *((one, ["M\tp.py"]) for one in PLAIN))
    ingest(store, SavedGitLogReader(log), progress=lambda *_: seen.append((len(records(store)), len(embedder.calls))))
    assert seen[0] == (len(PLAIN), 0)
    assert embedder.calls
    assert store.awaiting_vectors() == 0


@pytest.mark.parametrize("put_away", ["suppress", "supersede"])
def test_a_history_is_embedded_at_once_where_something_was_put_away(
    store: Any, embedder: Any, history: Write, put_away: str
) -> None:
    gone, other = store.insert_memories(
        [{"type": "episodic", "content": one} for one in ("Paint it red", "Fire it twice")]
    )
    store.suppress(gone.id) if put_away == "suppress" else store.supersede(gone.id, by=other.id)
    embedder.calls.clear()
    seen: list[int] = []
    ingest(store, SavedGitLogReader(history((WHY, ["M\tp.py"]))), progress=lambda *_: seen.append(len(embedder.calls)))
    assert seen[0] > 0, "what was put away is known by its meaning"


def test_a_second_run_keeps_nothing_twice(store: Any, history: Write) -> None:
    path = history(*((one, ["M\tp.py"]) for one in PLAIN))
    ingest(store, SavedGitLogReader(path))
    digest = store.digest()
    assert ingest(store, SavedGitLogReader(path)).recorded == 0
    assert store.digest() == digest


def test_a_record_that_helped_or_that_a_person_changes_becomes_a_memory(store: Any, history: Write) -> None:
    ingest(store, SavedGitLogReader(history(*((one, ["M\tp.py"]) for one in PLAIN))))
    memory = MemGraph(store)
    found = memory.recall("wire the kettle to a socket", project="shop")
    used = next(one for one in found.memories if one.content == PLAIN[0])
    memory.record_outcome(found.query_id, "success", used=[used.id])
    store.update_memory(next(one.id for one in records(store) if one.content == PLAIN[1]), tags=["shed"])
    assert {one.content for one in store.get_all_memories()} == set(PLAIN[:2])
    assert {one.content for one in records(store)} == set(PLAIN[2:])


def test_what_somebody_deletes_is_not_recorded_again(store: Any, history: Write) -> None:
    ingest(store, SavedGitLogReader(history((PLAIN[0], ["M\tp.py"]))))
    store.delete_memory(records(store)[0].id)
    ingest(store, SavedGitLogReader(history((PLAIN[0], ["M\tp.py"]), (PLAIN[1], ["M\tp.py"]))))
    assert [one.content for one in records(store)] == [PLAIN[1]]


def test_a_record_says_what_the_commit_did_to_each_file(store: Any, history: Write) -> None:
    files = ["M\tp.py", "A\tq.py", "R090\told.py\tnew.py", "D\tgone.py"]
    ingest(store, SavedGitLogReader(history(("Fix the kettle's socket", files))))
    (row,) = store.cypher(
        "MATCH (m:Memory {source: 'commit'}) RETURN m.change_kind AS kind, m.git_commit AS sha, m.agents_involved AS by"
    )
    assert row == {"kind": "fix", "sha": f"{1:040x}", "by": ["Ann"]}
    found = store.cypher("MATCH (:Memory)-[c:CHANGED]->(f:File) RETURN f.name AS file, c.kind AS kind ORDER BY file")
    assert [(one["file"], one["kind"]) for one in found] == [
        ("gone.py", "D"),
        ("new.py", "R"),
        ("p.py", "M"),
        ("q.py", "A"),
    ]


def test_what_is_counted_is_kept_brought_up_to_date_and_ended(store: Any, history: Write) -> None:
    pair, commits = (
        ["M\tcup.py", "M\ttests/test_cup.py"],
        [(f"Cup {n}", ["M\tcup.py", "M\ttests/test_cup.py"]) for n in range(8)],
    )
    ingest(store, SavedGitLogReader(history(*commits)))
    sleep(store, phases=["counting"])

    def kept() -> dict[str, Any]:
        found = [one for one in store.list_memories(type="semantic") if one.source == COUNTING_SOURCE]
        return {one.content.partition(":")[0]: one for one in found if one.category == "changes together"}

    rule = "Who changes cup.py changes tests/test_cup.py too"
    first = kept()[rule]
    assert "so did 8 of the last 8 commits of 2 to 20 files that changed it" in first.content
    assert len(first.supporting_memory_ids) == 8
    assert sleep(store, phases=["counting"]).changed == 0
    ingest(store, SavedGitLogReader(history(*commits, ("Cup 9", pair))))
    sleep(store, phases=["counting"])
    assert "so did 9 of the last 9 commits" in kept()[rule].content
    assert kept()[rule].id == first.id
    alone = [(f"Saucer {n}", ["M\tcup.py", "M\tsaucer.py"]) for n in range(40)]
    ingest(store, SavedGitLogReader(history(*commits, ("Cup 9", pair), *alone)))
    sleep(store, phases=["counting"])
    assert rule not in kept()
    assert store.get_memory(first.id).invalidation_reason == "the counts do not show it any more"


def test_a_sitting_that_grows_does_not_record_what_was_decided(store: Any, tmp_path: Path) -> None:
    """A memory that somebody deleted does not come back as a record when its build is read again."""

    def read(*messages: str) -> None:
        entries = []
        for number, message in enumerate(messages):
            lines = "".join(f"    {line}\n" for line in message.split("\n"))
            head = f"commit {number + 1:040x}\nAuthor: Ann <a@shop.example>\nDate:   2026-01-05 12:{number:02}:00 +0000\n\n"
            entries.append(f"{head}{lines}\nM\tp.py\n")
        (tmp_path / "shop.log").write_text("\n".join(reversed(entries)))
        ingest(store, SavedGitLogReader(tmp_path / "shop.log"))

    read(WHY, PLAIN[0])
    (memory,) = store.get_all_memories()
    store.delete_memory(memory.id)
    read(WHY, PLAIN[0], PLAIN[1])
    assert sorted(one.content for one in records(store)) == sorted(PLAIN[:2])
    assert store.get_all_memories() == []


@pytest.mark.parametrize("change", ["tag", "pin", "edit", "new version"])
def test_who_changes_a_record_makes_it_a_memory(store: Any, history: Write, change: str) -> None:
    ingest(store, SavedGitLogReader(history((PLAIN[0], ["M\tp.py"]))))
    (record,) = records(store)
    curation = MemGraph(store).curation
    if change == "tag":
        curation.tag([record.id], ["kettle"])
    elif change == "pin":
        curation.pin([record.id])
    else:
        curation.edit(record.id, {"content": "The kettle has its own socket"}, as_new=change == "new version")
    assert len([one for one in store.get_all_memories() if one.source == "git"]) == 1


def test_a_second_outcome_makes_a_memory_too(store: Any, history: Write) -> None:
    ingest(store, SavedGitLogReader(history((PLAIN[0], ["M\tp.py"]))))
    memory = MemGraph(store)
    found = memory.recall("wire the kettle to a socket", project="shop")
    for outcome, memories in (("partial", 0), ("success", 1)):
        memory.record_outcome(found.query_id, outcome, used=[found.memories[0].id])
        assert len(store.get_all_memories()) == memories


def test_a_counted_rule_that_somebody_words_or_ends_stays_so(store: Any, history: Write) -> None:
    commits = [(f"Cup {n}", ["M\tcup.py", "M\ttest_cup.py"]) for n in range(9)]
    ingest(store, SavedGitLogReader(history(*commits)))
    sleep(store, phases=["counting"])
    pair = sorted(one.id for one in store.list_memories(type="semantic") if one.category == "changes together")
    store.update_memory(pair[0], content="The cup and its test belong together")
    store.invalidate(pair[1], reason="the test goes away")
    ingest(store, SavedGitLogReader(history(*commits, ("Cup 10", ["M\tcup.py", "M\ttest_cup.py"]))))
    sleep(store, phases=["counting"])
    assert store.get_memory(pair[0]).content == "The cup and its test belong together"
    assert store.get_memory(pair[1]).invalidation_reason == "the test goes away"


def test_a_counted_rule_whose_confidence_somebody_sets_keeps_it(store: Any, history: Write) -> None:
    commits = [(f"Cup {n}", ["M\tcup.py", "M\ttest_cup.py"]) for n in range(9)]
    ingest(store, SavedGitLogReader(history(*commits)))
    sleep(store, phases=["counting"])
    doubted, right, other = sorted(store.list_memories(type="semantic"), key=lambda one: one.category)[:3]
    store.update_memory(doubted.id, confidence=0.3)
    store.update_memory(right.id, confidence=right.confidence)
    more = [(f"Cup {n}", ["M\tcup.py", "M\ttest_cup.py"][: 1 + n % 2]) for n in range(10, 40)]
    ingest(store, SavedGitLogReader(history(*commits, *more)))
    sleep(store, phases=["counting"])
    assert store.get_memory(doubted.id).confidence == 0.3
    assert store.get_memory(right.id).confidence == right.confidence
    assert store.get_memory(other.id).content != other.content


def test_an_export_has_the_records(store: Any, history: Write) -> None:
    ingest(store, SavedGitLogReader(history(*((one, ["M\tp.py"]) for one in PLAIN))))
    exported = MemGraph(store).commands.export_memories()
    assert exported.total_memories == len(PLAIN)


def test_a_memory_that_was_a_record_has_its_build_in_charts(store: Any, history: Write) -> None:
    ingest(store, SavedGitLogReader(history((PLAIN[0], ["M\tp.py"]))))
    (record,) = records(store)
    store.update_memory(record.id, tags=["kettle"])
    life = history_of(store.reader.events_after(0)).lives[record.id]
    assert tuple(life.builds) == tuple(record.evidence_build_ids) != ()


def test_a_rule_that_somebody_worded_is_not_ended_by_counts(store: Any, history: Write) -> None:
    commits = [(f"Cup {n}", ["M\tcup.py", "M\ttest_cup.py"]) for n in range(8)]
    ingest(store, SavedGitLogReader(history(*commits)))
    sleep(store, phases=["counting"])
    rules = [one for one in store.list_memories(type="semantic") if one.category == "changes together"]
    store.update_memory(rules[0].id, content="The cup and its test belong together")
    alone = [(f"Saucer {n}", ["M\tcup.py", "M\ttest_cup.py", "M\tz.py"][n % 2 :: 2]) for n in range(40)]
    ingest(store, SavedGitLogReader(history(*commits, *alone)))
    sleep(store, phases=["counting"])
    assert store.get_memory(rules[0].id).invalid_at is None


def session() -> BuildEventLog:
    """A session in which the user says what no rule keeps."""
    return BuildEventLog(
        build_id="s1",
        project_id="shop",
        source="transcript",
        session_id="s1",
        build_outcome="success",
        started_at="2026-01-01T00:00:00Z",
        completed_at="2026-01-01T01:00:00Z",
        tasks=[
            {
                "task_id": "t1",
                "agent_name": "claude",
                "description": "Edit kettle.py",
                "outcome": "success",
                "lesson": "The kettle waits for the lid now.",
            }
        ],
        user_interventions=[
            {"timestamp": "2026-01-01T00:10:00Z", "action": "the blue one", "context": "Which teapot should it be?"}
        ],
    )


def test_what_is_said_in_a_session_is_kept_with_its_question_and_is_no_memory(store: Any) -> None:
    found = ConsolidationPipeline(store).consolidate(session())
    said = {one.content: one for one in store.every_memory() if one.source == SAID_SOURCE}
    assert found.records_kept == len(said) > 0
    turn = next(one for text, one in said.items() if "blue one" in text)
    assert (turn.session_id, turn.trust_class, turn.outcome) == ("s1", "agent", "unknown")
    assert "Which teapot should it be?" in turn.content
    assert not {one.id for one in said.values()} & {one.id for one in store.get_all_memories()}
    assert MemGraph(store).search_memories("blue teapot")[0].memory.id == turn.id
    store.update_memory(turn.id, tags=["tea"])
    assert store.get_memory(turn.id).source == "transcript"
    digest = store.digest()
    assert ConsolidationPipeline(store).consolidate(session()).records_kept == 0
    assert store.digest() == digest


def test_a_turn_of_which_one_sentence_is_a_memory_is_kept_beside_it(store: Any) -> None:
    log = session()
    said = ["Never paint the pier green. The boats hide behind it at noon.", "Always moor at dusk."]
    turns = [{"timestamp": f"2026-01-01T00:1{n}:00Z", "action": one, "context": ""} for n, one in enumerate(said)]
    ConsolidationPipeline(store).consolidate(BuildEventLog.parse({**log.model_dump(), "user_interventions": turns}))
    memories = {one.content for one in store.get_all_memories()}
    assert memories == {f"Instruction by the user: {one}" for one in ("Never paint the pier green.", said[1])}
    records = [one for one in store.every_memory() if one.source == SAID_SOURCE and "concluded" not in one.content]
    assert [one.content for one in records] == [f"The user said: {said[0]}"], (
        "the whole of the other one is in its memory"
    )
    assert records[0].reason == "it was said in a session"


@pytest.mark.parametrize(("count", "length", "parts"), [(40, 0, 3), (34, 58, 34)])
def test_a_long_turn_is_kept_in_parts(store: Any, count: int, length: int, parts: int) -> None:
    sentences = [f"Boat number {n} is to be moored at the {n}th post{length * ' of oak'}." for n in range(count)]
    turn = {"timestamp": "2026-01-01T00:10:00Z", "action": " ".join(sentences), "context": ""}
    ConsolidationPipeline(store).consolidate(
        BuildEventLog.parse({**session().model_dump(), "user_interventions": [turn]})
    )
    told = [one.content for one in store.every_memory() if one.content.startswith("The user said: ")]
    assert len(told) == parts
    assert all(len(one) <= 800 for one in told)
    assert all(any(sentence in one for one in told) for sentence in sentences)


def test_a_failure_that_becomes_no_memory_is_kept_whole(store: Any) -> None:
    failed = [
        {"task_id": f"t{n}", "agent_name": "tests", "description": f"Test teapot {n}", "outcome": "failure", "output": f"lid {n} is stuck"}
        for n in range(4)
    ]  # fmt: skip
    log = session().model_copy(update={"source": "test report", "session_id": None, "user_interventions": []})
    log = BuildEventLog.parse({**log.model_dump(), "tasks": failed, "build_outcome": "failure"})
    ConsolidationPipeline(store, config=ConsolidationConfig(max_memories_per_extraction=1)).consolidate(log)
    kept = [one for one in store.every_memory() if one.source == RUN_SOURCE]
    events = {event for one in store.every_memory() for event in one.source_event_ids}
    assert {f"s1/t{n}" for n in range(4)} <= events
    assert kept
    assert all(one.outcome == "negative" and "is stuck" in one.content for one in kept)


def test_what_was_said_is_kept_whole_in_order_and_with_its_own_time(store: Any) -> None:
    def long(word: str) -> str:
        return " ".join(f"Point {number} is about {word}." for number in range(150))

    asked = {"timestamp": "2026-01-05T10:00:00Z", "action": long("clay"), "context": f"Say more. {'Which? ' * 60}"}
    first = asked | {"reply": long("lime"), "replied_at": "2026-01-05T10:20:00Z"}
    last = {"timestamp": "2026-01-05T10:30:00Z", "action": "And now?", "reply": "It is dry."}
    task = {"task_id": "t", "agent_name": "claude", "description": "Bash", "outcome": "success"}
    log = {"build_id": "s", "project_id": "p", "build_outcome": "success", "source": "transcript", "session_id": "s"}
    dated = {"started_at": "2026-01-05", "completed_at": "2026-01-06", "tasks": [task]}
    turns = [first, last | {"replied_at": "2026-01-05T10:31:00Z"}]
    ConsolidationPipeline(store).consolidate(BuildEventLog.parse({**log, **dated, "user_interventions": turns}))
    said = sorted((one for one in store.every_memory() if one.source == SAID_SOURCE), key=lambda one: one.occurred_at)
    assert list(dict.fromkeys(one.occurred_at[11:16] for one in said)) == ["10:00", "10:20", "10:30", "10:31"]
    for lead, word in (("The user said: ", "clay"), ("The agent concluded: ", "lime")):
        told = " ".join(one.content.removeprefix(lead) for one in said if f"about {word}" in one.content)
        assert all(f"Point {number} is about {word}." in told for number in range(150))
    assert all(len(one.content) <= 800 for one in said)
    assert [one.content for one in said[-1:]] == ["The agent concluded: It is dry."]


def test_what_an_agent_explains_between_its_steps_is_a_record_and_an_announcement_is_none(store: Any) -> None:
    explained = (
        "The kiln rejects the glaze: it needs a program of its own. The relay has to be switched off in the kiln first, "
        "then the glaze can be fired without it. I put the old program back."
    )
    said = [explained, explained, "Now let me look at the kiln.", ""]
    tasks = [
        {"task_id": f"t{n}", "agent_name": "claude", "description": "Bash", "outcome": "success", "reasoning": text}
        for n, text in enumerate(said)
    ]
    log = session().model_copy(update={"user_interventions": []})
    ConsolidationPipeline(store).consolidate(BuildEventLog.parse({**log.model_dump(), "tasks": tasks}))
    kept = [one for one in store.every_memory() if one.source == SAID_SOURCE]
    assert [(one.content, one.source_event_ids) for one in kept] == [(f"The agent, at work: {explained}", ["s1/t0"])]


def test_a_short_explanation_before_an_edit_or_after_a_failure_is_a_record(store: Any) -> None:
    said = {
        "t0": "Let me look at the kiln.",
        "t1": "The lid caches the heat; so the fix goes into the fan. Let me read it:",
        "t2": "Now the fan:",
        "t3": "The hinge is of tin, which bends at 900 degrees. I look for another.",
        "t4": "Now I write all of the hinges into the list of the hall.",
        "t5": "I list the pots in the hall once more, and count them. Then I list the lids.",
    }
    more: dict[str, dict[str, Any]] = {
        "t2": {"outcome": "failure", "files_changed": ["fan.py"]},
        "t4": {"files_changed": ["hall.py"]},
    }
    tasks = [
        {"task_id": key, "agent_name": "claude", "description": "Bash", "outcome": "success", "reasoning": text}
        | more.get(key, {})
        for key, text in said.items()
    ]
    log = {**session().model_dump(), "user_interventions": [], "tasks": tasks}
    ConsolidationPipeline(store).consolidate(BuildEventLog.parse(log))
    kept = sorted(one.content for one in store.every_memory() if one.source == SAID_SOURCE)
    assert kept == [f"The agent, at work: {said['t3']}", f"The agent, at work: {said['t1']}"]


def test_what_an_agent_concludes_with_is_one_record_also_if_it_took_more_steps_after_it(store: Any) -> None:
    concluded = "The kiln rejects the glaze, because it needs a program of its own: " * 3 + "the old one is back."
    task = {"task_id": "t", "agent_name": "claude", "description": "Bash", "outcome": "success", "reasoning": concluded}
    turn = {"timestamp": "2026-05-04T10:00:00Z", "action": "Fire it", "reply": concluded}
    log = {**session().model_dump(), "tasks": [task], "user_interventions": [turn]}
    ConsolidationPipeline(store).consolidate(BuildEventLog.parse(log))
    told = [one.content for one in store.every_memory() if "the old one is back" in one.content]
    assert [one.partition(":")[0] for one in told] == ["The agent concluded"]
