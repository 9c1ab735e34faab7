// Step 1: choose a CSV file, which is read in a worker.
import { useEffect, useState, type DragEvent } from "react";
import { useSearchParams } from "react-router";
import type { Column, Dialect, Drafted, Format } from "../../crypto/messages";
import { type HolderSession, type OnRead, useReading, WorkerRefusal } from "../../crypto/session";
import { sniff } from "../../crypto/sniff";
import { exampleTable, type Example } from "../../components/example";
import { Field, Reading, Trouble, useWork } from "../../components/ui";
import { kept } from "./kept";

export interface Picked {
  file: File;
  format: Format;
  /** How the file is written. */
  dialect: Dialect;
  /** The columns to keep, as the user typed them. */
  only: string;
  drafted: Drafted;
  /** The columns as drafted, before any edit. */
  original: Column[];
  /** Some distinct values of each column, by column name. */
  samples: Record<string, string[]>;
  /** Values of each column in the first records, by column name. */
  first: Record<string, string[]>;
  /** Number of records. */
  lines: number;
  /** Columns confirmed as public, if the draft was kept from before. */
  confirmed: string[];
}

/** The user's settings for reading the file; the page detects or defaults empty ones. */
interface Said {
  missing: string;
  delimiter: string;
  encoding: string;
  skipRows: string;
  skipFooter: string;
  only: string;
}

const NOTHING_SAID: Said = { missing: "", delimiter: "", encoding: "", skipRows: "", skipFooter: "", only: "" };

/** Maximum number of distinct values shown per column. */
const MAX_SAMPLES = 12;

function texts(list: string): string[] {
  return list.split(",").map((text) => text.trim()).filter((text) => text !== "");
}

/** Returns the columns to leave out. */
function others(header: string[], only: string): string[] {
  const wanted = texts(only);
  const unknown = wanted.find((name) => !header.includes(name));
  if (unknown !== undefined) throw new Error(`The table has no column “${unknown}”.`);
  return wanted.length === 0 ? [] : header.filter((name) => !wanted.includes(name));
}

function byColumn(header: string[], records: string[][]): Record<string, string[]> {
  return Object.fromEntries(header.map((name, place) => [name, records.map((record) => record[place] ?? "")]));
}

function different(values: string[]): string[] {
  return [...new Set(values.filter((value) => value !== ""))].slice(0, MAX_SAMPLES);
}

/** Returns what the user stated about a file. */
function stated(file: File, said: Said): Format {
  const format: Format = { file: file.name, missing: texts(said.missing) };
  if (said.delimiter !== "") format.delimiter = said.delimiter;
  if (said.encoding.trim() !== "") format.encoding = said.encoding.trim();
  const count = (text: string) => (/^\s*\d+\s*$/.test(text) ? Number(text) : undefined);
  const [rows, footer] = [count(said.skipRows), count(said.skipFooter)];
  if (rows !== undefined) format.skip_rows = rows;
  if (footer !== undefined) format.skip_footer = footer;
  return format;
}

/** Drafts a schema, or restores the one that was edited in this tab. */
async function draft(session: HolderSession, file: File, said: Said, onRead: OnRead): Promise<Picked> {
  const format = stated(file, said);
  const dialect = await sniff(file, format, session);
  const unwanted = others(dialect.header, said.only);
  const first = byColumn(dialect.header, dialect.samples);
  const some = Object.fromEntries(Object.entries(first).map(([name, values]) => [name, different(values)]));
  const picked = { file, format, dialect, only: said.only, first, samples: some };
  const left = kept(file, format, said.only);
  if (left) return { ...picked, ...left };
  const drafted = await session.draft(file, format, unwanted, onRead);
  return { ...picked, drafted, original: drafted.schema.columns, lines: drafted.records, confirmed: [] };
}

/** Drafts an example's schema to describe its columns, and then takes the public one. */
async function draftExample(session: HolderSession, { file, schema }: Example, onRead: OnRead): Promise<Picked> {
  const picked = await draft(session, file, NOTHING_SAID, onRead);
  const confirmed = schema.columns.map(({ name }) => name);
  return { ...picked, drafted: { ...picked.drafted, schema }, original: schema.columns, confirmed };
}

/** Returns advice for errors whose message contains none. */
function wayOut(error: unknown): string | undefined {
  if (!(error instanceof WorkerRefusal)) return undefined;
  if (/not UTF-8/.test(error.message)) return "Correct that cell, or state the encoding under “File format”.";
  if (/footer|total of the rows/.test(error.message)) return "State the number of such rows at the end under “File format”, 0 if they are records.";
  if (/fields? where the header/.test(error.message)) return "Correct that row, or choose the separator or the lines to skip under “File format”.";
  if (/the header has/.test(error.message)) return "Name the columns to keep under “File format”.";
  return undefined;
}

interface Props {
  /** The file that was chosen before. Its columns keep their edits. */
  before: File | undefined;
  onGoOn: () => void;
  onPicked: (picked: Picked) => void;
}

export function FileStep({ before, onGoOn, onPicked }: Props) {
  const [said, setSaid] = useState<Said>(NOTHING_SAID);
  const { reading, error, read, stop } = useReading();
  const take = (file: File | undefined) => {
    if (!file || reading) return;
    void read(file, async (session, onRead) => onPicked(await draft(session, file, said, onRead)));
  };
  const fetching = useWork();
  const [parameters] = useSearchParams();
  useEffect(() => {
    if (!before && parameters.has("example")) takeExample();
  }, []);
  const takeExample = () => void fetching.run(async () => {
    const example = await exampleTable();
    void read(example.file, async (session, onRead) => onPicked(await draftExample(session, example, onRead)));
  });
  return (
    <section className="card">
      <h2>Choose the table</h2>
      <p>
        A table in text (CSV and the like, also with gzip compression) with one record per line below the column names. This browser reads
        it and sends only ciphertexts, and the description of the columns that you confirm in the next
        step.
      </p>
      {before && !reading && (
        <p><button type="button" className="main" onClick={onGoOn}>Continue with {before.name}</button></p>
      )}
      {reading ? (
        <Reading {...reading} onStop={stop} />
      ) : (
        <DropZone onFile={take} />
      )}
      {!reading && (
        <p>
          No table at hand? <button type="button" disabled={fetching.busy} onClick={takeExample}>Use an example</button>{" "}
          48,842 people of the US census of 1994 (Adult, CC BY 4.0), with a public schema.
        </p>
      )}
      <Trouble error={error ?? fetching.error} wayOut={wayOut(error)} />
      <Options said={said} onChange={setSaid} />
    </section>
  );
}

function DropZone({ onFile }: { onFile: (file: File | undefined) => void }) {
  const [over, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFile(event.dataTransfer.files[0]);
  };
  return (
    <div className={over ? "drop over" : "drop"} onDrop={drop}
      onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}>
      <p>Drop a CSV file here, or</p>
      <input id="table-file" type="file" accept=".csv,.tsv,.txt,.dat,.gz,text/csv,text/plain,application/gzip" className="hidden"
        onChange={(event) => {
          onFile(event.target.files?.[0]);
          // Allows choosing the same file again after a correction.
          event.target.value = "";
        }} />
      <label className="button main" htmlFor="table-file">choose a file</label>
    </div>
  );
}

function Options({ said, onChange }: { said: Said; onChange: (said: Said) => void }) {
  return (
    <details>
      <summary>File format</summary>
      <div className="grid">
        <Field label="Fields are separated by">
          {(id) => (
            <select id={id} value={said.delimiter} onChange={(event) => onChange({ ...said, delimiter: event.target.value })}>
              <option value="">detect from the first lines</option>
              <option value=",">commas</option>
              <option value=";">semicolons</option>
              <option value={"\t"}>tabs</option>
              <option value="|">vertical bars</option>
            </select>
          )}
        </Field>
        <Field label="Texts that stand for a missing value" hint="Separated by commas, for example ?, NA. An empty field is always missing.">
          {(id, hint) => (
            <input id={id} aria-describedby={hint} value={said.missing}
              onChange={(event) => onChange({ ...said, missing: event.target.value })} />
          )}
        </Field>
        <Field label="Lines before the column names" hint="Empty: detected.">
          {(id, hint) => (
            <input id={id} aria-describedby={hint} inputMode="numeric" value={said.skipRows}
              onChange={(event) => onChange({ ...said, skipRows: event.target.value })} />
          )}
        </Field>
        <Field label="Rows at the end that are not records" hint="For example totals. Empty: none, and a total is refused.">
          {(id, hint) => (
            <input id={id} aria-describedby={hint} inputMode="numeric" value={said.skipFooter}
              onChange={(event) => onChange({ ...said, skipFooter: event.target.value })} />
          )}
        </Field>
        <Field label="Character encoding" hint="For example windows-1252 or shift_jis. Empty: detected.">
          {(id, hint) => (
            <input id={id} aria-describedby={hint} value={said.encoding}
              onChange={(event) => onChange({ ...said, encoding: event.target.value })} />
          )}
        </Field>
        <Field label="Only these columns" hint="Names separated by commas. Empty: all columns.">
          {(id, hint) => (
            <input id={id} aria-describedby={hint} value={said.only}
              onChange={(event) => onChange({ ...said, only: event.target.value })} />
          )}
        </Field>
      </div>
    </details>
  );
}
