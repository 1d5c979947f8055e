// name: decisions
// purpose: decisions, who made them, and what replaced them, newest first; a decision that several memories replace has a
//   row for each. Generalisations made by sleep are left out
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: agent STRING = '': an agent that took part; '' for all
// parameter: at TIMESTAMP = now: the time at which the decision, and what replaces it, are in force
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: decided_at TIMESTAMP
// column: project STRING
// column: decided_by STRING[]
// column: decision STRING: as the memory states it, else its text
// column: alternatives STRING[]: the alternatives considered
// column: replaced_by STRING: the text of the memory that replaces it; null if there is none
// column: replaced_at TIMESTAMP: when the replacement became valid, as far as it states that
// column: id STRING
// column: replaced_by_id STRING
// example: memgraph query decisions --param agent=ada
MATCH (m:Memory)
WHERE (m.decision <> '' OR list_contains(m.tags, 'decision'))
  AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
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
