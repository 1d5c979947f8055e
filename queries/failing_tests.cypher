// name: failing_tests
// purpose: the tests that failed in most runs, worst first, with the last run in which each passed. A run is a test report, a CI log, or
//   a build log whose tasks name tests; a test that failed and then, run again, passed in one run did both. Every failure
//   of a run counts, whatever became of the memory that tells of it
// parameter: project STRING = '': a project's name; '' for all projects
// parameter: since TIMESTAMP = null: only failures of runs completed from this time; null for all
// parameter: limit INT64 = 20, at least 0: maximum number of rows
// column: test STRING
// column: project STRING
// column: failures INT64: runs in which it failed
// column: passes INT64: runs in which it passed since the first of these failures
// column: last_failed_at TIMESTAMP: when the last run that it failed in was completed
// column: last_failed_on STRING: the commit of that run, where its record names one
// column: last_passed_at TIMESTAMP: when the last run that it passed in was completed; null if none is known
// column: last_passed_on STRING
// column: is_failing BOOLEAN: whether it has not passed since its last failure
// example: memgraph query failing_tests --param project=shop --param since=2026-01-01
MATCH (t:Test)<-[:FAILED]-(r:Run)
WHERE ($project = '' OR t.project_id = $project) AND (r.completed_at >= $since OR $since IS NULL)
WITH t, count(r) AS failures, min(r.completed_at) AS first_failed_at, max(r.completed_at) AS last_failed_at
MATCH (t)<-[:FAILED]-(f:Run)
WHERE f.completed_at = last_failed_at
WITH t, failures, first_failed_at, last_failed_at, max(f.git_commit) AS failed_on
OPTIONAL MATCH (t)<-[:PASSED]-(p:Run)
WITH t, failures, last_failed_at, failed_on, max(p.completed_at) AS last_passed_at,
     count(DISTINCT CASE WHEN p.completed_at >= first_failed_at THEN p.id END) AS passes
OPTIONAL MATCH (t)<-[:PASSED]-(p:Run)
WHERE p.completed_at = last_passed_at
WITH t, failures, passes, last_failed_at, failed_on, last_passed_at, max(p.git_commit) AS passed_on
RETURN t.name AS test, nullif(t.project_id, '') AS project, failures, passes, last_failed_at, nullif(failed_on, '') AS last_failed_on,
       last_passed_at, nullif(passed_on, '') AS last_passed_on,
       last_passed_at IS NULL OR last_passed_at < last_failed_at AS is_failing
ORDER BY failures DESC, last_failed_at DESC, test, project
LIMIT $limit
