"""Hooks of Codex, with payloads and a session recorded from the real client, and those of the other agents."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.config import AgentMemoryConfig
from memgraph.embedding import NoEmbedder
from memgraph.interfaces.agents.hooks import answer_hook
from memgraph.interfaces.agents.jobs import waiting_jobs
from memgraph.interfaces.agents.learning import learn_from_jobs
from memgraph.interfaces.agents.sessions import SessionLog
from memgraph.store import AgentMemoryStore

RECORDED = Path(__file__).parents[1] / "fixtures" / "codex"
LESSON = "The flaky checkout test needs a default for the delay of a cancelled ferry."
CAUSE = "KeyError: 'delay' in make test means that the fixture is out of date: run make fixtures."


@pytest.fixture
def memory(tmp_path: Path, clock: Any) -> Iterator[MemGraph]:
    config = AgentMemoryConfig(home=tmp_path / "store", keys_home=tmp_path / "keys")
    store = AgentMemoryStore(config, embedder=NoEmbedder(), clock=clock)
    with MemGraph(store) as opened:
        yield opened


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path / "shop")], check=True)
    return tmp_path / "shop"


@pytest.fixture
def recorded(tmp_path: Path, shop: Path) -> Callable[[str], list[dict[str, Any]]]:
    """Read a recorded file with this test's places."""

    def read(name: str) -> list[dict[str, Any]]:
        text = (RECORDED / name).read_text("utf-8")
        text = text.replace("/home/ada/.codex", str(tmp_path / "codex")).replace("/home/ada/shop", str(shop))
        return [json.loads(line) for line in text.splitlines()]

    return read


@pytest.fixture
def events(recorded: Any) -> list[dict[str, Any]]:
    """Return the recorded payloads, and put the recorded session where they say."""
    found: list[dict[str, Any]] = recorded("events.jsonl")
    path = Path(found[0]["transcript_path"])
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(one)}\n" for one in recorded("session.jsonl")), "utf-8")
    return found


def answered(memory: MemGraph, client: str, payload: Any) -> Any:
    printed = answer_hook(memory, client, payload, learn=lambda *_: None)
    return json.loads(printed) if printed else None


def context_of(printed: Any, payload: dict[str, Any]) -> str:
    """Return the added context; the client refuses answers with any other field."""
    assert printed.keys() == {"hookSpecificOutput"}
    assert printed["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
    assert printed["hookSpecificOutput"]["hookEventName"] == payload["hook_event_name"]
    return str(printed["hookSpecificOutput"]["additionalContext"])


def test_codex_gets_what_is_known_at_the_start_at_prompts_and_at_failures(memory: MemGraph, events: Any) -> None:
    memory.save_observation(LESSON, project="shop")
    memory.save_observation(CAUSE, project="shop")
    start, prompt, failed, succeeded, stop, end = events
    assert LESSON in context_of(answered(memory, "codex", start), start)
    assert answered(memory, "codex", prompt) is None, "the session has it from the overview"
    prompt, failed = prompt | {"session_id": "another"}, failed | {"session_id": "a third"}
    assert LESSON in context_of(answered(memory, "codex", prompt), prompt)
    assert CAUSE in context_of(answered(memory, "codex", failed), failed)
    assert answered(memory, "codex", succeeded) is None
    assert answered(memory, "codex", stop) is None
    assert answered(memory, "codex", end) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"transcript_path": None},
        {"transcript_path": "/nowhere.jsonl"},
        {"transcript_path": "/nowhere/\x00"},
        {"tool_use_id": "call_0099"},
        {"tool_use_id": None},
        {"tool_input": {"command": "memgraph recall 'make test'"}},
        {"tool_name": "mcp__memgraph__recall"},
    ],
)
def test_a_tool_of_which_no_failure_can_be_seen_gets_nothing(memory: MemGraph, events: Any, changed: Any) -> None:
    memory.save_observation(CAUSE, project="shop")
    assert answered(memory, "codex", events[2] | changed) is None


def test_a_pipe_or_a_link_in_place_of_the_session_is_not_waited_for(
    memory: MemGraph, events: Any, tmp_path: Path
) -> None:
    memory.save_observation(CAUSE, project="shop")
    link, pipe = tmp_path / "link.jsonl", tmp_path / "pipe.jsonl"
    link.symlink_to(events[2]["transcript_path"])
    os.mkfifo(pipe)
    has_reader = threading.Event()
    writer = threading.Timer(20, lambda: (pipe.write_bytes(b""), has_reader.set()))  # releases a reader that waits
    writer.daemon = True
    writer.start()
    assert answered(memory, "codex", events[2] | {"transcript_path": str(pipe)}) is None
    assert not has_reader.is_set()
    writer.cancel()
    assert answered(memory, "codex", events[2] | {"transcript_path": str(link)}) is None


def test_an_answer_to_codex_is_short_enough_to_stay_in_the_context(memory: MemGraph, events: Any) -> None:
    for number in range(40):
        memory.commands.remember(
            f"Flaky checkout test: {'日本語の規則' * 20} {number}", ["constraint"], project_id="shop"
        )
    for event in events[:2]:
        text = context_of(answered(memory, "codex", event), event)
        assert 1_000 < len(text.encode()) <= 9_000


def test_a_session_of_codex_is_learned_and_what_was_injected_is_not(
    memory: MemGraph, events: Any, recorded: Any
) -> None:
    known = memory.save_observation(LESSON, project="shop").memory_id
    path = Path(events[0]["transcript_path"])
    lines = path.read_text("utf-8")
    for event in (events[0] | {"session_id": "another"}, events[1]):
        text = context_of(answered(memory, "codex", event), event)
        inside = json.dumps(text)[1:-1]
        lines = lines.replace(f"INJECTED {event['hook_event_name']} query_id: q-{event['hook_event_name']}", inside)
    path.write_text(lines, "utf-8")
    assert LESSON in lines
    for event in events[4:]:
        answered(memory, "codex", event)
    (job,) = waiting_jobs(memory.store.config.home, "codex")
    assert job.transcript == str(path)
    assert learn_from_jobs(memory, "codex") == set()
    texts = [one.content for one in memory.store.get_all_memories()]
    assert texts.count(LESSON) == 1
    assert not [text for text in texts if LESSON in text and text != LESSON]
    log = SessionLog(memory.store.config.home, "codex", events[0]["session_id"])
    (recall,) = log.recalls()
    assert recall.memory_ids == (known,)
    assert (log.last("outcome") or {})["query_id"] == recall.query_id, "the agent used five of its words in a row"


RECENT: dict[str, list[dict[str, Any]]] = {
    "copilot": [
        {
            "sessionId": "s",
            "timestamp": 1,
            "cwd": "SHOP",
            "source": "new",
            "initialPrompt": "fix the flaky checkout test",
        },
        {"sessionId": "s", "timestamp": 2, "cwd": "SHOP", "prompt": "fix the flaky checkout test"},
        {
            "sessionId": "s",
            "timestamp": 3,
            "cwd": "SHOP",
            "toolName": "bash",
            "toolArgs": {"command": "make test", "description": "Run the tests"},
            "toolResult": {
                "resultType": "success",
                "textResultForLlm": "KeyError: 'delay'\n<shellId: 0 completed with exit code 3>",
            },
        },
    ],
    "gemini": [
        {"hook_event_name": "SessionStart", "source": "startup"},
        {
            "hook_event_name": "BeforeAgent",
            "prompt": "<hook_context>Notes\nx</hook_context>\n\nfix the flaky checkout test",
        },
        {
            "hook_event_name": "AfterTool",
            "tool_name": "run_shell_command",
            "tool_input": {"command": "make test"},
            "tool_response": {
                "llmContent": "<untrusted_context>\nOutput: KeyError: 'delay'\nExit Code: 3\nProcess Group PGID: 7\n</untrusted_context>",
                "returnDisplay": "KeyError: 'delay'",
            },
        },
    ],
    "cursor": [
        {
            "conversation_id": "s",
            "session_id": "s",
            "hook_event_name": "sessionStart",
            "workspace_roots": ["SHOP"],
            "cursor_version": "2.4",
        },
    ],
}
"""The shape of what Copilot 1.0.102 and Gemini CLI 0.61.0 sent; of Cursor what it documents. The other two fail tools in another way too."""
_COMMON = {"session_id": "s", "transcript_path": "/t.jsonl", "cwd": "SHOP", "timestamp": "2026-11-23T15:10:55.286Z"}
RECENT["gemini"] = [_COMMON | one for one in RECENT["gemini"]]
FAILED: dict[str, dict[str, Any]] = {
    "copilot": {"toolResult": None, "error": "KeyError: 'delay'"},
    "gemini": {"tool_response": {"llmContent": "x", "error": {"message": "KeyError: 'delay'"}}},
}
DONE: dict[str, dict[str, Any]] = {
    "copilot": {
        "toolResult": {
            "resultType": "success",
            "textResultForLlm": "KeyError: 'delay'\n<shellId: 0 completed with exit code 0>",
        }
    },
    "gemini": {
        "tool_response": {"llmContent": "Output: KeyError: 'delay'\nExit Code: 0", "returnDisplay": "KeyError: 'delay'"}
    },
}


def text_in(client: str, printed: Any) -> str:
    if client == "copilot":
        return str(printed.pop("additionalContext"))
    if client == "cursor":
        return str(printed.pop("additional_context"))
    return str(printed["hookSpecificOutput"]["additionalContext"])


@pytest.mark.parametrize("client", RECENT)
def test_payloads_are_answered_in_each_clients_shape(memory: MemGraph, shop: Path, client: str) -> None:
    memory.save_observation(LESSON, project="shop")
    memory.save_observation(CAUSE, project="shop")
    for number, (given, known) in enumerate(zip(RECENT[client], (LESSON, LESSON, CAUSE), strict=False)):
        payload = json.loads(json.dumps(given).replace("SHOP", str(shop)).replace('"s"', f'"session {number}"'))
        assert known in text_in(client, answered(memory, client, payload))


@pytest.mark.parametrize("client", FAILED)
def test_only_failures_of_tools_are_answered(memory: MemGraph, shop: Path, client: str) -> None:
    memory.save_observation(CAUSE, project="shop")
    payload = json.loads(json.dumps(RECENT[client][2]).replace("SHOP", str(shop)))
    assert answered(memory, client, payload | DONE[client]) is None
    assert CAUSE in text_in(client, answered(memory, client, payload | FAILED[client]))


def test_what_gemini_adds_to_a_prompt_is_not_asked_about(memory: MemGraph, shop: Path) -> None:
    memory.save_observation(LESSON, project="shop")
    payload = json.loads(json.dumps(RECENT["gemini"][1]).replace("SHOP", str(shop)))
    prompt = f"<hook_context>{LESSON}</hook_context>\n\ntranslate the greeting into Danish"
    assert answered(memory, "gemini", payload | {"prompt": prompt}) is None


@pytest.mark.parametrize("client", ["codex", *RECENT])
@pytest.mark.parametrize(
    "payload",
    [
        {},
        [],
        None,
        {"hook_event_name": 7},
        {"prompt": {"a": 1}, "sessionId": 7},
        {"hook_event_name": "BeforeAgent", "session_id": "s", "prompt": None},
        {"hook_event_name": "AfterTool", "session_id": "s", "tool_name": "x", "tool_response": []},
        {"hook_event_name": "PostToolUse", "session_id": "s", "tool_use_id": "c", "transcript_path": "/"},
        {"hook_event_name": "Stop", "session_id": "s", "workspace_roots": {}},
        {"sessionId": "s", "toolName": "bash", "toolArgs": "x", "error": {"message": 7}},
        {"sessionId": "s", "toolName": "bash", "toolResult": {}},
    ],
)
def test_malformed_payloads_yield_nothing(memory: MemGraph, client: str, payload: Any) -> None:
    assert answered(memory, client, payload) is None
