// name: sources_read
// purpose: sources read: each with its records, builds and memories, last read first
// parameter: kind STRING = '': git, transcripts, junit and so on; '' for all
// parameter: project STRING = '': a project's name; '' for all projects
// column: kind STRING
// column: locator STRING: path or address
// column: project STRING
// column: records INT64
// column: builds INT64
// column: added INT64: new memories
// column: merged INT64: memories merged into existing ones
// column: skipped INT64: records that could not be read
// column: read_at TIMESTAMP
// example: memgraph query sources_read --param kind=git
MATCH (s:Source)
WHERE ($kind = '' OR s.kind = $kind) AND ($project = '' OR s.project_id = $project)
RETURN s.kind AS kind, s.locator AS locator, nullif(s.project_id, '') AS project, s.records AS records, s.builds AS builds,
       s.extracted AS added, s.merged AS merged, s.skipped AS skipped, s.read_at AS read_at
ORDER BY read_at DESC, kind, locator
