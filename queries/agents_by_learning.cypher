// name: agents_by_learning
// purpose: agents by the generalisations and procedures derived from their episodes; archived, hidden and invalidated episodes
//   count as well. What is counted over a history is nobody's lesson; lessons_by_build lists an agent's lessons one by one
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: agent STRING
// column: learned INT64: generalisations and procedures together
// column: generalisations INT64
// column: procedures INT64
// column: episodes INT64: their episodes from which something was derived
// column: last_at TIMESTAMP: when one of these episodes happened last, by the builds that reported it
// example: memgraph query agents_by_learning --param project=shop
MATCH (k:Memory)-[:DERIVED_FROM]->(m:Memory)-[:INVOLVES]->(a:Agent)
WHERE k.source <> 'counting' AND k.archived_at IS NULL AND NOT k.is_suppressed AND (k.invalid_at IS NULL OR k.invalid_at > $at)
  AND NOT m.is_suppressed AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
WITH a.name AS agent, max(coalesce(b.completed_at, m.occurred_at)) AS last_at, collect(m.id) AS evidence,
     collect(CASE WHEN k.type = 'semantic' THEN k.id END) AS general,
     collect(CASE WHEN k.type = 'procedural' THEN k.id END) AS procedural
WITH agent, last_at, size(list_distinct(coalesce(evidence, []))) AS episodes,
     size(list_distinct(coalesce(general, []))) AS generalisations,
     size(list_distinct(coalesce(procedural, []))) AS procedures
RETURN agent, generalisations + procedures AS learned, generalisations, procedures, episodes, last_at
ORDER BY learned DESC, episodes DESC, agent
LIMIT $limit
