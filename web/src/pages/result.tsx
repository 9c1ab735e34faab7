// What a job leaves: a preview, the download, and a comparison that stays in the page.
import { useState, type FormEvent } from "react";
import { Link, useParams } from "react-router";
import { call, get } from "../api/client";
import type { Dataset, Job, ModelView } from "../api/types";
import type { Comparison } from "../crypto/messages";
import { recall } from "../crypto/remembered";
import { HolderSession } from "../crypto/session";
import { parseCsv } from "../parts/csv";
import { Bars, fullColour, Heatmap, Legend } from "../parts/charts";
import { count, Facts, Field, Loading, Notice, Trouble, useLoad, useTitle, useWork } from "../parts/ui";

const PREVIEW_ROWS = 12;

interface Result {
  job: Job;
  dataset: Dataset;
  model: ModelView;
}

async function load(id: string): Promise<Result> {
  const job = await get<Job>("generation", `/v1/jobs/${id}`);
  const [dataset, model] = await Promise.all([
    get<Dataset>("generation", `/v1/datasets/${job.dataset}`),
    get<ModelView>("generation", `/v1/jobs/${id}/model`),
  ]);
  return { job, dataset, model };
}

function drawn(job: string, query: Record<string, string>): Promise<Response> {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  return call("generation", "GET", `/v1/jobs/${job}/synthetic?${text.toString()}`);
}

export default function ResultPage() {
  const { job: id = "" } = useParams();
  useTitle("Synthetic table");
  const { value, error, reload } = useLoad(() => load(id), id);
  return (
    <main id="content">
      <Trouble error={error} retry={reload} />
      {!value && error === undefined && <Loading />}
      {value && (
        <>
          <div className="row ends">
            <h1>Synthetic {value.dataset.name}</h1>
            <Link className="button" to={`/jobs/${id}`}>The job</Link>
          </div>
          <Facts items={[["Records, by the model", count(value.model.total)], ["Columns", value.model.attributes.length]]} />
          <Download {...value} />
          <Preview id={id} />
          <Compare {...value} />
        </>
      )}
    </main>
  );
}

function Download({ job, dataset, model }: Result) {
  const [format, setFormat] = useState("csv");
  const [rows, setRows] = useState(String(Math.max(1, Math.round(model.total))));
  const [seed, setSeed] = useState("");
  const [where, setWhere] = useState("");
  const { busy, error, run } = useWork();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(async () => {
      const table = await (await drawn(job.id, { format, rows, seed, where })).blob();
      save(table, `${dataset.terms.schema.name}-synthetic.${format}`);
    });
  };
  return (
    <form className="card" onSubmit={submit}>
      <h2>Download</h2>
      <p className="quiet">Records drawn from the model. They cost no budget: draw as many as you like, as often as you like.</p>
      <div className="grid fields">
        <Field label="Format">
          {(id) => (
            <select id={id} value={format} onChange={(event) => setFormat(event.target.value)}>
              <option value="csv">CSV</option>
              <option value="parquet">Parquet</option>
            </select>
          )}
        </Field>
        <Field label="Records">
          {(id) => <input id={id} type="number" min={1} max={100_000_000} required value={rows} onChange={(event) => setRows(event.target.value)} />}
        </Field>
        <Field label="Only records with" hint={`Such as ${example(dataset)}; several are separated by commas.`}>
          {(id, hint) => <input id={id} aria-describedby={hint} value={where} onChange={(event) => setWhere(event.target.value)} />}
        </Field>
        <Field label="Seed" hint="The same seed draws the same records. Empty: a fresh one.">
          {(id, hint) => <input id={id} aria-describedby={hint} inputMode="numeric" pattern="[0-9]*" value={seed} onChange={(event) => setSeed(event.target.value)} />}
        </Field>
      </div>
      <Trouble error={error} />
      <button className="main" disabled={busy}>{busy ? "Drawing…" : "Download"}</button>
    </form>
  );
}

function example(dataset: Dataset): string {
  for (const column of dataset.terms.schema.columns) {
    if (column.kind === "categorical") return `${column.name}=${column.categories[0] ?? ""}`;
  }
  return "column=value";
}

function save(table: Blob, name: string): void {
  const address = URL.createObjectURL(table);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function Preview({ id }: { id: string }) {
  const load = async () => parseCsv(await (await drawn(id, { rows: String(PREVIEW_ROWS), seed: "1" })).text());
  const { value, error, reload } = useLoad(load, id);
  const [header = [], ...rows] = value ?? [];
  return (
    <section className="card">
      <h2>Preview</h2>
      <Trouble error={error} retry={reload} />
      <div className="scroll" tabIndex={0} role="region" aria-label="Synthetic records">
        <table>
          <thead><tr>{header.map((name) => <th key={name}>{name}</th>)}</tr></thead>
          <tbody>
            {rows.map((row, index) => (
              // Records have no identity of their own.
              <tr key={index}>{row.map((field, column) => <td key={header[column]}>{field === "" ? <span className="quiet">(missing)</span> : field}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Compare({ job, dataset }: Result) {
  const [report, setReport] = useState<Comparison>();
  const { busy, error, run } = useWork();
  const compare = async (file: File) => {
    const session = new HolderSession();
    try {
      const real = await session.read(file, recall(dataset, file.name));
      const synthetic = await (await drawn(job.id, { rows: String(Math.max(1000, real.records)) })).blob();
      setReport(await session.compare(synthetic));
    } finally {
      session.end();
    }
  };
  const choose = (file: File | undefined) => file && void run(() => compare(file));
  return (
    <section className="card">
      <h2>How close is it?</h2>
      <p>
        Choose the original table: it is compared with synthetic records here, in this browser, and
        nothing of it is sent. What you see then is not protected by noise: keep it to yourself.
      </p>
      <label htmlFor="original">The original, as a CSV file</label>
      <input id="original" type="file" accept=".csv,text/csv,text/plain" disabled={busy}
        onChange={(event) => choose(event.target.files?.[0])} />
      {busy && <Notice><p>Comparing…</p></Notice>}
      <Trouble error={error} />
      {report && <Report report={report} />}
    </section>
  );
}

function Report({ report }: { report: Comparison }) {
  const names = report.columns.map(({ name }) => name);
  const upper = report.pairs.flatMap((row, a) => row.slice(a + 1));
  const mean = upper.reduce((sum, value) => sum + value, 0) / Math.max(1, upper.length);
  return (
    <>
      <Facts items={[
        ["Mean distance of pairs", mean.toFixed(4)],
        ["Largest", Math.max(0, ...upper).toFixed(4)],
        ["Real records", count(report.real_records)],
        ["Synthetic records", count(report.synthetic_records)],
      ]} />
      <h3>Distance of every pair of columns</h3>
      <p className="small quiet">Total variation: 0 where both tables have the same shares, 1 where they have nothing in common. The stronger the colour, the farther; full colour stands for {fullColour(report.pairs).toFixed(2)}.</p>
      <Heatmap names={names} values={report.pairs} />
      <h3>Shares of every column’s values</h3>
      <Legend items={[{ name: "real", className: "two" }, { name: "synthetic", className: "one" }]} />
      <div className="grid">
        {report.columns.map(({ name, labels, real, synthetic }) => (
          <div key={name}>
            <h3>{name}</h3>
            <Bars title={`${name}, real and synthetic shares`} labels={labels} limit={12} series={[
              { name: "real", className: "two", values: real },
              { name: "synthetic", className: "one", values: synthetic },
            ]} />
          </div>
        ))}
      </div>
    </>
  );
}
