// name: learned_from
// purpose: what was learned from a memory, directly or in several steps: the inverse of evidence_chain
// parameter: id STRING: the memory's id, or its beginning
// parameter: at TIMESTAMP = now: the time of the state
// parameter: limit INT64 = 100, at least 0: maximum number of rows
// column: step INT64: number of steps up from it
// column: type STRING
// column: content STRING
// column: confidence DOUBLE
// column: evidence INT64: number of memories it was directly derived from
// column: state STRING: in force, invalidated, or the reason for archiving: proposed, rejected, faded, …
// column: id STRING
// example: memgraph query learned_from --param id=1a2b3c4d
MATCH (m:Memory)<-[e:DERIVED_FROM* SHORTEST 1..8]-(k:Memory)
WHERE m.id STARTS WITH CASE WHEN $id = '' THEN '-' ELSE $id END AND NOT k.is_suppressed
WITH k, min(length(e)) AS step
RETURN step, k.type AS type, k.content AS content, k.confidence AS confidence,
       COUNT { MATCH (k)-[:DERIVED_FROM]->(x:Memory) } AS evidence,
       CASE WHEN k.archived_at IS NOT NULL THEN coalesce(nullif(k.archive_reason, ''), 'archived')
            WHEN k.invalid_at <= $at THEN 'invalidated' ELSE 'in force' END AS state,
       k.id AS id
ORDER BY step, id
LIMIT $limit
