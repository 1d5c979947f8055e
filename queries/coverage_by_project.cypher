// name: coverage_by_project
// purpose: what the store knows about each project: memories by type, number of builds, number of episodes from which
//   something was learned, and the period
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// column: project STRING
// column: builds INT64: consolidated builds
// column: episodes INT64
// column: generalisations INT64: made from other memories
// column: procedures INT64
// column: facts INT64: stated facts, such as what the user asked to remember
// column: learned_from INT64: episodes from which a generalisation or procedure in force was derived
// column: share DOUBLE: learned_from divided by episodes, from 0 to 1; null without episodes
// column: first_at TIMESTAMP: when the first of its memories happened, or its first build was completed
// column: last_at TIMESTAMP: when the last did
// example: memgraph query coverage_by_project
MATCH (m:Memory)-[:IN_PROJECT]->(p:Project)
WHERE NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR p.name = $project)
WITH p.name AS project, m, coalesce(m.source, '') IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
     OR EXISTS { MATCH (m)-[:DERIVED_FROM]->(:Memory) } AS is_made
WITH project, count(CASE WHEN m.type = 'episodic' THEN 1 END) AS episodes,
     count(CASE WHEN m.type = 'semantic' AND is_made THEN 1 END) AS generalisations,
     count(CASE WHEN m.type = 'procedural' THEN 1 END) AS procedures,
     count(CASE WHEN m.type = 'semantic' AND NOT is_made THEN 1 END) AS facts,
     min(m.occurred_at) AS first_at, max(m.occurred_at) AS last_at
OPTIONAL MATCH (e:Memory)<-[:DERIVED_FROM]-(k:Memory)
WHERE e.project_id = project AND e.type = 'episodic' AND NOT e.source IN ['commit', 'run', 'session turn'] AND e.archived_at IS NULL AND NOT e.is_suppressed
  AND (e.invalid_at IS NULL OR e.invalid_at > $at)
  AND k.archived_at IS NULL AND NOT k.is_suppressed AND (k.invalid_at IS NULL OR k.invalid_at > $at)
WITH project, episodes, generalisations, procedures, facts, first_at, last_at, collect(e.id) AS evidence
WITH project, episodes, generalisations, procedures, facts, first_at, last_at,
     size(list_distinct(coalesce(evidence, []))) AS learned_from
OPTIONAL MATCH (b:Build) WHERE b.project_id = project AND b.consolidated_at IS NOT NULL
WITH project, episodes, generalisations, procedures, facts, first_at, last_at, learned_from, count(b.id) AS builds,
     min(b.completed_at) AS first_build, max(b.completed_at) AS last_build
RETURN project, builds, episodes, generalisations, procedures, facts, learned_from,
       CASE WHEN episodes > 0 THEN round(CAST(learned_from AS DOUBLE) / episodes, 3) END AS share,
       CASE WHEN first_build < first_at THEN first_build ELSE first_at END AS first_at,
       CASE WHEN last_build > last_at THEN last_build ELSE last_at END AS last_at
ORDER BY episodes DESC, project
