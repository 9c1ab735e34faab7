-- Who has something here that is limited: the row of an owner is locked while what they have is
-- counted and added to, so that two calls at the same moment do not both take the last.
CREATE TABLE owners (owner TEXT PRIMARY KEY);
