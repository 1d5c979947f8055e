// name: reverted_work
// purpose: what was undone, newest first: memories tagged `revert`, but for what sleep made of them, with who
//   undid it and the files it touched
// parameter: project STRING = '': a project's name; '' for all
// parameter: at TIMESTAMP = now: what is no longer true then is left out
// parameter: limit INT64 = 20, at least 0: rows at most
// column: occurred_at TIMESTAMP
// column: project STRING
// column: agents STRING[]: who undid it
// column: content STRING
// column: files STRING[]
// column: id STRING
// example: memgraph query reverted_work --param project=shop
MATCH (m:Memory)-[:TAGGED]->(t:Tag)
WHERE t.name = 'revert' AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'error analysis', 'procedures']
  AND ($project = '' OR m.project_id = $project)
RETURN m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.agents_involved AS agents, m.content AS content,
       m.files_involved AS files, m.id AS id
ORDER BY occurred_at DESC, id
LIMIT $limit
