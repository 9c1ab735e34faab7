-- Whose task a batch is, so that one owner's do not hold every worker.
ALTER TABLE batches ADD COLUMN owner TEXT NOT NULL DEFAULT '';

UPDATE batches SET owner = COALESCE((SELECT uploads.owner FROM uploads WHERE uploads.dataset = batches.dataset), '');

-- Outages in a row; faults are from now on attempts in a row that ended without a step.
ALTER TABLE batches ADD COLUMN outages BIGINT NOT NULL DEFAULT 0;
