-- What the dataset's pages are sealed with (itself sealed), the digest of the complete upload's
-- manifest, and receipts of the crypto service's ledger that no later one is known to contain: a
-- JSON list.
ALTER TABLE uploads ADD COLUMN sealing_key BYTEA;

ALTER TABLE uploads ADD COLUMN manifest TEXT;

ALTER TABLE uploads ADD COLUMN receipts TEXT;

-- A run's window of the noise ladder: JSON. Rows of the table jobs are of the release before.
CREATE TABLE windows (
    dataset TEXT NOT NULL REFERENCES uploads (dataset) ON DELETE CASCADE,
    job TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (dataset, job)
);

-- Faults in a row, for the pause before the next attempt; the receipts that whoever asked has, a
-- JSON list; the receipt that came with the answers.
ALTER TABLE batches ADD COLUMN faults BIGINT NOT NULL DEFAULT 0;

ALTER TABLE batches ADD COLUMN shown TEXT;

ALTER TABLE batches ADD COLUMN receipt TEXT;
