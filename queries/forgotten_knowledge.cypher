// name: forgotten_knowledge
// purpose: memories in force that have not been used for a number of days, counted from their recording if they were never used.
//   Longest unused first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: type STRING = 'semantic', one of '' 'episodic' 'semantic' 'procedural': the type; '' for all types
// parameter: days INT64 = 30, at least 0, at most 36500: minimum number of days without use
// parameter: at TIMESTAMP = now: the time from which the days are counted back
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: unused_since TIMESTAMP
// column: uses INT64: number of earlier uses
// column: type STRING
// column: project STRING
// column: content STRING
// column: is_pinned BOOLEAN
// column: id STRING
// example: memgraph query forgotten_knowledge --param days=90 --param type=
MATCH (m:Memory)
WHERE NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project) AND ($type = '' OR m.type = $type)
  AND coalesce(m.last_accessed_at, m.created_at) <= $at - to_days($days)
RETURN coalesce(m.last_accessed_at, m.created_at) AS unused_since, m.access_count AS uses, m.type AS type,
       nullif(m.project_id, '') AS project, m.content AS content, m.is_pinned AS is_pinned, m.id AS id
ORDER BY unused_since, id
LIMIT $limit
