// A job as it runs: its phases, what was released, what it cost, the model it ends with.
import { useEffect, useState } from "react";
import { Link, useParams } from "react-router";
import { call, get } from "../api/client";
import { follow } from "../api/events";
import type { Job, JobEvent, ModelView, ReleasedStatistic } from "../api/types";
import { Bars, LedgerBar, Legend, ModelGraph } from "../parts/charts";
import { JobTag } from "../parts/job-tag";
import { Confirmed, count, Facts, Loading, Notice, Trouble, useLoad, useTitle } from "../parts/ui";

const FINAL = ["done", "failed", "cancelled"];

/** A job and its events, live. */
function useJob(id: string) {
  const { value, error, reload } = useLoad(() => get<Job>("generation", `/v1/jobs/${id}`), id);
  const [events, setEvents] = useState<JobEvent[]>([]);
  const [lost, setLost] = useState(false);
  const [trouble, setTrouble] = useState<unknown>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setEvents([]);
    const take = (event: JobEvent) => {
      setEvents((before) => [...before, event]);
      if (event.what.kind === "state" || event.what.kind === "released") reload();
    };
    follow(id, take, setLost, stop.signal).then(reload, setTrouble);
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
      <Trouble error={error} retry={reload} />
      {!job && error === undefined && <Loading />}
      {lost && <Notice tone="warn"><p>The connection is lost. The job goes on without it; this page comes back by itself.</p></Notice>}
      {job && (
        <>
          <Head job={job} reload={reload} again={again} />
          <Parties events={events} job={job} />
          <Releases job={job} />
          {job.state === "done" && <Model job={job} />}
          <Log events={events} />
        </>
      )}
    </main>
  );
}

function Head({ job, reload, again }: { job: Job; reload: () => void; again: () => void }) {
  const final = FINAL.includes(job.state);
  const [refused, setRefused] = useState<unknown>();
  const act = async (what: "cancel" | "retry") => {
    await call("generation", "POST", `/v1/jobs/${job.id}/${what}`);
    reload();
    again();
  };
  return (
    <>
      <div className="row ends">
        <h1>Job <JobTag state={job.state} /></h1>
        <div className="row">
          <Link className="button" to={`/datasets/${job.dataset}`}>The dataset</Link>
          {job.state === "done" && <Link className="button main" to={`/jobs/${job.id}/result`}>The synthetic table</Link>}
          {job.state === "failed" && <button type="button" className="main" onClick={() => void act("retry").catch(setRefused)}>Retry</button>}
          {!final && (
            <Confirmed label="Cancel" title="Cancel this job?" action={() => act("cancel")}>
              <p>What it has spent of the budget stays spent.</p>
            </Confirmed>
          )}
        </div>
      </div>
      {job.error && <Notice tone="bad"><p>{job.error}</p></Notice>}
      <Trouble error={refused} />
      <progress aria-label="Rounds done" max={job.progress?.rounds ?? 1}
        value={job.state === "done" ? (job.progress?.rounds ?? 1) : Math.max(0, (job.progress?.round ?? 1) - 1)} />
      <Facts items={[
        ["Phase", job.state === "done" ? "done" : (job.progress?.phase ?? "waiting")],
        ["Round", job.progress ? `${job.progress.round} of at most ${job.progress.rounds}` : "–"],
        ["Releases", count(job.releases)],
      ]} />
    </>
  );
}

/** What each service does at the moment, and what it can see. */
function Parties({ events, job }: { events: JobEvent[]; job: Job }) {
  const last = events.at(-1)?.what;
  const running = job.state === "running";
  const generation = running && (last?.kind === "state" || last?.kind === "released" || job.progress?.phase === "fit");
  const computation = running && !generation && (last?.kind === "phase" || last?.kind === "computing");
  const seconds = last?.kind === "computing" ? ` for ${last.seconds.toFixed(1)} s` : "";
  return (
    <div className="grid">
      <Party name="Generation" busy={generation} doing={generation ? "chooses what to ask, fits the model" : undefined}
        sees="noisy counts, once they are released; never a record" />
      <Party name="Computation" busy={computation} doing={computation ? `counts on ciphertexts${seconds}` : undefined}
        sees="ciphertexts, which it cannot decrypt" />
      <Party name="Crypto service" busy={computation} doing={computation ? "debits the budget, then decrypts noisy sums" : undefined}
        sees="sums with your noise already in them; never a ciphertext of a record" />
    </div>
  );
}

function Party({ name, busy, doing, sees }: { name: string; busy: boolean; doing: string | undefined; sees: string }) {
  return (
    <section className="card">
      <h2>{name} {busy && <span className="tag busy">at work</span>}</h2>
      <p className="small">{doing ?? "waits"}</p>
      <p className="small quiet">Sees: {sees}.</p>
    </section>
  );
}

function Releases({ job }: { job: Job }) {
  const path = `/v1/jobs/${job.id}/releases`;
  const { value } = useLoad(() => get<ReleasedStatistic[]>("generation", path), `${path} ${job.releases}`);
  if (!value || value.length === 0) return null;
  const budget = job.spent.rho;
  const phases = [...new Set(value.map(({ phase }) => phase))];
  const parts = phases.map((name) => ({
    name,
    rho: value.filter(({ phase }) => phase === name).reduce((sum, { cost }) => sum + cost.rho, 0),
  }));
  return (
    <section className="card">
      <h2>What the budget was spent on</h2>
      <LedgerBar budget={budget} parts={parts} />
      <details>
        <summary>All {count(value.length)} releases</summary>
        <div className="scroll" tabIndex={0} role="region" aria-label="Releases" style={{ maxHeight: "24rem" }}>
          <table>
            <thead><tr><th>Release</th><th>Phase</th><th>Columns</th><th className="number">Noise (σ)</th><th className="number">Share</th></tr></thead>
            <tbody>
              {value.map((release) => (
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

function Model({ job }: { job: Job }) {
  const path = `/v1/jobs/${job.id}/model`;
  const { value, error, reload } = useLoad(() => get<ModelView>("generation", path), path);
  if (!value) return <Trouble error={error} retry={reload} />;
  return (
    <>
      <section className="card">
        <h2>The model</h2>
        <p className="quiet">Columns, and the pairs whose dependence was measured. It estimates {count(value.total)} records.</p>
        <ModelGraph attributes={value.attributes} pairs={value.measured_pairs} />
      </section>
      <section className="card">
        <h2>Measured and fitted</h2>
        <Legend items={[{ name: "measured, with noise", className: "two" }, { name: "fitted", className: "one" }]} />
        <div className="grid">
          {value.one_ways.map((view, index) => (
            <div key={value.attributes[index]}>
              <h3>{value.attributes[index]}</h3>
              <Bars title={`${value.attributes[index]}, measured and fitted`} labels={view.labels} limit={12}
                series={[
                  { name: "measured", className: "two", values: view.measured },
                  { name: "fitted", className: "one", values: view.fitted },
                ]} />
            </div>
          ))}
        </div>
      </section>
    </>
  );
}

function describe(event: JobEvent): string {
  const { what } = event;
  switch (what.kind) {
    case "state":
      return what.error ? `${what.state}: ${what.error}` : what.state;
    case "phase":
      return `${what.progress.phase}: ${count(what.releases)} releases asked for`;
    case "computing":
      return `computing for ${what.seconds.toFixed(1)} s`;
    case "released":
      return `${count(what.releases)} releases, ${count(what.cells)} numbers`;
  }
}

function Log({ events }: { events: JobEvent[] }) {
  return (
    <section className="card">
      <h2>Events</h2>
      <div className="log" tabIndex={0} role="log" aria-label="Events of the job">
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
