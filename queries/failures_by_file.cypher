// name: failures_by_file
// purpose: which files go wrong most often: bad outcomes that name a file, worst first. What was archived or
//   forgotten is left out.
// parameters: $project STRING, a project's name, or '' for all; $most INT64, rows at most
// columns: file STRING, failures INT64, last_at TIMESTAMP, reasons STRING[] (why these memories were made)
MATCH (m:Memory)-[:MENTIONS]->(e:Entity)
WHERE e.kind = 'file' AND m.outcome = 'negative'
  AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND ($project = '' OR m.project_id = $project)
RETURN e.name AS file, count(m) AS failures, max(m.occurred_at) AS last_at, collect(DISTINCT m.reason) AS reasons
ORDER BY failures DESC, file
LIMIT $most
