-- One key set a dataset. The secret key is sealed; it is null once destroyed.
CREATE TABLE key_sets (
    dataset TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    terms TEXT NOT NULL,
    folder TEXT NOT NULL,
    secret BLOB,
    public_key TEXT NOT NULL,
    evaluation_keys TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Shares of a dataset's budget, in the order in which jobs claimed them.
CREATE TABLE runs (
    dataset TEXT NOT NULL REFERENCES key_sets (dataset),
    number BIGINT NOT NULL,
    job TEXT NOT NULL,
    claimed_at BIGINT NOT NULL,
    PRIMARY KEY (dataset, number),
    UNIQUE (dataset, job)
);

-- The ledger: one row a release, written before its integers leave.
CREATE TABLE debits (
    dataset TEXT NOT NULL REFERENCES key_sets (dataset),
    job TEXT NOT NULL,
    number BIGINT NOT NULL,
    entry TEXT NOT NULL,
    debited_at BIGINT NOT NULL,
    PRIMARY KEY (dataset, job, number)
);

-- Everything that was asked of a dataset's keys.
CREATE TABLE audit (
    dataset TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    granted BIGINT NOT NULL,
    PRIMARY KEY (dataset, number)
);
