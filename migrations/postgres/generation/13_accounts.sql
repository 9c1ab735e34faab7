-- Not 0 for an account that its operator has closed for a while.
ALTER TABLE accounts ADD COLUMN disabled BIGINT NOT NULL DEFAULT 0;

CREATE INDEX refresh_tokens_account ON refresh_tokens (account);
