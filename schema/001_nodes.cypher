// Nodes. A Memory's columns are the fields of memgraph.model.memory.MemoryRecord, and the location of its vector.
//
// Rules that keep the engine (Kùzu 0.11.3) from losing values and its file from growing; the fuzz tests in tests/fuzz/engine check them:
// - No STRING column ever holds a null; an unset one is ''. If a column had no nulls at the last checkpoint, was updated, and then gets
//   rows without a value, every row gets another row's string. No list column holds a null either; an unset one is [], because
//   list_filter() gives rows the results of others if one is null.
// - No STRUCT. A list of records is one list column for each part of the record, all of equal length: `UNWIND m.entities_name AS name`.
//   Updates mix up the lists of a STRUCT, and lists of STRUCTs are lost.
// - No list is ever SET, nor any STRING of a memory: a node whose lists or strings change is deleted with its edges and recreated. If
//   one list of a column was set and rows were added since the last checkpoint, the next checkpoint gives rows the lists of others.
//   After one SET in a STRING column the next checkpoint writes the whole column again, and never frees the space.
// - No DETACH DELETE: edges are deleted before their node. It leaves edges without a node at one end, which only count(*) sees.

CREATE NODE TABLE Memory (
  id STRING PRIMARY KEY,
  type STRING DEFAULT '',
  content STRING DEFAULT '',
  outcome STRING DEFAULT '',
  outcome_word STRING DEFAULT '',
  confidence DOUBLE,
  relevance_anchor DOUBLE,
  relevance_at TIMESTAMP,
  floor DOUBLE,
  access_count INT64,
  last_accessed_at TIMESTAMP,
  is_pinned BOOLEAN,
  is_suppressed BOOLEAN,
  archived_at TIMESTAMP,
  archive_reason STRING DEFAULT '',
  archive_summary STRING DEFAULT '',
  valid_at TIMESTAMP,
  invalid_at TIMESTAMP,
  invalidation_reason STRING DEFAULT '',
  created_at TIMESTAMP,
  updated_at TIMESTAMP,
  occurred_at TIMESTAMP,
  privacy_tier STRING DEFAULT '',
  domain STRING DEFAULT '',
  trust_class STRING DEFAULT '',
  project_id STRING DEFAULT '',
  build_id STRING DEFAULT '',
  task_id STRING DEFAULT '',
  session_id STRING DEFAULT '',
  previous_id STRING DEFAULT '',
  title STRING DEFAULT '',
  speaker STRING DEFAULT '',
  agents_involved STRING[] DEFAULT CAST([] AS STRING[]),
  tags STRING[] DEFAULT CAST([] AS STRING[]),
  cues STRING[] DEFAULT CAST([] AS STRING[]),
  entities_name STRING[] DEFAULT CAST([] AS STRING[]),
  entities_kind STRING[] DEFAULT CAST([] AS STRING[]),
  entities_about BOOLEAN[] DEFAULT CAST([] AS BOOLEAN[]),
  source_event_ids STRING[] DEFAULT CAST([] AS STRING[]),
  source STRING DEFAULT '',
  evidence_build_ids STRING[] DEFAULT CAST([] AS STRING[]),
  failure_fingerprint STRING DEFAULT '',
  reason STRING DEFAULT '',
  embedding_model STRING DEFAULT '',
  embedded_at TIMESTAMP,
  vector_row INT64,
  vector_sha256 STRING DEFAULT '',
  seq INT64,
  // episodic
  event_date TIMESTAMP,
  location STRING DEFAULT '',
  decision STRING DEFAULT '',
  alternatives_considered STRING[] DEFAULT CAST([] AS STRING[]),
  duration_seconds DOUBLE,
  phase STRING DEFAULT '',
  goal STRING DEFAULT '',
  constraints STRING[] DEFAULT CAST([] AS STRING[]),
  files_involved STRING[] DEFAULT CAST([] AS STRING[]),
  action_log_t DOUBLE[] DEFAULT CAST([] AS DOUBLE[]),
  action_log_action STRING[] DEFAULT CAST([] AS STRING[]),
  action_log_target STRING[] DEFAULT CAST([] AS STRING[]),
  action_log_result STRING[] DEFAULT CAST([] AS STRING[]),
  action_log_error STRING[] DEFAULT CAST([] AS STRING[]),
  errors_encountered_type STRING[] DEFAULT CAST([] AS STRING[]),
  errors_encountered_message STRING[] DEFAULT CAST([] AS STRING[]),
  errors_encountered_resolution STRING[] DEFAULT CAST([] AS STRING[]),
  artifacts_produced STRING[] DEFAULT CAST([] AS STRING[]),
  git_commit STRING DEFAULT '',
  situation STRING DEFAULT '',
  reasoning STRING DEFAULT '',
  action STRING DEFAULT '',
  user_feedback STRING DEFAULT '',
  agent_type STRING DEFAULT '',
  mission_id STRING DEFAULT '',
  // of a commit; where lines were not counted, CHANGED has null, and these lists 0, because they hold no nulls
  change_kind STRING DEFAULT '',
  changes_path STRING[] DEFAULT CAST([] AS STRING[]),
  changes_kind STRING[] DEFAULT CAST([] AS STRING[]),
  changes_added INT64[] DEFAULT CAST([] AS INT64[]),
  changes_removed INT64[] DEFAULT CAST([] AS INT64[]),
  changes_was STRING[] DEFAULT CAST([] AS STRING[]),
  undoes STRING[] DEFAULT CAST([] AS STRING[]),
  mends STRING DEFAULT '',
  closes STRING[] DEFAULT CAST([] AS STRING[]),
  release STRING DEFAULT '',
  // of an attempt (asked and lesson: semantic, too)
  asked STRING DEFAULT '',
  tried STRING DEFAULT '',
  attempt INT64,
  attempts INT64,
  lesson STRING DEFAULT '',
  acted_on STRING DEFAULT '',
  tools_called STRING[] DEFAULT CAST([] AS STRING[]),
  calls INT64,
  failed_calls INT64,
  worked STRING DEFAULT '',
  worked_how STRING DEFAULT '',
  last_error STRING DEFAULT '',
  explained STRING DEFAULT '',
  result STRING DEFAULT '',
  // semantic
  pattern STRING DEFAULT '',
  category STRING DEFAULT '',
  conditions STRING[] DEFAULT CAST([] AS STRING[]),
  correct_approach STRING DEFAULT '',
  incorrect_approach STRING DEFAULT '',
  is_solved BOOLEAN,
  usage_count INT64,
  last_used_at TIMESTAMP,
  // procedural
  trigger_pattern STRING DEFAULT '',
  steps STRING[] DEFAULT CAST([] AS STRING[]),
  success_rate DOUBLE,
  prerequisites STRING[] DEFAULT CAST([] AS STRING[]),
  common_errors_error STRING[] DEFAULT CAST([] AS STRING[]),
  common_errors_fix STRING[] DEFAULT CAST([] AS STRING[]),
  exit_criteria STRING[] DEFAULT CAST([] AS STRING[]),
  last_validated_at TIMESTAMP,
  override_count INT64
);

// A build that ran tests. Of more than 1,000 tests that passed, those that have failed before come first, and the rest is left out.
// `git_commit` is the hash that its record names, if any. What rows of memories and runs name comes after both.
CREATE NODE TABLE Run (
  id STRING PRIMARY KEY,
  name STRING DEFAULT '',
  project_id STRING DEFAULT '',
  outcome STRING DEFAULT '',
  git_commit STRING DEFAULT '',
  started_at TIMESTAMP,
  completed_at TIMESTAMP,
  passed STRING[] DEFAULT CAST([] AS STRING[]),
  failed_name STRING[] DEFAULT CAST([] AS STRING[]),
  failed_task STRING[] DEFAULT CAST([] AS STRING[]),
  seq INT64
);

CREATE NODE TABLE Project (id STRING PRIMARY KEY, name STRING DEFAULT '', last_memory_id STRING DEFAULT '');

CREATE NODE TABLE Build (
  id STRING PRIMARY KEY,
  name STRING DEFAULT '',
  project_id STRING DEFAULT '',
  outcome STRING DEFAULT '',
  started_at TIMESTAMP,
  completed_at TIMESTAMP,
  task_count INT64,
  agents STRING[] DEFAULT CAST([] AS STRING[]),
  log_sha256 STRING DEFAULT '',
  consumed_keys STRING[] DEFAULT CAST([] AS STRING[]),
  is_complete BOOLEAN,
  extracted INT64,
  merged INT64,
  extractor STRING DEFAULT '',
  consolidated_at TIMESTAMP
);

// `known_at` is when a ledger or a handoff first named the agent, which then stays without memories.
CREATE NODE TABLE Agent (id STRING PRIMARY KEY, name STRING DEFAULT '', known_at TIMESTAMP);

CREATE NODE TABLE Session (id STRING PRIMARY KEY, name STRING DEFAULT '', project_id STRING DEFAULT '', last_memory_id STRING DEFAULT '');

// `name` is the task's id in write scopes. A task that memories merely name has no row, and here no status; `touched_at` is the last commit in its scope.
CREATE NODE TABLE Task (
  id STRING PRIMARY KEY,
  name STRING DEFAULT '',
  title STRING DEFAULT '',
  status STRING DEFAULT '',
  project_id STRING DEFAULT '',
  seq INT64,
  created_at TIMESTAMP,
  touched_at TIMESTAMP
);

// A part of a task's state: it held from the event `seq` until the event `closed_seq`, or still holds. `kind` is title, status, goal,
// decision, constraint, open_question, next_action, artifact, link, state or confirmation.
CREATE NODE TABLE TaskItem (
  id STRING PRIMARY KEY,
  task_id STRING DEFAULT '',
  kind STRING DEFAULT '',
  name STRING DEFAULT '',
  content STRING DEFAULT '',
  reason STRING DEFAULT '',
  resolution STRING DEFAULT '',
  actor STRING DEFAULT '',
  seq INT64,
  closed_seq INT64,
  created_at TIMESTAMP,
  closed_at TIMESTAMP
);

// A pin, under its memory's id: it is one from the event `seq` until the event `closed_seq`.
CREATE NODE TABLE Pin (
  id STRING PRIMARY KEY,
  kind STRING DEFAULT '',
  task_id STRING DEFAULT '',
  expires_at TIMESTAMP,
  seq INT64,
  closed_seq INT64,
  created_at TIMESTAMP,
  closed_at TIMESTAMP
);

// A request to remove a pin: `state` is open, confirmed or cancelled; its id is derived from a token that nobody can read here.
CREATE NODE TABLE PinRemoval (
  id STRING PRIMARY KEY,
  pin_id STRING DEFAULT '',
  state STRING DEFAULT '',
  requested_at TIMESTAMP,
  expires_at TIMESTAMP,
  uptime_ms INT64,
  closed_at TIMESTAMP
);

// The tasks that a session works on, the current one last, and how it decides between them: whether it may switch by itself (`autoswitch`),
// how much it asks (`guidance`: minimal or supportive), its last switch, how often it switched straight back (`switches_back`), the turns
// in a row whose message seemed to belong to another task (`mismatches`), what the last turn asked, and the last recall whose memories were overridden.
CREATE NODE TABLE SessionTasks (
  id STRING PRIMARY KEY,
  name STRING DEFAULT '',
  stack STRING[] DEFAULT CAST([] AS STRING[]),
  switched_from STRING DEFAULT '',
  switched_to STRING DEFAULT '',
  switched_at TIMESTAMP,
  switches_back INT64,
  mismatches INT64,
  autoswitch BOOLEAN,
  guidance STRING DEFAULT '',
  asked_kind STRING DEFAULT '',
  asked_about STRING[] DEFAULT CAST([] AS STRING[]),
  rejected_query_id STRING DEFAULT '',
  rejected_at TIMESTAMP
);

// What a session is doing now, and what a chat is about; `name` is the session. Neither is recalled.
CREATE NODE TABLE WorkingMemory (
  id STRING PRIMARY KEY,
  name STRING DEFAULT '',
  task STRING DEFAULT '',
  context STRING[] DEFAULT CAST([] AS STRING[]),
  pending STRING[] DEFAULT CAST([] AS STRING[]),
  notes STRING DEFAULT '',
  updated_at TIMESTAMP
);

CREATE NODE TABLE ChatContext (id STRING PRIMARY KEY, name STRING DEFAULT '', context STRING DEFAULT '', updated_at TIMESTAMP);

// A text that is kept until `expires_at`. It is not recalled unless it is promoted to a memory.
CREATE NODE TABLE TransientItem (
  id STRING PRIMARY KEY,
  name STRING DEFAULT '',
  content STRING DEFAULT '',
  task_id STRING DEFAULT '',
  expires_at TIMESTAMP,
  created_at TIMESTAMP
);

// An agent's last checkpoint: what it works on, and the state of its work tree then (`uncommitted_changes` is null without one).
CREATE NODE TABLE Ledger (
  id STRING PRIMARY KEY,
  agent STRING DEFAULT '',
  current_task STRING DEFAULT '',
  goal STRING DEFAULT '',
  tech_stack STRING[] DEFAULT CAST([] AS STRING[]),
  branch STRING DEFAULT '',
  last_git_commit STRING DEFAULT '',
  uncommitted_changes BOOLEAN,
  files_modified STRING[] DEFAULT CAST([] AS STRING[]),
  has_more_files BOOLEAN,
  seq INT64,
  checkpoint_at TIMESTAMP
);

// A task that an agent hands over as it was at the event `seq`; `state` is open, accepted or withdrawn. Without `to_agent` any agent may
// accept it.
CREATE NODE TABLE Handoff (
  id STRING PRIMARY KEY,
  task_id STRING DEFAULT '',
  from_agent STRING DEFAULT '',
  to_agent STRING DEFAULT '',
  state STRING DEFAULT '',
  what_was_done STRING DEFAULT '',
  artifacts STRING[] DEFAULT CAST([] AS STRING[]),
  needs_testing STRING[] DEFAULT CAST([] AS STRING[]),
  known_issues STRING[] DEFAULT CAST([] AS STRING[]),
  branch STRING DEFAULT '',
  last_git_commit STRING DEFAULT '',
  uncommitted_changes BOOLEAN,
  files_modified STRING[] DEFAULT CAST([] AS STRING[]),
  has_more_files BOOLEAN,
  seq INT64,
  created_at TIMESTAMP,
  accepted_by STRING DEFAULT '',
  accepted_at TIMESTAMP,
  withdrawn_at TIMESTAMP,
  reason STRING DEFAULT ''
);

CREATE NODE TABLE Tag (id STRING PRIMARY KEY, name STRING DEFAULT '');

// `short_name` is the short form of a name: session.ts for auth/session.ts, smith for Dr. Anna Smith.
CREATE NODE TABLE Entity (id STRING PRIMARY KEY, name STRING DEFAULT '', kind STRING DEFAULT '', project_id STRING DEFAULT '', short_name STRING DEFAULT '');

// What commits name: the files that they changed, by each of their names; the commits themselves, by their hashes; who made them; the first
// release that contains them; and the issues that they close, by their numbers.
CREATE NODE TABLE File (id STRING PRIMARY KEY, name STRING DEFAULT '', project_id STRING DEFAULT '');
CREATE NODE TABLE Commit (id STRING PRIMARY KEY, name STRING DEFAULT '', project_id STRING DEFAULT '');
CREATE NODE TABLE Person (id STRING PRIMARY KEY, name STRING DEFAULT '');
CREATE NODE TABLE Release (id STRING PRIMARY KEY, name STRING DEFAULT '', project_id STRING DEFAULT '');
CREATE NODE TABLE Issue (id STRING PRIMARY KEY, name STRING DEFAULT '', project_id STRING DEFAULT '');

// The tests of runs, by their names, and the turns of sessions, by the ids of their events.
CREATE NODE TABLE Test (id STRING PRIMARY KEY, name STRING DEFAULT '', project_id STRING DEFAULT '');
CREATE NODE TABLE Turn (id STRING PRIMARY KEY, name STRING DEFAULT '', project_id STRING DEFAULT '');

CREATE NODE TABLE Recall (
  id STRING PRIMARY KEY,
  query_hmac STRING DEFAULT '',
  retrieved_at TIMESTAMP,
  settings_version STRING DEFAULT '',
  agent_name STRING DEFAULT '',
  project_id STRING DEFAULT '',
  session_id STRING DEFAULT '',
  task_id STRING DEFAULT '',
  build_id STRING DEFAULT '',
  total_tokens INT64,
  outcome STRING DEFAULT '',
  outcome_at TIMESTAMP
);

// When a lifecycle run was last completed, and the number of builds consolidated since. `seq` is that of its event.
// For an interrupted sleep: when it began, and which of its phases are left; for one that failed: when, in which phase, and why.
CREATE NODE TABLE LifecycleRun (
  id STRING PRIMARY KEY,
  name STRING DEFAULT '',
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
  phases_left STRING[] DEFAULT CAST([] AS STRING[]),
  failed_at TIMESTAMP,
  failed_phase STRING DEFAULT '',
  error STRING DEFAULT ''
);

// A procedure's success in use, under its memory's id: builds that followed it, recalls after which it was used.
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
  name STRING DEFAULT '',
  kind STRING DEFAULT '',
  locator STRING DEFAULT '',
  project_id STRING DEFAULT '',
  cursor STRING DEFAULT '',
  records INT64,
  builds INT64,
  extracted INT64,
  merged INT64,
  skipped INT64,
  read_at TIMESTAMP
);

// A question about a source that rules cannot answer: `state` is open, answered or skipped; `attempts` counts answers that were stored in part.
CREATE NODE TABLE WorkOrder (
  id STRING PRIMARY KEY,
  kind STRING DEFAULT '',
  question STRING DEFAULT '',
  excerpt STRING DEFAULT '',
  project_id STRING DEFAULT '',
  task_id STRING DEFAULT '',
  build_id STRING DEFAULT '',
  subject_ids STRING[] DEFAULT CAST([] AS STRING[]),
  source_event_ids STRING[] DEFAULT CAST([] AS STRING[]),
  trust_class STRING DEFAULT '',
  value DOUBLE,
  source_at TIMESTAMP,
  requested_at TIMESTAMP,
  state STRING DEFAULT '',
  attempts INT64,
  closed_at TIMESTAMP,
  answered_by STRING DEFAULT '',
  answer_trust_class STRING DEFAULT '',
  new_memory_ids STRING[] DEFAULT CAST([] AS STRING[]),
  merged_memory_ids STRING[] DEFAULT CAST([] AS STRING[]),
  verdict STRING DEFAULT '',
  skip_reason STRING DEFAULT ''
);
