// Nodes. A Memory's columns are the fields of memgraph.model.memory.MemoryRecord, and where its vector lies; its `record` is
// all of them as JSON but for what a use changes, because reading a row costs some 50 microseconds for each column.
//
// A list of records is kept as a record of equally long lists, so `UNWIND m.entities.name AS name`: the engine loses lists of
// structs where the first rows that it wrote to disk had none.

CREATE NODE TABLE Memory (
  id STRING PRIMARY KEY,
  type STRING,
  content STRING,
  outcome STRING,
  outcome_word STRING,
  confidence DOUBLE,
  relevance_anchor DOUBLE,
  relevance_at TIMESTAMP,
  floor DOUBLE,
  access_count INT64,
  last_accessed_at TIMESTAMP,
  is_pinned BOOLEAN,
  is_suppressed BOOLEAN,
  archived_at TIMESTAMP,
  archive_reason STRING,
  archive_summary STRING,
  valid_at TIMESTAMP,
  invalid_at TIMESTAMP,
  invalidation_reason STRING,
  created_at TIMESTAMP,
  updated_at TIMESTAMP,
  occurred_at TIMESTAMP,
  privacy_tier STRING,
  domain STRING,
  trust_class STRING,
  project_id STRING,
  build_id STRING,
  task_id STRING,
  session_id STRING,
  previous_id STRING,
  title STRING,
  speaker STRING,
  agents_involved STRING[],
  tags STRING[],
  entities STRUCT(name STRING[], kind STRING[], about BOOLEAN[]),
  source_event_ids STRING[],
  source STRING,
  evidence_build_ids STRING[],
  failure_fingerprint STRING,
  reason STRING,
  embedding_model STRING,
  embedded_at TIMESTAMP,
  vector_row INT64,
  vector_sha256 STRING,
  seq INT64,
  record STRING,
  // episodic
  event_date TIMESTAMP,
  location STRING,
  decision STRING,
  alternatives_considered STRING[],
  duration_seconds DOUBLE,
  phase STRING,
  goal STRING,
  constraints STRING[],
  files_involved STRING[],
  action_log STRUCT(t DOUBLE[], action STRING[], target STRING[], result STRING[], error STRING[]),
  errors_encountered STRUCT(type STRING[], message STRING[], resolution STRING[]),
  artifacts_produced STRING[],
  git_commit STRING,
  situation STRING,
  reasoning STRING,
  action STRING,
  user_feedback STRING,
  agent_type STRING,
  mission_id STRING,
  // semantic
  pattern STRING,
  category STRING,
  conditions STRING[],
  correct_approach STRING,
  incorrect_approach STRING,
  usage_count INT64,
  last_used_at TIMESTAMP,
  // procedural
  trigger_pattern STRING,
  steps STRING[],
  success_rate DOUBLE,
  prerequisites STRING[],
  common_errors STRUCT(error STRING[], fix STRING[]),
  exit_criteria STRING[],
  last_validated_at TIMESTAMP,
  override_count INT64
);

CREATE NODE TABLE Project (id STRING PRIMARY KEY, name STRING, last_memory_id STRING);

CREATE NODE TABLE Build (
  id STRING PRIMARY KEY,
  name STRING,
  project_id STRING,
  outcome STRING,
  started_at TIMESTAMP,
  completed_at TIMESTAMP,
  task_count INT64,
  agents STRING[],
  log_sha256 STRING,
  consumed_keys STRING[],
  is_complete BOOLEAN,
  extracted INT64,
  merged INT64,
  extractor STRING,
  consolidated_at TIMESTAMP
);

CREATE NODE TABLE Agent (id STRING PRIMARY KEY, name STRING);

CREATE NODE TABLE Session (id STRING PRIMARY KEY, name STRING, project_id STRING, last_memory_id STRING);

CREATE NODE TABLE Task (id STRING PRIMARY KEY, name STRING, project_id STRING);

CREATE NODE TABLE Tag (id STRING PRIMARY KEY, name STRING);

// `short_name` is how a thing is called where it is clear which is meant: session.ts of auth/session.ts, smith of Dr. Anna Smith.
CREATE NODE TABLE Entity (id STRING PRIMARY KEY, name STRING, kind STRING, project_id STRING, short_name STRING);

CREATE NODE TABLE Recall (
  id STRING PRIMARY KEY,
  query_hmac STRING,
  retrieved_at TIMESTAMP,
  settings_version STRING,
  agent_name STRING,
  project_id STRING,
  session_id STRING,
  task_id STRING,
  build_id STRING,
  total_tokens INT64,
  outcome STRING,
  outcome_at TIMESTAMP
);

// When a run of the lifecycle last came to its end, and how many builds were consolidated since. `seq` is that of its event.
// Of a sleep that was stopped: when it began, and which of its phases are left.
CREATE NODE TABLE LifecycleRun (
  id STRING PRIMARY KEY,
  name STRING,
  seq INT64,
  builds_since INT64,
  applied_at TIMESTAMP,
  episodes INT64,
  communities INT64,
  created INT64,
  updated INT64,
  superseded INT64,
  retired INT64,
  started_at TIMESTAMP,
  phases_left STRING[]
);

// How a procedure does in practice, under its memory's id: builds that did as it says, recalls after which it was used.
CREATE NODE TABLE Practice (
  id STRING PRIMARY KEY,
  tried INT64,
  succeeded INT64,
  uses INT64,
  uses_judged INT64,
  uses_succeeded INT64
);

CREATE NODE TABLE Source (
  id STRING PRIMARY KEY,
  name STRING,
  kind STRING,
  locator STRING,
  project_id STRING,
  cursor STRING,
  records INT64,
  builds INT64,
  extracted INT64,
  merged INT64,
  skipped INT64,
  read_at TIMESTAMP
);
