-- Attempts in a row without a step, under the name that every table of tasks has for them.
ALTER TABLE jobs RENAME COLUMN stalls TO faults;
