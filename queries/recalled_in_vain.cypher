// name: recalled_in_vain
// purpose: what takes room in prompts and helps nobody: memories that were given again and again and never used
// parameter: project STRING = '': of the memory; '' for all
// parameter: times INT64 = 3, at least 1: given so often at least, in recalls whose outcome is known
// parameter: at TIMESTAMP = now: what is no longer true then is left out
// parameter: limit INT64 = 20, at least 0: rows at most
// column: recalled INT64: times it was given, in recalls whose outcome is known
// column: overridden INT64: times something else was done
// column: tokens INT64: that it took in them
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
