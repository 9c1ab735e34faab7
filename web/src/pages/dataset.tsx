import { useEffect, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { call, get, json, list, Refusal } from "../api/client";
import { ofLedger, receiptOf } from "../api/receipts";
import type { Dataset, DatasetLedger, Job } from "../api/types";
import { forgetUpload } from "../crypto/journal";
import { usesOf, type Used } from "../crypto/memory";
import { forgetRead, recall } from "../crypto/remembered";
import { begin, drop, useUpload } from "../crypto/uploads";
import { LedgerBar } from "../parts/charts";
import { JobTag } from "../parts/job-tag";
import { Confirmed, count, counted, Facts, Loading, Notice, Trouble, useLoad, useTitle, useWork, When } from "../parts/ui";
import { UsedBefore } from "../parts/used-before";
import { DatasetTag } from "./datasets";
import { UploadCard } from "./new-dataset/upload";

export default function DatasetPage() {
  const { dataset: id = "" } = useParams();
  const { value, error, reload } = useLoad(() => get<Dataset>("generation", `/v1/datasets/${id}`), id);
  useTitle(value?.name ?? "Dataset");
  return (
    <main id="content">
      <Trouble error={error} retry={reload} />
      {!value && error === undefined && <Loading />}
      {value && <Details dataset={value} reload={reload} />}
    </main>
  );
}

function Details({ dataset, reload }: { dataset: Dataset; reload: () => void }) {
  const { terms } = dataset;
  const upload = useUpload(dataset.id);
  const finished = upload?.phase === "done";
  useEffect(() => {
    if (finished) reload();
  }, [finished, reload]);
  return (
    <>
      <div className="row ends">
        <h1>{dataset.name} <DatasetTag dataset={dataset} /></h1>
        <Delete dataset={dataset} />
      </div>
      <Facts items={[
        ["Columns", count(terms.schema.columns.length)],
        ["Records, at most", count(terms.record_bound)],
        ["Epsilon", terms.epsilon],
        ["Delta", terms.delta.toExponential()],
        ["Jobs left", `${dataset.runs_left} of ${terms.runs}`],
        ["Made", <When at={dataset.created_at} />],
      ]} />
      {upload && <UploadCard dataset={dataset} progress={upload} />}
      {dataset.state === "uploading" && !upload && <GoOn dataset={dataset} />}
      {dataset.state === "ready" && <Jobs dataset={dataset} />}
      {dataset.state === "ready" && <Budget dataset={dataset} />}
      <Columns dataset={dataset} />
    </>
  );
}

/** Deletes everywhere, keys first: after that nothing can be decrypted, whatever else fails. */
function Delete({ dataset: { id, name } }: { dataset: Dataset }) {
  const navigate = useNavigate();
  const remove = async () => {
    for (const service of ["crypto", "computation", "generation"] as const) {
      await call(service, "DELETE", `/v1/datasets/${id}`).catch((error: unknown) => {
        if (!(error instanceof Refusal && error.kind === "not-found")) throw error;
      });
    }
    drop(id);
    forgetRead(id);
    await forgetUpload(id);
    void navigate("/");
  };
  return (
    <Confirmed label="Delete" title={`Delete “${name}”?`} action={remove}>
      <p>Its keys are destroyed first, so that its records can never be decrypted; then its ciphertexts, jobs and results. This cannot be undone.</p>
    </Confirmed>
  );
}

function GoOn({ dataset }: { dataset: Dataset }) {
  const [again, setAgain] = useState<{ file: File; used: Used }>();
  const { busy, error, run } = useWork();
  const go = (file: File, used: Used) => begin(dataset, file, recall(dataset, file.name), used);
  const choose = (file: File | undefined) => file && void run(async () => {
    const used = await usesOf(file, dataset);
    if (used.before.length === 0) go(file, used);
    else setAgain({ file, used });
  });
  return (
    <section className="card">
      <h2>The upload is not finished</h2>
      <p>
        What was sent is kept. Choose the same file again, and the upload goes on from there: a browser
        may not open it by itself.
      </p>
      <label htmlFor="again">The table, as a CSV file</label>
      <input id="again" type="file" accept=".csv,text/csv,text/plain" disabled={busy} onChange={(event) => choose(event.target.files?.[0])} />
      <Trouble error={error} />
      {again && (
        <>
          <UsedBefore used={again.used} next={dataset.budget.exact} delta={dataset.terms.delta} />
          <button type="button" className="main" disabled={busy} onClick={() => go(again.file, again.used)}>Upload them all the same</button>
        </>
      )}
    </section>
  );
}

function Jobs({ dataset }: { dataset: Dataset }) {
  const path = `/v1/datasets/${dataset.id}/jobs`;
  const { value, error, reload } = useLoad(() => list<Job>("generation", path), path);
  return (
    <section className="card">
      <div className="row ends">
        <h2>Jobs</h2>
        <Run dataset={dataset} />
      </div>
      {dataset.runs_left === 0 && (
        <p className="quiet">
          The budget is promised to the jobs below. One that failed or was cancelled after it had begun holds
          its share, and goes on with “Retry”. A new dataset over the same records would not start from
          nothing: its epsilon adds to what was spent here.
        </p>
      )}
      <Trouble error={error} retry={reload} />
      {value?.length === 0 && <p>None yet. A job spends its share of the budget on noisy counts, fits a model to them, and draws synthetic records from it.</p>}
      {value && value.length > 0 && <JobTable jobs={value} />}
    </section>
  );
}

/** Starts a job, once what it costs is confirmed: however often it is clicked or tried again, one. */
function Run({ dataset }: { dataset: Dataset }) {
  const navigate = useNavigate();
  const { epsilon, delta, runs } = dataset.terms;
  const start = async (id: string) => {
    const path = `/v1/datasets/${dataset.id}/jobs/${id}`;
    // The other services hold the crypto service to it, as this page just did.
    const receipt = await receiptOf(dataset.id);
    const job = await json<Job>("generation", "PUT", path, { json: { receipt } });
    void navigate(`/jobs/${job.id}`);
  };
  return (
    <Confirmed label="Run a job" title="Spend on a job?" tone="main" confirm="Run it" dismiss="Not now"
      disabled={dataset.runs_left === 0} action={start}>
      <p>
        It spends {runs === 1 ? "all" : `one of ${count(runs)} equal parts`} of this dataset’s budget, at most
        ρ {(dataset.budget.rho / runs).toPrecision(3)} of {dataset.budget.rho.toPrecision(3)} (ε {epsilon} at
        δ {delta.toExponential()} for all its jobs). {counted(dataset.runs_left, "job is", "jobs are")} left of {count(runs)}.
      </p>
      <p>What a job has spent does not come back.</p>
    </Confirmed>
  );
}

function JobTable({ jobs }: { jobs: Job[] }) {
  return (
    <table className="stack">
      <thead><tr><th>Begun</th><th>State</th><th>Releases</th><th>Result</th></tr></thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.id}>
            <td><Link to={`/jobs/${job.id}`}><When at={job.created_at} /></Link></td>
            <td data-label="State"><JobTag state={job.state} /></td>
            <td data-label="Releases">{count(job.releases)}</td>
            <td data-label="Result">{job.state === "done" ? <Link to={`/jobs/${job.id}/result`}>Synthetic table</Link> : "–"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Budget({ dataset }: { dataset: Dataset }) {
  const { id } = dataset;
  const { value, error } = useLoad(() => ofLedger<DatasetLedger>("GET", id, "/ledger", ({ receipt }) => receipt), id);
  return (
    <section className="card">
      <h2>Privacy ledger</h2>
      <p className="quiet">Kept by the crypto service, which decrypts nothing that it has not debited first.</p>
      <Trouble error={error} />
      {value?.frozen && <Notice tone="bad"><p>{value.frozen}</p></Notice>}
      {value && (
        <LedgerBar budget={value.budget.rho} parts={value.runs.map((run, index) => ({ name: `job ${index + 1}`, rho: run.spent.rho }))} />
      )}
    </section>
  );
}

function Columns({ dataset }: { dataset: Dataset }) {
  return (
    <details className="card">
      <summary>Columns, as they are public</summary>
      <div className="scroll">
        <table>
          <thead><tr><th>Column</th><th>Values</th></tr></thead>
          <tbody>
            {dataset.terms.schema.columns.map((column) => (
              <tr key={column.name}>
                <td>{column.name}</td>
                <td>
                  {column.kind === "numeric" ? `${column.min} to ${column.max} in ${counted(column.bins, "bin")}` : column.categories.join(", ")}
                  {column.nullable && ", or missing"}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
