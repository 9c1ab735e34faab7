// Step 3: how much privacy to spend, with what it does to this table's counts.
import { useEffect, useState } from "react";
import type { Terms } from "../../api/types";
import type { Planned, ReadOptions, ReadTable } from "../../crypto/messages";
import type { HolderSession } from "../../crypto/session";
import { Bars } from "../../parts/charts";
import { bytes, count, Facts, Field, Notice, seconds, Trouble } from "../../parts/ui";

interface Props {
  session: HolderSession;
  read: ReadOptions;
  table: ReadTable;
  onBack: () => void;
  onCreate: (name: string, terms: Terms) => Promise<void>;
}

const MODEL_BYTES = 64 << 20;
/** Seconds to encrypt and send one object, for the estimate before the first is sent. */
const OBJECT_SECONDS = 0.06;
/** The slider's positions are tenths of a decade: 0.01 to 100. */
const epsilonAt = (position: number) => Number((10 ** (position / 10)).toPrecision(2));
const positionOf = (epsilon: number) => Math.round(10 * Math.log10(epsilon));

function usePlan(session: HolderSession, terms: Terms, records: number) {
  const [state, setState] = useState<{ plan?: Planned; error?: unknown }>({});
  const key = JSON.stringify([terms.epsilon, terms.delta, terms.runs, terms.target_weight]);
  useEffect(() => {
    let current = true;
    const timer = setTimeout(() => {
      session.plan(terms, records).then(
        (plan) => current && setState({ plan }),
        (error: unknown) => current && setState({ error }),
      );
    }, 200);
    return () => {
      current = false;
      clearTimeout(timer);
    };
    // The schema and the record bound do not change in this step.
  }, [session, key, records]);
  return state;
}

export function BudgetStep({ session, read, table, onBack, onCreate }: Props) {
  const [name, setName] = useState(read.schema.name);
  const [epsilon, setEpsilon] = useState(1);
  const [delta, setDelta] = useState(1e-9);
  const [runs, setRuns] = useState(1);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const terms: Terms = {
    schema: read.schema,
    epsilon,
    delta,
    mechanism: "staged",
    record_bound: table.record_bound,
    runs,
    model_bytes: MODEL_BYTES,
    target_weight: 1,
  };
  const { plan, error: refused } = usePlan(session, terms, table.records);
  const create = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onCreate(name, terms);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <section>
      <Explained />
      <div className="grid">
        <div className="card">
          <h2>The budget</h2>
          <Field label={`Epsilon: ${epsilon}`} hint="Smaller protects more, with more noise. 1 is a common choice; above 10 the protection is weak.">
            {(id, hint) => (
              <input id={id} aria-describedby={hint} type="range" min={-10} max={15} value={positionOf(epsilon)}
                aria-valuetext={String(epsilon)} onChange={(event) => setEpsilon(epsilonAt(Number(event.target.value)))} />
            )}
          </Field>
          <Field label="Delta" hint="How likely the promise may fail: far below one in the number of records.">
            {(id, hint) => (
              <select id={id} aria-describedby={hint} value={delta} onChange={(event) => setDelta(Number(event.target.value))}>
                {[1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12].map((value) => <option key={value} value={value}>{value.toExponential()}</option>)}
              </select>
            )}
          </Field>
          <Field label="Jobs that share it" hint="Each gets an equal part. With one, the synthetic table is as good as the budget allows.">
            {(id, hint) => (
              <select id={id} aria-describedby={hint} value={runs} onChange={(event) => setRuns(Number(event.target.value))}>
                {[1, 2, 3, 4, 5, 8, 10].map((value) => <option key={value}>{value}</option>)}
              </select>
            )}
          </Field>
          <Field label="Name of the dataset">
            {(id) => <input id={id} required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />}
          </Field>
        </div>
        <NoisePicture table={table} plan={plan} />
      </div>
      <Trouble error={refused} />
      {plan && <Cost plan={plan} table={table} />}
      <Notice>
        <p>Epsilon, delta, the columns and the number of jobs are fixed for good once the dataset is made. So is the budget: what a job spends does not come back.</p>
      </Notice>
      <Trouble error={error} />
      <div className="row">
        <button type="button" onClick={onBack}>Back</button>
        <button type="button" className="main" disabled={busy || !plan || name.trim() === ""} onClick={() => void create()}>
          Encrypt and upload
        </button>
      </div>
    </section>
  );
}

function Explained() {
  return (
    <div className="card">
      <h2>How much may be learned about one person?</h2>
      <p>
        Every number that leaves the encryption carries random noise, drawn so that adding or removing
        one record changes the chance of any result by a factor of at most e<sup>ε</sup>, except with
        probability δ. At ε = 1 that factor is 2.7; at 0.1 it is 1.1. The noise comes from your browser,
        encrypted: no service knows it.
      </p>
    </div>
  );
}

function NoisePicture({ table, plan }: { table: ReadTable; plan: Planned | undefined }) {
  const [chosen, setChosen] = useState(0);
  const column = table.columns[chosen];
  const sigma = plan?.sigmas[chosen] ?? 0;
  if (!column) return null;
  return (
    <div className="card">
      <h2>What it does to your counts</h2>
      <Field label="Column">
        {(id) => (
          <select id={id} value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
            {table.columns.map(({ name }, index) => <option key={name} value={index}>{name}</option>)}
          </select>
        )}
      </Field>
      <Bars title={`Counts of ${column.name} with the noise of their first release`} labels={column.labels}
        series={[{ name: "records", className: "one", values: column.counts }]} spread={sigma} limit={12} />
      <p className="small quiet">
        Bars: your records, seen by this page alone. Brackets: where 19 of 20 noisy counts fall at the
        first release{sigma > 0 && `, ± ${count(2 * sigma)}`}; later releases make them tighter.
      </p>
    </div>
  );
}

function Cost({ plan, table }: { plan: Planned; table: ReadTable }) {
  const size = plan.objects.length * plan.object_bytes;
  return (
    <div className="card">
      <Facts items={[
        ["Records", count(table.records)],
        ["Seen of that number", `at most ${count(table.record_bound)}`],
        ["Ciphertexts", count(plan.objects.length)],
        ["Upload", bytes(size)],
        ["Takes about", seconds(plan.objects.length * OBJECT_SECONDS)],
      ]} />
    </div>
  );
}
