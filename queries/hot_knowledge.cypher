// name: hot_knowledge
// purpose: memories used most: how often each was recalled or looked up, and when last
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: type STRING = '', one of '' 'episodic' 'semantic' 'procedural': the type; '' for all types
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: uses INT64
// column: last_used_at TIMESTAMP
// column: type STRING
// column: project STRING
// column: content STRING
// column: id STRING
// example: memgraph query hot_knowledge --param type=semantic
MATCH (m:Memory)
WHERE m.access_count > 0 AND NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project) AND ($type = '' OR m.type = $type)
RETURN m.access_count AS uses, m.last_accessed_at AS last_used_at, m.type AS type, nullif(m.project_id, '') AS project,
       m.content AS content, m.id AS id
ORDER BY uses DESC, last_used_at DESC, id
LIMIT $limit
