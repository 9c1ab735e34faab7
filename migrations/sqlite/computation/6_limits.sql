-- What an upload takes when it is complete, in bytes: its owner's share of the store. Null before;
-- the service fills it in when it starts.
ALTER TABLE uploads ADD COLUMN bytes BIGINT;

CREATE INDEX uploads_owner ON uploads (owner);
