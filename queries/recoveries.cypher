// name: recoveries
// purpose: what worked after it had failed: memories tagged `recovery`, but for what sleep made of them, newest first
// parameter: project STRING = '': a project's name; '' for all
// parameter: at TIMESTAMP = now: what is no longer true then is left out
// parameter: limit INT64 = 20, at least 0: rows at most
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
  AND NOT m.source IN ['compression', 'error analysis', 'procedures']
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
WITH m, collect(b.name) AS builds
RETURN m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.agents_involved AS agents, m.content AS content,
       m.files_involved AS files, list_sort(coalesce(builds, [])) AS builds, m.id AS id
ORDER BY occurred_at DESC, id
LIMIT $limit
