-- The last receipt of the crypto service's ledger that the dataset's owner showed, and those that
-- came with each job's last answer.
ALTER TABLE datasets ADD COLUMN receipt TEXT;

ALTER TABLE jobs ADD COLUMN receipt TEXT;
