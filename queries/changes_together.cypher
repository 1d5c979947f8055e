// name: changes_together
// purpose: the files that commits changed together with a file, most often first; commits that changed more than 19 files are left
//   out. `memgraph about` follows renames, lets old commits weigh less and says how often such a rule held
// parameter: file STRING: its name, as the history writes it
// parameter: since TIMESTAMP = null: only commits from this time; null for all
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: other STRING
// column: together INT64: commits that changed both
// column: changes INT64: commits that changed the file
// column: share DOUBLE: of them
// column: last_at TIMESTAMP: the latest commit that changed both
// example: memgraph query changes_together --param file=src/app.py
MATCH (f:File)<-[:CHANGED]-(m:Memory)
WHERE f.name = $file AND ($project = '' OR f.project_id = $project) AND size(m.changes_path) < 20
  AND NOT m.is_suppressed AND (m.occurred_at >= $since OR $since IS NULL)
WITH f, collect(DISTINCT m.git_commit) AS commits
MATCH (f)<-[:CHANGED]-(m:Memory)-[:CHANGED]->(g:File)
WHERE list_contains(commits, m.git_commit) AND g.id <> f.id
WITH g.name AS other, size(commits) AS changes, max(m.occurred_at) AS last_at, count(DISTINCT m.git_commit) AS together
RETURN other, together, changes, round(together * 1.0 / changes, 3) AS share, last_at
ORDER BY together DESC, other
LIMIT $limit
