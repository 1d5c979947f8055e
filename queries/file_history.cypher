// name: file_history
// purpose: the commits that changed a file under any of its names, newest first: renames are followed both ways, and
//   records that were archived are listed, too.
//   Where one of these names was given to another file, too, its commits under that name are listed as well; `memgraph about` tells them apart
// parameter: file STRING: a name that the file has or had, as the history writes it
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: limit INT64 = 50, at least 0: maximum number of rows
// column: occurred_at TIMESTAMP
// column: project STRING
// column: persons STRING[]: who made the commit
// column: kind STRING: fix, feature, docs, test, refactor, revert, release, dependency or other
// column: name STRING: the file's name in that commit
// column: change STRING: A (added), M (modified), D (deleted) or R (renamed)
// column: added INT64: lines
// column: removed INT64: lines
// column: content STRING
// column: git_commit STRING
// column: id STRING
// example: memgraph query file_history --param file=src/app.py
MATCH (f:File)
WHERE f.name = $file AND ($project = '' OR f.project_id = $project)
OPTIONAL MATCH (g:File)-[:RENAMED* SHORTEST 1..30]->(f)
WITH f, collect(g.id) AS earlier
OPTIONAL MATCH (f)-[:RENAMED* SHORTEST 1..30]->(g:File)
WITH f.id AS id, earlier, collect(g.id) AS later
UNWIND list_append(list_concat(coalesce(earlier, []), coalesce(later, [])), id) AS one
WITH DISTINCT one
MATCH (m:Memory)-[c:CHANGED]->(n:File)
WHERE n.id = one AND NOT m.is_suppressed
RETURN m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.agents_involved AS persons, nullif(m.change_kind, '') AS kind,
       n.name AS name, c.kind AS change, c.added AS added, c.removed AS removed, m.content AS content, m.git_commit AS git_commit, m.id AS id
ORDER BY occurred_at DESC, name, id
LIMIT $limit
