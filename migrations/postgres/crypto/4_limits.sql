-- Key sets are counted by owner.
CREATE INDEX key_sets_owner ON key_sets (owner, created_at);
