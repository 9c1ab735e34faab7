-- A service's token signing keys, sealed.
CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    sealed BYTEA NOT NULL,
    made_at BIGINT NOT NULL
);
