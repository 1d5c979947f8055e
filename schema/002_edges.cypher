// Edges. The first group has its own events; the second follows from the fields of a memory or run (NEXT as a row, the others only in the graph, with
// the nodes that they lead to: memgraph/graph/implied.py); RECALLED from retrievals; the last two
// from the events of tasks, of ledgers and of handoffs.

CREATE REL TABLE DERIVED_FROM (FROM Memory TO Memory, score DOUBLE, reason STRING DEFAULT '', created_at TIMESTAMP);
CREATE REL TABLE SUPPORTS (FROM Memory TO Memory, score DOUBLE, reason STRING DEFAULT '', created_at TIMESTAMP);
CREATE REL TABLE SUPERSEDES (FROM Memory TO Memory, score DOUBLE, reason STRING DEFAULT '', created_at TIMESTAMP);
CREATE REL TABLE CONTRADICTS (FROM Memory TO Memory, score DOUBLE, reason STRING DEFAULT '', created_at TIMESTAMP);
CREATE REL TABLE RELATED_TO (FROM Memory TO Memory, score DOUBLE, reason STRING DEFAULT '', created_at TIMESTAMP);
CREATE REL TABLE ELABORATES (FROM Memory TO Memory, score DOUBLE, reason STRING DEFAULT '', created_at TIMESTAMP);
CREATE REL TABLE EXAMPLE_OF (FROM Memory TO Memory, score DOUBLE, reason STRING DEFAULT '', created_at TIMESTAMP);

CREATE REL TABLE NEXT (FROM Memory TO Memory);
CREATE REL TABLE TAGGED (FROM Memory TO Tag);
CREATE REL TABLE MENTIONS (FROM Memory TO Entity, about BOOLEAN);
CREATE REL TABLE INVOLVES (FROM Memory TO Agent);
CREATE REL TABLE IN_PROJECT (FROM Memory TO Project);
CREATE REL TABLE FROM_BUILD (FROM Memory TO Build);
CREATE REL TABLE IN_SESSION (FROM Memory TO Session);
CREATE REL TABLE IN_TASK (FROM Memory TO Task);
// From the memory or the record of a commit (`source` is git or commit). `kind` is A (added), M (modified), D (deleted) or R (renamed), with
// the numbers of lines, null where they were not counted; a rename also joins the file's earlier name to its later one, as the memory `memory_id` says. AUTHORED_BY
// leaves out bots, and merges.
CREATE REL TABLE CHANGED (FROM Memory TO File, kind STRING DEFAULT '', added INT64, removed INT64);
CREATE REL TABLE RENAMED (FROM File TO File, memory_id STRING DEFAULT '', seq INT64);
CREATE REL TABLE OF_COMMIT (FROM Memory TO Commit);
CREATE REL TABLE AUTHORED_BY (FROM Memory TO Person);
CREATE REL TABLE IN_RELEASE (FROM Memory TO Release);
CREATE REL TABLE CLOSES (FROM Memory TO Issue);
CREATE REL TABLE REVERTS (FROM Memory TO Commit);
CREATE REL TABLE MENDS (FROM Memory TO Commit);
// From the record of a turn, or from what was stated in it.
CREATE REL TABLE OF_TURN (FROM Memory TO Turn);
// From a run: its tests (one that failed and then passed has both edges), its build, and the commit that it ran on, if its hash is whole.
CREATE REL TABLE PASSED (FROM Run TO Test);
CREATE REL TABLE FAILED (FROM Run TO Test);
CREATE REL TABLE OF_BUILD (FROM Run TO Build);
CREATE REL TABLE RAN_ON (FROM Run TO Commit);

CREATE REL TABLE RECALLED (FROM Recall TO Memory, rank INT64, score DOUBLE, tokens INT64, used BOOLEAN);

CREATE REL TABLE LINKED (FROM Task TO Task, created_at TIMESTAMP);
CREATE REL TABLE HAS_ITEM (FROM Task TO TaskItem);

CREATE REL TABLE KEPT_BY (FROM Ledger TO Agent);
CREATE REL TABLE WORKS_ON (FROM Ledger TO Task);
CREATE REL TABLE COMPLETED_BY (FROM Task TO Ledger, created_at TIMESTAMP);
CREATE REL TABLE LEARNED_BY (FROM Memory TO Ledger, created_at TIMESTAMP);
CREATE REL TABLE HANDS_OVER (FROM Handoff TO Task);
CREATE REL TABLE HANDED_BY (FROM Handoff TO Agent);
CREATE REL TABLE HANDED_TO (FROM Handoff TO Agent);
CREATE REL TABLE ACCEPTED_BY (FROM Handoff TO Agent);
CREATE REL TABLE CARRIED_BY (FROM Memory TO Handoff, rank INT64);
