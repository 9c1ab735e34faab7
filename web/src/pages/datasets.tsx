import { Link } from "react-router";
import { listAll } from "../api/client";
import { deleteDataset } from "../api/deletion";
import type { Dataset } from "../api/types";
import { Confirmed, Loading, Trouble, useLoad, useTitle, When } from "../components/ui";

export function Datasets() {
  useTitle("Datasets");
  const { value: listed, error, reload } = useLoad(() => listAll<Dataset>("generation", "/v1/datasets"), "");
  const value = listed?.items;
  return (
    <main id="content">
      <div className="row ends">
        <h1>Datasets</h1>
        {value && value.length > 0 && <Link className="button main" to="/datasets/new">New dataset</Link>}
      </div>
      <Trouble error={error} retry={reload} />
      {!value && error === undefined && <Loading />}
      {listed?.damaged.map((id) => <Damaged key={id} id={id} reload={reload} />)}
      {value?.length === 0 && listed?.damaged.length === 0 && <Empty />}
      {value && value.length > 0 && <Table datasets={value} />}
    </main>
  );
}

function Damaged({ id, reload }: { id: string; reload: () => void }) {
  const remove = async () => {
    await deleteDataset(id);
    reload();
  };
  return (
    <div className="notice bad">
      <p>
        The stored data of dataset {id} is damaged. Ask the operator of the generation service to restore it from a
        backup, or delete the dataset.
      </p>
      <Confirmed label="Delete" title="Delete this dataset?" action={remove}>
        <p>Its keys and all its results are deleted too. This cannot be undone.</p>
      </Confirmed>
    </div>
  );
}

function Empty() {
  return (
    <div className="card empty">
      <h2>No datasets yet</h2>
      <p>
        Start with a table as a CSV file. You describe its columns and choose a privacy budget, and
        this browser encrypts the table before anything is sent. Then run a job and download a
        synthetic table.
      </p>
      <p className="row">
        <Link className="button main" to="/datasets/new">Create the first dataset</Link>
        <Link className="button" to="/datasets/new?example">Try it with an example table</Link>
      </p>
    </div>
  );
}

function Table({ datasets }: { datasets: Dataset[] }) {
  return (
    <div className="card">
      <table className="stack">
        <thead>
          <tr><th>Name</th><th>State</th><th>Privacy budget</th><th>Jobs left</th><th>Created</th></tr>
        </thead>
        <tbody>
          {datasets.map((dataset) => (
            <tr key={dataset.id}>
              <td><Link to={`/datasets/${dataset.id}`}>{dataset.name}</Link></td>
              <td data-label="State"><DatasetTag dataset={dataset} /></td>
              <td data-label="Privacy budget">ε {dataset.terms.epsilon}, δ {dataset.terms.delta.toExponential()}</td>
              <td data-label="Jobs left"><RunsLeft dataset={dataset} /></td>
              <td data-label="Created"><When at={dataset.created_at} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function DatasetTag({ dataset }: { dataset: Dataset }) {
  switch (dataset.state) {
    case "ready":
      return <span className="tag good">ready</span>;
    case "deleting":
      return <span className="tag">being deleted</span>;
    case "uploading":
      return <span className="tag">upload unfinished</span>;
  }
}

function RunsLeft({ dataset: { runs_left, terms } }: { dataset: Dataset }) {
  return (
    <>
      {runs_left} of {terms.runs}
      <progress aria-label="Budget left" max={terms.runs} value={runs_left} style={{ maxWidth: "8rem", display: "block" }} />
    </>
  );
}
