// What a job leaves: a preview, the download, and a comparison that stays in the page.
import { useState, type FormEvent } from "react";
import { Link, useParams } from "react-router";
import { call, get } from "../api/client";
import type { Dataset, Job, ModelView } from "../api/types";
import { partOf } from "../api/parts";
import type { Reported } from "../crypto/messages";
import { recall } from "../crypto/remembered";
import { HolderSession } from "../crypto/session";
import { parseCsv } from "../parts/csv";
import { describe } from "../parts/column-words";
import { save } from "../parts/save";
import { count, Facts, Field, Loading, Notice, Trouble, useLoad, useTitle, useWork } from "../parts/ui";
import { Filters, written, type Condition } from "./filters";
import { ReportView } from "./report";

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
          <Facts items={[["Records, by the model", count(value.model.total)], ["Columns", count(value.dataset.terms.schema.columns.filter(({ kind }) => kind !== "left-out").length)]]} />
          <Download {...value} />
          <Preview id={id} />
          <HandOver {...value} />
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
  const [conditions, setConditions] = useState<Condition[]>([]);
  const { busy, error, run } = useWork();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(async () => {
      const table = await (await drawn(job.id, { format, rows, seed, where: written(conditions) })).blob();
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
        <Field label="Seed" hint="The same seed draws the same records. Empty: a fresh one.">
          {(id, hint) => <input id={id} aria-describedby={hint} inputMode="numeric" pattern="[0-9]*" value={seed} onChange={(event) => setSeed(event.target.value)} />}
        </Field>
      </div>
      <Filters schema={dataset.terms.schema} model={model} conditions={conditions} onChange={setConditions} />
      <Trouble error={error} />
      <button className="main" disabled={busy}>{busy ? "Drawing…" : "Download"}</button>
    </form>
  );
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

/** What the report says of how the table was made. */
function facts({ job, dataset: { terms } }: Result): [string, string][] {
  return [
    ["Epsilon, of all jobs", String(terms.epsilon)],
    ["Delta", terms.delta.toExponential()],
    ["Jobs that share it", String(terms.runs)],
    ["Method", terms.mechanism],
    ["Job", job.id],
    ["Made", new Date().toISOString().slice(0, 10)],
  ];
}

function Compare(result: Result) {
  const { job, dataset } = result;
  const [reported, setReported] = useState<Reported>();
  const { busy, error, run } = useWork();
  const compare = async (file: File) => {
    const session = new HolderSession();
    try {
      const part = await session.part(dataset.terms, await partOf(dataset));
      const read = await recall(dataset, part.schema, file, session);
      const real = await session.read(file, { ...read, keep_values: true });
      const synthetic = await (await drawn(job.id, { rows: String(Math.max(1000, real.records)) })).blob();
      setReported(await session.report(synthetic, facts(result)));
    } finally {
      session.end();
    }
  };
  const choose = (file: File | undefined) => file && void run(() => compare(file));
  return (
    <section className="card">
      <h2>How close is it?</h2>
      <p>
        Choose the original table: it is compared with synthetic records here, in this browser, value by value,
        and nothing of it is sent. What you see then is not protected by noise: keep it to yourself.
      </p>
      <label htmlFor="original">The original, as a CSV file</label>
      <input id="original" type="file" accept=".csv,text/csv,text/plain" disabled={busy}
        onChange={(event) => choose(event.target.files?.[0])} />
      {busy && <Notice><p>Comparing…</p></Notice>}
      <Trouble error={error} />
      {reported && <ReportView name={dataset.terms.schema.name} reported={reported} />}
    </section>
  );
}

/** What goes with the table to whoever uses it: nothing in it is private. */
function card({ job, dataset, model }: Result): string {
  const { terms } = dataset;
  return [
    `Synthetic table: ${dataset.name}`,
    "",
    `Made with fhaim by job ${job.id}, which ended ${job.updated_at.slice(0, 10)}.`,
    `Differential privacy: epsilon ${terms.epsilon} at delta ${terms.delta.toExponential()} for all of the dataset's`,
    `jobs together (${terms.runs}), each under ${terms.mechanism}; this one spent rho ${job.spent.rho.toPrecision(3)}.`,
    "Records were encrypted by their holder; no service saw one.",
    "",
    `Records, by the model: ${Math.round(model.total)}. As many as are wanted can be drawn.`,
    ...(terms.schema.claim ? [`The schema was drafted privately, at epsilon ${terms.schema.claim.epsilon}, as its holder says.`] : []),
    "",
    "What to know before it is used",
    "- No record is a person's. Counts of few records are mostly noise.",
    "- Dependences that were not measured are not in it.",
    "- How close it is to the original only its holder can say: ask for the verdict of the report.",
    "",
    "Columns",
    ...terms.schema.columns.map((column) => `- ${column.name}: ${describe(column)}`),
    "",
  ].join("\n");
}

function HandOver(result: Result) {
  const { schema } = result.dataset.terms;
  const text = (content: string, name: string, type: string) => save(new Blob([content], { type }), `${schema.name}-${name}`);
  return (
    <section className="card">
      <h2>Hand it over</h2>
      <p className="quiet">Beside the table, for whoever uses it. Nothing in these files is private.</p>
      <div className="row">
        <button type="button" onClick={() => text(card(result), "data-card.txt", "text/plain")}>Data card</button>
        <button type="button" onClick={() => text(`${JSON.stringify(schema, null, 2)}\n`, "schema.json", "application/json")}>Schema</button>
        <button type="button" onClick={() => text(`${JSON.stringify(result.model, null, 2)}\n`, "model.json", "application/json")}>The model’s counts</button>
      </div>
    </section>
  );
}
