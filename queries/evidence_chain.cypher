// name: evidence_chain
// purpose: the evidence of a generalisation or procedure, step by step down to episodes, builds and commits, including
//   archived, hidden and invalidated ones
// parameter: id STRING: the memory's id, or its beginning
// parameter: limit INT64 = 100, at least 0: maximum number of rows
// column: step INT64: number of steps down from it
// column: type STRING
// column: outcome STRING
// column: occurred_at TIMESTAMP
// column: content STRING
// column: builds STRING[]
// column: git_commit STRING
// column: source STRING: where it was read from
// column: id STRING
// example: memgraph query evidence_chain --param id=1a2b3c4d
MATCH (k:Memory)-[e:DERIVED_FROM* SHORTEST 1..8]->(m:Memory)
WHERE k.id STARTS WITH CASE WHEN $id = '' THEN '-' ELSE $id END AND NOT m.is_suppressed
WITH m, min(length(e)) AS step
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
WITH m, step, collect(b.name) AS builds
RETURN step, m.type AS type, nullif(m.outcome, '') AS outcome, m.occurred_at AS occurred_at, m.content AS content,
       list_sort(coalesce(builds, [])) AS builds, nullif(m.git_commit, '') AS git_commit, nullif(m.source, '') AS source, m.id AS id
ORDER BY step, occurred_at, id
LIMIT $limit
