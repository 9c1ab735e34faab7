-- Not 0 for a contribution that is being taken back: gone for its holder, its blobs being deleted. Its
-- row goes last.
ALTER TABLE contributions ADD COLUMN taken_back BIGINT NOT NULL DEFAULT 0;
