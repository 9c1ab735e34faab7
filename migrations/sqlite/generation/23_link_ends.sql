-- From when on a link opens nothing, in milliseconds since 1970; 0: it is good until it is revoked.
ALTER TABLE links ADD COLUMN expires_at BIGINT NOT NULL DEFAULT 0;
