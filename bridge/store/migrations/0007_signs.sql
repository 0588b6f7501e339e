-- What stands in a chat only while a turn runs there, and has to be taken away again: also after a crash.
CREATE TABLE signs (
    account    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    message_id TEXT NOT NULL,
    recipient  TEXT NOT NULL,
    reply_to   TEXT NOT NULL,
    handle     TEXT NOT NULL,
    PRIMARY KEY (account, kind, message_id)
) STRICT, WITHOUT ROWID;
