-- Who signs in. Addresses are in lower case; passwords are Argon2id hashes.
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Refresh tokens by SHA-256 digest. A family is all that came from one sign-in; a used token
-- stays until it expires, so that its second use is noticed.
CREATE TABLE refresh_tokens (
    digest TEXT PRIMARY KEY,
    family TEXT NOT NULL,
    account TEXT NOT NULL REFERENCES accounts (id),
    used BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX refresh_tokens_family ON refresh_tokens (family);

CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);

-- Keys of programs, by SHA-256 digest. last_used_at is 0 until the first use.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);

CREATE INDEX api_keys_account ON api_keys (account, created_at, id);
