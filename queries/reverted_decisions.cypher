// name: reverted_decisions
// purpose: commits that a later one takes back, latest revert first; the revert is in force, and of releases up to 0.2
//   its text names the commit
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: at TIMESTAMP = now: reverts no longer valid at this time are left out
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: decided_at TIMESTAMP
// column: project STRING
// column: decided_by STRING[]
// column: decision STRING: as the memory states it, else its text
// column: git_commit STRING: the commit that was undone
// column: reverted_at TIMESTAMP
// column: reverted_by STRING[]
// column: revert STRING: the text of the revert's memory, with the reason if known
// column: id STRING
// column: revert_id STRING
// example: memgraph query reverted_decisions --param project=shop
MATCH (r:Memory)-[e:REVERTS|:MENTIONS]->(x:Commit:Entity)
WHERE (label(e) = 'REVERTS' OR (list_contains(r.tags, 'revert') AND size(r.undoes) = 0 AND x.kind = 'commit'
       AND NOT r.source IN ['compression', 'counting', 'error analysis', 'feedback', 'procedures']))
  AND r.archived_at IS NULL AND NOT r.is_suppressed AND (r.invalid_at IS NULL OR r.invalid_at > $at)
  AND ($project = '' OR r.project_id = $project)
WITH DISTINCT r, x.name AS sha
MATCH (m:Memory)
WHERE m.git_commit STARTS WITH sha AND m.id <> r.id AND m.project_id = r.project_id AND m.occurred_at <= r.occurred_at
  AND m.archived_at IS NULL AND NOT m.is_suppressed
RETURN m.occurred_at AS decided_at, nullif(m.project_id, '') AS project, m.agents_involved AS decided_by,
       coalesce(nullif(m.decision, ''), m.content) AS decision, nullif(m.git_commit, '') AS git_commit, r.occurred_at AS reverted_at,
       r.agents_involved AS reverted_by, r.content AS revert, m.id AS id, r.id AS revert_id
ORDER BY reverted_at DESC, id, revert_id
LIMIT $limit
