// name: recoveries
// purpose: what worked after a failure: memories tagged `recovery`, without generalisations made by sleep, newest first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: occurred_at TIMESTAMP
// column: project STRING
// column: agents STRING[]
// column: content STRING
// column: files STRING[]
// column: builds STRING[]
// column: id STRING
// example: memgraph query recoveries --param project=shop
MATCH (m:Memory)-[:TAGGED]->(t:Tag)
WHERE t.name = 'recovery' AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
WITH m, collect(b.name) AS builds
RETURN m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.agents_involved AS agents, m.content AS content,
       m.files_involved AS files, list_sort(coalesce(builds, [])) AS builds, m.id AS id
ORDER BY occurred_at DESC, id
LIMIT $limit
