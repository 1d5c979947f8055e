// name: lessons_by_build
// purpose: memories by the builds they came from, latest builds first; a merged memory comes from several builds
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: build STRING = '': a build's id as in its log; '' for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 50, at least 0: maximum number of rows
// column: build STRING
// column: project STRING
// column: build_outcome STRING: null if only its memories are known
// column: completed_at TIMESTAMP
// column: type STRING
// column: outcome STRING
// column: lesson STRING
// column: reason STRING: why it was stored
// column: id STRING
// example: memgraph query lessons_by_build --param build=ci-4711
MATCH (m:Memory)-[:FROM_BUILD]->(b:Build)
WHERE NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR b.project_id = $project) AND ($build = '' OR b.name = $build)
RETURN b.name AS build, nullif(b.project_id, '') AS project, nullif(b.outcome, '') AS build_outcome, b.completed_at AS completed_at,
       m.type AS type, nullif(m.outcome, '') AS outcome, m.content AS lesson, nullif(m.reason, '') AS reason, m.id AS id
ORDER BY coalesce(b.completed_at, m.occurred_at) DESC, build, type, id
LIMIT $limit
