// name: about_entity
// purpose: what is said of a file, symbol, person or other thing, and was true at a date; what is about it first, then what
//   merely names it, newest first
// parameter: entity STRING: its name, whole or short (session.ts for auth/session.ts), in any case
// parameter: project STRING = '': a project's name; '' for all
// parameter: at TIMESTAMP = now: true then: neither later nor no longer valid
// parameter: limit INT64 = 20, at least 0: rows at most
// column: is_about BOOLEAN: it is about it; else it merely names it
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
