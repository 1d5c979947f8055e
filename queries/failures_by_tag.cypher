// name: failures_by_tag
// purpose: parts and kinds of work, by tag, that fail most often, with the share of failed episodes
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: since TIMESTAMP = null: only events from this time; null for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: tag STRING
// column: failures INT64: episodes with a bad outcome
// column: episodes INT64: all episodes with this tag
// column: share DOUBLE: failures divided by episodes, from 0 to 1
// column: last_at TIMESTAMP: when one of them last happened, good or bad
// example: memgraph query failures_by_tag --param project=shop
MATCH (m:Memory)-[:TAGGED]->(t:Tag)
WHERE m.type = 'episodic' AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
  AND (m.occurred_at >= $since OR $since IS NULL)
WITH t.name AS tag, count(CASE WHEN m.outcome = 'negative' THEN 1 END) AS failures, count(*) AS episodes,
     max(m.occurred_at) AS last_at
WHERE failures > 0
RETURN tag, failures, episodes, round(CAST(failures AS DOUBLE) / episodes, 3) AS share, last_at
ORDER BY failures DESC, share DESC, tag
LIMIT $limit
