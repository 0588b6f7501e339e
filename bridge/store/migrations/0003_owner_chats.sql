-- Where each account's owner wrote last in a direct chat: what nobody asked for is told there.
CREATE TABLE owner_chats (
    account      TEXT PRIMARY KEY,
    owner        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    recipient    TEXT NOT NULL,
    reply_to     TEXT NOT NULL,
    language     TEXT NOT NULL,
    wrote_ms     INTEGER NOT NULL
) STRICT;

-- What the owner was told last of each topic. Without a row: that all is well.
CREATE TABLE notices (
    topic TEXT PRIMARY KEY,
    state TEXT NOT NULL
) STRICT;
