// name: procedures_by_success
// purpose: success of procedures: builds that followed them, recalls after which they were used, and how many succeeded;
//   most certain first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: the time of the state
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: procedure STRING: when to use it, else its text
// column: state STRING: in force, invalidated, or the reason for archiving: proposed, rejected, faded, …
// column: success_rate DOUBLE: share of successes among trials and judged uses; null: never tried
// column: confidence DOUBLE
// column: tried INT64: builds of its evidence
// column: succeeded INT64
// column: uses INT64: recalls after which it was used
// column: uses_succeeded INT64
// column: overridden INT64: recalls after which something else was done instead
// column: steps STRING[]
// column: id STRING
// example: memgraph query procedures_by_success --param project=shop
MATCH (m:Memory)
WHERE m.type = 'procedural' AND NOT m.is_suppressed
  AND ($project = '' OR m.project_id = $project)
OPTIONAL MATCH (p:Practice) WHERE p.id = m.id
RETURN coalesce(nullif(m.trigger_pattern, ''), m.content) AS procedure,
       CASE WHEN m.archived_at IS NOT NULL THEN coalesce(nullif(m.archive_reason, ''), 'archived')
            WHEN m.invalid_at <= $at THEN 'invalidated' ELSE 'in force' END AS state,
       m.success_rate AS success_rate, m.confidence AS confidence, coalesce(p.tried, 0) AS tried,
       coalesce(p.succeeded, 0) AS succeeded, coalesce(p.uses, 0) AS uses, coalesce(p.uses_succeeded, 0) AS uses_succeeded,
       coalesce(m.override_count, 0) AS overridden, m.steps AS steps, m.id AS id
ORDER BY coalesce(success_rate, -1.0) DESC, confidence DESC, id
LIMIT $limit
