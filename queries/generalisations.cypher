// name: generalisations
// purpose: what was learned in general, with how many episodes and builds bear it out; the best borne out first
// parameter: project STRING = '': a project's name; '' for all
// parameter: at TIMESTAMP = now: true then
// parameter: limit INT64 = 20: rows at most
// column: content STRING
// column: outcome STRING
// column: confidence DOUBLE
// column: episodes INT64: that it was made of
// column: builds INT64: of evidence
// column: first_at TIMESTAMP: when the first of its episodes happened
// column: last_at TIMESTAMP
// column: uses INT64: how often it was given to an agent
// column: id STRING
// example: memgraph query generalisations --param project=shop --param limit=5
MATCH (k:Memory)-[:DERIVED_FROM]->(m:Memory)
WHERE k.type = 'semantic' AND k.archived_at IS NULL AND NOT k.is_suppressed
  AND (k.invalid_at IS NULL OR k.invalid_at > $at)
  AND ($project = '' OR k.project_id = $project)
WITH k, count(*) AS episodes, min(m.occurred_at) AS first_at, max(m.occurred_at) AS last_at
RETURN k.content AS content, k.outcome AS outcome, k.confidence AS confidence, episodes,
       size(coalesce(k.evidence_build_ids, [])) AS builds, first_at, last_at, k.access_count AS uses, k.id AS id
ORDER BY builds DESC, episodes DESC, id
LIMIT $limit
