// name: replaced_knowledge
// purpose: memories and their replacements, with reasons, latest first; the replacement is in force, otherwise the older one counts
//   again; the older one may since have been archived, hidden or invalidated
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: type STRING = '', one of '' 'episodic' 'semantic' 'procedural': the type; '' for all types
// parameter: at TIMESTAMP = now: the time at which the replacement is in force
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: replaced_at TIMESTAMP: when the newer one became valid, as far as it states that, else when it happened
// column: type STRING: type of the older memory
// column: older STRING
// column: newer STRING
// column: reason STRING
// column: older_id STRING
// column: newer_id STRING
// example: memgraph query replaced_knowledge --param type=semantic
MATCH (n:Memory)-[s:SUPERSEDES]->(o:Memory)
WHERE ($project = '' OR o.project_id = $project) AND ($type = '' OR o.type = $type)
  AND n.archived_at IS NULL AND NOT n.is_suppressed AND (n.invalid_at IS NULL OR n.invalid_at > $at)
  AND NOT o.is_suppressed
RETURN coalesce(n.valid_at, n.occurred_at) AS replaced_at, o.type AS type, o.content AS older, n.content AS newer, nullif(s.reason, '') AS reason,
       o.id AS older_id, n.id AS newer_id
ORDER BY replaced_at DESC, older_id, newer_id
LIMIT $limit
