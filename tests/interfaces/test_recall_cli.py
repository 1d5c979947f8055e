"""``recall`` in its formats, and ``search``, as a shell or a hook uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph import MemGraph
from memgraph.embedding.onnx import MiniLMEmbedder
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.cli.memories.recall import FORMATS as OFFERED
from memgraph.interfaces.lookups import explanation
from memgraph.model.results.retrieval import Explanation, Hop, RetrievalResult, StageReport
from memgraph.retrieval.context.formats import FORMATS

Run = Callable[..., Result]
BILLING = "Ask before touching the billing tables"
IMPORT = "Import the CSV"


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    """Run one command in this process, against one store with a fake model; it must succeed unless told otherwise."""

    def call(*args: object, stdin: str | None = None, code: int = 0) -> Result:
        given = ["--home", str(tmp_path / "store"), *map(str, args)]
        result = CliRunner().invoke(cli, given, input=stdin, prog_name="memgraph", obj=settings())
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def filled(run: Run) -> Run:
    run("remember", BILLING, "--project", "shop")
    parts = ["--reasoning", "the file is small", "--action", "read it whole", "--outcome", "failure"]
    run("episode", IMPORT, *parts, "--project", "shop", "--context", "imports")
    return run


def test_the_formats_are_those_of_the_library() -> None:
    assert sorted(OFFERED) == sorted(FORMATS)


def test_each_format_is_printed_exactly_and_notes_are_the_default(filled: Run) -> None:
    task = "change the billing tables"
    told = {form: filled("recall", task, "--format", form).stdout for form in FORMATS}

    assert filled("recall", task).stdout == told["notes"]
    assert f"\n- Rule: {BILLING}. (" in told["notes"]
    assert f"\n- Failed: {IMPORT}. Action: read it whole. Why: the file is small. (" in told["notes"]
    assert told["notes"].endswith(")\n")
    assert told["prefix"].startswith("You have the following relevant memories")
    assert f"- {BILLING} (confidence: 1)" in told["sections"].splitlines()
    assert f"**FAILURE**: {IMPORT}" in told["sections"]
    assert told["delimited"].splitlines()[0].startswith("<memories certainty=")
    assert told["delimited"].endswith("</memories>\n")
    document = json.loads(told["context"])
    assert [found["text"] for found in document["relevant_patterns"]] == [BILLING]
    assert [(one["trust_class"], one["privacy_tier"]) for one in document["avoid_these"]] == [("agent", "public")]
    assert len(document["avoid_these"]) == 1
    used = document["relevant_patterns"][0]["memory_id"]
    assert filled("outcome", document["query_id"], "success", "--used", used).exit_code == 0


def test_json_has_the_text_of_the_format_beside_the_whole_result(filled: Run) -> None:
    document = json.loads(filled("recall", "billing", "--format", "delimited", "--json").stdout)

    assert document["formatted"].startswith("<memories ")
    assert document["injected_prompt_prefix"].startswith("You have")
    assert {
        memory["content"][:10]: (memory["trust_class"], memory["privacy_tier"]) for memory in document["memories"]
    } == {
        BILLING[:10]: ("user", "public"),
        IMPORT[:10]: ("agent", "public"),
    }


def test_a_task_of_dash_is_read_from_standard_input(filled: Run) -> None:
    piped = filled("recall", "-", "--project", "shop", stdin="change the billing tables\n")
    assert piped.stdout == filled("recall", "change the billing tables", "--project", "shop").stdout
    assert BILLING in piped.stdout

    refused = filled("recall", "-", stdin="x" * 1_000_001, code=1)
    assert "1,000,000 characters" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_nothing_remembered_is_no_text_but_a_document(run: Run) -> None:
    for form in FORMATS:
        result = run("recall", "anything", "--format", form, "--when-nothing", "empty")
        assert "no memory is relevant" in result.stderr
        assert result.stdout == "" or json.loads(result.stdout)["avoid_these"] == []


def test_nothing_remembered_is_said_in_the_text_unless_the_setting_says_otherwise(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = run("recall", "anything").stdout
    assert re.fullmatch(
        r"Nothing in memory concerns this task\. Ask again and give three phrases .*, such as “[^”]+”, .*`--also`\)\.\n",
        line,
    )
    assert run("recall", "anything", "--also", "something").stdout == "Nothing in memory concerns this task.\n"
    result = run("recall", "anything")
    assert (result.stdout, "no memory is relevant" in result.stderr) == (line, False)
    assert json.loads(run("recall", "anything", "--json").stdout)["formatted"] == line.strip()
    monkeypatch.setenv("MEMGRAPH_RECALL_WHEN_NOTHING", "empty")
    assert run("recall", "anything").stdout == ""
    assert run("recall", "anything", "--when-nothing", "say").stdout == line


def test_an_answer_with_memories_never_says_that_there_are_none(run: Run) -> None:
    sentence = "I don't think we've tried this before"
    assert sentence in run("ask", "zebra").stdout
    run("remember", BILLING, "--fact")
    for form in FORMATS:
        result = run("recall", "zzyzx plugh", "--format", form)
        assert BILLING in result.stdout
        assert "most similar" in result.stderr or "They are pinned" in result.stdout
        assert sentence not in result.output
        assert "Nothing in memory" not in result.output


def test_an_unknown_format_is_a_usage_error(run: Run) -> None:
    assert "prefix" in run("recall", "x", "--format", "yaml", code=2).stderr


def test_explain_lists_every_term_that_counts(filled: Run) -> None:
    explained = filled("recall", "billing", "--explain", "--format", "context")
    document = json.loads(filled("recall", "billing", "--json").stdout)

    head, *rest = explained.stderr.splitlines()
    assert head.startswith("query ")
    assert f"{document['total_tokens_used']} tokens, certainty {document['certainty']} " in head
    stages = [line.split(":")[0] for line in rest if line.startswith("  ")]
    assert stages == [f"  {stage['stage']}" for stage in document["stages"]]
    lines = [line for line in rest if not line.startswith("  ")]
    by_id = {one["memory_id"]: one for one in document["explanations"]}
    assert {line.split()[0] for line in lines} == by_id.keys()
    pinned = next(line for line in lines if "negative" not in line)
    assert "relevance 0." in pinned  # terms that are zero are left out
    assert json.loads(explained.stdout)["query_id"]


def test_explain_lists_the_path_and_the_terms_added_to_the_model() -> None:
    class Grown(Explanation):
        novelty: float = 0.0

    hops = [Hop(relation="NEXT", memory_id="m2"), Hop(relation="SUPPORTS", memory_id="m3")]
    scored = Grown(memory_id="m1", score=0.75, dense=0.5, question=-0.05, novelty=0.3, path=hops)
    result = RetrievalResult(
        query_id="q",
        memories=[],
        total_tokens_used=0,
        injected_prompt_prefix="",
        retrieved_at="2026-02-01",
        certainty="low",
        certainty_score=0.25,
        explanations=[scored],
        stages=[StageReport(stage="filter", counts={"admitted": 3, "in all": 9})],
        versions={"settings": "2"},
    )

    assert explanation(result) == [
        "query q, 0 tokens, certainty low (0.25), settings 2",
        "  filter: admitted 3, in all 9",
        "m1  0.750 =  dense 0.500  question -0.050  novelty 0.300  from m2 via NEXT, m3 via SUPPORTS",
    ]


def test_search_lists_what_is_nearest_whatever_its_type(filled: Run) -> None:
    first, second = (line.split("\t") for line in filled("search", "billing tables").stdout.splitlines())

    assert first[-1] == BILLING
    assert first[1] == "semantic"
    assert float(first[2]) > float(second[2])
    assert len(filled("search", "billing tables", "--limit", "1").stdout.splitlines()) == 1


def test_search_in_json_has_scores_and_no_vectors(filled: Run) -> None:
    found = json.loads(filled("search", "billing tables", "--json").stdout)

    assert [one["memory"]["content"].startswith("Ask") for one in found] == [True, False]
    assert found[0]["score"] > found[1]["score"]
    assert "embedding" not in found[0]["memory"]


def test_search_is_narrowed_by_project_domain_and_archive(filled: Run) -> None:
    assert filled("search", "billing", "--project", "other").stdout == ""
    assert "no memory is similar" in filled("search", "billing", "--project", "other").stderr
    assert len(filled("search", "billing", "--domain", "travel").stdout.splitlines()) == 1  # that of no domain
    memory_id = filled("search", BILLING, "--limit", "1").stdout.split("\t")[0]
    filled("archive", memory_id, "--reason", "old")
    assert memory_id not in filled("search", BILLING).stdout
    assert memory_id in filled("search", BILLING, "--include-archived").stdout


def test_search_records_nothing(filled: Run) -> None:
    filled("search", BILLING)
    again = json.loads(filled("search", BILLING, "--json").stdout)
    assert [(one["memory"]["access_count"], one["memory"]["last_accessed_at"]) for one in again] == [(0, None)] * 2


def test_search_reads_standard_input_and_refuses_nothing_to_search_for(filled: Run) -> None:
    assert filled("search", "-", stdin="billing tables").stdout == filled("search", "billing tables").stdout
    assert "give a text to search for" in filled("search", "  ", code=1).stderr
    assert filled("search", "billing", "--limit", "0").stderr == ""


def test_a_project_that_is_not_there_is_noticed(filled: Run) -> None:
    hint = "memgraph: no memory belongs to project 'shoop'; known projects: shop\n"
    for command in (["recall", "billing"], ["search", "billing"], ["list"], ["contradictions", "list"]):
        assert hint in filled(*command, "--project", "shoop").stderr
        assert "no memory belongs to" not in filled(*command, "--project", "shop").stderr


def test_contradictions_in_a_list_are_reported_by_a_notice(filled: Run) -> None:
    for port in (8080, 9090):
        filled("observe", f"The port of the billing service is {port}", "--project", "shop")
    result = filled("recall", "billing service port", "--project", "shop", "--format", "prefix")
    assert (
        "'The port of the billing service is 9090' contradicts the older 'The port of the billing service is 8080'"
        in result.stderr
    )
    assert "contradict" not in result.stdout
    assert filled("recall", "billing service port", "--format", "sections").stdout.count("contradict") == 2
    newer, older = [line for line in filled("recall", "billing service port").stdout.splitlines() if "port of" in line]
    assert newer.startswith("- Fact: The port of the billing service is 9090. (")
    assert older.startswith("- Fact: The port of the billing service is 8080. (")
    assert older.endswith("older; contradicted by the newer line above)")


TINY = "Nobody may exhaust the server with tiny fields"
PARTS = "Limit the number of multipart form parts"


def test_phrases_find_what_the_words_of_the_task_do_not(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_RETRIEVAL_FLOOR", "0.7")
    run("remember", PARTS, "--fact")
    assert PARTS not in run("recall", TINY).stdout
    found = run("recall", TINY, "--also", "limit multipart parts", "--also", "maximum form size", "--explain")

    assert PARTS in found.stdout
    [line] = [one for one in found.stderr.splitlines() if "by the words " in one]
    assert set(line.partition("by the words ")[2].split(", ")) == {"limit", "multipart", "parts", "form"}


@pytest.mark.parametrize(
    ("phrases", "said"),
    [
        ([""], "must not be empty"),
        ([" \t"], "must not be empty"),
        (["a"] * 6, "at most 5"),
        (["a" * 201], "at most 200 characters"),
    ],
)
def test_a_phrase_that_is_empty_or_too_long_and_a_sixth_one_are_refused(
    run: Run, phrases: list[str], said: str
) -> None:
    given = [part for phrase in phrases for part in ("--also", phrase)]
    refused = run("recall", TINY, *given, code=1).stderr

    assert "also" in refused
    assert said in refused


@pytest.fixture(scope="module")
def minilm() -> MiniLMEmbedder:
    return MiniLMEmbedder()


FACTS = {
    "german": [f"Die Pumpe im {where} heißt {name}" for where, name in (("Keller", "Ludwig"), ("Garten", "Otto"), ("Stall", "Frieda"), ("Hafen", "Greta"))],
    "greek": [f"Η πόρτα του {where} ανοίγει με το κλειδί {name}" for where, name in (("σχολείου", "Άλφα"), ("μουσείου", "Βήτα"), ("σταθμού", "Γάμμα"))],
    "japanese": [f"{where}の鍵は{place}にある" for where, place in (("倉庫", "赤い箱"), ("図書館", "青い棚"), ("台所", "白い壺"), ("教室", "緑の机"))],
    "ids": [*(f"GHSA-2024-{number} was closed" for number in (31415, 27182, 16180, 14142)), "Ticket #90417 waits for paper", "BOX-7 holds keys", "BOX-9 holds maps"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "task", "place"),
    [
        ("german", "Wie heißt die Pumpe im Stall?", 2),
        ("german", "Wie heißt die Pumpe im Hafen?", 3),
        ("german", "Wie heißt die Pumpe im Bahnhof?", None),
        ("greek", "Με ποιο κλειδί ανοίγει η πόρτα του σταθμού;", 2),
        ("greek", "Πόσο κοστίζει το ψωμί;", None),
        ("japanese", "図書館の鍵はどこ？", 1),
        ("japanese", "教室の鍵はどこ？", 3),
        ("ids", "GHSA-2024-27182", 1),
        ("ids", "close GHSA-2024-14142", 3),
        ("ids", "GHSA-2024-99999", None),
        ("ids", "fix #90417", 4),
        ("ids", "#90418", None),
        ("ids", "open BOX-9", 6),
        ("ids", "BOX-8", None),
        ("ids", "2024", None),
    ],
)
def test_words_that_the_model_does_not_cover_find_the_fact_that_has_all_of_them(
    facts: str, task: str, place: int | None, open_store: Any, minilm: MiniLMEmbedder
) -> None:
    memory = MemGraph(open_store(embedder=minilm))
    for text in FACTS[facts]:
        memory.commands.remember(text)

    found = [one.content for one in memory.recall(task).memories]
    assert found[:1] == ([] if place is None else [FACTS[facts][place]])


def test_the_floor_is_an_option_of_a_recall_and_a_mark_in_a_search(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_RETRIEVAL_FLOOR", "0.7")
    run("remember", BILLING, "--fact")
    other = "bake sourdough bread"

    assert run("recall", other).stdout.startswith("Nothing in memory concerns this task.")
    assert BILLING in run("recall", other, "--floor", "off").stdout
    assert BILLING in run("recall", other, "--floor", "0").stdout
    assert "floor" in run("recall", other, "--floor", "high", code=2).stderr
    assert "only similar" in run("search", other).stdout
    assert json.loads(run("search", other, "--json").stdout)[0]["has_evidence"] is False
    assert "only similar" not in run("search", "change the billing tables").stdout
