// name: landmarks
// purpose: memories that are never forgotten: their relevance has a floor, because no other memory describes that failure, or
//   because they are tagged critical-failure, data-loss, security-incident or user-escalation; newest first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: occurred_at TIMESTAMP
// column: project STRING
// column: content STRING
// column: tags STRING[]
// column: agents STRING[]
// column: id STRING
// example: memgraph query landmarks --param project=shop
MATCH (m:Memory)
WHERE (m.floor > 0.0
       OR size(list_filter(m.tags, t -> list_contains(['critical-failure', 'data-loss', 'security-incident',
                                                       'user-escalation'], lower(t)))) > 0)
  AND NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
RETURN m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.content AS content, m.tags AS tags,
       m.agents_involved AS agents, m.id AS id
ORDER BY occurred_at DESC, id
LIMIT $limit
