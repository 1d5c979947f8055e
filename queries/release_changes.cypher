// name: release_changes
// purpose: commits by the first release that contains them, newest release first: what changed between two releases, and who fixed
//   what after one. A fix is, as in `memgraph about`, a commit that is a fix or closes an issue, whatever its kind; no merge
//   is one here. A release is as old as its latest commit; commits that no release contains yet are left out
// parameter: after STRING = '': only releases after this one; '' for all
// parameter: upto STRING = '': only releases up to this one; '' for all
// parameter: kind STRING = '', one of '' 'fix' 'feature' 'docs' 'test' 'refactor' 'revert' 'release' 'dependency' 'merge' 'other': the kind of change; 'fix' for
//   what is a fix or closes an issue
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: limit INT64 = 100, at least 0: maximum number of rows
// column: release STRING
// column: occurred_at TIMESTAMP
// column: project STRING
// column: persons STRING[]: who made the commit; of a merge, who made most of what it merges
// column: kind STRING: fix, feature, docs, test, refactor, revert, release, dependency, merge or other
// column: content STRING
// column: files STRING[]: those that it changed
// column: git_commit STRING
// column: id STRING
// example: memgraph query release_changes --param after=1.0 --param upto=1.1 --param kind=fix
MATCH (r:Release)<-[:IN_RELEASE]-(one:Memory)
WHERE $project = '' OR r.project_id = $project
WITH r, max(one.occurred_at) AS released_at
OPTIONAL MATCH (a:Release)<-[:IN_RELEASE]-(first:Memory)
WHERE a.name = $after AND a.project_id = r.project_id
WITH r, released_at, max(first.occurred_at) AS begins_at
OPTIONAL MATCH (z:Release)<-[:IN_RELEASE]-(last:Memory)
WHERE z.name = $upto AND z.project_id = r.project_id
WITH r, released_at, begins_at, max(last.occurred_at) AS ends_at
WHERE ($after = '' OR r.name <> '' AND released_at > begins_at) AND ($upto = '' OR r.name <> '' AND released_at <= ends_at)
MATCH (m:Memory)-[:IN_RELEASE]->(r)
WHERE NOT m.is_suppressed AND ($kind = '' OR m.change_kind = $kind OR ($kind = 'fix' AND size(m.closes) > 0 AND m.change_kind <> 'merge'))
RETURN r.name AS release, m.occurred_at AS occurred_at, nullif(m.project_id, '') AS project, m.agents_involved AS persons,
       nullif(m.change_kind, '') AS kind, m.content AS content, m.changes_path AS files, m.git_commit AS git_commit, m.id AS id
ORDER BY released_at DESC, release, occurred_at DESC, id
LIMIT $limit
