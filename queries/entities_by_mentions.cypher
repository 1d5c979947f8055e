// name: entities_by_mentions
// purpose: which files, symbols, people, errors and other things memories speak of most
// parameter: project STRING = '': a project's name; '' for all
// parameter: kind STRING = '': file, symbol, package, person, error, issue, commit, url, concept or user; '' for all
// parameter: limit INT64 = 20: rows at most
// column: entity STRING
// column: kind STRING
// column: mentions INT64: memories that name it
// column: about INT64: memories that are about it
// column: negative INT64: memories of bad outcome that name it
// column: last_at TIMESTAMP
// example: memgraph query entities_by_mentions --param kind=error
MATCH (m:Memory)-[x:MENTIONS]->(e:Entity)
WHERE m.archived_at IS NULL AND NOT m.is_suppressed
  AND ($project = '' OR m.project_id = $project) AND ($kind = '' OR e.kind = $kind)
WITH e.name AS entity, e.kind AS kind, count(*) AS mentions, count(CASE WHEN x.about THEN 1 END) AS about,
     count(CASE WHEN m.outcome = 'negative' THEN 1 END) AS negative, max(m.occurred_at) AS last_at
RETURN entity, kind, mentions, about, negative, last_at
ORDER BY mentions DESC, kind, entity
LIMIT $limit
