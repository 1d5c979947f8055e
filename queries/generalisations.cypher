// name: generalisations
// purpose: generalisations, with the number of episodes and builds that support them; best supported first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: valid at this time
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: content STRING
// column: outcome STRING
// column: confidence DOUBLE
// column: episodes INT64: episodes it was made from; a rule that is counted over a history links only the newest, its text says how many
// column: builds INT64: builds of evidence
// column: first_at TIMESTAMP: when it was first seen, by its episodes and builds; null for a counted rule
// column: last_at TIMESTAMP: when it was last seen; a merged episode keeps its first time, but its builds have their own times
// column: uses INT64: number of times that a recall returned it
// column: id STRING
// example: memgraph query generalisations --param project=shop --param limit=5
MATCH (k:Memory)-[:DERIVED_FROM]->(m:Memory)
WHERE k.type = 'semantic' AND k.archived_at IS NULL AND NOT k.is_suppressed
  AND (k.invalid_at IS NULL OR k.invalid_at > $at)
  AND ($project = '' OR k.project_id = $project)
WITH k, count(*) AS episodes, min(m.occurred_at) AS first_episode, max(m.occurred_at) AS last_episode
OPTIONAL MATCH (k)-[:FROM_BUILD]->(b:Build)
WITH k, episodes, first_episode, last_episode, min(b.completed_at) AS first_build, max(b.completed_at) AS last_build
WITH k, episodes,
     CASE WHEN k.source = 'counting' THEN NULL WHEN first_episode IS NULL OR first_build < first_episode THEN first_build ELSE first_episode END AS first_at,
     CASE WHEN last_episode IS NULL OR last_build > last_episode THEN last_build ELSE last_episode END AS last_at
RETURN k.content AS content, nullif(k.outcome, '') AS outcome, k.confidence AS confidence, episodes,
       size(coalesce(k.evidence_build_ids, [])) AS builds, first_at, last_at, k.access_count AS uses, k.id AS id
ORDER BY builds DESC, episodes DESC, id
LIMIT $limit
