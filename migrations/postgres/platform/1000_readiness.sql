-- One row, written to find out whether the database can be.
CREATE TABLE readiness (checks BIGINT NOT NULL);

INSERT INTO readiness (checks) VALUES (0);
