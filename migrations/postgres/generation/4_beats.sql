-- A lease is known by its token and by how often it was renewed. lease_expires is from now on the
-- time before which a task that nobody has is not taken.
ALTER TABLE jobs ADD COLUMN lease_beat BIGINT NOT NULL DEFAULT 0;

-- What was given back keeps no token.
UPDATE jobs SET lease_token = '' WHERE lease_expires = 0;
