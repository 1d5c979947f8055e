// name: failures_by_month
// purpose: whether things go wrong less often: episodes by the month they happened in, and how many of them failed
// parameter: project STRING = '': a project's name; '' for all
// parameter: at TIMESTAMP = now: what is no longer true then is left out
// column: month TIMESTAMP: its first moment
// column: episodes INT64
// column: failures INT64
// column: share DOUBLE: failures of all, from 0 to 1
// example: memgraph query failures_by_month --param project=shop
MATCH (m:Memory)
WHERE m.type = 'episodic' AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
WITH date_trunc('month', m.occurred_at) AS month, count(*) AS episodes,
     count(CASE WHEN m.outcome = 'negative' THEN 1 END) AS failures
RETURN month, episodes, failures, round(CAST(failures AS DOUBLE) / episodes, 3) AS share
ORDER BY month
