// name: agents_by_outcome
// purpose: how each agent's remembered work came out; agents with most memories first. What sleep made of
//   them is left out, and what was archived, forgotten or invalidated.
// parameter: project STRING = '': a project's name; '' for all
// parameter: at TIMESTAMP = now: what is no longer true then is left out
// column: agent STRING
// column: memories INT64
// column: positive INT64
// column: negative INT64
// column: other INT64: neutral or unknown
// example: memgraph query agents_by_outcome --param project=shop
MATCH (m:Memory)-[:INVOLVES]->(a:Agent)
WHERE m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'error analysis', 'procedures']
  AND ($project = '' OR m.project_id = $project)
WITH a.name AS agent, count(*) AS memories,
     count(CASE WHEN m.outcome = 'positive' THEN 1 END) AS positive,
     count(CASE WHEN m.outcome = 'negative' THEN 1 END) AS negative
RETURN agent, memories, positive, negative, memories - positive - negative AS other
ORDER BY memories DESC, agent
