// name: reverted_work
// purpose: reverted work, newest first: the memories and records of commits that take back another one, also where they do not name
//   it, and other memories tagged `revert`, without generalisations made by sleep, with who reverted it and the files concerned
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: the time at which it is asked whether the revert holds
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: occurred_at TIMESTAMP
// column: project STRING
// column: agents STRING[]: who reverted it
// column: content STRING
// column: files STRING[]
// column: reverted STRING[]: the commits that it takes back, where it names them
// column: in_force BOOLEAN: false if the revert was itself taken back, or the code that it concerns removed
// column: id STRING
// example: memgraph query reverted_work --param project=shop
MATCH (m:Memory)
WHERE (size(m.undoes) > 0 OR (m.change_kind = 'revert' AND size(m.changes_path) > 0) OR list_contains(m.tags, 'revert'))
  AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
  AND ($project = '' OR m.project_id = $project)
RETURN m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.agents_involved AS agents, m.content AS content,
       CASE WHEN size(m.files_involved) > 0 THEN m.files_involved ELSE m.changes_path END AS files, m.undoes AS reverted, m.invalid_at IS NULL OR m.invalid_at > $at AS in_force, m.id AS id
ORDER BY occurred_at DESC, id
LIMIT $limit
