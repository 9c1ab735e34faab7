-- Tables of the generation service: accounts, datasets, jobs and their results.

-- ## Accounts

-- User accounts. Addresses are in lower case; passwords are Argon2id hashes. An account whose operator has
-- closed it for a while has disabled <> 0. epoch is the number of times that all of the account's tokens were
-- ended; a token has the number of its time.
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL,
    disabled BIGINT NOT NULL DEFAULT 0,
    epoch BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL
);

-- Refresh tokens of sessions, by their SHA-256 digests. All tokens that come from one sign-in have the same
-- family. used is 0 for a valid token, 1 for one that was exchanged for another, and 2 for one that was
-- replaced because its answer was lost. parent is the digest of the token that was exchanged for this one. A
-- used token stays until it expires, so that the service notices its second use.
CREATE TABLE refresh_tokens (
    digest TEXT PRIMARY KEY,
    family TEXT NOT NULL,
    parent TEXT,
    account TEXT NOT NULL REFERENCES accounts (id),
    used BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX refresh_tokens_family ON refresh_tokens (family);

CREATE INDEX refresh_tokens_parent ON refresh_tokens (parent);

CREATE INDEX refresh_tokens_account ON refresh_tokens (account);

CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);

-- Tokens that ended before their expiry: those of an account, given by the digest of its identifier, with a number below
-- epoch. ended_at is the time of the last end.
CREATE TABLE ended_tokens (
    account TEXT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    ended_at BIGINT NOT NULL
);

-- API keys of programs, by their SHA-256 digests. last_used_at is 0 until the first use.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL
);

CREATE INDEX api_keys_account ON api_keys (account, created_at, id);

-- ## Datasets

-- Datasets. state is uploading, ready, deleting (its owner deletes it at all services) or erasing (this service
-- deletes its part); terms are JSON; budget is a multiple of 2^-80. receipt is
-- the last receipt of the crypto service's ledger that the owner has shown.
CREATE TABLE datasets (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    runs BIGINT NOT NULL,
    budget TEXT NOT NULL,
    state TEXT NOT NULL,
    receipt TEXT,
    created_at BIGINT NOT NULL
);

CREATE INDEX datasets_owner ON datasets (owner, created_at, id);

-- Holders of datasets with several holders, by their numbers in the roster. A dataset of one holder has no
-- rows here. receipt is the last receipt of the crypto service's ledger that the holder has shown.
CREATE TABLE holders (
    dataset TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    account TEXT NOT NULL,
    receipt TEXT,
    PRIMARY KEY (dataset, number)
);

CREATE INDEX holders_account ON holders (account, dataset);

-- ## Jobs

-- Jobs: tasks under a lease. A lease is identified by its token and by lease_beat, the number of its
-- renewals; an idle task has an empty token and is not taken before lease_expires. faults counts consecutive
-- attempts that ended without a step, outages consecutive attempts that could not reach the computation
-- service. events is the number of the last event. receipt came with the last answer. note is the holders'
-- own text.
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL REFERENCES datasets (id),
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    lease_token TEXT NOT NULL,
    lease_expires BIGINT NOT NULL,
    lease_beat BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL,
    faults BIGINT NOT NULL,
    outages BIGINT NOT NULL,
    progress TEXT,
    releases BIGINT NOT NULL,
    spent TEXT NOT NULL,
    error TEXT,
    receipt TEXT,
    note TEXT NOT NULL DEFAULT '',
    events BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX jobs_dataset ON jobs (dataset, created_at, id);

CREATE INDEX jobs_lease ON jobs (state, lease_expires);

CREATE INDEX jobs_owner ON jobs (owner, state);

-- The batches of releases that a job has requested, in order, with their answers. Requests, progress and
-- answers are JSON.
CREATE TABLE batches (
    job TEXT NOT NULL REFERENCES jobs (id),
    number BIGINT NOT NULL,
    progress TEXT NOT NULL,
    requests TEXT NOT NULL,
    answers TEXT,
    asked_at BIGINT NOT NULL,
    released_at BIGINT,
    PRIMARY KEY (job, number)
);

-- A job's history for its holders: JSON, numbered from 1.
CREATE TABLE job_events (
    job TEXT NOT NULL REFERENCES jobs (id),
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    what TEXT NOT NULL,
    PRIMARY KEY (job, number)
);

-- Links through which other accounts see a job's result, by the SHA-256 digests of their secrets. expires_at
-- is 0 for a link that stays valid until it is revoked; last_opened_at is 0 until the first use. dataset_name is the
-- dataset's name when the link was made.
CREATE TABLE links (
    id TEXT PRIMARY KEY,
    job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    account TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    dataset_name TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    last_opened_at BIGINT NOT NULL
);

CREATE INDEX links_job ON links (job, created_at, id);

CREATE INDEX links_account ON links (account);
