-- What a holder registered. Objects go below `folder` in the blob store.
CREATE TABLE uploads (
    dataset TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    terms TEXT NOT NULL,
    chunks BIGINT NOT NULL,
    stride BIGINT NOT NULL,
    folder TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

-- Rectangles of a dataset's grid: record chunks down, one-hot columns across.
CREATE TABLE contributions (
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    first_chunk BIGINT NOT NULL,
    chunks BIGINT NOT NULL,
    first_column BIGINT NOT NULL,
    columns BIGINT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (dataset, number)
);

CREATE TABLE objects (
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    contribution BIGINT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (dataset, contribution, name)
);

-- A job's share of the noise ladder, and how far it has used it.
CREATE TABLE jobs (
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    job TEXT NOT NULL,
    run BIGINT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (dataset, job),
    UNIQUE (dataset, run)
);

-- Batches of releases: tasks under a lease. `sealed` names the blob of the sealed request, which
-- is there before anything is sent.
CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    job TEXT NOT NULL,
    first BIGINT NOT NULL,
    requests TEXT NOT NULL,
    state TEXT NOT NULL,
    sealed TEXT,
    answers TEXT,
    reason TEXT,
    seconds DOUBLE PRECISION NOT NULL,
    lease_token TEXT,
    lease_expires BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX batches_waiting ON batches (state, lease_expires, created_at);
