// name: forgotten_knowledge
// purpose: what is in force and nobody has used for so many days; never used counts from when it was recorded. Longest
//   unused first
// parameter: project STRING = '': a project's name; '' for all
// parameter: type STRING = 'semantic', one of '' 'episodic' 'semantic' 'procedural': of which type; '' for all
// parameter: days INT64 = 30, at least 0, at most 36500: unused for so long at least
// parameter: at TIMESTAMP = now: counted back from then
// parameter: limit INT64 = 20, at least 0: rows at most
// column: unused_since TIMESTAMP
// column: uses INT64: before that
// column: type STRING
// column: project STRING
// column: content STRING
// column: is_pinned BOOLEAN
// column: id STRING
// example: memgraph query forgotten_knowledge --param days=90 --param type=
MATCH (m:Memory)
WHERE m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project) AND ($type = '' OR m.type = $type)
  AND coalesce(m.last_accessed_at, m.created_at) <= $at - to_days($days)
RETURN coalesce(m.last_accessed_at, m.created_at) AS unused_since, m.access_count AS uses, m.type AS type,
       nullif(m.project_id, '') AS project, m.content AS content, m.is_pinned AS is_pinned, m.id AS id
ORDER BY unused_since, id
LIMIT $limit
