// name: memories_by_use
// purpose: recalled memories and records, with how often they were used or overridden and the outcomes of those recalls, bad ones
//   included; most used first
// parameter: project STRING = '': the memory's project; '' for all
// parameter: at TIMESTAMP = now: memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: recalled INT64: number of recalls that returned it
// column: used INT64
// column: overridden INT64: times that something else was done instead
// column: helped INT64: times that it was used with a good outcome
// column: type STRING
// column: content STRING
// column: id STRING
// example: memgraph query memories_by_use --param project=shop
MATCH (r:Recall)-[x:RECALLED]->(m:Memory)
WHERE m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND ($project = '' OR m.project_id = $project)
WITH m, count(*) AS recalled, count(CASE WHEN x.used THEN 1 END) AS used,
     count(CASE WHEN NOT x.used THEN 1 END) AS overridden,
     count(CASE WHEN x.used AND r.outcome IN ['positive', 'success', 'love', 'like'] THEN 1 END) AS helped
RETURN recalled, used, overridden, helped, m.type AS type, m.content AS content, m.id AS id
ORDER BY used DESC, helped DESC, recalled DESC, id
LIMIT $limit
