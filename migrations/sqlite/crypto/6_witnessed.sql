-- What the second computation service computed a batch to, until the dataset's keys are destroyed.
CREATE TABLE witnessed (
    dataset TEXT NOT NULL,
    job TEXT NOT NULL,
    asked TEXT NOT NULL,
    request TEXT NOT NULL,
    PRIMARY KEY (dataset, job, asked)
);
