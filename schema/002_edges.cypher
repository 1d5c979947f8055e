// Edges. The first group has its own events; the second is derived from a memory's fields; RECALLED from retrievals.
//
// A rule that avoids a crash of the engine (Kùzu 0.11.3): if all edges of a table that were added since the last checkpoint are to be
// deleted, a checkpoint comes first (memgraph/graph/rows/fresh_edges.py). Otherwise the next one leaves a table that crashes its reader.

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

CREATE REL TABLE RECALLED (FROM Recall TO Memory, rank INT64, score DOUBLE, tokens INT64, used BOOLEAN);
