"""Targets: the guard of outside Cypher, and the engine behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from memgraph.errors import QueryError
from memgraph.graph.guard import check_read_only
from tests.fuzz.harness import Target, afterwards
from tests.fuzz.memories import fill, opened
from tests.fuzz.mutation import mutated_text
from tests.unit.graph.test_guard import HONEST, HOSTILE

WORDS = [
    *("CREATE (:Tag {id: 'x'})", "SET m.content = 'x'", "DETACH DELETE m", "MERGE (t:Tag {id: 'x'})", "DROP TABLE Memory"),
    *("COPY (MATCH (m:Memory) RETURN m.id) TO '{out}'", "LOAD FROM '/etc/passwd' RETURN *", "EXPORT DATABASE '{out}'"),
    *("CALL show_tables() RETURN *", "INSTALL httpfs", "ATTACH 'x' AS x", "COMMIT", "BEGIN TRANSACTION", "USE x", "IMPORT"),
    *(";", "//", "/*", "*/", "'", '"', "`", "\\", "\\'", "\\\\", "\n", "\r", "\t", "\x0b", "\x0c", "\x85", "\xa0", "\u2028"),
    *("(", ")", "[", "]", "{", "}", "->", "<-", "-", "..", ".", "*", "|", ":", ",", "$", "$a", "1", "1.", ".5", "1e5", "0x1"),
    *("MATCH (m:Memory)", "RETURN 1", "RETURN *", "WITH m", "UNWIND [1] AS x", "UNION", "UNION ALL", "OPTIONAL", "WHERE true"),
    *("CASE WHEN true THEN 1 END", "x -> x", "range(1, 10)", "EXISTS {", "COUNT {", " AS x", "ORDER BY 1", "LIMIT 1", "SKIP 1"),
    *("cReAtE", "DELETE", "delete", "ſet", "ＳＥＴ", "D\u0415LETE", "S\u200bET", "LOAD", "COPY", "CALL", "`CREATE`", "$set"),
]  # fmt: skip


def _spoilt(rng: Random) -> bytes:
    queries = [*HOSTILE.values(), *HONEST.values()]
    query = rng.choice(queries)
    if rng.random() < 0.3:  # the beginning of one and the end of another
        other = rng.choice(queries)
        query = (
            query[: rng.randrange(len(query) + 1)]
            + rng.choice(["", " ", "\n"])
            + other[rng.randrange(len(other) + 1) :]
        )
    if rng.random() < 0.05:
        query = " ".join(rng.choices(WORDS, k=rng.randrange(1, 30)))
    return mutated_text(rng, query[:25_000], WORDS).encode("utf-8", "surrogatepass")


@contextmanager
def guard_target(_folder: Path) -> Iterator[Target]:
    """The guard alone: quick whatever it is given, and of one mind."""

    def run(case: bytes) -> bool:
        query = case.decode("utf-8", "surrogatepass")
        checked = check_read_only(query)
        assert re.sub(r"[ \t\r\n]*;[ \t\r\n]*\Z", "", query).endswith(checked)
        with afterwards():
            assert check_read_only(checked) == checked, "what it gave to run it would not take"
        return True

    yield Target(_spoilt, run)


@contextmanager
def query_target(folder: Path) -> Iterator[Target]:
    """What the guard lets pass, run on the engine: nothing changes, and no file is made."""
    out = folder / "out"
    out.mkdir()
    with opened(folder) as store:
        fill(store)
        everything = "MATCH (n) RETURN label(n) AS label, count(*) AS n ORDER BY label"
        before, digest, ran = store.cypher(everything), store.digest(), 0

        def make(rng: Random) -> bytes:
            """Return what the guard lets pass, where some hundred tries give it."""
            for _ in range(200):
                case = _spoilt(rng)
                try:
                    check_read_only(case.decode("utf-8", "surrogatepass"))
                except QueryError:
                    continue
                return case
            return b"RETURN 1"

        def run(case: bytes) -> bool:
            nonlocal ran
            query = check_read_only(case.decode("utf-8", "surrogatepass").replace("{out}", str(out / "x")))
            try:
                store.cypher(query)
            finally:
                ran += 1
                assert not list(out.iterdir()), "it made a file"
                assert sorted(path.name for path in folder.iterdir()) == ["keys", "out", "store"], "it made a file"
                if ran % 10 == 0:
                    with afterwards():
                        store.verify()
                        assert store.cypher(everything) == before, "it changed what is there"
                        assert store.digest() == digest
            return True

        yield Target(make, run)
