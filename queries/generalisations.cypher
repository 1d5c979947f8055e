// name: generalisations
// purpose: what was learned in general, with how many episodes and builds bear it out; the best borne out first
// parameter: project STRING = '': a project's name; '' for all
// parameter: at TIMESTAMP = now: true then
// parameter: limit INT64 = 20, at least 0: rows at most
// column: content STRING
// column: outcome STRING
// column: confidence DOUBLE
// column: episodes INT64: that it was made of
// column: builds INT64: of evidence
// column: first_at TIMESTAMP: when it was first seen, by its episodes and builds
// column: last_at TIMESTAMP: and last; an episode that was merged keeps its first time, its builds have their own
// column: uses INT64: how often it was given to an agent
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
     CASE WHEN first_episode IS NULL OR first_build < first_episode THEN first_build ELSE first_episode END AS first_at,
     CASE WHEN last_episode IS NULL OR last_build > last_episode THEN last_build ELSE last_episode END AS last_at
RETURN k.content AS content, nullif(k.outcome, '') AS outcome, k.confidence AS confidence, episodes,
       size(coalesce(k.evidence_build_ids, [])) AS builds, first_at, last_at, k.access_count AS uses, k.id AS id
ORDER BY builds DESC, episodes DESC, id
LIMIT $limit
