// name: recalls_that_helped
// purpose: memories that helped: used after a recall with a good outcome, latest first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: agent STRING = '': the asking agent; '' for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: recalled_at TIMESTAMP
// column: agent STRING: the asking agent
// column: project STRING
// column: outcome STRING: the recall's outcome, as it was reported
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
