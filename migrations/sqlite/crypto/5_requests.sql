-- What each release of an act was asked as, a JSON list: by it a holder with the table and the key of its
-- noise works out what should have been released. It is bound to the act by the statements in the debits.
-- Acts of the release before have none.
ALTER TABLE chain ADD COLUMN requests TEXT;
