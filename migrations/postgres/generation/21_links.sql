-- Links by which other accounts see a job's result, by the SHA-256 digest of their secret. last_opened_at
-- is 0 until the first time. They go with their job, and with the account that made them.
CREATE TABLE links (
    id TEXT PRIMARY KEY,
    job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    account TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_opened_at BIGINT NOT NULL
);

CREATE INDEX links_job ON links (job, created_at, id);

CREATE INDEX links_account ON links (account);
