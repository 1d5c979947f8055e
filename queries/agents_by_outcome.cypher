// name: agents_by_outcome
// purpose: outcomes of each agent's remembered work; agents with most memories first. Generalisations made by sleep and
//   archived, forgotten or invalidated memories are left out.
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// column: agent STRING
// column: memories INT64
// column: positive INT64: of a commit it is only known that it was made, which counts as positive
// column: negative INT64
// column: other INT64: neutral or unknown
// example: memgraph query agents_by_outcome --param project=shop
MATCH (m:Memory)-[:INVOLVES]->(a:Agent)
WHERE NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
  AND ($project = '' OR m.project_id = $project)
WITH a.name AS agent, count(*) AS memories,
     count(CASE WHEN m.outcome = 'positive' THEN 1 END) AS positive,
     count(CASE WHEN m.outcome = 'negative' THEN 1 END) AS negative
RETURN agent, memories, positive, negative, memories - positive - negative AS other
ORDER BY memories DESC, agent
