-- What turns used, by the hour: tokens, and money in millionths of a US dollar.
-- uncounted and unpriced are the turns of which nobody told tokens, or a cost.
CREATE TABLE usage (
    account       TEXT NOT NULL,
    hour_ms       INTEGER NOT NULL,
    sender        TEXT NOT NULL,
    agent         TEXT NOT NULL,
    turns         INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    cost_micros   INTEGER NOT NULL,
    uncounted     INTEGER NOT NULL,
    unpriced      INTEGER NOT NULL,
    PRIMARY KEY (account, hour_ms, sender, agent)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_hour ON usage (hour_ms);
