// name: failures_by_file
// purpose: files that fail most often: builds with a bad outcome that mentions a file, worst first, whether or not more than a record
//   is kept of it. Archived, forgotten and invalidated memories are left out.
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: since TIMESTAMP = null: only events from this time; null for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: file STRING
// column: failures INT64: builds that reported a bad outcome that mentions it; a memory without a build counts as one
// column: reports INT64: the same of any outcome, as far as they say something of it
// column: last_at TIMESTAMP: when the last build that failed was completed
// column: reasons STRING[]: why these memories were made
// example: memgraph query failures_by_file --param project=shop --param since=2026-01-01 --param limit=5
MATCH (m:Memory)-[:MENTIONS]->(e:Entity)
WHERE e.kind = 'file' AND m.type = 'episodic'
  AND NOT m.source IN ['commit', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
WITH e.name AS file, m.outcome = 'negative' AS is_bad, CASE WHEN m.source = 'run' THEN '' ELSE m.reason END AS reason, coalesce(b.id, m.id) AS event,
     coalesce(b.completed_at, m.occurred_at) AS happened_at
WHERE happened_at >= $since OR $since IS NULL
WITH file, max(CASE WHEN is_bad THEN happened_at END) AS last_at, collect(CASE WHEN is_bad AND reason <> '' THEN reason END) AS why,
     count(DISTINCT event) AS reports, count(DISTINCT CASE WHEN is_bad THEN event END) AS failures
WHERE failures > 0
RETURN file, failures, reports, last_at, list_sort(list_distinct(coalesce(why, []))) AS reasons
ORDER BY failures DESC, file
LIMIT $limit
