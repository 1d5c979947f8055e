// name: invalidated_knowledge
// purpose: invalidated memories, since when and why, latest first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: the time at which they are no longer valid
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: invalid_at TIMESTAMP
// column: valid_at TIMESTAMP: from when it was valid, if known
// column: project STRING
// column: type STRING
// column: content STRING
// column: reason STRING
// column: id STRING
// example: memgraph query invalidated_knowledge --param project=shop
MATCH (m:Memory)
WHERE m.invalid_at <= $at AND NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND ($project = '' OR m.project_id = $project)
RETURN m.invalid_at AS invalid_at, m.valid_at AS valid_at, nullif(m.project_id, '') AS project, m.type AS type,
       m.content AS content, nullif(m.invalidation_reason, '') AS reason, m.id AS id
ORDER BY invalid_at DESC, id
LIMIT $limit
