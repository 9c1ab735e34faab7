// Step 1: a CSV file, read in a worker.
import { useState, type DragEvent } from "react";
import type { Drafted } from "../../crypto/messages";
import { type HolderSession, WorkerRefusal } from "../../crypto/session";
import { Field, Trouble } from "../../parts/ui";

interface Props {
  session: HolderSession;
  onPicked: (picked: { file: File; drafted: Drafted; leftOut: string[]; missing: string[] }) => void;
}

/** Texts that often stand for a missing value; the empty field always does. */
export function texts(missing: string): string[] {
  return missing.split(",").map((text) => text.trim()).filter((text) => text !== "");
}

/** Drafts a schema, leaving out columns that none can be drafted for. */
async function draft(session: HolderSession, file: File, missing: string[]) {
  const format = { file: file.name, delimiter: ",", missing };
  try {
    return { drafted: await session.draft(file, format, []), leftOut: [] };
  } catch (error) {
    if (!(error instanceof WorkerRefusal) || error.columns.length === 0) throw error;
    return { drafted: await session.draft(file, format, error.columns), leftOut: error.columns };
  }
}

export function FileStep({ session, onPicked }: Props) {
  const [error, setError] = useState<unknown>();
  const [reading, setReading] = useState<string>();
  const [over, setOver] = useState(false);
  const [missing, setMissing] = useState("");
  const take = async (file: File | undefined) => {
    if (!file || reading) return;
    setReading(file.name);
    setError(undefined);
    try {
      onPicked({ file, missing: texts(missing), ...(await draft(session, file, texts(missing))) });
    } catch (problem) {
      setError(problem);
      setReading(undefined);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void take(event.dataTransfer.files[0]);
  };
  return (
    <section className="card">
      <h2>Choose the table</h2>
      <p>
        A CSV file with one record a line and the columns’ names in the first. It is read in this
        browser and never leaves it: only ciphertexts are sent, and the description of the columns
        that you confirm in the next step.
      </p>
      <Field label="Texts that stand for a missing value" hint="Separated by commas, such as ?, NA. An empty field always does.">
        {(id, hint) => (
          <input id={id} aria-describedby={hint} value={missing} onChange={(event) => setMissing(event.target.value)} />
        )}
      </Field>
      <div className={over ? "drop over" : "drop"} onDrop={drop}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }} onDragLeave={() => setOver(false)}>
        {reading ? (
          <p role="status">Reading {reading}…</p>
        ) : (
          <>
            <p>Drop a CSV file here, or</p>
            <input id="table-file" type="file" accept=".csv,text/csv,text/plain"
              style={{ position: "absolute", width: 1, height: 1, opacity: 0 }}
              onChange={(event) => {
                void take(event.target.files?.[0]);
                // The same file, mended, may be chosen again.
                event.target.value = "";
              }} />
            <label className="button main" htmlFor="table-file">choose a file</label>
          </>
        )}
      </div>
      <Trouble error={error} />
    </section>
  );
}
