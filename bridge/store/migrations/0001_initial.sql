-- The first schema. Instants are milliseconds since 1970, 0 for never. Texts from platforms come in as bound
-- parameters only. Partial indexes keep listing and counting of what is open apart from the millions that are over.

CREATE TABLE accounts (
    account     TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL DEFAULT '',
    checkpoint  TEXT NOT NULL DEFAULT '',
    bot_id      TEXT NOT NULL DEFAULT '',
    name        TEXT NOT NULL DEFAULT ''
) STRICT;

-- A message stays as a tombstone after it is done, until it is pruned. Order of ids is order of claims.
CREATE TABLE messages (
    id           INTEGER PRIMARY KEY,
    account      TEXT NOT NULL,
    message_id   TEXT NOT NULL,
    redelivery   TEXT NOT NULL,
    body_digest  TEXT NOT NULL,
    conversation TEXT NOT NULL,
    state        TEXT NOT NULL,
    reason       TEXT NOT NULL,
    payload      TEXT NOT NULL,
    session_id   TEXT NOT NULL DEFAULT '',
    received_ms  INTEGER NOT NULL,
    ended_ms     INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX messages_by_id ON messages (account, message_id);
CREATE UNIQUE INDEX messages_by_redelivery ON messages (account, redelivery) WHERE redelivery != '';
CREATE INDEX messages_open ON messages (account) WHERE state IN ('claimed', 'running');
CREATE INDEX messages_ended ON messages (ended_ms) WHERE ended_ms > 0;

-- The parts of one reply have neighbouring ids: part 0 of a reply of n parts has id x, the last one x + n - 1.
-- AUTOINCREMENT, since readers remember ids: none is ever used again.
CREATE TABLE parts (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    account          TEXT NOT NULL,
    reply_id         TEXT NOT NULL,
    message          INTEGER NOT NULL, -- messages.id, 0 when unprompted
    conversation     TEXT NOT NULL,
    recipient        TEXT NOT NULL,
    reply_to         TEXT NOT NULL,
    part             INTEGER NOT NULL,
    parts            INTEGER NOT NULL,
    kind             TEXT NOT NULL,
    body             TEXT NOT NULL,
    client_id        TEXT NOT NULL,
    state            TEXT NOT NULL DEFAULT 'pending',
    transient        INTEGER NOT NULL,
    carries          INTEGER NOT NULL, -- 1: held texts ride in the first part of this reply
    own_text         TEXT NOT NULL,    -- of the reply, without them; in its first part
    attempts         INTEGER NOT NULL DEFAULT 0,
    created_ms       INTEGER NOT NULL,
    first_sent_ms    INTEGER NOT NULL DEFAULT 0,
    sending_since_ms INTEGER NOT NULL DEFAULT 0,
    due_ms           INTEGER NOT NULL DEFAULT 0,
    marked           INTEGER NOT NULL DEFAULT 0,
    dead             INTEGER NOT NULL DEFAULT 0, -- 1: a dead letter
    platform_id      TEXT NOT NULL DEFAULT '',
    reason           TEXT NOT NULL DEFAULT '',
    ended_ms         INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX parts_open ON parts (account) WHERE state IN ('pending', 'sending');
CREATE INDEX parts_of_open_reply ON parts (reply_id) WHERE state IN ('pending', 'sending');
CREATE INDEX parts_dead ON parts (account) WHERE dead = 1;
CREATE INDEX parts_ended ON parts (ended_ms) WHERE ended_ms > 0;

-- Texts that never arrived. AUTOINCREMENT, since a reply that is being composed remembers ids.
CREATE TABLE held (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    account      TEXT NOT NULL,
    conversation TEXT NOT NULL,
    text         TEXT NOT NULL,
    created_ms   INTEGER NOT NULL,
    carrier      INTEGER NOT NULL DEFAULT 0, -- first part of the reply that carries it, 0 while it waits
    origin       INTEGER NOT NULL,           -- first part of the reply that it is from
    origin_parts INTEGER NOT NULL
) STRICT;

CREATE INDEX held_waiting ON held (account, conversation) WHERE carrier = 0;
CREATE INDEX held_carried ON held (carrier) WHERE carrier > 0;

CREATE TABLE bindings (
    account      TEXT NOT NULL,
    conversation TEXT NOT NULL,
    session_id   TEXT NOT NULL,
    authority    TEXT NOT NULL,
    PRIMARY KEY (account, conversation)
) STRICT, WITHOUT ROWID;

CREATE INDEX bindings_by_session ON bindings (session_id);

CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY,
    cwd        TEXT NOT NULL,
    settings   TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE history (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    entry      TEXT NOT NULL
) STRICT;

CREATE INDEX history_by_session ON history (session_id);

-- Turns that began and have not ended.
CREATE TABLE turns (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    turn_id    TEXT NOT NULL,
    request_id TEXT NOT NULL,
    began_ms   INTEGER NOT NULL
) STRICT;

CREATE INDEX turns_by_session ON turns (session_id);

-- What an attaching client is told of the last turn that ended.
CREATE TABLE last_events (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    frame      BLOB NOT NULL
) STRICT;

CREATE INDEX last_events_by_session ON last_events (session_id);
