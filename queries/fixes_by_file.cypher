// name: fixes_by_file
// purpose: the files that most commits changed that are fixes or close an issue, whatever their kind, worst first. A history has no failures
//   of its own; failures_by_file counts those of builds. A file counts under each of its names apart: `memgraph about` and `learning` follow
//   renames, and have other numbers for a file that was renamed
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: since TIMESTAMP = null: only commits from this time; null for all
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: file STRING: its name, as the history writes it
// column: fixes INT64: commits that are fixes or close an issue
// column: changes INT64: commits that changed it
// column: share DOUBLE: fixes divided by changes, from 0 to 1
// column: last_at TIMESTAMP: the latest of these, by its author's date
// example: memgraph query fixes_by_file --param project=shop
MATCH (m:Memory)-[:CHANGED]->(f:File)
WHERE NOT m.is_suppressed AND ($project = '' OR f.project_id = $project) AND (m.occurred_at >= $since OR $since IS NULL)
WITH f, m.git_commit AS sha, m.change_kind = 'fix' OR size(m.closes) > 0 AS is_fix, m.occurred_at AS at
WITH f.name AS file, max(CASE WHEN is_fix THEN at END) AS last_at, count(DISTINCT sha) AS changes,
     count(DISTINCT CASE WHEN is_fix THEN sha END) AS fixes
WHERE fixes > 0
RETURN file, fixes, changes, round(fixes * 1.0 / changes, 3) AS share, last_at
ORDER BY fixes DESC, share DESC, file
LIMIT $limit
