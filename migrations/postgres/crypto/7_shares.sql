-- What a service signs with as one of several that share keys, sealed: one for all of its datasets.
CREATE TABLE service_keys (
    service TEXT PRIMARY KEY,
    sealed BYTEA NOT NULL
);
-- Keys that several services share, of which this one's share is the secret of the key set.
CREATE TABLE shared_keys (
    dataset TEXT PRIMARY KEY,
    -- What named the attempt to make the key.
    attempt TEXT NOT NULL,
    -- What all services said of the key, as JSON. Absent where this service has not seen that.
    confirmation TEXT
);
-- Requests that this service would release, and will release no other in the place of, until they are debited.
CREATE TABLE promises (
    dataset TEXT NOT NULL,
    job TEXT NOT NULL,
    request TEXT NOT NULL,
    PRIMARY KEY (dataset, job)
);
-- Shares that other services are to be told to destroy.
CREATE TABLE orphaned_shares (
    dataset TEXT NOT NULL,
    service TEXT NOT NULL,
    PRIMARY KEY (dataset, service)
);
