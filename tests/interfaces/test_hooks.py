"""Hooks of Claude Code, with payloads and a transcript recorded from the real client: what they print, keep and learn."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemGraph, MemGraphError
from memgraph.config import AgentMemoryConfig
from memgraph.embedding import NoEmbedder
from memgraph.interfaces.agents.connecting.receipt import Options, Receipt, keep_receipt
from memgraph.interfaces.agents.hooks import answer_hook
from memgraph.interfaces.agents.jobs import Job, add_job, start_learning, waiting_jobs
from memgraph.interfaces.agents.kept import kept_overview
from memgraph.interfaces.agents.learning import learn, learn_from_jobs
from memgraph.interfaces.agents.sessions import SessionLog
from memgraph.store import AgentMemoryStore

RECORDED = Path(__file__).parents[1] / "fixtures" / "claude_code"
SESSION = "5b1f0c3a-7d10-4c2e-9a55-20c0ffee0003"
LESSON = "The flaky checkout test needs a default for the delay of a cancelled ferry."
"""The recorded agent says: The tests pass: the delay of a cancelled ferry has a default now."""


@pytest.fixture
def memory(tmp_path: Path, clock: Any) -> Iterator[MemGraph]:
    config = AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    store = AgentMemoryStore(config, embedder=NoEmbedder(), clock=clock)
    with MemGraph(store) as opened:
        yield opened


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Make a git work tree named shop, with a directory in it."""
    (tmp_path / "shop" / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)
    return tmp_path / "shop"


@pytest.fixture
def events(tmp_path: Path, shop: Path) -> list[dict[str, Any]]:
    """Return the recorded payloads in order, with this test's places."""
    text = (RECORDED / "events.jsonl").read_text("utf-8")
    text = text.replace("/home/ada/.claude", str(tmp_path / "claude")).replace("/home/ada/shop", str(shop))
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def hook(memory: MemGraph) -> Callable[..., str]:
    """Answer a hook and return the text that the agent gets; no process is started."""

    def call(payload: dict[str, Any], **changed: Any) -> str:
        printed = answer_hook(memory, "claude-code", payload | changed, learn=lambda *_: None)
        if not printed:
            return ""
        output = json.loads(printed)["hookSpecificOutput"]
        assert output["hookEventName"] == payload["hook_event_name"]
        return str(output["additionalContext"])

    return call


def named(events: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(one for one in events if one["hook_event_name"] == name)


def saved(memory: MemGraph, text: str = LESSON, **fields: Any) -> str:
    return str(memory.save_observation(text, project="shop", **fields).memory_id)


def query_id_of(text: str) -> str:
    return text.rpartition("query_id: ")[2]


def write_transcript(events: list[dict[str, Any]], shop: Path, *, given: dict[str, str]) -> Path:
    """Write the recorded transcript as it would stand after the hooks gave these texts, by the name of their event."""
    path = Path(events[0]["transcript_path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    text = (RECORDED / "session.jsonl").read_text("utf-8").replace("/home/ada/shop", str(shop))
    for name in ("SessionStart", "UserPromptSubmit", "PostToolUseFailure"):
        inside = json.dumps(given.get(name, ""))[1:-1]
        text = text.replace(f"INJECTED {name} query_id: q-{name}", inside)
    lines = []
    for line in text.splitlines():  # what was injected stands in an escaped JSON string in some lines
        try:
            json.loads(line)
        except ValueError:
            continue
        lines.append(line)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_a_prompt_gets_what_holds_in_the_task_of_its_session(memory: MemGraph, hook: Any, events: Any) -> None:
    prompt = named(events, "UserPromptSubmit")
    memory.tasks.upsert("Parser", task_id="parser")
    decision = memory.tasks.decide("parser", LESSON)
    assert hook(prompt) == ""
    memory.tasks.sessions.switch(SESSION, "parser")
    text = hook(prompt)
    assert f"- Decision: {LESSON}" in text
    assert decision.id[:8] not in text
    assert hook(prompt) == "", "once in a session"
    assert hook(prompt, session_id="another") == ""


def test_a_prompt_gets_what_is_known_of_it_once_in_a_session(memory: MemGraph, hook: Any, events: Any) -> None:
    known = saved(memory)
    prompt = named(events, "UserPromptSubmit")
    text = hook(prompt)
    assert LESSON in text
    assert known[:8] in text
    assert SessionLog(memory.store.config.home, "claude-code", SESSION).recalls()[0].query_id == query_id_of(text)
    assert hook(prompt) == ""
    assert LESSON in hook(prompt, session_id="another")


def test_what_the_overview_holds_is_not_given_again_until_the_context_is_lost(
    memory: MemGraph, hook: Any, events: Any
) -> None:
    saved(memory)
    memory.save_episode("Fix the flaky checkout test", "it took a rerun", "reran it", "success", project="shop")
    start, prompt = named(events, "SessionStart"), named(events, "UserPromptSubmit")
    for source in ("startup", "compact", "clear"):
        overview, text = hook(start, source=source), hook(prompt)
        assert (LESSON in overview, "reran it" in overview) == (True, False)
        assert (LESSON in text, "reran it" in text) == (False, True)
        assert hook(prompt) == ""
    for _ in range(2):  # only noted: what the agent did not get may be given
        assert answer_hook(memory, "claude-code", start | {"session_id": "b"}, is_printed=False) == ""
    assert LESSON in hook(prompt, session_id="b")


def test_a_session_begins_with_a_request_for_phrases_if_anything_is_known(
    memory: MemGraph, hook: Any, events: Any
) -> None:
    start = named(events, "SessionStart")
    assert hook(start) == ""
    saved(memory)
    assert re.search(r"`recall` with the task and, in `also`, three phrases .*, such as “.+” for “.+”\.$", hook(start))


def test_nothing_is_printed_without_evidence(memory: MemGraph, hook: Any, events: Any) -> None:
    memory.save_episode("Print the hymn sheet", "the paper was wet", "print", "failure", project="shop")
    prompt = named(events, "UserPromptSubmit")
    assert hook(prompt, prompt="translate the greeting into Danish") == ""
    assert hook(prompt, prompt="") == ""
    assert hook(prompt, source="system") == ""
    assert hook({"hook_event_name": "PreToolUse", "session_id": "s"}) == ""


def test_the_project_is_the_work_tree_of_the_sessions_first_directory(
    memory: MemGraph, hook: Any, events: Any, shop: Path, tmp_path: Path
) -> None:
    hook(named(events, "SessionStart"), session_id="d")
    saved(memory)
    prompt = named(events, "UserPromptSubmit")
    (tmp_path / "harbour").mkdir()
    assert LESSON in hook(prompt, session_id="a", cwd=str(shop / "src"))
    assert hook(prompt, session_id="b", cwd=str(tmp_path / "harbour")) == "", "another project, without git"
    assert LESSON in hook(prompt, session_id="c", cwd="/gone/from/this/machine/shop")
    assert LESSON in hook(prompt, session_id="d", cwd=str(tmp_path / "harbour")), "it has only changed its directory"
    for name, kept in (("linked", "worktrees/linked"), ("part", "modules/worktrees/part")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".git").write_text(f"gitdir: {shop}/.git/{kept}\n")
        (shop / ".git" / kept).mkdir(parents=True)
    (shop / ".git" / "worktrees" / "linked" / "commondir").write_text("../..\n")
    assert LESSON in hook(prompt, session_id="e", cwd=str(tmp_path / "linked")), "a linked work tree of the repository"
    assert hook(prompt, session_id="f", cwd=str(tmp_path / "part")) == "", "a submodule is a project of its own"


def test_a_failure_gets_what_is_known_of_the_error(memory: MemGraph, hook: Any, events: Any) -> None:
    saved(memory, "KeyError: 'delay' in make test means that the fixture is out of date: run make fixtures.")
    failed = named(events, "PostToolUseFailure")
    text = hook(failed)
    assert "run make fixtures" in text
    assert hook(failed, session_id="b", is_interrupt=True) == ""
    assert hook(failed, session_id="b", tool_name="mcp__plugin_memgraph_memgraph__recall") == ""
    assert hook(failed, session_id="b", error=["not", "a", "text"]) == ""


def test_a_session_begins_with_what_is_pinned_and_what_failed(memory: MemGraph, hook: Any, events: Any) -> None:
    start = named(events, "SessionStart")
    assert hook(start) == ""
    memory.commands.remember("Never deploy the shop on Fridays.", project_id="shop")
    memory.save_episode("Deploy", "nobody was there", "deployed at night", "failure", project="shop")
    memory.save_episode("Print", "it was asked", "printed the hymn sheet", "success", project="shop")
    memory.save_observation("The harbour has two piers.", project="harbour")
    build = {
        "build_id": "b1",
        "project_id": "shop",
        "tasks": [],
        "user_interventions": [{"timestamp": "2026-02-01T08:00:00Z", "action": "Never paint the piers green."}],
        "started_at": "2026-02-01T08:00:00Z",
        "completed_at": "2026-02-01T09:00:00Z",
        "build_outcome": "success",
    }
    assert memory.consolidation.consolidate(build).new_memory_ids
    text = hook(start)
    assert "Never deploy the shop on Fridays." in text
    assert "nobody was there" in text
    assert "Never paint the piers green." in text
    assert "hymn" not in text
    assert "two piers" not in text


def test_a_kept_overview_is_used_until_something_is_written(memory: MemGraph, hook: Any, events: Any) -> None:
    kept = saved(memory)
    home = memory.store.config.home
    start = named(events, "SessionStart")
    first = hook(start)
    assert (kept_overview(home, "shop", "claude-code") or ())[:2] == (first, (kept,))
    file = next((home / "agents" / "overviews").iterdir())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text(file.read_text("utf-8").replace("flaky", "shaky"), "utf-8")
    assert "shaky" in hook(start), "it is read, not rendered"
    memory.commands.forget(kept)
    assert hook(start) == ""


def test_private_memories_stay_out(memory: MemGraph, hook: Any, events: Any) -> None:
    saved(memory, "The flaky checkout test is due to the diabetes of its author.", context="health")
    assert hook(named(events, "UserPromptSubmit")) == ""
    assert hook(named(events, "SessionStart")) == ""


def test_an_answer_fits_the_clients_limit(tmp_path: Path, clock: Any, events: Any) -> None:
    budget = {"episodic": 0, "semantic": 40, "procedural": 0, "max_tokens": 100_000}
    config = AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys", retrieval_budget=budget)
    store = AgentMemoryStore(config, embedder=NoEmbedder(), clock=clock)
    with MemGraph(store) as memory:
        for number in range(30):
            words = " ".join(f"rule{number}x{place}" for place in range(70))
            memory.commands.remember(f"Mind {words}.", ["constraint"], project_id="shop")
        for name in ("UserPromptSubmit", "SessionStart"):
            printed = answer_hook(memory, "claude-code", named(events, name))
            text = json.loads(printed)["hookSpecificOutput"]["additionalContext"]
            assert 1_000 < len(text) <= 9_000
            assert name == "SessionStart" or text.splitlines()[-1].startswith("query_id: ")


@pytest.mark.parametrize(
    "changed",
    [
        {"prompt": "fix the flaky checkout test " + "x" * 1_050_000},
        {"prompt": "fix the flaky checkout test \ud800\x00"},
        {"cwd": "/nowhere/\x00/shop"},
        {"transcript_path": None},
    ],
)
def test_hostile_prompts_are_answered(memory: MemGraph, hook: Any, events: Any, changed: Any) -> None:
    saved(memory)
    assert LESSON in hook(named(events, "UserPromptSubmit"), **changed)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"hook_event_name": "UserPromptSubmit"},
        {"hook_event_name": "UserPromptSubmit", "session_id": 7, "prompt": "x"},
        {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": {"a": 1}},
        {"hook_event_name": "Stop", "session_id": "s", "transcript_path": "/nowhere.jsonl"},
        {"hook_event_name": ["SessionStart"], "session_id": "s"},
        [],
        None,
    ],
)
def test_malformed_payloads_yield_nothing(memory: MemGraph, payload: Any) -> None:
    assert answer_hook(memory, "claude-code", payload, learn=lambda *_: None) == ""
    assert answer_hook(memory, "nobody", payload, learn=lambda *_: None) == ""


def test_a_broken_store_yields_nothing_and_is_logged(
    memory: MemGraph, events: Any, caplog: pytest.LogCaptureFixture
) -> None:
    saved(memory)
    memory.close()
    for event in events:
        assert answer_hook(memory, "claude-code", event, learn=lambda *_: None) == ""
    assert "was not answered: " in caplog.text
    assert "checkout" not in caplog.text


def test_a_session_is_learned_and_what_was_injected_is_not(
    memory: MemGraph, hook: Any, events: Any, shop: Path
) -> None:
    known = saved(memory)
    texts = {one["hook_event_name"]: hook(one, session_id=str(number)) for number, one in enumerate(events[:3])}
    assert LESSON in texts["SessionStart"]
    assert LESSON in texts["UserPromptSubmit"]
    path = write_transcript(events, shop, given=texts)
    assert LESSON in path.read_text("utf-8")
    before = {one.id for one in memory.store.every_memory()}
    assert hook(named(events, "SessionEnd")) == ""
    learn_from_jobs(memory, "claude-code")
    new = [one for one in memory.store.every_memory() if one.id not in before]
    assert any("a cancelled ferry has a default now" in one.content for one in new), "the session taught something"
    assert {one.project_id for one in new} == {"shop"}
    assert not any("needs a default" in one.content or "Notes from past work" in one.content for one in new)
    assert memory.store.get_memory(known).source_event_ids == []
    assert not waiting_jobs(memory.store.config.home, "claude-code")
    assert kept_overview(memory.store.config.home, "shop", "claude-code") is not None, (
        "the next session's overview is ready"
    )


def test_what_the_agent_used_is_recorded_and_nothing_else(memory: MemGraph, hook: Any, events: Any, shop: Path) -> None:
    used, idle = saved(memory), saved(memory, "A flaky checkout test is nobody's fault on a Monday.")
    text = hook(named(events, "UserPromptSubmit"))
    assert "Monday" in text
    write_transcript(events, shop, given={"UserPromptSubmit": text})
    hook(named(events, "Stop"))
    learn_from_jobs(memory, "claude-code")
    reader = memory.store.reader
    assert reader.record("Recall", query_id_of(text))["outcome"] == "pending"
    assert reader.record("RECALLED", (query_id_of(text), used))["used"] is True
    assert reader.record("RECALLED", (query_id_of(text), idle)).get("used") is None
    assert memory.store.get_memory(used).access_count > memory.store.get_memory(idle).access_count


def test_a_command_that_passes_after_a_recall_for_its_failure_is_a_success(
    memory: MemGraph, hook: Any, events: Any, shop: Path
) -> None:
    saved(memory, "KeyError: 'delay' in make test: the delay of a cancelled ferry has no value.")
    text = hook(named(events, "PostToolUseFailure"))
    write_transcript(events, shop, given={"PostToolUseFailure": text})
    hook(named(events, "SessionEnd"))
    learn_from_jobs(memory, "claude-code")
    assert memory.store.reader.record("Recall", query_id_of(text))["outcome"] == "success"


def test_nothing_is_recorded_of_a_recall_that_the_agent_did_not_get_or_has_judged(
    memory: MemGraph, hook: Any, events: Any, shop: Path
) -> None:
    known = saved(memory)
    lost = query_id_of(hook(named(events, "UserPromptSubmit")))
    cleared = named(events, "SessionStart") | {"source": "clear"}
    assert answer_hook(memory, "claude-code", cleared, is_printed=False) == ""
    text = hook(named(events, "UserPromptSubmit"))
    memory.record_outcome(query_id_of(text), "failure", overridden=[known])
    write_transcript(events, shop, given={"UserPromptSubmit": text})
    hook(named(events, "SessionEnd"))
    learn_from_jobs(memory, "claude-code")
    assert memory.store.reader.record("Recall", lost).get("outcome") is None
    assert memory.store.reader.record("Recall", query_id_of(text))["outcome"] == "failure"


def test_a_transcript_is_read_at_most_once_a_minute_until_the_session_ends(memory: MemGraph, events: Any) -> None:
    delays: list[float] = []

    def learn_later(_memory: MemGraph, client: str, delay_s: float) -> None:
        assert client == "claude-code"
        delays.append(delay_s)

    for name in ("Stop", "Stop", "Stop", "SessionEnd"):
        answer_hook(memory, "claude-code", named(events, name), learn=learn_later)
    assert delays == [0, pytest.approx(60, abs=5), 0], (
        "now, later, and at the end; the third turn is read with the second"
    )
    answer_hook(memory, "claude-code", named(events, "SessionStart"), learn=learn_later)
    assert len(delays) == 4, "what a session left that was cut off is read"


def test_a_missing_transcript_is_no_reason_to_wait(
    memory: MemGraph, hook: Any, events: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hook(named(events, "SessionEnd"), transcript_path="/nowhere/at/all.jsonl")
    learn_from_jobs(memory, "claude-code")
    assert not waiting_jobs(memory.store.config.home, "claude-code")
    assert "a transcript was not read" in caplog.text


def test_a_job_that_fails_waits_for_the_next_run(
    memory: MemGraph, hook: Any, events: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_transcript(events, shop, given={})
    hook(named(events, "SessionEnd"))

    def refuse(*_: Any, **__: Any) -> None:
        raise MemGraphError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(memory, "ingest", refuse)
        learn_from_jobs(memory, "claude-code")
    (job,) = waiting_jobs(memory.store.config.home, "claude-code")
    learn_from_jobs(memory, "claude-code", [job])
    assert waiting_jobs(memory.store.config.home, "claude-code") == {job}
    learn_from_jobs(memory, "claude-code")
    assert not waiting_jobs(memory.store.config.home, "claude-code")
    assert list(memory.store.every_memory())


def test_subagents_transcripts_are_read_too(memory: MemGraph, hook: Any, events: Any, shop: Path) -> None:
    path = write_transcript(events, shop, given={})
    below = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    below.parent.mkdir(parents=True)
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    changed = [one | {"isSidechain": True, "agentId": "a1", "uuid": f"a1-{place}"} for place, one in enumerate(entries)]
    text = "\n".join(map(json.dumps, changed)).replace("delay of", "berth of").replace("toolu_", "toolu_a1_")
    below.write_text(text + "\n", "utf-8")
    hook(named(events, "SessionEnd"))
    learn_from_jobs(memory, "claude-code")
    contents = "\n".join(one.content for one in memory.store.every_memory())
    assert "The agent concluded: The tests pass: the delay of" in contents
    assert "The agent concluded: The tests pass: the berth of" in contents


def test_the_agent_is_asked_once_for_answers_and_only_if_the_user_wants_it(
    memory: MemGraph, hook: Any, events: Any, shop: Path
) -> None:
    entries = []
    for number in range(40):
        common = {"sessionId": SESSION, "cwd": str(shop), "timestamp": f"2026-03-01T10:{number:02d}:00.000Z"}
        user = {"role": "user", "content": f"And what about case {number} of the timetable?"}
        agent = {"role": "assistant", "content": [{"type": "text", "text": f"Case {number} is like the others."}]}
        entries += [common | {"type": "user", "message": user}, common | {"type": "assistant", "message": agent}]
    path = Path(events[0]["transcript_path"])
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(map(json.dumps, entries)) + "\n", "utf-8")
    hook(named(events, "Stop"))
    learn_from_jobs(memory, "claude-code")
    orders = memory.distillation.list()
    assert orders, "a long session of which little was kept"
    stop = named(events, "Stop")
    assert hook(stop) == ""
    config = memory.store.config
    for home, wants in ((config.home, False), (config.home / "another", True), (config.home, True)):
        assert hook(stop) == ""
        chosen = Options(home=str(home), scripts="", answer_orders=wants)
        keep_receipt(config.keys_home, "claude-code", Receipt(release="", options=chosen))
    assert hook(stop, stop_hook_active=True) == ""
    assert hook(stop, session_id="another") == ""
    text = hook(stop)
    assert orders[0].id in text
    assert "next_work_order" in text
    assert hook(stop) == ""


def test_a_process_of_its_own_reads_what_waits(
    tmp_path: Path, events: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    write_transcript(events, shop, given={})
    home, keys = tmp_path / "store", tmp_path / "keys"
    with MemGraph.open(home, keys_home=keys) as memory:
        monkeypatch.setattr("memgraph.interfaces.agents.learning.learn_from_jobs", None)  # this process does not read
        for _ in range(6):  # a run that finds the store busy leaves the session to the next one
            assert answer_hook(memory, "claude-code", named(events, "SessionEnd")) == ""
            deadline = time.monotonic() + 15
            while time.monotonic() < deadline:
                if any("a cancelled ferry has a default now" in one.content for one in memory.store.every_memory()):
                    return
                time.sleep(0.1)
        raise AssertionError("nothing was read")


def test_two_processes_do_not_read_the_same(
    tmp_path: Path, memory: MemGraph, hook: Any, events: Any, shop: Path
) -> None:
    from memgraph.disk.lock import ProcessLock

    write_transcript(events, shop, given={})
    hook(named(events, "SessionEnd"))
    home = memory.store.config.home
    lock = ProcessLock(home / "agents" / "claude-code" / "learning.lock", "test")
    lock.acquire(0)
    try:
        learn(str(home), str(tmp_path / "keys"), "claude-code")
    finally:
        lock.release()
    assert waiting_jobs(home, "claude-code")


def test_a_job_that_comes_while_others_are_read_is_read_too(
    tmp_path: Path, events: Any, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    write_transcript(events, shop, given={})
    home, keys = tmp_path / "store", tmp_path / "keys"
    with MemGraph.open(home, keys_home=keys) as memory:
        answer_hook(memory, "claude-code", named(events, "Stop"), learn=lambda *_: None)
    real, read = MemGraph.ingest, []

    def ingest(self: MemGraph, reader: Any, **options: Any) -> Any:
        if not read:
            add_job(home, "claude-code", Job("late", reader.locator))
        read.append(reader.locator)
        return real(self, reader, **options)

    monkeypatch.setattr(MemGraph, "ingest", ingest)
    learn(str(home), str(keys), "claude-code")
    assert len(read) == 2
    assert not waiting_jobs(home, "claude-code")


def test_a_process_that_does_not_start_is_logged(
    memory: MemGraph, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    start_learning(memory, "claude-code", 0)
    assert "transcripts wait" in caplog.text


def test_a_directory_that_cannot_be_written_does_not_keep_a_prompt_waiting(
    memory: MemGraph, hook: Any, events: Any
) -> None:
    saved(memory)
    (memory.store.config.home / "agents").write_text("a file is in the way", "utf-8")
    assert LESSON in hook(named(events, "UserPromptSubmit"))
    assert hook(named(events, "SessionEnd")) == ""


def test_the_newest_records_of_a_long_log_are_read(tmp_path):
    log = SessionLog(tmp_path, "claude-code", SESSION)
    for _ in range(3):
        log.add("filler", text="x" * 2_000_000)
    log.add("newest")
    assert log.last("newest") is not None


def test_what_belongs_to_the_session_is_given_once_until_it_changes(memory: MemGraph, hook: Any, events: Any) -> None:
    prompt, tasks = named(events, "UserPromptSubmit"), memory.tasks
    tasks.absorb(SESSION, "<working-memory>Task: Count coins</working-memory><chat-memory>Tone: dry</chat-memory>")
    first = hook(prompt)
    assert "## Working memory (updated just now)\n- Doing: Count coins" in first
    assert "Tone: dry" in first
    assert hook(prompt) == ""
    assert hook(prompt, session_id="another") == ""
    tasks.absorb(SESSION, "<chat-memory>Name: Bo</chat-memory>")
    assert hook(prompt).splitlines()[0] == "## Chat memory"
    tasks.working.replace(SESSION, task="Deploy")
    saved(memory)
    text = hook(prompt)
    assert LESSON in text
    assert "- Doing: Deploy" in text
    assert text.splitlines()[-1].startswith("query_id: ")
    assert "Tone: dry" not in text
    hook(named(events, "SessionStart"), source="compact")
    again = hook(prompt)
    for told in ("- Doing: Deploy", "Tone: dry", "Name: Bo"):
        assert told in again


def test_the_constraints_of_the_sessions_task_come_first(memory: MemGraph, hook: Any, events: Any) -> None:
    saved(memory)
    memory.tasks.upsert("Fix the checkout", task_id="checkout")
    memory.tasks.pins.upsert("Never skip a test", kind="constraint", task_id="checkout")
    assert "Never skip" not in hook(named(events, "UserPromptSubmit"), session_id="another")
    memory.tasks.sessions.switch(SESSION, "checkout")
    assert hook(named(events, "UserPromptSubmit")).startswith("## Standing rules\n- Rule: Never skip a test.")
