// name: failures_by_file
// purpose: files that fail most often: builds with a bad outcome that mentions a file, worst first. Archived, forgotten and
//   invalidated memories are left out.
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: since TIMESTAMP = null: only events from this time; null for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: file STRING
// column: failures INT64: builds that reported a bad outcome that mentions it; a memory without a build counts as one
// column: last_at TIMESTAMP: when the last of these builds was completed
// column: reasons STRING[]: why these memories were made
// example: memgraph query failures_by_file --param project=shop --param since=2026-01-01 --param limit=5
MATCH (m:Memory)-[:MENTIONS]->(e:Entity)
WHERE e.kind = 'file' AND m.type = 'episodic' AND m.outcome = 'negative'
  AND NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
WITH e.name AS file, m.reason AS reason, coalesce(b.id, m.id) AS event, coalesce(b.completed_at, m.occurred_at) AS happened_at
WHERE happened_at >= $since OR $since IS NULL
WITH file, max(happened_at) AS last_at, collect(reason) AS why, count(DISTINCT event) AS failures
RETURN file, failures, last_at, list_sort(list_distinct(coalesce(why, []))) AS reasons
ORDER BY failures DESC, file
LIMIT $limit
