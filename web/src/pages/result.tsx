// The result of a job: a preview, the download, and a comparison with the original in this browser.
import { useState } from "react";
import { Link, useParams } from "react-router";
import { call, get } from "../api/client";
import type { Dataset, Job, ModelView } from "../api/types";
import { partOf } from "../api/parts";
import type { Reported } from "../crypto/messages";
import { recall } from "../crypto/remembered";
import { HolderSession } from "../crypto/session";
import { CAVEATS, columnsOf, dataCard, type Carded } from "../components/data-card";
import { asked, Download, Preview, type Query, type Source } from "../components/draw";
import { save } from "../components/save";
import { count, Facts, Loading, Notice, Trouble, useLoad, useTitle, useWork } from "../components/ui";
import { ReportView } from "./report";
import { Links } from "./result/links";

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

function drawn(job: string, query: Query): Promise<Response> {
  return call("generation", "GET", `/v1/jobs/${job}/synthetic?${asked(query)}`);
}

/** Returns the source of synthetic tables: the job's model. */
function source({ job, dataset, model }: Result): Source {
  return {
    key: job.id,
    schema: dataset.terms.schema,
    total: model.total,
    labels: (column) => model.one_ways[model.attributes.indexOf(column)]?.labels ?? [],
    draw: (query) => drawn(job.id, query),
  };
}

function card({ job, dataset: { name, terms }, model }: Result): Carded {
  const { epsilon, delta, runs, mechanism, schema } = terms;
  const made_at = job.updated_at;
  return { job: job.id, name, made_at, epsilon, delta, runs, mechanism, schema, spent: job.spent, total: model.total, caveats: CAVEATS };
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
          <Facts items={[["Estimated records", count(value.model.total)], ["Columns", columnsOf(value.dataset.terms.schema)]]} />
          <Download source={source(value)} />
          <Preview source={source(value)} />
          <HandOver {...value} />
          <Links job={id} />
          <Compare {...value} />
        </>
      )}
    </main>
  );
}

/** Facts for the report about how the table was made. */
function facts({ job, dataset: { terms } }: Result): [string, string][] {
  return [
    ["Epsilon of all jobs", String(terms.epsilon)],
    ["Delta", terms.delta.toExponential()],
    ["Jobs that share it", String(terms.runs)],
    ["Method", terms.mechanism],
    ["Job", job.id],
    ["Created", new Date().toISOString().slice(0, 10)],
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
        Choose the original table. This browser compares it with synthetic records, value by value, and does
        not send it. The comparison is not protected by noise: keep it to yourself.
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

function HandOver(result: Result) {
  const { schema } = result.dataset.terms;
  const { busy, error, run } = useWork();
  const model = async () => {
    const file = await call("generation", "GET", `/v1/jobs/${result.job.id}/model/file`);
    save(await file.blob(), `${schema.name}.model`);
  };
  const text = (content: string, name: string, type: string) => save(new Blob([content], { type }), `${schema.name}-${name}`);
  return (
    <section className="card">
      <h2>Files to pass on</h2>
      <p className="quiet">Pass these files on with the table. They contain nothing private.</p>
      <div className="row">
        <button type="button" onClick={() => text(dataCard(card(result)), "data-card.txt", "text/plain")}>Data card</button>
        <button type="button" onClick={() => text(`${JSON.stringify(schema, null, 2)}\n`, "schema.json", "application/json")}>Schema</button>
        <button type="button" onClick={() => text(`${JSON.stringify(result.model, null, 2)}\n`, "model.json", "application/json")}>The model’s counts</button>
        <button type="button" disabled={busy} onClick={() => void run(model)}>The model, for fhaim sample</button>
      </div>
      <Trouble error={error} />
    </section>
  );
}
