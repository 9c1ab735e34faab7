// Records drawn from a model, by its holder or by an account with a link to it.
import { useState, type FormEvent } from "react";
import type { Schema } from "../crypto/messages";
import { Filters, written, type Condition } from "../pages/filters";
import { parseCsv } from "./csv";
import { save } from "./save";
import { Field, Trouble, useLoad, useWork } from "./ui";

const PREVIEW_ROWS = 12;

/** The query for a table. Empty values are omitted. */
export type Query = Record<string, string>;

/** Returns the query string. */
export function asked(query: Query): string {
  return new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString();
}

/** The model that tables are drawn from. */
export interface Source {
  /** Identifies the model. */
  key: string;
  schema: Schema;
  /** Number of records, as the model estimates. */
  total: number;
  /** The bins, groups or categories of a column. */
  labels: (column: string) => string[];
  draw: (query: Query) => Promise<Response>;
}

export function Download({ source: { schema, total, labels, draw } }: { source: Source }) {
  const [format, setFormat] = useState("csv");
  const [rows, setRows] = useState(String(Math.max(1, Math.round(total))));
  const [seed, setSeed] = useState("");
  const [conditions, setConditions] = useState<Condition[]>([]);
  const { busy, error, run } = useWork();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void run(async () => {
      const table = await (await draw({ format, rows, seed, where: written(conditions) })).blob();
      save(table, `${schema.name}-synthetic.${format}`);
    });
  };
  return (
    <form className="card" onSubmit={submit}>
      <h2>Download</h2>
      <p className="quiet">Records are drawn from the model. This costs no budget, so you can draw as many as you like.</p>
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
        <Field label="Seed" hint="The same seed draws the same records. Empty: a random one.">
          {(id, hint) => <input id={id} aria-describedby={hint} inputMode="numeric" pattern="[0-9]*" value={seed} onChange={(event) => setSeed(event.target.value)} />}
        </Field>
      </div>
      <Filters schema={schema} labels={labels} conditions={conditions} onChange={setConditions} />
      <Trouble error={error} />
      <button className="main" disabled={busy}>{busy ? "Drawing…" : "Download"}</button>
    </form>
  );
}

export function Preview({ source: { key, draw } }: { source: Source }) {
  const load = async () => parseCsv(await (await draw({ rows: String(PREVIEW_ROWS), seed: "1" })).text());
  const { value, error, reload } = useLoad(load, key);
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
              // Records have no identity.
              <tr key={index}>{row.map((field, column) => <td key={header[column]}>{field === "" ? <span className="quiet">(missing)</span> : field}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
