-- A refresh token's answer may be lost, and is then asked for again: what it was exchanged for is
-- known by `parent`. used is 0 for a token that is good, 1 for one that was exchanged, 2 for one
-- that another was given in the place of.
ALTER TABLE refresh_tokens ADD COLUMN parent TEXT;

CREATE INDEX refresh_tokens_parent ON refresh_tokens (parent);
