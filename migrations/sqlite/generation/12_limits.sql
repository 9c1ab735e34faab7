-- Jobs are counted by owner.
CREATE INDEX jobs_owner ON jobs (owner, state);
