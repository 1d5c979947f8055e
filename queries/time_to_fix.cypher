// name: time_to_fix
// purpose: commits that a later one mends or takes back, as its message says, and how many days later that was written, the latest
//   written first
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: limit INT64 = 50, at least 0: maximum number of rows
// column: fixed_at TIMESTAMP: the author's date of the later commit
// column: days DOUBLE: from the earlier commit to the later one, by their authors' dates, from which each may have waited long to be
//   merged; null where these are out of order, as after a rebase
// column: how STRING: MENDS or REVERTS
// column: project STRING
// column: broken_by STRING[]: who made the earlier commit; of a merge, who made most of what it merges, or where
//   that is not known, who merged
// column: fixed_by STRING[]: who made the later one, likewise
// column: earlier STRING
// column: later STRING
// column: earlier_commit STRING
// column: later_commit STRING
// example: memgraph query time_to_fix --param project=shop
MATCH (m:Memory)-[e:MENDS|REVERTS]->(c:Commit)<-[:OF_COMMIT]-(o:Memory)
WHERE ($project = '' OR m.project_id = $project) AND NOT m.is_suppressed AND NOT o.is_suppressed
RETURN m.occurred_at AS fixed_at, CASE WHEN m.occurred_at >= o.occurred_at THEN round((to_epoch_ms(m.occurred_at) - to_epoch_ms(o.occurred_at)) / 86400000.0, 1) END AS days, label(e) AS how,
       nullif(m.project_id, '') AS project, o.agents_involved AS broken_by, m.agents_involved AS fixed_by, o.content AS earlier,
       m.content AS later, o.git_commit AS earlier_commit, m.git_commit AS later_commit
ORDER BY fixed_at DESC, earlier_commit, later_commit, how
LIMIT $limit
