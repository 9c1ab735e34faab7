import { useEffect, useRef, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { call, get, json, list } from "../api/client";
import { deleteDataset } from "../api/deletion";
import { beforeRun, ledgerOf } from "../api/receipts";
import type { Dataset, Job } from "../api/types";
import { usesOf, type Used } from "../crypto/memory";
import type { ReadOptions } from "../crypto/messages";
import { recall } from "../crypto/remembered";
import { HolderSession } from "../crypto/session";
import { begin, useUpload } from "../crypto/uploads";
import { describe, isEncrypted } from "../components/column-words";
import { RuleList } from "../components/rule-list";
import { LedgerBar } from "../components/charts";
import { JobTag } from "../components/job-tag";
import { Confirmed, count, counted, Facts, Field, Loading, Notice, Trouble, useLoad, useTitle, useWork, When } from "../components/ui";
import { save } from "../components/save";
import { UsedBefore } from "../components/used-before";
import { Holders, useStanding, type Standing } from "./dataset/holders";
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
  const standing = useStanding(dataset, reload);
  const finished = upload?.phase === "done";
  useEffect(() => {
    if (finished) reload();
  }, [finished, reload]);
  return (
    <>
      <div className="row ends">
        <h1>{dataset.name} <DatasetTag dataset={dataset} /></h1>
        {(!terms.roster || standing.value?.part === 0) && (
          <div className="row">
            <Rename dataset={dataset} reload={reload} />
            <Delete dataset={dataset} />
          </div>
        )}
      </div>
      <Facts items={[
        ["Columns", count(terms.schema.columns.filter(isEncrypted).length)],
        ["Maximum records", count(terms.record_bound)],
        ["Epsilon", terms.epsilon],
        ["Delta", terms.delta.toExponential()],
        ["Jobs left", `${dataset.runs_left} of ${terms.runs}`],
        ...(terms.witness ? [["Computed by", "two services, which must agree"] as [string, string]] : []),
        ["Created", <When at={dataset.created_at} />],
      ]} />
      {upload && <UploadCard dataset={dataset} progress={upload} />}
      {terms.roster
        ? <Holders dataset={dataset} standing={standing} />
        : dataset.state === "uploading" && !upload && <GoOn dataset={dataset} />}
      {dataset.state === "ready" && <Jobs dataset={dataset} standing={standing.value} />}
      {dataset.state === "ready" && <Budget dataset={dataset} />}
      <Columns dataset={dataset} />
    </>
  );
}

/** Renames the dataset. Only the displayed name changes. */
function Rename({ dataset: { id, name }, reload }: { dataset: Dataset; reload: () => void }) {
  const [fresh, setFresh] = useState(name);
  const rename = async () => {
    await call("generation", "PUT", `/v1/datasets/${id}/name`, { json: { name: fresh } });
    reload();
  };
  return (
    <Confirmed label="Rename" title={`Rename “${name}”`} tone="" confirm="Rename it" dismiss="Not now" action={rename}>
      <Field label="New name">
        {(id) => <input id={id} maxLength={200} value={fresh} onChange={(event) => setFresh(event.target.value)} />}
      </Field>
    </Confirmed>
  );
}

function Delete({ dataset: { id, name } }: { dataset: Dataset }) {
  const navigate = useNavigate();
  const remove = async () => {
    await deleteDataset(id);
    void navigate("/");
  };
  return (
    <Confirmed label="Delete" title={`Delete “${name}”?`} action={remove}>
      <p>Running jobs are stopped. The keys are destroyed first, so that the records can never be decrypted. Then the ciphertexts, jobs and results are deleted. This cannot be undone.</p>
    </Confirmed>
  );
}

interface Chosen {
  file: File;
  read: ReadOptions;
  used: Used;
}

function GoOn({ dataset }: { dataset: Dataset }) {
  const [again, setAgain] = useState<Chosen>();
  const { busy, error, run } = useWork();
  const go = ({ file, read, used }: Chosen) => begin(dataset, file, read, used);
  const choose = (file: File | undefined) => file && void run(async () => {
    const used = await usesOf(file, dataset);
    const session = new HolderSession();
    try {
      const chosen = { file, used, read: await recall(dataset, dataset.terms.schema, file, session) };
      if (used.before.length === 0) go(chosen);
      else setAgain(chosen);
    } finally {
      session.end();
    }
  });
  return (
    <section className="card">
      <h2>The upload is not finished</h2>
      <p>
        The sent data is kept. Choose the same file again to resume the upload, because a browser may
        not open it by itself. A file with other columns is rejected before anything is sent.
      </p>
      <label htmlFor="again">The table, as a CSV file</label>
      <input id="again" type="file" accept=".csv,text/csv,text/plain" disabled={busy} onChange={(event) => choose(event.target.files?.[0])} />
      <Trouble error={error} />
      {again && (
        <>
          <UsedBefore used={again.used} next={dataset.budget.exact} delta={dataset.terms.delta} />
          <button type="button" className="main" disabled={busy} onClick={() => go(again)}>Upload anyway</button>
        </>
      )}
    </section>
  );
}

function Jobs({ dataset, standing }: { dataset: Dataset; standing: Standing | undefined }) {
  const path = `/v1/datasets/${dataset.id}/jobs`;
  const { value, error, reload } = useLoad(() => list<Job>("generation", path), path);
  return (
    <section className="card">
      <div className="row ends">
        <h2>Jobs</h2>
        <Run dataset={dataset} standing={standing} />
      </div>
      {standing?.missing && <p className="quiet">{standing.missing}</p>}
      {dataset.runs_left === 0 && (
        <p className="quiet">
          The whole budget is assigned to the jobs below. A job that failed or was cancelled after its start
          keeps its share: use “Retry” to resume it. A new dataset over the same records does not start
          from zero: its epsilon adds to the epsilon spent here.
        </p>
      )}
      <Trouble error={error} retry={reload} />
      {value?.length === 0 && <p>No jobs yet. A job spends its share of the budget on noisy counts, fits a model to them, and draws synthetic records from it.</p>}
      {value && value.length > 0 && <JobTable jobs={value} />}
      {value?.[0] && <p><Link to={compared(value)}>Compare jobs</Link></p>}
    </section>
  );
}

/** Returns the path that compares the two newest jobs, or the only job with one of another dataset. */
function compared(jobs: Job[]): string {
  return `/compare/${jobs.slice(0, 2).map(({ id }) => id).join("/")}`;
}

const FORGOTTEN = "An earlier job, which the generation service had forgotten. It makes its table again, at no further cost.";

/** Starts a job after a confirmation of its cost. Repeated clicks and retries start only one job. */
function Run({ dataset, standing }: { dataset: Dataset; standing: Standing | undefined }) {
  const navigate = useNavigate();
  const { epsilon, delta, runs } = dataset.terms;
  const again = useRef<string | undefined>(undefined);
  const start = async (id: string) => {
    const { receipt, forgotten } = await beforeRun(dataset.id, again.current ?? id);
    // If the answer is lost, the next attempt starts the same job, and not another one that would be paid for.
    again.current ??= forgotten;
    // With the receipt, the other services check the crypto service's ledger, as this page just
    // did.
    const path = `/v1/datasets/${dataset.id}/jobs/${again.current ?? id}`;
    const job = await json<Job>("generation", "PUT", path, { json: { receipt } });
    if (again.current) {
      // The job has begun, so a lost note is not worth a failure.
      await call("generation", "PUT", `/v1/jobs/${job.id}/note`, { json: { note: FORGOTTEN } }).catch(() => undefined);
    }
    void navigate(`/jobs/${job.id}`);
  };
  return (
    <Confirmed label="Run a job" title="Run a job?" tone="main" confirm="Run it" dismiss="Not now"
      disabled={dataset.runs_left === 0 || (dataset.terms.roster != null && standing?.missing !== "")} action={start}>
      <p>
        The job spends {runs === 1 ? "all" : `one of ${count(runs)} equal parts`} of this dataset’s budget: at most
        ρ {(dataset.budget.rho / runs).toPrecision(3)} of {dataset.budget.rho.toPrecision(3)} (ε {epsilon} at
        δ {delta.toExponential()} for all jobs). {counted(dataset.runs_left, "job is", "jobs are")} left of {count(runs)}.
      </p>
      <p>The budget that a job has spent cannot be recovered.</p>
    </Confirmed>
  );
}

function JobTable({ jobs }: { jobs: Job[] }) {
  return (
    <table className="stack">
      <thead><tr><th>Started</th><th>State</th><th>Releases</th><th>Result</th></tr></thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.id}>
            <td>
              <Link to={`/jobs/${job.id}`}><When at={job.created_at} /></Link>
              {job.note && <div className="small quiet">{job.note}</div>}
            </td>
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
  const { value, error } = useLoad(() => ledgerOf(id), id);
  return (
    <section className="card">
      <h2>Privacy ledger</h2>
      <p className="quiet">Kept by the crypto service, which debits every release before it decrypts it.</p>
      <Trouble error={error} />
      {value?.frozen && <Notice tone="bad"><p>{value.frozen}</p></Notice>}
      {value && (
        <LedgerBar budget={value.budget.rho} parts={value.runs.map((run, index) => ({ name: `job ${index + 1}`, rho: run.spent.rho }))} />
      )}
    </section>
  );
}

/** Download of the schema, in the format of the command line. */
function SchemaFile({ dataset: { terms: { schema } } }: { dataset: Dataset }) {
  const download = () => save(new Blob([`${JSON.stringify(schema, null, 2)}\n`], { type: "application/json" }), `${schema.name}.schema.json`);
  return <p><button type="button" onClick={download}>Download the schema</button></p>;
}

function Columns({ dataset }: { dataset: Dataset }) {
  return (
    <details className="card">
      <summary>Public description of the columns</summary>
      <SchemaFile dataset={dataset} />
      <RuleList schema={dataset.terms.schema} />
      <div className="scroll">
        <table>
          <thead><tr><th>Column</th><th>Values</th></tr></thead>
          <tbody>
            {dataset.terms.schema.columns.map((column) => (
              <tr key={column.name}>
                <td>{column.name}</td>
                <td>{describe(column)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
