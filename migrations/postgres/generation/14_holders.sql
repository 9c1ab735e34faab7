-- Who holds a dataset together, by their numbers in the roster; none of a dataset of one holder.
CREATE TABLE holders (
    dataset TEXT NOT NULL REFERENCES datasets (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    account TEXT NOT NULL,
    PRIMARY KEY (dataset, number)
);

CREATE INDEX holders_account ON holders (account, dataset);
