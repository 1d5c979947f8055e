// The graph's position in the journal: one row, replaced in the transaction that writes a commit's rows.

CREATE NODE TABLE Projection (id STRING PRIMARY KEY, seq INT64, state STRING DEFAULT '');
