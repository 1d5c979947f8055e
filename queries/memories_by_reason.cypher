// name: memories_by_reason
// purpose: reasons for which memories were made: the number for each reason, their outcomes, and how many were ever recalled
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// column: reason STRING: empty if none was given
// column: memories INT64
// column: positive INT64
// column: negative INT64
// column: recalled INT64: memories among them that were recalled or looked up
// example: memgraph query memories_by_reason --param project=shop
MATCH (m:Memory)
WHERE NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
RETURN m.reason AS reason, count(*) AS memories,
       count(CASE WHEN m.outcome = 'positive' THEN 1 END) AS positive,
       count(CASE WHEN m.outcome = 'negative' THEN 1 END) AS negative,
       count(CASE WHEN m.access_count > 0 THEN 1 END) AS recalled
ORDER BY memories DESC, reason
