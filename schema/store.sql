-- The store's tables, and the statements on them. Every statement has a name; those named create_… make the tables of a new database.
-- Written for SQLite and PostgreSQL: `?` is a value; memgraph/journal/sql.py states what differs.

-- name: create_tenant One store. A file holds one; a server many.
CREATE TABLE tenant (
  tenant INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  store_id TEXT NOT NULL,
  copy_id TEXT
);
