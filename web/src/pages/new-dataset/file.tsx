// Step 1: choose a CSV file, which is read in a worker.
import { useState, type DragEvent } from "react";
import type { Drafted, Format } from "../../crypto/messages";
import { type HolderSession, type OnRead, useReading, WorkerRefusal } from "../../crypto/session";
import { sniff } from "../../crypto/sniff";
import { exampleTable } from "../../components/example";
import { Field, Reading, Trouble } from "../../components/ui";
import { kept } from "./kept";

export interface Picked {
  file: File;
  format: Format;
  /** Character encoding of the file. */
  encoding: string;
  /** The columns to keep, as the user typed them. */
  only: string;
  drafted: Drafted;
  /** Some distinct values of each column, by column name. */
  samples: Record<string, string[]>;
  /** Values of each column in the first records, by column name. */
  first: Record<string, string[]>;
  /** Number of records, counted by line ends. Reading with the schema may find a few less. */
  lines: number;
  /** Columns confirmed as public, if the draft was kept from before. */
  confirmed: string[];
}

/** The user's settings for reading the file; the page detects or defaults empty ones. */
interface Said {
  missing: string;
  delimiter: string;
  only: string;
}

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

/** Drafts a schema, or restores the one that was edited in this tab. */
async function draft(session: HolderSession, file: File, said: Said, onRead: OnRead): Promise<Picked> {
  const { refusal, delimiter, encoding, header, samples } = await sniff(file, session);
  if (refusal !== undefined) throw new Error(refusal);
  const format = { file: file.name, delimiter: said.delimiter || delimiter, missing: texts(said.missing) };
  const unwanted = others(header, said.only);
  const first = byColumn(header, samples);
  const some = Object.fromEntries(Object.entries(first).map(([name, values]) => [name, different(values)]));
  const picked = { file, format, encoding, only: said.only, first, samples: some };
  const left = kept(file, format, said.only);
  if (left) return { ...picked, ...left };
  let lines = 0;
  const drafted = await session.draft(file, format, unwanted, (read) => {
    lines = Math.max(1, read.lines - 1);
    onRead(read);
  });
  return { ...picked, drafted, lines, confirmed: [] };
}

/** Returns advice for errors whose message contains none. */
function wayOut(error: unknown): string | undefined {
  if (!(error instanceof WorkerRefusal)) return undefined;
  if (/not UTF-8/.test(error.message)) return "Open the table in the program that made it, and save it as CSV in UTF-8.";
  if (/fields? where the header/.test(error.message)) return "Correct that row, or choose the separator under “File format”.";
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
  const [said, setSaid] = useState<Said>({ missing: "", delimiter: "", only: "" });
  const { reading, error, read, stop } = useReading();
  const take = (file: File | undefined) => {
    if (!file || reading) return;
    void read(file, async (session, onRead) => onPicked(await draft(session, file, said, onRead)));
  };
  return (
    <section className="card">
      <h2>Choose the table</h2>
      <p>
        A CSV file with one record per line and the column names in the first line. This browser reads
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
      <Trouble error={error} wayOut={wayOut(error)} />
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
      <input id="table-file" type="file" accept=".csv,.tsv,.txt,text/csv,text/plain" className="hidden"
        onChange={(event) => {
          onFile(event.target.files?.[0]);
          // Allows choosing the same file again after a correction.
          event.target.value = "";
        }} />
      <label className="button main" htmlFor="table-file">choose a file</label>
      <p className="small">
        No table at hand? <button type="button" className="plain" onClick={() => onFile(exampleTable())}>Use an example</button>:
        2,000 stays at a fictional hospital.
      </p>
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
