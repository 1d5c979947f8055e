// name: recalled_in_vain
// purpose: memories that waste space in prompts: recalled repeatedly and never reported as used
// parameter: project STRING = '': the memory's project; '' for all
// parameter: times INT64 = 3, at least 1: minimum number of recalls with a known outcome
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: recalled INT64: number of recalls with a known outcome that returned it
// column: overridden INT64: times that something else was done instead
// column: tokens INT64: tokens that it took in them
// column: type STRING
// column: content STRING
// column: id STRING
// example: memgraph query recalled_in_vain --param times=5
MATCH (r:Recall)-[x:RECALLED]->(m:Memory)
WHERE r.outcome <> '' AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
WITH m, count(*) AS recalled, count(CASE WHEN x.used THEN 1 END) AS used,
     count(CASE WHEN NOT x.used THEN 1 END) AS overridden, sum(x.tokens) AS tokens
WHERE used = 0 AND recalled >= $times
RETURN recalled, overridden, CAST(tokens AS INT64) AS tokens, m.type AS type, m.content AS content, m.id AS id
ORDER BY recalled DESC, tokens DESC, id
LIMIT $limit
