// name: file_history
// purpose: the commits that changed a file under any of its names, newest first: renames are followed both ways in the order of the
//   commits, and records that were archived are listed, too. Asked is the last file that had the name. A file that moved away and a new one
//   that gets its name are two; one that was deleted and added again is the same
// parameter: file STRING: a name that the file has or had, as the history writes it
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: limit INT64 = 50, at least 0: maximum number of rows
// column: occurred_at TIMESTAMP
// column: project STRING
// column: persons STRING[]: who made the commit; of a merge, who made most of what it merges
// column: kind STRING: fix, feature, docs, test, refactor, revert, release, dependency, merge or other
// column: name STRING: the file's name in that commit
// column: change STRING: A (added), M (modified), D (deleted) or R (renamed)
// column: added INT64: lines; null where they were not counted, as in binary files
// column: removed INT64: lines; null as in `added`
// column: content STRING
// column: git_commit STRING
// column: id STRING
// example: memgraph query file_history --param file=src/app.py
MATCH (f:File)
WHERE f.name = $file AND ($project = '' OR f.project_id = $project)
OPTIONAL MATCH (s:Memory)-[c:CHANGED]->(f)
WHERE c.kind IN ['A', 'R'] AND NOT s.is_suppressed
OPTIONAL MATCH (f)-[a:RENAMED]->(:File)
WHERE a.seq <= s.seq
WITH f, s.seq AS begun, max(a.seq) AS gone
OPTIONAL MATCH (t:Memory)-[d:CHANGED]->(f)
WHERE d.kind IN ['A', 'R'] AND NOT t.is_suppressed AND t.seq > gone AND t.seq < begun
WITH f, begun, gone, count(t.id) AS between
WITH f, max(CASE WHEN gone IS NOT NULL AND between = 0 THEN begun END) AS last
UNWIND [coalesce(last, 0)] AS begins
OPTIONAL MATCH p = (g:File)-[:RENAMED* TRAIL 1..8]->(f)
WITH f, begins, g.id AS other, properties(rels(p), 'seq') AS moves
WITH f, begins, collect(CASE WHEN list_sort(moves) = moves AND list_prepend(moves, begins)[-1] >= begins THEN {id: other, since: CAST(0 AS INT64), upto: list_append(moves, begins)[1]} END) AS earlier
OPTIONAL MATCH p = (f)-[:RENAMED* TRAIL 1..8]->(g:File)
WITH f, begins, earlier, g.id AS other, properties(rels(p), 'seq') AS moves
WITH f, begins, earlier, collect(CASE WHEN list_sort(moves) = moves AND list_append(moves, begins)[1] >= begins THEN {id: other, since: list_prepend(moves, begins)[-1], upto: CAST(9223372036854775807 AS INT64)} END) AS later
UNWIND list_append(list_concat(coalesce(earlier, []), coalesce(later, [])), {id: f.id, since: begins, upto: CAST(9223372036854775807 AS INT64)}) AS one
WITH DISTINCT one.id AS id, one.since AS since, one.upto AS upto
MATCH (m:Memory)-[c:CHANGED]->(n:File)
WHERE n.id = id AND NOT m.is_suppressed AND m.seq >= since AND m.seq <= upto
OPTIONAL MATCH (n)-[a:RENAMED]->(:File)
WHERE a.seq >= CASE WHEN since = 0 THEN m.seq ELSE since END AND a.seq <= CASE WHEN since = 0 THEN upto ELSE m.seq END
OPTIONAL MATCH (t:Memory)-[d:CHANGED]->(n)
WHERE d.kind IN ['A', 'R'] AND NOT t.is_suppressed AND t.seq >= a.seq AND t.seq <= CASE WHEN since = 0 THEN upto ELSE m.seq END
WITH m, c, n, since, upto, count(t.id) AS others
WHERE others = 0
RETURN DISTINCT m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.agents_involved AS persons, nullif(m.change_kind, '') AS kind,
       n.name AS name, c.kind AS change, c.added AS added, c.removed AS removed, m.content AS content, m.git_commit AS git_commit, m.id AS id
ORDER BY occurred_at DESC, name, id
LIMIT $limit
