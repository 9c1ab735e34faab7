-- What a dataset's holders want to remember of a job; empty: nothing.
ALTER TABLE jobs ADD COLUMN note TEXT NOT NULL DEFAULT '';
