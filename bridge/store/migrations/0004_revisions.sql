-- Messages that wait can be edited: which version of one is stored, so that none undoes a later one.
ALTER TABLE messages ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
