// name: recurring_failures
// purpose: recurring failures: the same error, identified by its fingerprint, in several builds, whether or not more than a record is kept of it;
//   a memory without a build counts as one
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: builds INT64 = 2, at least 1: minimum number of builds
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: builds INT64: number of builds in which it occurred
// column: memories INT64
// column: first_at TIMESTAMP: when the first of these builds was completed
// column: last_at TIMESTAMP
// column: projects STRING[]
// column: files STRING[]: mentioned by any of the memories
// column: example STRING: the text of one of them
// column: fingerprint STRING: equal for equal errors
// example: memgraph query recurring_failures --param builds=3
MATCH (m:Memory)
WHERE m.type = 'episodic' AND m.outcome = 'negative' AND m.failure_fingerprint <> ''
  AND NOT m.source IN ['commit', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
OPTIONAL MATCH (m)-[:MENTIONS]->(e:Entity) WHERE e.kind = 'file'
WITH m.failure_fingerprint AS fingerprint, size(list_distinct(collect(coalesce(b.id, m.id)))) AS builds,
     min(coalesce(b.completed_at, m.occurred_at)) AS first_at,
     max(coalesce(b.completed_at, m.occurred_at)) AS last_at,
     collect(m.project_id) AS projects, collect(e.name) AS files, coalesce(min(CASE WHEN m.source <> 'run' THEN m.content END), min(m.content)) AS example,
     count(DISTINCT CASE WHEN m.source <> 'run' THEN m.id END) AS memories
WHERE builds >= $builds
RETURN builds, memories, first_at, last_at, list_sort(list_distinct(coalesce(projects, []))) AS projects,
       list_sort(list_distinct(coalesce(files, []))) AS files, example, fingerprint
ORDER BY builds DESC, memories DESC, last_at DESC, fingerprint
LIMIT $limit
