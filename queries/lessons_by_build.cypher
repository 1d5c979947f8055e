// name: lessons_by_build
// purpose: memories by the builds they came from, latest builds first: what was learned in a period, and from whom; a merged memory
//   comes from several builds. Records (most commits and runs, of which no memory was made) are not listed: file_history and
//   release_changes list all commits
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: build STRING = '': a build's id as in its log; '' for all
// parameter: agent STRING = '': an agent that took part, or a commit's author; '' for all
// parameter: since TIMESTAMP = null: only builds completed from this time; null for all
// parameter: until TIMESTAMP = null: only builds completed before this time; null for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 50, at least 0: maximum number of rows
// column: build STRING
// column: project STRING
// column: build_outcome STRING: null if only its memories are known
// column: completed_at TIMESTAMP
// column: type STRING
// column: outcome STRING
// column: lesson STRING
// column: agents STRING[]: who took part, or made the commit
// column: reason STRING: why it was stored
// column: id STRING
// example: memgraph query lessons_by_build --param since=2026-01-01 --param until=2026-04-01
MATCH (m:Memory)-[:FROM_BUILD]->(b:Build)
WHERE NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR b.project_id = $project) AND ($build = '' OR b.name = $build)
  AND ($agent = '' OR list_contains(m.agents_involved, $agent))
  AND (coalesce(b.completed_at, m.occurred_at) >= $since OR $since IS NULL)
  AND (coalesce(b.completed_at, m.occurred_at) < $until OR $until IS NULL)
RETURN b.name AS build, nullif(b.project_id, '') AS project, nullif(b.outcome, '') AS build_outcome, b.completed_at AS completed_at,
       m.type AS type, nullif(m.outcome, '') AS outcome, m.content AS lesson, m.agents_involved AS agents, nullif(m.reason, '') AS reason, m.id AS id
ORDER BY coalesce(b.completed_at, m.occurred_at) DESC, build, type, id
LIMIT $limit
