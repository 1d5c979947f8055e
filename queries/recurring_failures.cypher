// name: recurring_failures
// purpose: what keeps failing: the same error, told by its fingerprint, in several builds; a memory without a build counts
//   as one
// parameter: project STRING = '': a project's name; '' for all
// parameter: builds INT64 = 2, at least 1: in so many builds at least
// parameter: at TIMESTAMP = now: what is no longer true then is left out
// parameter: limit INT64 = 20, at least 0: rows at most
// column: builds INT64: in how many builds it was seen
// column: memories INT64
// column: first_at TIMESTAMP
// column: last_at TIMESTAMP
// column: projects STRING[]
// column: files STRING[]: named by any of the memories
// column: example STRING: the text of one of them
// column: fingerprint STRING: equal for equal errors
// example: memgraph query recurring_failures --param builds=3
MATCH (m:Memory)
WHERE m.type = 'episodic' AND m.outcome = 'negative' AND m.failure_fingerprint <> ''
  AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
OPTIONAL MATCH (m)-[:MENTIONS]->(e:Entity) WHERE e.kind = 'file'
WITH m.failure_fingerprint AS fingerprint, size(list_distinct(collect(coalesce(b.id, m.id)))) AS builds,
     size(list_distinct(collect(m.id))) AS memories, min(m.occurred_at) AS first_at, max(m.occurred_at) AS last_at,
     collect(m.project_id) AS projects, collect(e.name) AS files, min(m.content) AS example
WHERE builds >= $builds
RETURN builds, memories, first_at, last_at, list_sort(list_distinct(coalesce(projects, []))) AS projects,
       list_sort(list_distinct(coalesce(files, []))) AS files, example, fingerprint
ORDER BY builds DESC, memories DESC, last_at DESC, fingerprint
LIMIT $limit
