// The page of a job: its progress, its releases, the budget spent, and the fitted model.
import { useEffect, useRef, useState, type ReactNode, type UIEvent } from "react";
import { Link, useParams } from "react-router";
import { call, get } from "../api/client";
import { follow } from "../api/events";
import { receiptOf } from "../api/receipts";
import type { Dataset, Job, JobEvent, ModelView, ReleasedStatistic } from "../api/types";
import { Bars, LedgerBar, Legend, ModelGraph } from "../components/charts";
import { digitsOf } from "../components/column-words";
import { JobTag } from "../components/job-tag";
import { Confirmed, count, counted, Facts, Field, Loading, Notice, Trouble, useLoad, useTitle } from "../components/ui";

/** Pixels from the end of the log within which it counts as scrolled to its end. */
const NEAR_END = 24;

const FINAL = ["done", "failed", "cancelled"];

/** Loads a job and follows its events. */
function useJob(id: string) {
  const { value, error, reload } = useLoad(() => get<Job>("generation", `/v1/jobs/${id}`), id);
  const [events, setEvents] = useState<JobEvent[]>([]);
  const [lost, setLost] = useState(false);
  const [trouble, setTrouble] = useState<unknown>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setEvents([]);
    setTrouble(undefined);
    const take = (event: JobEvent) => {
      setEvents((before) => [...before, event]);
      if (event.what.kind === "state" || event.what.kind === "released") reload();
    };
    const connection = (isLost: boolean) => {
      setLost(isLost);
      if (!isLost) reload();
    };
    follow(id, take, connection, stop.signal).then(reload, setTrouble);
    return () => stop.abort();
  }, [id, reload, attempt]);
  return { job: value, events, lost, error: error ?? trouble, reload, again: () => setAttempt(attempt + 1) };
}

export default function JobPage() {
  const { job: id = "" } = useParams();
  useTitle("Job");
  const { job, events, lost, error, reload, again } = useJob(id);
  return (
    <main id="content">
      {!lost && <Trouble error={error} retry={reload} />}
      {!job && error === undefined && <Loading />}
      {lost && <Notice tone="warn"><p>The connection is lost. The job keeps running; this page reconnects automatically.</p></Notice>}
      {job && (
        <>
          <Head job={job} reload={reload} again={again} />
          <Outcome job={job} />
          <Parties events={events} job={job} />
          <Log events={events} />
        </>
      )}
    </main>
  );
}

function Head({ job, reload, again }: { job: Job; reload: () => void; again: () => void }) {
  const final = FINAL.includes(job.state);
  const [refused, setRefused] = useState<unknown>();
  useEffect(() => {
    // Stores a receipt of the ledger that has the job's releases. Errors are reported when the next job is run.
    if (final && job.releases > 0) receiptOf(job.dataset).catch(() => undefined);
  }, [final, job.dataset, job.releases]);
  const dataset = useLoad(() => get<Dataset>("generation", `/v1/datasets/${job.dataset}`), job.dataset).value;
  const act = async (what: "cancel" | "retry") => {
    // A retry spends budget: as for a new job, the ledger is first compared with its last known state.
    if (what === "retry") await receiptOf(job.dataset);
    await call("generation", "POST", `/v1/jobs/${job.id}/${what}`);
    reload();
    again();
  };
  return (
    <>
      <div className="row ends">
        <h1>Job{dataset && ` on ${dataset.name}`} <JobTag state={job.state} /></h1>
        <div className="row">
          <Link className="button" to={`/datasets/${job.dataset}`}>The dataset</Link>
          <Link className="button" to={`/compare/${job.id}`}>Compare</Link>
          <Note job={job} reload={reload} />
          {job.state === "done" && <Link className="button main" to={`/jobs/${job.id}/result`}>The synthetic table</Link>}
          {(job.state === "failed" || job.state === "cancelled") && (
            <button type="button" className="main" onClick={() => void act("retry").catch(setRefused)}>Retry</button>
          )}
          {!final && (
            <Confirmed label="Cancel" title="Cancel this job?" action={() => act("cancel")}>
              <p>The spent budget cannot be recovered, and the job keeps its share: use “Retry” to resume it.</p>
            </Confirmed>
          )}
        </div>
      </div>
      {job.note && <p className="quiet">{job.note}</p>}
      {job.error && <Notice tone="bad"><p>{job.error}</p></Notice>}
      <Trouble error={refused} />
      <Progress job={job} />
    </>
  );
}

/** A note on a job, which all holders of the dataset see. */
function Note({ job: { id, note = "" }, reload }: { job: Job; reload: () => void }) {
  const [fresh, setFresh] = useState(note);
  const annotate = async () => {
    await call("generation", "PUT", `/v1/jobs/${id}/note`, { json: { note: fresh } });
    reload();
  };
  return (
    <Confirmed label="Note" title="A note on this job" tone="" confirm="Save the note" dismiss="Not now" action={annotate}>
      <Field label="Text of the note" hint="All holders of the dataset see it. Leave it empty to remove the note.">
        {(id, hint) => <input id={id} aria-describedby={hint} maxLength={200} value={fresh} onChange={(event) => setFresh(event.target.value)} />}
      </Field>
    </Confirmed>
  );
}

function Progress({ job: { state, progress, releases } }: { job: Job }) {
  const [round, rounds] = [progress?.round ?? 0, progress?.rounds ?? 1];
  const phase = state === "running" ? progress?.phase : undefined;
  return (
    <>
      {phase && <p role="status">{phase}</p>}
      <progress aria-label="Rounds done" max={rounds} value={state === "done" ? rounds : Math.max(0, round - 1)} />
      <Facts items={[
        ["State", state === "running" && !progress ? "starting" : state],
        ["Round", progress ? `${round} of at most ${rounds}` : "–"],
        ["Releases", count(releases)],
      ]} />
    </>
  );
}

type Turn = "generation" | "services" | undefined;

/** Returns who works now: generation (chooses and fits) or the other services (compute and decrypt). */
function turn(events: JobEvent[], job: Job): Turn {
  if (job.state !== "running") return undefined;
  const last = events.at(-1)?.what.kind;
  if (job.progress?.phase === "Fitting the model") return "generation";
  return last === "phase" || last === "computing" ? "services" : "generation";
}

/** Shows what each service does now, and what it can see. */
function Parties({ events, job }: { events: JobEvent[]; job: Job }) {
  const now = turn(events, job);
  const last = events.at(-1)?.what;
  const seconds = last?.kind === "computing" ? `, for ${last.seconds.toFixed(1)} s so far` : "";
  const idle = job.state === "running" ? "waits for the others" : job.state === "queued" ? "has not started" : "is done with this job";
  return (
    <details className="card parties" open={job.state === "running"}>
    <summary>Who can see what</summary>
    <div className="grid">
      <Party name="Computation (CE)" isBusy={now === "services"}
        does={now === "services" ? `adds and multiplies ciphertexts, and adds your encrypted noise${seconds}` : idle}
        sees="only ciphertexts. It has no key, so it sees no records, counts or noise." />
      <Party name="Keys (CSE)" isBusy={now === "services"}
        does={now === "services" ? "debits the budget, then decrypts sums that contain the noise" : idle}
        sees="sums that already contain your noise; never a ciphertext of a record or the noise itself." />
      <Party name="Generation (GE)" isBusy={now === "generation"}
        does={now === "generation" ? "fits the model and chooses the next statistics" : idle}
        sees="released noisy counts and the model fitted to them; never a record." />
    </div>
    </details>
  );
}

function Party({ name, isBusy, does, sees }: { name: string; isBusy: boolean; does: string; sees: string }) {
  return (
    <section>
      <h2>{name} {isBusy && <span className="tag busy">working</span>}</h2>
      <p>{does}</p>
      <p className="small quiet">Can see: {sees}</p>
    </section>
  );
}

/** Shows the releases so far, and the model of a finished job. */
function Outcome({ job }: { job: Job }) {
  const path = `/v1/jobs/${job.id}/releases`;
  const { value = [] } = useLoad(() => get<ReleasedStatistic[]>("generation", path), `${path} ${job.releases}`);
  const spent = value.length > 0 && <Spent releases={value} budget={job.spent.rho} />;
  return job.state === "done" ? <Model job={job} releases={value}>{spent}</Model> : spent;
}

function Spent({ releases, budget }: { releases: ReleasedStatistic[]; budget: number }) {
  const phases = [...new Set(releases.map(({ phase }) => phase))];
  const parts = phases.map((name) => ({ name, rho: cost(releases.filter(({ phase }) => phase === name)) }));
  return (
    <section className="card">
      <h2>How the budget was spent</h2>
      <LedgerBar budget={budget} parts={parts} />
      <details>
        <summary>{counted(releases.length, "release")}</summary>
        <div className="scroll" tabIndex={0} role="region" aria-label="Releases" style={{ maxHeight: "24rem" }}>
          <table>
            <thead><tr><th>Release</th><th>Phase</th><th>Columns</th><th className="number">Noise (σ)</th><th className="number">Share</th></tr></thead>
            <tbody>
              {releases.map((release) => (
                <tr key={release.number}>
                  <td>{release.number}</td>
                  <td>{release.phase}</td>
                  <td>{release.attributes.join(", ") || "number of records"}</td>
                  <td className="number">{release.sigma.toFixed(1)}</td>
                  <td className="number">{((100 * release.cost.rho) / budget).toFixed(2)} %</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}

function cost(releases: ReleasedStatistic[]): number {
  return releases.reduce((sum, { cost: { rho } }) => sum + rho, 0);
}

/** Returns the budget spent on a pair of columns. */
function spentOn(releases: ReleasedStatistic[], names: (string | undefined)[]): number {
  return cost(releases.filter(({ attributes }) => attributes.length === 2 && attributes.every((name) => names.includes(name))));
}

function Model({ job, releases, children }: { job: Job; releases: ReleasedStatistic[]; children: ReactNode }) {
  const path = `/v1/jobs/${job.id}/model`;
  const { value, error, reload } = useLoad(() => get<ModelView>("generation", path), path);
  if (!value) return <>{children}<Trouble error={error} retry={reload} /></>;
  const { attributes, total } = value;
  const digits = digitsOf(attributes);
  const coarse = attributes.filter((name) => !digits.has(name));
  const named = value.measured_pairs.map((pair) => pair.map((attribute) => attributes[attribute] ?? ""));
  const pairs = named.filter((pair) => pair.every((name) => !digits.has(name)));
  const weights = pairs.map((pair) => spentOn(releases, pair));
  return (
    <>
      <div className="grid two">
        <section className="card">
          <h2>The model</h2>
          <p className="quiet">Columns, and the pairs whose dependence was measured. A thicker line means that more was spent on the pair. The model estimates {counted(total, "record")}.</p>
          <ModelGraph attributes={coarse} pairs={pairs.map((pair) => pair.map((name) => coarse.indexOf(name)))} weights={weights} />
        </section>
        {children}
      </div>
      <Fitted model={value} />
    </>
  );
}

function Fitted({ model }: { model: ModelView }) {
  const digits = digitsOf(model.attributes);
  const all = model.one_ways.map((view, index) => ({ view, index }));
  const shown = all.filter(({ index }) => !digits.has(model.attributes[index] ?? ""));
  return (
    <section className="card">
      <h2>Measured and fitted</h2>
      <Legend items={[{ name: "measured, with noise", className: "two" }, { name: "fitted", className: "one" }]} />
      <div className="grid">
        {shown.map(({ view, index }) => (
          <div key={model.attributes[index]}>
            <h3>{model.attributes[index]}</h3>
            <Bars title={`${model.attributes[index]}, measured and fitted`} labels={view.labels} limit={12}
              series={[
                { name: "measured", className: "two", values: view.measured.map(Math.round) },
                { name: "fitted", className: "one", values: view.fitted.map(Math.round) },
              ]} />
          </div>
        ))}
      </div>
    </section>
  );
}

function describe(event: JobEvent): string {
  const { what } = event;
  switch (what.kind) {
    case "state":
      return what.error ? `${what.state}: ${what.error}` : what.state;
    case "phase":
      return what.releases === 0 ? `${what.progress.phase} starts` : `${what.progress.phase}: ${counted(what.releases, "release")} requested`;
    case "computing":
      return `computing for ${what.seconds.toFixed(1)} s`;
    case "released":
      return `${counted(what.releases, "release")}, ${counted(what.cells, "number")}`;
  }
}

function Log({ events }: { events: JobEvent[] }) {
  const log = useRef<HTMLDivElement>(null);
  // Keeps the newest event in view, unless the user has scrolled back.
  const follows = useRef(true);
  useEffect(() => {
    if (log.current && follows.current) log.current.scrollTop = log.current.scrollHeight;
  }, [events]);
  const scrolled = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: UIEvent) => {
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR_END;
  };
  return (
    <section className="card">
      <h2>Events</h2>
      <div className="log" ref={log} onScroll={scrolled} tabIndex={0} role="log" aria-label="Events of the job">
        <ol>
          {events.map((event) => (
            <li key={event.number}>
              <span className="quiet">{new Date(event.at).toLocaleTimeString()}</span> {describe(event)}
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}
