// name: tags_by_trend
// purpose: tags that grow or fade: the number of memories from the last days, compared with as many days before;
//   generalisations made by sleep are left out, and a repeated memory counts when it was first reported
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: days INT64 = 30, at least 1, at most 36500: length of each period
// parameter: at TIMESTAMP = now: end of the later period; memories no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: tag STRING
// column: before INT64: memories in the earlier period
// column: recent INT64: memories in the later period
// column: change INT64: positive: growing, negative: fading; largest change first
// column: trend STRING: growing, fading or steady
// example: memgraph query tags_by_trend --param days=90 --param at=2026-03-01
MATCH (m:Memory)-[:TAGGED]->(t:Tag)
WHERE m.archived_at IS NULL AND NOT m.is_suppressed AND (m.invalid_at IS NULL OR m.invalid_at > $at)
  AND NOT m.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']
  AND ($project = '' OR m.project_id = $project)
  AND m.occurred_at > $at - to_days(2 * $days)
WITH t.name AS tag,
     m.occurred_at <= $at
     OR EXISTS { MATCH (m)-[:FROM_BUILD]->(b:Build) WHERE m.type = 'episodic' AND b.completed_at <= $at } AS is_there,
     m.occurred_at <= $at - to_days($days)
     OR EXISTS { MATCH (m)-[:FROM_BUILD]->(b:Build)
                 WHERE m.type = 'episodic' AND b.completed_at <= $at - to_days($days) } AS is_before,
     EXISTS { MATCH (m)-[:FROM_BUILD]->(b:Build)
              WHERE m.type = 'episodic' AND b.completed_at <= $at - to_days(2 * $days) } AS is_earlier
WHERE is_there AND NOT is_earlier
WITH tag, count(CASE WHEN is_before THEN 1 END) AS before, count(CASE WHEN NOT is_before THEN 1 END) AS recent
RETURN tag, before, recent, recent - before AS change,
       CASE WHEN recent > before THEN 'growing' WHEN recent < before THEN 'fading' ELSE 'steady' END AS trend
ORDER BY abs(recent - before) DESC, tag
LIMIT $limit
