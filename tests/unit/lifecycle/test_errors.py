"""Repeated errors: whose fault they are, what prevents them, and who tells of them, on a real embedded graph."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from memgraph.extraction.readers import CiLogReader, JunitReader
from memgraph.lifecycle import ingest
from memgraph.lifecycle.errors import SOURCE, analyse_errors, remedy_of, tried_in
from memgraph.lifecycle.lessons import compress
from memgraph.model.events.registry import attempt_in

Store = Any
ERROR = "KeyError: 'currency' in checkout/totals.py:88"


@pytest.mark.parametrize(
    ("content", "tried", "remedy"),
    [
        ("`make test` failed (E1); what worked: `make test JOBS=1`. It was slow.", "`make test`", "`make test JOBS=1`"),
        ("`make` failed (E1); it worked after a.py, b.py had been edited. So.", "`make`", "edit a.py, b.py"),
        ("`make` failed (E1); it worked after `make clean`. So.", "`make`", "`make clean`"),
        ("`make` failed (E1); it worked when it was run again. I must not run two at once.", "`make`", None),
        ("MARS failed at “Deploy the shop” (run.py): E1.", "“Deploy the shop”", None),
        ("Failed trial: Q. Lesson: I assumed both were the same. I should search each.", None, None),
    ],
)  # fmt: skip
def test_attempts_and_remedies_are_read_from_an_episodes_text(content: str, tried: str, remedy: str | None) -> None:
    outcome = "positive" if remedy else "negative"
    row = {"id": "i", "content": content, "outcome": outcome, **attempt_in(content)}
    assert (tried_in(row), remedy_of(row)) == (tried, remedy)


def failed(n: int, **fields: Any) -> dict[str, Any]:
    base = {"type": "episodic", "project_id": "shop", "outcome": "negative", "build_id": f"b{n}", "tags": [f"only-{n}"]}
    error = {"type": "KeyError", "message": ERROR}
    content = f"MARS failed at “Total of order {n}”: {ERROR}."
    return {**base, "content": content, "errors_encountered": [error], **fields}


def mended(n: int, **fields: Any) -> dict[str, Any]:
    told = f"`pytest -k total` failed ({ERROR}); it worked after checkout/totals.py had been edited. Default it."
    return {**failed(n), "outcome": "positive", "content": told, **fields}


def learn(store: Store, *episodes: dict[str, Any]) -> list[str]:
    """Insert episodes, with the fields that the rules would have written of the attempts that their texts tell of."""
    return [one.id for one in store.insert_memories([{**attempt_in(one["content"]), **one} for one in episodes])]


def antipatterns(store: Store) -> list[Any]:
    return [one for one in store.query_by_type("semantic") if one.source == SOURCE]


class TestAntiPatterns:
    def test_an_error_in_three_builds_becomes_an_antipattern_with_its_remedy(self, store: Store) -> None:
        ids = learn(store, failed(1), failed(2), mended(3))
        result = analyse_errors(store)
        assert (result.failures, result.internal, result.created) == (2, 2, 1)
        (made,) = antipatterns(store)
        assert made.incorrect_approach == "“Total of order 2”"
        assert made.correct_approach == "edit checkout/totals.py"
        assert (made.category, made.confidence, made.outcome) == ("internal error", 0.7, "negative")
        assert made.supporting_memory_ids == sorted(ids)
        assert made.evidence_build_ids == ["b1", "b2", "b3"]
        assert (
            "came up in 3 builds, in February 2026, and stayed in 2 of them. What helped (1 February 2026): edit"
            in made.content
        )
        (error,) = result.repeated
        assert (error.builds, error.remedy, error.memory_id) == (3, "edit checkout/totals.py", made.id)

    def test_three_different_builds_are_required(self, store: Store) -> None:
        learn(store, failed(1), failed(2), failed(2, content="Again."))
        assert (analyse_errors(store).created, antipatterns(store)) == (0, [])

    def test_variable_parts_are_left_out(self, store: Store) -> None:
        def call(n: int) -> dict[str, Any]:
            error = {"type": "Error", "message": f"Error: paid {n}05, price (in ${n}5)."}
            told = f"`book(user='u{n}', paid={n}05)` failed: {error['message']}"
            return failed(n, content=told, errors_encountered=[error])

        learn(store, call(1), call(2), call(3))
        analyse_errors(store)
        (made,) = antipatterns(store)
        assert (
            made.content
            == "“Error: paid …, price (in $…).” came up in 3 builds, in February 2026, and stayed each time. Seen when: `book(user='u3', paid=305)`."
        )

    def test_services_and_settings_are_distinguished(self, store: Store) -> None:
        down = {"type": "e", "message": "connect ECONNREFUSED 10.0.0.1"}
        learn(store, *(failed(n, errors_encountered=[down]) for n in range(3)))
        result = analyse_errors(store)
        assert (result.external, result.internal) == (3, 0)
        (made,) = antipatterns(store)
        assert made.category == "external error"
        assert "not one's own" in made.content

    def test_a_service_that_works_again_teaches_nothing(self, store: Store) -> None:
        down = {"type": "e", "message": "Error: 503 Service Unavailable"}
        met = {"errors_encountered": [down], "outcome": "positive"}
        learn(store, *(failed(n, content=f"The order was read at last, by call {n}.", **met) for n in range(1, 5)))
        assert (analyse_errors(store).created, antipatterns(store)) == (0, [])


def test_failures_of_a_ci_run_are_distinguished(store: Store, tmp_path: Path) -> None:
    failing = {
        "pip install -r requirements.txt": "ERROR: Could not find a version that satisfies the requirement torch==9.9",
        "docker pull app": "Error response from daemon: toomanyrequests: You have reached your pull rate limit.",
        "npm ci": "npm ERR! code ETIMEDOUT\nnpm ERR! network request to https://registry.npmjs.org/x failed",
        "pytest -q": "FAILED tests/test_a.py::test_x - AssertionError: assert 3 == 5",
        "./deploy.sh": "./deploy.sh: line 3: kubectl: command not found",
    }
    for n in range(3):
        steps = [
            f"##[group]Run {command}\n{command}\n##[endgroup]\n{said}\n##[error]Process completed with exit code 1."
            for command, said in failing.items()
        ]
        log = tmp_path / f"run-{n}.log"
        log.write_text("\n".join([*steps, f"run {n}"]))
        ingest(store, CiLogReader(log, project_id="shop"), compress=False)
    result = analyse_errors(store)
    assert (result.internal, result.external, result.configuration) == (1, 2, 2)
    assert {error.builds for error in result.repeated} == {3}


class TestReturn:
    def test_it_says_when_the_error_came_back_after_it_had_been_mended(self, store: Store) -> None:
        days = [f"2026-0{month}-05T00:00:00.000Z" for month in (1, 2, 3)]
        first, helped, again = (
            make(n, occurred_at=day) for n, (make, day) in enumerate(zip((failed, mended, failed), days, strict=True))
        )
        learn(store, first, helped, again)
        analyse_errors(store)
        assert (
            "from January to March 2026, and stayed in 2 of them. It came back after it had been mended (5 March 2026). "
            "What helped (5 February 2026): edit checkout/totals.py."
        ) in antipatterns(store)[0].content

    def test_a_task_that_failed_without_an_error_or_a_lesson_is_none(self, store: Store) -> None:
        same = {"errors_encountered": [], "failure_fingerprint": "f1"}
        learn(store, *(failed(n, content=f"Order {n} failed.", **same) for n in range(3)))
        assert (analyse_errors(store).repeated, antipatterns(store)) == ([], [])


class TestRuns:
    """Logs and reports of a tool's runs."""

    def log(self, path: Path, minute: int, *, passes: bool = False, more: str = "") -> CiLogReader:
        at = f"2026-03-04T10:{minute:02}"
        said = "1 passed" if passes else "FAILED tests/test_a.py::test_x - ValueError: no rate for a currency"
        end = f"{at}:09.0000000Z {'Cleaning up orphan processes' if passes else '##[error]Process completed with exit code 1.'}"
        lines = ["##[group]Run pytest -q", "pytest -q", "##[endgroup]", said]
        path.write_text("\n".join([*(f"{at}:0{n}.0000000Z {line}" for n, line in enumerate(lines)), end, more]))
        return CiLogReader(path, project_id="shop")

    def read(self, store: Store, folder: Path, *runs: tuple[int, bool]) -> None:
        for minute, passes in runs:
            ingest(store, self.log(folder / f"run-{minute}.log", minute, passes=passes), compress=False)

    def test_a_run_that_passes_closes_a_failure(self, store: Store, tmp_path: Path) -> None:
        self.read(store, tmp_path, (1, False), (2, False), (3, False))
        assert [error.builds for error in analyse_errors(store).repeated] == [3]
        assert len(antipatterns(store)) == 1
        self.read(store, tmp_path, (4, True))
        learn(store, failed(9))  # something of the project has changed
        analyse_errors(store)
        assert antipatterns(store) == []

    def test_one_that_came_back_between_runs_that_passed_is_kept(self, store: Store, tmp_path: Path) -> None:
        self.read(store, tmp_path, (1, False), (2, True), (3, False), (4, False), (5, True))
        analyse_errors(store)
        (made,) = antipatterns(store)
        assert "It came back after runs that had passed (4 March 2026). The run of 4 March 2026 passed." in made.content

    def test_it_says_since_when_and_when_it_returned_also_after_a_sleep_merged_the_failures(
        self, store: Store, tmp_path: Path
    ) -> None:
        for month, passes in ((1, False), (2, True), (3, False), (5, False)):
            failure = "" if passes else '<failure message="TimeoutError: export.lock was not released"/>'
            report = tmp_path / f"run-{month}.xml"
            report.write_text(
                f'<testsuite name="pytest" timestamp="2026-0{month}-03T10:00:00" tests="1"><testcase classname="test_export" '
                f'name="test_big">{failure}</testcase></testsuite>'
            )
            ingest(store, JunitReader(report, project_id="shop"))
        analyse_errors(store)
        (made,) = antipatterns(store)
        assert made.content.startswith(
            "“TimeoutError: export.lock was not released” came up in 3 builds, from January to May 2026. It came back after runs "
            "that had passed (3 May 2026). Seen when: "
        )
        assert [one.source for one in store.every_memory() if one.type == "semantic"] == [made.source]

    def test_copies_of_a_log_are_one_run(self, store: Store, tmp_path: Path) -> None:
        for n in range(3):
            ingest(store, self.log(tmp_path / f"copy-{n}.log", 1, more=f"copy {n}"), compress=False)
        assert analyse_errors(store).repeated == []


class TestAgain:
    def test_a_run_writes_nothing_unless_the_evidence_has_grown(self, store: Store) -> None:
        learn(store, failed(1), failed(2), failed(3))
        analyse_errors(store)
        before = store.digest(), store._journal.tail.seq
        assert not analyse_errors(store).updated
        assert (store.digest(), store._journal.tail.seq) == before
        (made,) = antipatterns(store)
        learn(store, mended(4))
        result = analyse_errors(store)
        assert (result.created, result.updated) == (0, 1)
        (after,) = antipatterns(store)
        assert (after.id, after.confidence, after.correct_approach) == (made.id, 0.8, "edit checkout/totals.py")
        digest = store.digest()
        store.rebuild()
        assert store.digest() == digest

    def test_hidden_ones_are_not_made_again_and_disproved_ones_are_retired(self, store: Store) -> None:
        ids = learn(store, failed(1), failed(2), failed(3))
        analyse_errors(store)
        (made,) = antipatterns(store)
        store.suppress(made.id)
        learn(store, failed(4))
        assert analyse_errors(store).created == 0
        store.unsuppress(made.id)
        for one in ids:
            store.invalidate(one)
        analyse_errors(store)
        assert antipatterns(store) == []


class TestWithdrawn:
    """What was forgotten, deleted or hidden is told by no anti-pattern."""

    def test_a_forgotten_remedy_is_dropped_and_too_little_evidence_retires(self, store: Store) -> None:
        ids = learn(store, failed(1), failed(2), failed(3), mended(4), mended(4, build_id="b3", content="So."))
        analyse_errors(store)
        (made,) = antipatterns(store)
        assert (
            "came up in 4 builds, in February 2026, and stayed in 2 of them. What helped (1 February 2026): edit"
            in made.content
        )
        store.suppress(ids[3])
        analyse_errors(store)
        (after,) = antipatterns(store)
        assert (after.correct_approach, after.id) == (None, made.id)
        assert "totals.py had been" not in after.model_dump_json()
        assert "edit checkout" not in after.model_dump_json()

        for one in (ids[0], ids[1]):
            store.suppress(one)
        analyse_errors(store)
        gone = store.get_memory(made.id)
        assert gone.invalid_at is not None
        assert not {"currency", "Total"} & set(re.findall(r"\w+", gone.model_dump_json()))
        assert not analyse_errors(store).updated

        for one in ids[:4]:
            store.unsuppress(one)
        analyse_errors(store)
        (back,) = antipatterns(store)
        assert (back.id, back.content, back.correct_approach) == (made.id, made.content, made.correct_approach)
        digest = store.digest()
        store.rebuild()
        assert store.digest() == digest

    @pytest.mark.parametrize("reason", [None, "faded"], ids=["by somebody", "because it had faded"])
    def test_a_deleted_one_is_not_made_again(self, store: Store, reason: str | None) -> None:
        learn(store, failed(1), failed(2), failed(3))
        analyse_errors(store)
        (made,) = antipatterns(store)
        store.delete_memory(made.id, reason=reason)
        learn(store, failed(3, content="Again."))
        analyse_errors(store)
        assert antipatterns(store) == []
        learn(store, failed(4))
        analyse_errors(store)
        assert len(antipatterns(store)) == (0 if reason is None else 1)  # what only faded, new evidence brings back
        if reason is None:
            store.undelete(made.id)
            analyse_errors(store)
            assert [one.confidence for one in antipatterns(store)] == [0.8]

    def test_with_some_evidence_forgotten_it_is_retired(self, store: Store) -> None:
        ids = learn(store, failed(1), failed(2), failed(3))
        analyse_errors(store)
        (made,) = antipatterns(store)
        store.delete_memory(ids[0], reason="faded")
        store.suppress(ids[1])
        analyse_errors(store)
        assert antipatterns(store) == []
        assert store.get_memory(made.id).supporting_memory_ids == [ids[2]]

    @pytest.mark.parametrize("is_pinned", [True, False], ids=["pinned", "not"])
    def test_its_tier_and_trust_only_become_stricter(self, store: Store, is_pinned: bool) -> None:
        ids = learn(store, *(failed(n) for n in (1, 2, 3)), failed(4, privacy_tier="private", trust_class="web"))
        analyse_errors(store)
        (made,) = antipatterns(store)
        assert (made.privacy_tier, made.trust_class) == ("private", "web")
        store.update_memory(made.id, is_pinned=is_pinned)
        store.suppress(ids[3])
        analyse_errors(store)
        (after,) = antipatterns(store)
        assert (after.privacy_tier, after.trust_class, len(after.evidence_build_ids)) == ("private", "web", 3)
        store.update_memory(made.id, privacy_tier="public", trust_class="agent")
        analyse_errors(store)
        (after,) = antipatterns(store)
        assert (after.privacy_tier, after.trust_class) == ("public", "agent")
        store.update_memory(made.id, privacy_tier="sensitive")
        analyse_errors(store)
        assert antipatterns(store)[0].privacy_tier == "sensitive"


class TestTrials:
    def test_one_set_of_evidence_yields_one_memory(self, store: Store) -> None:
        """Lessons that say different things of one task are one generalisation, and no anti-pattern besides."""
        places = ["the drawer by the door", "all cabinets of the kitchen", "a shelf over the sink", "the fridge"]

        def trial(n: int, place: str) -> dict[str, Any]:
            fields = {"build_id": f"t{n}", "evidence_build_ids": [f"t{n}"], "source_event_ids": [f"t{n}/env_4"]}
            told = f"Failed trial: Kitchen env_4. Lesson: I should have looked in {place}."
            return failed(
                n,
                content=told,
                errors_encountered=[],
                source="trial",
                failure_fingerprint="a" * 16,
                tags=["lesson"],
                **fields,
            )

        learn(store, *(trial(n, place) for n, place in enumerate(places)))
        compress(store, embedder=store.embedder)
        result = analyse_errors(store)
        (told,) = store.query_by_type("semantic")
        assert (told.source, len(told.evidence_build_ids)) == ("compression", 4)
        assert result.repeated == []
        assert analyse_errors(store).updated == 0
