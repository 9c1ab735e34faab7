// Shows which columns stay above the noise with these settings, and how to improve the others.
import type { Planned, ReadColumn, ReadTable, Reliance } from "../../crypto/messages";
import { count } from "../../components/ui";

/** Expected distances from which a column is roughly usable, and not at all: the sizes that a report calls slight and severe. */
const NEAR = 0.05;
const FAR = 0.1;

interface Light {
  name: string;
  reliance: Reliance;
  /** Expected total variation distance from the noise of the first release. */
  distance: number;
  values: number;
}

/** Returns half the sum of the mean absolute noise of a column's counts, as a share of the records. */
function distance(column: ReadColumn, sigma: number, records: number): number {
  return (column.labels.length * sigma * Math.sqrt(2 / Math.PI)) / (2 * Math.max(1, records));
}

function lights(table: ReadTable, plan: Planned): Light[] {
  return table.columns.flatMap((column, attribute) => {
    const sigma = plan.sigmas[attribute];
    if (column.digit || sigma == null) return [];
    const far = Math.min(1, distance(column, sigma, table.records));
    const reliance: Reliance = far < NEAR ? "good" : far < FAR ? "rough" : "bad";
    return [{ name: column.name, reliance, distance: far, values: column.labels.length }];
  });
}

const WORDS: Record<Reliance, string> = { good: "signal", rough: "roughly", bad: "mostly noise" };
const TONES: Record<Reliance, string> = { good: "good", rough: "warn", bad: "bad" };

export function Signal({ table, plan }: { table: ReadTable; plan: Planned | undefined }) {
  if (!plan) return null;
  const all = lights(table, plan);
  const worse = all.filter(({ reliance }) => reliance !== "good");
  return (
    <section className="card">
      <h2>Signal or noise?</h2>
      <p className="small quiet">
        How far the noise of the first release moves each column, from 0 to 1 as in the final report;
        below {NEAR} is little. Later releases reduce it.
      </p>
      <ul className="lights">
        {all.map(({ name, reliance, distance }) => (
          <li key={name}>
            <span className={`tag ${TONES[reliance]}`}>{WORDS[reliance]}</span> {name} <span className="quiet">{distance.toFixed(3)}</span>
          </li>
        ))}
      </ul>
      {worse.length > 0 && (
        <p>
          {count(table.records)} records are few for {worse.map(({ name, values }) => `${name} with ${count(values)} values`).join(", ")}.
          Give {worse.length === 1 ? "it" : "them"} fewer values in the previous step, leave columns out, share the budget among fewer jobs, or increase the budget.
        </p>
      )}
    </section>
  );
}
