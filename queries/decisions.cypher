// name: decisions
// purpose: what was decided, by whom, and what replaced it, newest first; a decision that several memories replace has a
//   row for each. What sleep made of them is left out
// parameter: project STRING = '': a project's name; '' for all
// parameter: agent STRING = '': who took part in it; '' for all
// parameter: at TIMESTAMP = now: it is in force then, and what replaces it
// parameter: limit INT64 = 20, at least 0: rows at most
// column: decided_at TIMESTAMP
// column: project STRING
// column: decided_by STRING[]
// column: decision STRING: as the memory states it, else its text
// column: alternatives STRING[]: what was considered besides
// column: replaced_by STRING: the text of the memory that replaces it; null where it stands
// column: replaced_at TIMESTAMP: since when that is so, as far as it tells
// column: id STRING
// column: replaced_by_id STRING
// example: memgraph query decisions --param agent=ada
MATCH (m:Memory)
WHERE (m.decision <> '' OR list_contains(m.tags, 'decision'))
  AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'error analysis', 'procedures']
  AND ($project = '' OR m.project_id = $project)
  AND ($agent = '' OR list_contains(m.agents_involved, $agent))
OPTIONAL MATCH (n:Memory)-[:SUPERSEDES]->(m)
WHERE n.archived_at IS NULL AND NOT n.is_suppressed AND (n.invalid_at IS NULL OR n.invalid_at > $at)
RETURN m.occurred_at AS decided_at, nullif(m.project_id, '') AS project, m.agents_involved AS decided_by,
       coalesce(nullif(m.decision, ''), m.content) AS decision, m.alternatives_considered AS alternatives,
       n.content AS replaced_by, CASE WHEN n.id IS NOT NULL THEN coalesce(n.valid_at, n.occurred_at) END AS replaced_at,
       m.id AS id, n.id AS replaced_by_id
ORDER BY decided_at DESC, id, replaced_by_id
LIMIT $limit
