-- What was chosen in a conversation: which agent answers there, and how. Without a row: as it is set.
CREATE TABLE choices (
    account      TEXT NOT NULL,
    conversation TEXT NOT NULL,
    agent        TEXT NOT NULL,
    model        TEXT NOT NULL,
    mode         TEXT NOT NULL,
    cwd          TEXT NOT NULL,
    PRIMARY KEY (account, conversation)
) STRICT, WITHOUT ROWID;
