// name: about_entity
// purpose: memories about a file, symbol, person or other entity that were valid at a time; those about it first, then mere
//   mentions, newest first
// parameter: entity STRING: its full or short name (session.ts for auth/session.ts), in any case
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: valid at this time
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: is_about BOOLEAN: whether it is about the entity or merely mentions it
// column: occurred_at TIMESTAMP
// column: type STRING
// column: outcome STRING
// column: content STRING
// column: valid_at TIMESTAMP
// column: invalid_at TIMESTAMP
// column: entity STRING
// column: kind STRING
// column: id STRING
// example: memgraph query about_entity --param entity=session.ts --param at=2026-02-01
MATCH (m:Memory)-[x:MENTIONS]->(e:Entity)
WHERE (lower(e.name) = lower($entity) OR lower(e.short_name) = lower($entity))
  AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND ($project = '' OR m.project_id = $project)
  AND coalesce(m.valid_at, m.occurred_at) <= $at AND (m.invalid_at IS NULL OR m.invalid_at > $at)
RETURN coalesce(x.about, false) AS is_about, m.occurred_at AS occurred_at, m.type AS type, nullif(m.outcome, '') AS outcome,
       m.content AS content, m.valid_at AS valid_at, m.invalid_at AS invalid_at, e.name AS entity, e.kind AS kind, m.id AS id
ORDER BY is_about DESC, occurred_at DESC, id, entity
LIMIT $limit
