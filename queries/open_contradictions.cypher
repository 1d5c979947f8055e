// name: open_contradictions
// purpose: unresolved contradictions, most certain first: both memories are in force, and neither is replaced by a memory
//   in force
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: the time at which both are in force
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: score DOUBLE: share of their words that they have in common; null if they were linked by hand
// column: reason STRING: how they differ
// column: one STRING
// column: other STRING
// column: one_at TIMESTAMP: from when it holds, as far as it states that
// column: other_at TIMESTAMP
// column: found_at TIMESTAMP
// column: one_id STRING
// column: other_id STRING
// example: memgraph query open_contradictions --param project=shop
MATCH (a:Memory)-[c:CONTRADICTS]->(b:Memory)
WHERE a.archived_at IS NULL AND NOT a.is_suppressed AND (a.invalid_at IS NULL OR a.invalid_at > $at)
  AND b.archived_at IS NULL AND NOT b.is_suppressed AND (b.invalid_at IS NULL OR b.invalid_at > $at)
  AND ($project = '' OR (a.project_id = $project AND b.project_id = $project))
  AND NOT EXISTS { MATCH (x:Memory)-[:SUPERSEDES*1..8]->(a)
                   WHERE x.archived_at IS NULL AND NOT x.is_suppressed AND (x.invalid_at IS NULL OR x.invalid_at > $at) }
  AND NOT EXISTS { MATCH (y:Memory)-[:SUPERSEDES*1..8]->(b)
                   WHERE y.archived_at IS NULL AND NOT y.is_suppressed AND (y.invalid_at IS NULL OR y.invalid_at > $at) }
RETURN c.score AS score, nullif(c.reason, '') AS reason, a.content AS one, b.content AS other,
       coalesce(a.valid_at, a.occurred_at) AS one_at, coalesce(b.valid_at, b.occurred_at) AS other_at,
       c.created_at AS found_at, a.id AS one_id, b.id AS other_id
ORDER BY coalesce(score, 0.0) DESC, one_id, other_id
LIMIT $limit
