// How far into the journal this graph is: one row, replaced in the transaction that writes a commit's rows.

CREATE NODE TABLE Projection (
  id STRING PRIMARY KEY,
  store_id STRING,
  seq INT64,
  signature STRING,
  timestamp STRING,
  segment STRING,
  offset INT64,
  digest STRING,
  schema_version STRING,
  embedding_model STRING,
  embedding_dimension INT64,
  vector_rows STRING
);
