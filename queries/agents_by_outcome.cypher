// name: agents_by_outcome
// purpose: how each agent's remembered work came out; agents with most memories first. What was archived or
//   forgotten is left out.
// parameters: $project STRING, a project's name, or '' for all
// columns: agent STRING, memories INT64, positive INT64, negative INT64, other INT64 (neutral or unknown)
MATCH (m:Memory)-[:INVOLVES]->(a:Agent)
WHERE m.archived_at IS NULL AND NOT m.is_suppressed
  AND ($project = '' OR m.project_id = $project)
WITH a.name AS agent, count(m) AS memories,
     sum(CASE WHEN m.outcome = 'positive' THEN 1 ELSE 0 END) AS positive,
     sum(CASE WHEN m.outcome = 'negative' THEN 1 ELSE 0 END) AS negative
RETURN agent, memories, positive, negative, memories - positive - negative AS other
ORDER BY memories DESC, agent
