-- Tables of every service.

-- Keys that sign the service's tokens, sealed. Times are milliseconds since 1970, here and in all other
-- tables.
CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    sealed BLOB NOT NULL,
    made_at BIGINT NOT NULL
);

-- One row. The service writes it to find out whether the database accepts writes.
CREATE TABLE readiness (checks BIGINT NOT NULL);

INSERT INTO readiness (checks) VALUES (0);

-- Accounts whose holdings are limited. A transaction locks the owner's row while it counts what the owner has
-- and adds to it, so that two simultaneous calls cannot both take the last place.
CREATE TABLE owners (owner TEXT PRIMARY KEY);

-- The service that the database belongs to: one row.
CREATE TABLE service (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL
);
