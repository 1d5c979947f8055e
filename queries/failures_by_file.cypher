// name: failures_by_file
// purpose: which files go wrong most often: bad outcomes that name a file, worst first. What was archived,
//   forgotten or invalidated is left out.
// parameter: project STRING = '': a project's name; '' for all
// parameter: since TIMESTAMP = null: only what happened from then on; null for all
// parameter: at TIMESTAMP = now: what is no longer true then is left out
// parameter: limit INT64 = 20, at least 0: rows at most
// column: file STRING
// column: failures INT64: memories of bad outcome that name it
// column: last_at TIMESTAMP: when it last went wrong
// column: reasons STRING[]: why these memories were made
// example: memgraph query failures_by_file --param project=shop --param since=2026-01-01 --param limit=5
MATCH (m:Memory)-[:MENTIONS]->(e:Entity)
WHERE e.kind = 'file' AND m.type = 'episodic' AND m.outcome = 'negative'
  AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
  AND (m.occurred_at >= $since OR $since IS NULL)
WITH e.name AS file, count(*) AS failures, max(m.occurred_at) AS last_at, collect(m.reason) AS why
RETURN file, failures, last_at, list_sort(list_distinct(coalesce(why, []))) AS reasons
ORDER BY failures DESC, file
LIMIT $limit
