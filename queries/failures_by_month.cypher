// name: failures_by_month
// purpose: whether builds fail less often: builds by month, and how many of them failed, whether or not anything of them was
//   remembered; sittings of commits have no outcome of their own and are left out
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: builds completed later are left out
// column: month TIMESTAMP: its first moment
// column: builds INT64: builds completed in the month
// column: failures INT64: those of them that failed
// column: partial INT64: those of which a part failed
// column: share DOUBLE: failures divided by builds, from 0 to 1
// example: memgraph query failures_by_month --param project=shop
MATCH (b:Build)
WHERE b.consolidated_at IS NOT NULL AND b.completed_at <= $at AND ($project = '' OR b.project_id = $project)
  AND NOT regexp_matches(b.name, '^git-[0-9a-f]{12}$')
WITH date_trunc('month', b.completed_at) AS month, count(*) AS builds, count(CASE WHEN b.outcome = 'failure' THEN 1 END) AS failures,
     count(CASE WHEN b.outcome = 'partial' THEN 1 END) AS partial
RETURN month, builds, failures, partial, round(CAST(failures AS DOUBLE) / builds, 3) AS share
ORDER BY month
