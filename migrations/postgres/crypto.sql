-- Tables of the crypto service and of the services that share keys with it.

-- ## Key sets

-- Key sets, one per dataset. secret, the secret key or this service's share of it, and receipt_key, which
-- signs the dataset's receipts, are sealed; secret is null once the keys are destroyed. public_key and
-- evaluation_keys are SHA-256 digests of the blobs below folder. counted_as is the number of key sets that this one
-- counts as in its owner's limits.
CREATE TABLE key_sets (
    dataset TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    terms TEXT NOT NULL,
    folder TEXT NOT NULL,
    secret BYTEA,
    receipt_key BYTEA NOT NULL,
    public_key TEXT NOT NULL,
    evaluation_keys TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    counted_as BIGINT NOT NULL
);

CREATE INDEX key_sets_owner ON key_sets (owner, created_at);

-- ## The ledger

-- A dataset's history: acts as JSON, chained by hashes. A row is stored before the service acts on it. Runs,
-- debits and whether the dataset is frozen follow from the acts. requests and answers are JSON lists, one
-- entry per release of an act of kind released; other acts have neither. With a request, a holder who has the table and the
-- noise key can compute what should have been released; the act's debits bind the requests to it.
CREATE TABLE chain (
    dataset TEXT NOT NULL REFERENCES key_sets (dataset),
    height BIGINT NOT NULL,
    kind TEXT NOT NULL,
    job TEXT,
    act TEXT NOT NULL,
    requests TEXT,
    answers TEXT,
    head TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (dataset, height)
);

CREATE INDEX chain_kind ON chain (dataset, kind, height);

CREATE INDEX chain_job ON chain (dataset, job, height);

-- Every request for a dataset's keys, granted or not.
CREATE TABLE audit (
    dataset TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    granted BIGINT NOT NULL,
    PRIMARY KEY (dataset, number)
);

-- The second computation service's results: digests of the requests that it computed. They stay until the
-- dataset's keys are destroyed.
CREATE TABLE witnessed (
    dataset TEXT NOT NULL,
    job TEXT NOT NULL,
    asked TEXT NOT NULL,
    request TEXT NOT NULL,
    PRIMARY KEY (dataset, job, asked)
);

-- ## Keys that several services share

-- The key that a service signs with when it shares keys, sealed: one for all of its datasets.
CREATE TABLE service_keys (
    service TEXT PRIMARY KEY,
    sealed BYTEA NOT NULL
);

-- Shared keys; the key set's secret is this service's share. attempt names the attempt that made the key.
-- confirmation is what all services said of the key, as JSON; it is null until this service has seen that.
CREATE TABLE shared_keys (
    dataset TEXT PRIMARY KEY,
    attempt TEXT NOT NULL,
    confirmation TEXT
);

-- Requests that this service has promised to release, at most one per job, until they are debited. It
-- releases no other request in their place.
CREATE TABLE promises (
    dataset TEXT NOT NULL,
    job TEXT NOT NULL,
    request TEXT NOT NULL,
    PRIMARY KEY (dataset, job)
);

-- Shares whose services have still to be told to destroy them.
CREATE TABLE orphaned_shares (
    dataset TEXT NOT NULL,
    service TEXT NOT NULL,
    PRIMARY KEY (dataset, service)
);
