-- Tables of the computation service and of the second computation service: uploads, and batches of releases.

-- ## Uploads

-- Uploads, one per dataset. Objects and keys are below folder in the blob store. chunks and stride describe
-- the records of the first contribution (0: counts). public_key and evaluation_keys are SHA-256 digests,
-- and upload_keys a JSON list of the names of a roster's upload keys, in its order.
-- parts is the number of contributions that the terms ask for. bytes is the complete upload's size (0 where
-- each contribution has its own). sealing_key, itself sealed, seals the pages; it and manifest, the upload's
-- digest, are null until the upload is complete. receipts is a JSON list of receipts of the crypto service's
-- ledger, without those that a later one contains. deleting <> 0 marks an upload that its owner has deleted
-- and whose blobs may still exist; its row goes last.
CREATE TABLE uploads (
    dataset TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    terms TEXT NOT NULL,
    chunks BIGINT NOT NULL,
    stride BIGINT NOT NULL,
    parts BIGINT NOT NULL,
    folder TEXT NOT NULL,
    public_key TEXT NOT NULL,
    evaluation_keys TEXT NOT NULL,
    upload_keys TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    sealing_key BYTEA,
    manifest TEXT,
    receipts TEXT NOT NULL,
    deleting BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL
);

CREATE INDEX uploads_owner ON uploads (owner);

-- Contributions of holders to an upload. owner is null and bytes is 0 where the dataset has one holder: the
-- upload has both. chunks and stride describe the records (0: counts), columns is the number of one-hot
-- columns. taken_back <> 0 marks a contribution that its holder has taken back and whose blobs may still
-- exist; its row goes last.
CREATE TABLE contributions (
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    owner TEXT,
    chunks BIGINT NOT NULL,
    stride BIGINT NOT NULL,
    columns BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    state TEXT NOT NULL,
    taken_back BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (dataset, number)
);

CREATE INDEX contributions_owner ON contributions (owner);

-- Objects that have arrived, with their SHA-256 digests. Every PUT stores a blob of its own; version is the
-- blob that counts.
CREATE TABLE objects (
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    contribution BIGINT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    version TEXT NOT NULL,
    PRIMARY KEY (dataset, contribution, name)
);

-- ## Releases

-- The part of the noise ladder that each run uses, and how far it has used it: JSON.
CREATE TABLE windows (
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    job TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (dataset, job)
);

-- Batches of releases: tasks under a lease. A lease is identified by its token and by lease_beat, the number
-- of its renewals; an idle task has an empty token and is not taken before lease_expires. faults counts
-- consecutive attempts that ended without a step, outages consecutive attempts that could not reach another
-- service. first is the number of the batch's first release. sealed is the blob of the sealed request, which
-- is stored before the service sends anything. shown is a JSON list of the receipts that the caller has;
-- receipt came with the answers.
CREATE TABLE batches (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    job TEXT NOT NULL,
    first BIGINT NOT NULL,
    state TEXT NOT NULL,
    lease_token TEXT NOT NULL DEFAULT '',
    lease_expires BIGINT NOT NULL,
    lease_beat BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL,
    faults BIGINT NOT NULL DEFAULT 0,
    outages BIGINT NOT NULL DEFAULT 0,
    requests TEXT NOT NULL,
    shown TEXT NOT NULL,
    sealed TEXT,
    answers TEXT,
    receipt TEXT,
    reason TEXT,
    seconds DOUBLE PRECISION NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX batches_waiting ON batches (state, lease_expires, created_at);
