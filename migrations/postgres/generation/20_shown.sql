-- The last receipt of the crypto service's ledger that each of several holders showed. Of a dataset of
-- one holder it is with the dataset.
ALTER TABLE holders ADD COLUMN receipt TEXT;
