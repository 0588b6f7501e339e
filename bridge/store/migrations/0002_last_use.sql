-- When sessions and bindings were last used, so that those that nobody needs any more are forgotten.
ALTER TABLE sessions ADD COLUMN used_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE bindings ADD COLUMN used_ms INTEGER NOT NULL DEFAULT 0;

-- The first schema did not tell. A chat's messages do, for as long as they are remembered ...
UPDATE bindings SET used_ms = recent.at_ms
FROM (SELECT session_id AS used, max(received_ms) AS at_ms FROM messages WHERE session_id != '' GROUP BY session_id)
    AS recent
WHERE recent.used = bindings.session_id;

UPDATE sessions SET used_ms = max(created_ms, recent.at_ms)
FROM (SELECT session_id AS used, max(received_ms) AS at_ms FROM messages WHERE session_id != '' GROUP BY session_id)
    AS recent
WHERE recent.used = sessions.session_id;

-- ... and a chat without any was not used for that long. Other clients' sessions count from now on.
UPDATE sessions SET used_ms = created_ms
WHERE used_ms = 0 AND session_id IN (SELECT session_id FROM bindings);

UPDATE sessions SET used_ms = max(created_ms, CAST(strftime('%s', 'now') AS INTEGER) * 1000) WHERE used_ms = 0;

-- By creation, since an index by last use would be written with each turn.
CREATE INDEX sessions_created ON sessions (created_ms);
CREATE INDEX bindings_used ON bindings (used_ms);
