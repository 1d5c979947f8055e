// name: entities_by_mentions
// purpose: files, symbols, people, errors and other entities that memories mention most; generalisations made by sleep are left out
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: kind STRING = '', one of '' 'file' 'symbol' 'package' 'person' 'error' 'issue' 'commit' 'release' 'url' 'concept' 'user':
//   the kind; '' for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: entity STRING
// column: kind STRING
// column: mentions INT64: memories that mention it
// column: about INT64: memories that are about it
// column: negative INT64: memories with a bad outcome that mention it
// column: last_at TIMESTAMP: when one of these memories happened last, by the builds that reported it
// example: memgraph query entities_by_mentions --param kind=error
MATCH (m:Memory)-[x:MENTIONS]->(e:Entity)
WITH m, x, e.name AS entity, CASE WHEN e.kind = 'commit' AND (NOT regexp_matches(e.name, '^[0-9a-f]{7,64}$') OR regexp_matches(e.name, '^([0-9]{7,11}|[0-9]{13,39})$'))
  THEN 'release' ELSE e.kind END AS kind
WHERE NOT m.source IN ['commit', 'run', 'session turn'] AND m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
  AND ($project = '' OR m.project_id = $project) AND ($kind = '' OR kind = $kind)
OPTIONAL MATCH (m)-[:FROM_BUILD]->(b:Build)
WITH entity, kind, max(coalesce(b.completed_at, m.occurred_at)) AS last_at, count(DISTINCT m.id) AS mentions,
     count(DISTINCT CASE WHEN x.about THEN m.id END) AS about,
     count(DISTINCT CASE WHEN m.outcome = 'negative' THEN m.id END) AS negative
RETURN entity, kind, mentions, about, negative, last_at
ORDER BY mentions DESC, kind, entity
LIMIT $limit
