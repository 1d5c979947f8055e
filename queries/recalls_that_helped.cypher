// name: recalls_that_helped
// purpose: what helped: memories that were used after a recall which ended well, the latest first
// parameter: project STRING = '': a project's name; '' for all
// parameter: agent STRING = '': who asked; '' for all
// parameter: at TIMESTAMP = now: what is no longer true then is left out
// parameter: limit INT64 = 20, at least 0: rows at most
// column: recalled_at TIMESTAMP
// column: agent STRING: who asked
// column: project STRING
// column: outcome STRING: what became of it, in the word that was said
// column: rank INT64: the memory's place in the recall
// column: type STRING
// column: content STRING
// column: memory_id STRING
// column: query_id STRING
// example: memgraph query recalls_that_helped --param agent=importer
MATCH (r:Recall)-[x:RECALLED]->(m:Memory)
WHERE x.used AND r.outcome IN ['positive', 'success', 'love', 'like']
  AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR r.project_id = $project) AND ($agent = '' OR r.agent_name = $agent)
RETURN r.retrieved_at AS recalled_at, nullif(r.agent_name, '') AS agent, nullif(r.project_id, '') AS project, nullif(r.outcome, '') AS outcome,
       x.rank AS rank, m.type AS type, m.content AS content, m.id AS memory_id, r.id AS query_id
ORDER BY recalled_at DESC, query_id, rank
LIMIT $limit
