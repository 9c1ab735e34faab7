-- A service's token signing keys, sealed.
CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    sealed BLOB NOT NULL,
    made_at BIGINT NOT NULL
);
