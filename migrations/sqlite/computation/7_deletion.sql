-- Not 0 for an upload that is being deleted: gone for its owner, its blobs being deleted. Its row
-- goes last.
ALTER TABLE uploads ADD COLUMN deleting BIGINT NOT NULL DEFAULT 0;
