// name: reverted_work
// purpose: what was undone, newest first: memories tagged `revert`, with who undid it and the files it touched
// parameters: $project STRING, a project's name, or '' for all; $most INT64, rows at most
// columns: occurred_at TIMESTAMP, project STRING, agents STRING[], content STRING, files STRING[], id STRING
MATCH (m:Memory)-[:TAGGED]->(t:Tag)
WHERE t.name = 'revert' AND NOT m.is_suppressed
  AND ($project = '' OR m.project_id = $project)
RETURN m.occurred_at AS occurred_at, m.project_id AS project, m.agents_involved AS agents, m.content AS content,
       m.files_involved AS files, m.id AS id
ORDER BY occurred_at DESC, id
LIMIT $most
