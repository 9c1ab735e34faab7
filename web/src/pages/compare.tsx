// Compares two jobs: budget spent, duration, and distance from the original.
import { useState, type ReactNode } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { call, get, list } from "../api/client";
import { partOf } from "../api/parts";
import type { Dataset, Job, ModelView, ReleasedStatistic } from "../api/types";
import type { Report } from "../crypto/messages";
import { recall } from "../crypto/remembered";
import { HolderSession } from "../crypto/session";
import { asked } from "../components/draw";
import { distances, mean, median, type ColumnDistance } from "../components/figures";
import { JobTag } from "../components/job-tag";
import { count, Field, Loading, Notice, seconds, Trouble, useLoad, useTitle, useWork, When } from "../components/ui";

interface Side {
  job: Job;
  dataset: Dataset;
  /** Budget spent by the job, as epsilon at the dataset's delta. */
  epsilon: number;
  releases: ReleasedStatistic[];
  /** The model of a finished job, if its mechanism fits one that can be shown. */
  model: ModelView | undefined;
}

async function load(id: string, session: HolderSession): Promise<Side> {
  const job = await get<Job>("generation", `/v1/jobs/${id}`);
  const model = job.state === "done" ? get<ModelView>("generation", `/v1/jobs/${id}/model`).catch(() => undefined) : undefined;
  const [dataset, releases] = await Promise.all([
    get<Dataset>("generation", `/v1/datasets/${job.dataset}`),
    get<ReleasedStatistic[]>("generation", `/v1/jobs/${id}/releases`),
  ]);
  const { epsilon } = await session.compose([job.spent.exact], dataset.terms.delta);
  return { job, dataset, epsilon, releases, model: await model };
}

async function loadBoth(ids: string[]): Promise<Side[]> {
  const session = new HolderSession();
  try {
    return await Promise.all(ids.map((id) => load(id, session)));
  } finally {
    session.end();
  }
}

export default function ComparePage() {
  const { first = "", second = "" } = useParams();
  useTitle("Compare jobs");
  const ids = second === "" ? [first] : [first, second];
  const { value, error, reload } = useLoad(() => loadBoth(ids), ids.join());
  // Ignores answers about jobs that are no longer chosen.
  const sides = value?.map(({ job }) => job.id).join() === ids.join() ? value : undefined;
  return (
    <main id="content">
      <h1>Compare jobs</h1>
      <Choice first={first} second={second} />
      <Trouble error={error} retry={reload} />
      {!sides && error === undefined && <Loading />}
      {sides && second === "" && <p className="quiet">Choose the job to compare it with.</p>}
      {sides && second !== "" && (
        <>
          <Figures sides={sides} />
          <Closeness key={ids.join()} sides={sides} />
        </>
      )}
    </main>
  );
}

interface Group {
  dataset: Dataset;
  jobs: Job[];
}

/** Loads all jobs, grouped by dataset. A dataset with all runs left has no jobs, so it is not asked for them. */
async function loadJobs(): Promise<Group[]> {
  const datasets = await list<Dataset>("generation", "/v1/datasets");
  const begun = datasets.filter(({ state, runs_left, terms }) => state === "ready" && runs_left < terms.runs);
  return Promise.all(begun.map(async (dataset) => ({ dataset, jobs: await list<Job>("generation", `/v1/datasets/${dataset.id}/jobs`) })));
}

function Choice({ first, second }: { first: string; second: string }) {
  const navigate = useNavigate();
  const { value = [], error, reload } = useLoad(loadJobs, "");
  const go = (one: string, other: string) => void navigate(`/compare/${one}${other && `/${other}`}`, { replace: true });
  return (
    <section className="card">
      <Trouble error={error} retry={reload} />
      <div className="grid fields">
        <Choose label="First job" groups={value} chosen={first} other={second} onChoose={(id) => go(id, second)} />
        <Choose label="Second job" groups={value} chosen={second} other={first} onChoose={(id) => go(first, id)} />
      </div>
    </section>
  );
}

function Choose(props: { label: string; groups: Group[]; chosen: string; other: string; onChoose: (id: string) => void }) {
  const { label, groups, chosen, other, onChoose } = props;
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={chosen} onChange={(event) => onChoose(event.target.value)}>
          {chosen === "" && <option value="">choose</option>}
          {groups.map(({ dataset, jobs }) => (
            <optgroup key={dataset.id} label={dataset.name}>
              {jobs.map((job) => (
                <option key={job.id} value={job.id} disabled={job.id === other}>{named(job)}</option>
              ))}
            </optgroup>
          ))}
        </select>
      )}
    </Field>
  );
}

function named({ note, created_at, state }: Job): string {
  const begun = new Date(created_at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return `${note || begun}, ${state}`;
}

type Row = [label: string, of: (side: Side) => ReactNode];

const ROWS: Row[] = [
  ["Dataset", ({ dataset }) => <Link to={`/datasets/${dataset.id}`}>{dataset.name}</Link>],
  ["State", ({ job }) => <JobTag state={job.state} />],
  ["Started", ({ job }) => <When at={job.created_at} />],
  ["Duration", ({ job }) => took((Date.parse(job.updated_at) - Date.parse(job.created_at)) / 1000)],
  ["Method", ({ dataset }) => dataset.terms.mechanism],
  ["Epsilon spent", ({ epsilon, dataset }) => `${epsilon.toPrecision(3)} at δ ${dataset.terms.delta.toExponential()}`],
  ["ρ spent", ({ job }) => job.spent.rho.toPrecision(3)],
  ["Releases", ({ releases }) => count(releases.length)],
  ["Pairs measured", ({ model }) => (model ? count(model.measured_pairs.length) : "–")],
  ["Noise of a pair’s count (median σ)", ({ releases }) => shown(median(releases.filter(isPair).map(({ sigma }) => sigma)), 1)],
  ["Estimated records", ({ model }) => (model ? count(model.total) : "–")],
  ["Fit to the noisy counts: mean distance", ({ model }) => shown(model && mean(distances(model).map(({ distance }) => distance)), 4)],
];

/** Formats a duration. Short ones have tenths of a second, so that they can be compared. */
function took(time: number): string {
  return time < 100 ? `${time.toFixed(1)} s` : seconds(time);
}

function isPair({ attributes }: ReleasedStatistic): boolean {
  return attributes.length === 2;
}

function shown(value: number | undefined, digits: number): string {
  return value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits);
}

function Heads({ sides }: { sides: Side[] }) {
  return <>{sides.map(({ job }) => <th key={job.id}><Link to={`/jobs/${job.id}`}>{job.note || `Job ${job.id.slice(-6)}`}</Link></th>)}</>;
}

function Figures({ sides }: { sides: Side[] }) {
  return (
    <section className="card">
      <h2>Costs and results</h2>
      <div className="scroll" tabIndex={0} role="region" aria-label="Both jobs">
        <table className="sides">
          <thead><tr><td /><Heads sides={sides} /></tr></thead>
          <tbody>
            {ROWS.map(([label, of]) => (
              <tr key={label}><th scope="row">{label}</th>{sides.map((side) => <td key={side.job.id}>{of(side)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Compares a side's synthetic table with the original, which stays in this browser. */
async function reportOf({ job, dataset }: Side, file: File): Promise<Report> {
  const session = new HolderSession();
  try {
    const part = await session.part(dataset.terms, await partOf(dataset));
    const real = await session.read(file, { ...(await recall(dataset, part.schema, file, session)), keep_values: true });
    const query = asked({ rows: String(Math.max(1000, real.records)), seed: "1" });
    const drawn = await call("generation", "GET", `/v1/jobs/${job.id}/synthetic?${query}`);
    return (await session.report(await drawn.blob(), [["Job", job.id]])).report;
  } finally {
    session.end();
  }
}

function Closeness({ sides }: { sides: Side[] }) {
  const [reports, setReports] = useState<Report[]>();
  const { busy, error, run } = useWork();
  if (sides.some(({ job }) => job.state !== "done")) return null;
  const compare = async (file: File) => {
    const made: Report[] = [];
    // One at a time: each comparison holds the whole table in memory.
    for (const side of sides) made.push(await reportOf(side, file));
    setReports(made);
  };
  return (
    <section className="card">
      <h2>How close is each?</h2>
      <p>
        Choose the original table. Both synthetic tables are compared with it in this browser, and it is not sent. The
        comparison is not protected by noise: keep it to yourself, and do not base published settings on it.
      </p>
      <label htmlFor="original">The original, as a CSV file</label>
      <input id="original" type="file" accept=".csv,text/csv,text/plain" disabled={busy}
        onChange={(event) => event.target.files?.[0] && void run(() => compare(event.target.files?.[0] as File))} />
      {busy && <Notice><p>Comparing…</p></Notice>}
      <Trouble error={error} />
      {reports && <Errors sides={sides} reports={reports} />}
    </section>
  );
}

const ERRORS: [label: string, of: (report: Report) => number | undefined, digits: number][] = [
  ["Columns: mean distance", ({ columns }) => mean(columns.map((column) => column.total_variation)), 4],
  ["Columns: largest", ({ columns }) => Math.max(...columns.map((column) => column.total_variation)), 4],
  ["Pairs of columns: mean distance", (report) => mean(pairs(report)), 4],
  ["Pairs of columns: largest", (report) => Math.max(0, ...pairs(report)), 4],
  ["Severe findings", ({ assessment }) => assessment.findings.filter(({ severity }) => severity === "major").length, 0],
  ["Slight findings", ({ assessment }) => assessment.findings.filter(({ severity }) => severity === "minor").length, 0],
];

function pairs({ pair_total_variation }: Report): number[] {
  return pair_total_variation.flatMap((row, index) => row.slice(index + 1));
}

function Errors({ sides, reports }: { sides: Side[]; reports: Report[] }) {
  const columns = reports.map(({ columns }) => columns.map(({ name, total_variation }): ColumnDistance => ({ name, distance: total_variation })));
  const names = [...new Set(columns.flat().map(({ name }) => name))];
  const of = (index: number, column: string) => columns[index]?.find(({ name }) => name === column)?.distance;
  return (
    <>
      <h3>Distance from the original</h3>
      <p className="small quiet">Total variation: 0 if both tables have the same shares, 1 if they have nothing in common. The smaller value is bold.</p>
      <div className="scroll" tabIndex={0} role="region" aria-label="Distances from the original">
        <table className="sides">
          <thead><tr><td /><Heads sides={sides} /></tr></thead>
          <tbody>
            {ERRORS.map(([label, error, digits]) => <Numbers key={label} label={label} values={reports.map(error)} digits={digits} />)}
            {names.map((name) => <Numbers key={name} label={name} values={reports.map((_, index) => of(index, name))} digits={4} />)}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Numbers({ label, values, digits }: { label: string; values: (number | undefined)[]; digits: number }) {
  const texts = values.map((value) => shown(value, digits));
  const known = values.filter((value) => value !== undefined);
  // Values that look equal after rounding are not marked.
  const least = new Set(texts).size > 1 && known.length === values.length ? shown(Math.min(...known), digits) : undefined;
  return (
    <tr>
      <th scope="row">{label}</th>
      {texts.map((text, index) => <td key={index}>{text === least ? <strong>{text}</strong> : text}</td>)}
    </tr>
  );
}
