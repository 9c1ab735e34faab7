-- Several holders of one dataset: how many contributions there will be, and of each whose it is (null:
-- the upload's owner), how its records lie (null: as the upload's; 0 where it has counts), and
-- what it takes of its holder's share of the store (0: counted with the upload).
ALTER TABLE uploads ADD COLUMN parts BIGINT NOT NULL DEFAULT 1;

ALTER TABLE contributions ADD COLUMN owner TEXT;

ALTER TABLE contributions ADD COLUMN stride BIGINT;

ALTER TABLE contributions ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;

CREATE INDEX contributions_owner ON contributions (owner);
