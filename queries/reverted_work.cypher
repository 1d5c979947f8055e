// name: reverted_work
// purpose: reverted work, newest first: the memories and records of commits that take back another one, and other memories tagged
//   `revert`, without generalisations made by sleep, with who reverted it and the files concerned
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: occurred_at TIMESTAMP
// column: project STRING
// column: agents STRING[]: who reverted it
// column: content STRING
// column: files STRING[]
// column: reverted STRING[]: the commits that it takes back, where it names them
// column: id STRING
// example: memgraph query reverted_work --param project=shop
MATCH (m:Memory)
WHERE (size(m.undoes) > 0 OR list_contains(m.tags, 'revert'))
  AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
  AND ($project = '' OR m.project_id = $project)
RETURN m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.agents_involved AS agents, m.content AS content,
       CASE WHEN size(m.files_involved) > 0 THEN m.files_involved ELSE m.changes_path END AS files, m.undoes AS reverted, m.id AS id
ORDER BY occurred_at DESC, id
LIMIT $limit
