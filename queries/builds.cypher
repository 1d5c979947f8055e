// name: builds
// purpose: each build's memories, and the generalisations and procedures derived from them; latest first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: outcome STRING = '': as in the build's log, such as failure; '' for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: build STRING
// column: project STRING
// column: outcome STRING
// column: completed_at TIMESTAMP
// column: added INT64: new memories
// column: merged INT64: memories merged into existing ones
// column: episodes INT64: memories of the build that are in force
// column: generalisations INT64: generalisations and procedures that it supports, without stated facts
// example: memgraph query builds --param outcome=failure
MATCH (b:Build)
WHERE b.consolidated_at IS NOT NULL
  AND ($project = '' OR b.project_id = $project) AND ($outcome = '' OR b.outcome = $outcome)
OPTIONAL MATCH (m:Memory)-[:FROM_BUILD]->(b)
WHERE NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
OPTIONAL MATCH (m)-[:DERIVED_FROM]->(e:Memory)
WITH b, count(DISTINCT CASE WHEN m.type = 'episodic' THEN m.id END) AS episodes,
     count(DISTINCT CASE WHEN m.type = 'procedural' OR (m.type = 'semantic' AND (e.id IS NOT NULL
       OR m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures'])) THEN m.id END) AS generalisations
RETURN b.name AS build, nullif(b.project_id, '') AS project, nullif(b.outcome, '') AS outcome, b.completed_at AS completed_at,
       b.extracted AS added, b.merged AS merged, episodes, generalisations
ORDER BY completed_at DESC, project, build
LIMIT $limit
