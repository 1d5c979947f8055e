// name: entities_by_mentions
// purpose: files, symbols, people, errors and other entities that memories mention most; generalisations made by sleep are left out
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: kind STRING = '', one of '' 'file' 'symbol' 'package' 'person' 'error' 'issue' 'commit' 'url' 'concept' 'user': the
//   kind; '' for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: entity STRING
// column: kind STRING
// column: mentions INT64: memories that mention it
// column: about INT64: memories that are about it
// column: negative INT64: memories with a bad outcome that mention it
// column: last_at TIMESTAMP
// example: memgraph query entities_by_mentions --param kind=error
MATCH (m:Memory)-[x:MENTIONS]->(e:Entity)
WHERE m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'error analysis', 'feedback', 'procedures']
  AND ($project = '' OR m.project_id = $project) AND ($kind = '' OR e.kind = $kind)
WITH e.name AS entity, e.kind AS kind, count(*) AS mentions, count(CASE WHEN x.about THEN 1 END) AS about,
     count(CASE WHEN m.outcome = 'negative' THEN 1 END) AS negative, max(m.occurred_at) AS last_at
RETURN entity, kind, mentions, about, negative, last_at
ORDER BY mentions DESC, kind, entity
LIMIT $limit
