-- A lease is known by its token and by how often it was renewed. lease_expires is from now on the
-- time before which a task that nobody has is not taken.
ALTER TABLE batches ADD COLUMN lease_beat BIGINT NOT NULL DEFAULT 0;

-- What was given back keeps no token.
UPDATE batches SET lease_token = '' WHERE lease_expires = 0;

-- Which of the blobs of an object is the one: a put never overwrites another. Null before.
ALTER TABLE objects ADD COLUMN version TEXT;

-- SHA-256 of the dataset's public and evaluation keys. Null before.
ALTER TABLE uploads ADD COLUMN public_key TEXT;

ALTER TABLE uploads ADD COLUMN evaluation_keys TEXT;
