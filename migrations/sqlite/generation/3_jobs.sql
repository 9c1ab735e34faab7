-- Datasets. state is uploading, ready or deleting; terms are JSON; budget counts 2^-80.
CREATE TABLE datasets (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES accounts (id),
    name TEXT NOT NULL,
    terms TEXT NOT NULL,
    runs BIGINT NOT NULL,
    budget TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX datasets_owner ON datasets (owner, created_at, id);

-- Jobs: tasks under a lease. stalls counts attempts in a row that ended without a step, outages
-- those in a row that found the computation service out of reach; events is the number of the
-- last event.
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL REFERENCES datasets (id),
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    lease_token TEXT NOT NULL,
    lease_expires BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    stalls BIGINT NOT NULL,
    outages BIGINT NOT NULL,
    progress TEXT,
    releases BIGINT NOT NULL,
    spent TEXT NOT NULL,
    error TEXT,
    events BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX jobs_dataset ON jobs (dataset, created_at, id);

CREATE INDEX jobs_lease ON jobs (state, lease_expires);

-- What a job asked for, in order, and what came back: requests, progress and answers are JSON.
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

-- What happened to a job: JSON, numbered from 1.
CREATE TABLE job_events (
    job TEXT NOT NULL REFERENCES jobs (id),
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    what TEXT NOT NULL,
    PRIMARY KEY (job, number)
);
