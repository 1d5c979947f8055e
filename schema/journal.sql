-- The journal: what is true. See memgraph/journal/journal.py.

-- name: create_event One event. `head` is canonical JSON, `payload` too; a purged event has neither payload nor salt.
CREATE TABLE event (
  tenant INTEGER NOT NULL,
  seq BIGINT NOT NULL,
  type TEXT NOT NULL,
  head BLOB NOT NULL,
  payload BLOB,
  salt BLOB,
  signature BLOB NOT NULL,
  PRIMARY KEY (tenant, seq)
);

-- name: create_event_type
CREATE INDEX event_type ON event (tenant, type, seq);

-- name: create_head The end of the journal: what a writer continues, and what `body` says of the events before it, with a code of the signing key.
CREATE TABLE head (
  tenant INTEGER PRIMARY KEY,
  seq BIGINT NOT NULL,
  signature BLOB NOT NULL,
  body BLOB NOT NULL,
  code TEXT NOT NULL
);

-- name: create_archive Events that a compaction took out of `event`: compressed lines of JSON, by commits.
CREATE TABLE archive (
  tenant INTEGER NOT NULL,
  first BIGINT NOT NULL,
  last BIGINT NOT NULL,
  types TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (tenant, first)
);

-- name: create_baseline The rows at an event, compressed, and their signed header: a rebuild begins there.
CREATE TABLE baseline (
  tenant INTEGER PRIMARY KEY,
  header BLOB NOT NULL,
  body BLOB NOT NULL
);

-- name: create_vector One vector of a model, little-endian float32.
CREATE TABLE vector (
  tenant INTEGER NOT NULL,
  model TEXT NOT NULL,
  place BIGINT NOT NULL,
  value BLOB NOT NULL,
  PRIMARY KEY (tenant, model, place)
);

-- name: create_made_vector A vector of a model to which the store is about to change: the memory and the HMAC of the text that it was made of.
CREATE TABLE made_vector (
  tenant INTEGER NOT NULL,
  model TEXT NOT NULL,
  memory TEXT NOT NULL,
  text TEXT NOT NULL,
  place BIGINT NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (tenant, model, memory)
);

-- name: tenant_named
SELECT tenant, store_id, copy_id FROM tenant WHERE name = ?;

-- name: add_tenant
INSERT INTO tenant (tenant, name, store_id, copy_id) SELECT COALESCE(MAX(tenant), 0) + 1, ?, ?, ? FROM tenant;

-- name: add_event
INSERT INTO event (tenant, seq, type, head, payload, salt, signature) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: events_after
SELECT seq, type, head, payload, salt, signature FROM event WHERE tenant = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?;

-- name: events_of_type
SELECT seq, type, head, payload, salt, signature FROM event WHERE tenant = ? AND type = ? AND seq <= ? ORDER BY seq;

-- name: signature_of
SELECT signature FROM event WHERE tenant = ? AND seq = ?;

-- name: last_event The one that reading ends with: SQLite sorts what is no number after all numbers.
SELECT seq, signature FROM event WHERE tenant = ? AND seq <= 4611686018427387904 ORDER BY seq DESC LIMIT 1;

-- name: purge_event
UPDATE event SET payload = NULL, salt = NULL WHERE tenant = ? AND seq = ?;

-- name: sign_event
UPDATE event SET head = ?, signature = ? WHERE tenant = ? AND seq = ?;

-- name: remove_events
DELETE FROM event WHERE tenant = ?;

-- name: remove_archives
DELETE FROM archive WHERE tenant = ?;

-- name: remove_events_until
DELETE FROM event WHERE tenant = ? AND seq <= ?;

-- name: remove_events_after
DELETE FROM event WHERE tenant = ? AND seq > ?;

-- name: head
SELECT seq, signature, body, code FROM head WHERE tenant = ?;

-- name: head_of_chain
SELECT seq, signature FROM head WHERE tenant = ?;

-- name: put_head
INSERT INTO head (tenant, seq, signature, body, code) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, signature = excluded.signature, body = excluded.body, code = excluded.code;

-- name: archived_until
SELECT MAX(last) FROM archive WHERE tenant = ?;

-- name: archive_after
SELECT first, last, types, body FROM archive WHERE tenant = ? AND last > ? ORDER BY first LIMIT 1;

-- name: archives
SELECT first, last, types FROM archive WHERE tenant = ? ORDER BY first;

-- name: put_archive
INSERT INTO archive (tenant, first, last, types, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, first) DO UPDATE SET last = excluded.last, types = excluded.types, body = excluded.body;

-- name: baseline
SELECT header, body FROM baseline WHERE tenant = ?;

-- name: baseline_header
SELECT header FROM baseline WHERE tenant = ?;

-- name: put_baseline
INSERT INTO baseline (tenant, header, body) VALUES (?, ?, ?)
ON CONFLICT (tenant) DO UPDATE SET header = excluded.header, body = excluded.body;

-- name: sign_baseline
UPDATE baseline SET header = ? WHERE tenant = ?;

-- name: remove_baseline
DELETE FROM baseline WHERE tenant = ?;

-- name: put_vector
INSERT INTO vector (tenant, model, place, value) VALUES (?, ?, ?, ?)
ON CONFLICT (tenant, model, place) DO UPDATE SET value = excluded.value;

-- name: fill_vector
INSERT INTO vector (tenant, model, place, value) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, model, place) DO NOTHING;

-- name: vectors_from
SELECT place, value FROM vector WHERE tenant = ? AND model = ? AND place >= ? AND place < ? ORDER BY place;

-- name: vector
SELECT value FROM vector WHERE tenant = ? AND model = ? AND place = ?;

-- name: remove_vector
DELETE FROM vector WHERE tenant = ? AND model = ? AND place = ?;

-- name: remove_vectors_from
DELETE FROM vector WHERE tenant = ? AND model = ? AND place >= ?;

-- name: made_vectors
SELECT memory, text, place, sha256 FROM made_vector WHERE tenant = ? AND model = ?;

-- name: put_made_vector
INSERT INTO made_vector (tenant, model, memory, text, place, sha256) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, model, memory) DO UPDATE SET text = excluded.text, place = excluded.place, sha256 = excluded.sha256;

-- name: models
SELECT DISTINCT model FROM vector WHERE tenant = ?;

-- name: remove_made_vectors
DELETE FROM made_vector WHERE tenant = ? AND model = ?;

-- name: sizes
SELECT
  (SELECT SUM(LENGTH(head) + COALESCE(LENGTH(payload), 0) + 48) FROM event WHERE tenant = ?),
  (SELECT SUM(LENGTH(body)) FROM archive WHERE tenant = ?),
  (SELECT SUM(LENGTH(body)) FROM baseline WHERE tenant = ?);
