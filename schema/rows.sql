-- Today's rows: what the fold makes of the events. A kind is the place of a table in the graph's DDL (memgraph/graph/schema.py).
-- `body` is the row as canonical JSON, `code` authenticates it with its kind, key and number. `seq` is the last event of the
-- commit that wrote a row, and since which event a follower must read its text again (a node), or has its link (an edge).

-- name: create_node Memories, and what they have edges to.
CREATE TABLE node (
  id INTEGER PRIMARY KEY,
  tenant INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  since INTEGER NOT NULL,
  code BIGINT NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (tenant, kind, key)
);

-- name: create_node_seq
CREATE INDEX node_seq ON node (tenant, seq);

-- name: create_edge
CREATE TABLE edge (
  tenant INTEGER NOT NULL,
  source INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  target INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  since INTEGER NOT NULL,
  code BIGINT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (tenant, source, kind, target)
) WITHOUT ROWID;

-- name: create_edge_target
CREATE INDEX edge_target ON edge (tenant, target, kind);

-- name: create_edge_seq
CREATE INDEX edge_seq ON edge (tenant, seq);

-- name: create_gone What was removed, for those who follow; forgotten by a rebuild. `target` is empty for a node.
CREATE TABLE gone (
  tenant INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  key TEXT NOT NULL,
  target TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (tenant, kind, key, target)
);

-- name: create_state The event that the rows have reached.
CREATE TABLE state (
  tenant INTEGER PRIMARY KEY,
  body BLOB NOT NULL,
  code TEXT NOT NULL
);

-- name: state
SELECT body, code FROM state WHERE tenant = ?;

-- name: put_state
INSERT INTO state (tenant, body, code) VALUES (?, ?, ?)
ON CONFLICT (tenant) DO UPDATE SET body = excluded.body, code = excluded.code;

-- name: node
SELECT seq, body, code FROM node WHERE tenant = ? AND kind = ? AND key = ?;

-- name: node_id
SELECT id FROM node WHERE tenant = ? AND kind = ? AND key = ?;

-- name: last_node
SELECT coalesce(max(id), 0) FROM node;

-- name: nodes All of a kind.
SELECT key, seq, body, code FROM node WHERE tenant = ? AND kind = ? ORDER BY id;

-- name: edge
SELECT e.seq, e.body, e.code FROM node s, node t, edge e
WHERE s.tenant = ? AND s.kind = ? AND s.key = ? AND t.tenant = s.tenant AND t.kind = ? AND t.key = ?
  AND e.tenant = s.tenant AND e.source = s.id AND e.kind = ? AND e.target = t.id;

-- name: edges All of a kind.
SELECT s.key, t.key, e.seq, e.body, e.code FROM edge e JOIN node s ON s.tenant = e.tenant AND s.id = e.source JOIN node t ON t.tenant = e.tenant AND t.id = e.target
WHERE e.tenant = ? AND e.kind = ?;

-- name: edges_from All edges of a node.
SELECT e.kind, s.key, t.key, e.seq, e.body, e.code
FROM node s JOIN edge e ON e.tenant = s.tenant AND e.source = s.id JOIN node t ON t.tenant = e.tenant AND t.id = e.target
WHERE s.tenant = ? AND s.kind = ? AND s.key = ?;

-- name: edges_to All edges to a node.
SELECT e.kind, s.key, t.key, e.seq, e.body, e.code
FROM node t JOIN edge e ON e.tenant = t.tenant AND e.target = t.id JOIN node s ON s.tenant = e.tenant AND s.id = e.source
WHERE t.tenant = ? AND t.kind = ? AND t.key = ?;

-- name: sources Nodes with an edge of a kind to a node.
SELECT s.key, t.key, e.seq, e.body, e.code
FROM node t JOIN edge e ON e.tenant = t.tenant AND e.target = t.id AND e.kind = ?
JOIN node s ON s.tenant = e.tenant AND s.id = e.source
WHERE t.tenant = ? AND t.kind = ? AND t.key = ? LIMIT ?;

-- name: targets Nodes to which a node has edges of a kind.
SELECT t.key, t.seq, t.body, t.code
FROM node s JOIN edge e ON e.tenant = s.tenant AND e.source = s.id AND e.kind = ?
JOIN node t ON t.tenant = e.tenant AND t.id = e.target
WHERE s.tenant = ? AND s.kind = ? AND s.key = ?;

-- name: nodes_after Nodes that were written after an event, those made first first.
SELECT kind, key, seq, body, code, since FROM node WHERE tenant = ? AND seq > ? ORDER BY id;

-- name: edges_after
SELECT e.kind, s.key, t.key, e.seq, e.body, e.code, e.since
FROM edge e JOIN node s ON s.tenant = e.tenant AND s.id = e.source JOIN node t ON t.tenant = e.tenant AND t.id = e.target
WHERE e.tenant = ? AND e.seq > ?;

-- name: gone_after
SELECT kind, key, target FROM gone WHERE tenant = ? AND seq > ?;

-- name: tally_nodes Their number, and the sums of their kinds and ids.
SELECT count(*), coalesce(sum(kind), 0), coalesce(sum(id), 0) FROM node WHERE tenant = ?;

-- name: tally_edges
SELECT count(*), coalesce(sum(kind), 0), coalesce(sum(source), 0), coalesce(sum(target), 0) FROM edge WHERE tenant = ?;

-- name: insert_node
INSERT INTO node (id, tenant, kind, key, seq, since, code, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: insert_edge
INSERT INTO edge (tenant, source, kind, target, seq, since, code, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_node
UPDATE node SET seq = ?, since = ?, code = ?, body = ? WHERE tenant = ? AND kind = ? AND key = ?;

-- name: update_node_use Its text stays.
UPDATE node SET seq = ?, code = ?, body = ? WHERE tenant = ? AND kind = ? AND key = ?;

-- name: update_edge
UPDATE edge SET seq = ?, code = ?, body = ? WHERE tenant = ? AND source = ? AND kind = ? AND target = ?;

-- name: delete_node
DELETE FROM node WHERE tenant = ? AND kind = ? AND key = ?;

-- name: delete_edge
DELETE FROM edge WHERE tenant = ? AND source = ? AND kind = ? AND target = ?;

-- name: put_gone
INSERT INTO gone (tenant, kind, key, target, seq) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, kind, key, target) DO UPDATE SET seq = excluded.seq;

-- name: clear_edges
DELETE FROM edge WHERE tenant = ?;

-- name: clear_nodes
DELETE FROM node WHERE tenant = ?;

-- name: clear_gone
DELETE FROM gone WHERE tenant = ?;

-- name: count_nodes_after
SELECT count(*) FROM node WHERE tenant = ? AND seq > ?;

-- name: count_edges_after
SELECT count(*) FROM edge WHERE tenant = ? AND seq > ?;

-- name: count_gone_after
SELECT count(*) FROM gone WHERE tenant = ? AND seq > ?;

-- name: edge_at Any edge of a node.
SELECT 1 FROM edge WHERE tenant = ? AND source = ?
UNION ALL SELECT 1 FROM edge WHERE tenant = ? AND target = ? LIMIT 1;
