// name: failures_by_month
// purpose: whether failures become rarer: episodes by month, and how many of them are failures; an episode that several builds
//   reported counts in the month of each, as in the series of failures
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// column: month TIMESTAMP: its first moment
// column: episodes INT64: once for each build that reported one, when the build was completed; without a build, when it happened
// column: failures INT64: failures among them; within a build, the same fingerprint counts once, and so does a failed trial with all its errors
// column: share DOUBLE: failures divided by episodes, from 0 to 1
// example: memgraph query failures_by_month --param project=shop
MATCH (m:Memory)
WHERE m.type = 'episodic' AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build) WHERE b.completed_at IS NOT NULL
WITH m, b, coalesce(regexp_matches(b.name, '-trial-[0-9]+@[0-9a-f]{8}$'), false) AS is_trial
WITH date_trunc('month', coalesce(b.completed_at, m.occurred_at)) AS month,
     CASE WHEN m.outcome <> 'negative' OR (is_trial AND b.outcome = 'success') THEN NULL WHEN is_trial THEN b.id
          WHEN coalesce(m.failure_fingerprint, '') = '' THEN m.id
          ELSE concat(m.failure_fingerprint, ' ', coalesce(b.id, m.id)) END AS failure
WITH month, count(*) AS episodes, count(DISTINCT failure) AS failures
RETURN month, episodes, failures, round(CAST(failures AS DOUBLE) / episodes, 3) AS share
ORDER BY month
