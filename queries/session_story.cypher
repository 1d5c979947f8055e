// name: session_story
// purpose: events of a session in order, without generalisations made by sleep
// parameter: session STRING: the session's id
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 200, at least 0: maximum number of rows
// column: occurred_at TIMESTAMP
// column: agents STRING[]
// column: speaker STRING
// column: outcome STRING
// column: content STRING
// column: id STRING
// column: previous_id STRING: the preceding memory
// example: memgraph query session_story --param session=2f1c
MATCH (m:Memory)-[:IN_SESSION]->(s:Session)
WHERE s.name = $session AND m.archived_at IS NULL AND NOT m.is_suppressed
  AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
RETURN m.occurred_at AS occurred_at, m.agents_involved AS agents, nullif(m.speaker, '') AS speaker, nullif(m.outcome, '') AS outcome,
       m.content AS content, m.id AS id, nullif(m.previous_id, '') AS previous_id
ORDER BY occurred_at, m.seq, id
LIMIT $limit
