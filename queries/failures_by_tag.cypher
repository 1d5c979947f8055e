// name: failures_by_tag
// purpose: parts and kinds of work, by tag, that fail most often. How many builds went well is not known by tag: most of them leave
//   no memory
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: since TIMESTAMP = null: only events from this time; null for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: tag STRING
// column: failures INT64: builds that reported an episode with this tag and a bad outcome; an episode without a build counts as one
// column: reports INT64: the same of any outcome
// column: last_at TIMESTAMP: when the last build that failed was completed
// example: memgraph query failures_by_tag --param project=shop
MATCH (m:Memory)-[:TAGGED]->(t:Tag)
WHERE m.type = 'episodic' AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
WITH t.name AS tag, m.outcome = 'negative' AS is_bad, coalesce(b.id, m.id) AS event,
     coalesce(b.completed_at, m.occurred_at) AS happened_at
WHERE happened_at >= $since OR $since IS NULL
WITH tag, max(CASE WHEN is_bad THEN happened_at END) AS last_at, count(DISTINCT event) AS reports,
     count(DISTINCT CASE WHEN is_bad THEN event END) AS failures
WHERE failures > 0
RETURN tag, failures, reports, last_at
ORDER BY failures DESC, reports, tag
LIMIT $limit
