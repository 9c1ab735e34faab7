-- A dataset's history: acts as JSON, chained by hashes, appended before they are acted on. Runs,
-- debits and whether the dataset is frozen follow from it. The tables runs and debits are those of
-- the release before: nothing is added to them.
CREATE TABLE chain (
    dataset TEXT NOT NULL REFERENCES key_sets (dataset),
    height BIGINT NOT NULL,
    kind TEXT NOT NULL,
    job TEXT,
    act TEXT NOT NULL,
    answers TEXT,
    head TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (dataset, height)
);

CREATE INDEX chain_kind ON chain (dataset, kind, height);

CREATE INDEX chain_job ON chain (dataset, job, height);

-- What signs the dataset's receipts, sealed.
ALTER TABLE key_sets ADD COLUMN receipt_key BYTEA;
