// A new dataset in four steps: the file, its columns, the budget, the upload.
import { useEffect, useState } from "react";
import { json } from "../api/client";
import type { Dataset, Terms } from "../api/types";
import type { Drafted, ReadOptions, ReadTable, Schema } from "../crypto/messages";
import { canEncrypt, HolderSession } from "../crypto/session";
import { Notice, useTitle } from "../parts/ui";
import { BudgetStep } from "./new-dataset/budget";
import { ColumnsStep } from "./new-dataset/columns";
import { FileStep } from "./new-dataset/file";
import { UploadStep } from "./new-dataset/upload";

const STEPS = ["File", "Columns", "Privacy", "Encrypt and upload"];

interface Picked {
  file: File;
  drafted: Drafted;
  leftOut: string[];
  missing: string[];
}

interface Checked {
  read: ReadOptions;
  table: ReadTable;
}

export default function NewDataset() {
  useTitle("New dataset");
  const [session, setSession] = useState<HolderSession>();
  const [picked, setPicked] = useState<Picked>();
  const [checked, setChecked] = useState<Checked>();
  const [dataset, setDataset] = useState<Dataset>();
  useEffect(() => {
    if (!canEncrypt()) return;
    const made = new HolderSession();
    setSession(made);
    return () => made.end();
  }, []);
  const step = dataset ? 3 : checked ? 2 : picked ? 1 : 0;
  const create = async (name: string, terms: Terms) => {
    setDataset(await json<Dataset>("generation", "POST", "/v1/datasets", { json: { name, terms } }));
  };
  const edit = (schema: Schema) =>
    picked && setPicked({ ...picked, drafted: { ...picked.drafted, schema } });
  return (
    <main id="content">
      <h1>New dataset</h1>
      <Steps current={step} />
      {!canEncrypt() && <CommandLine />}
      {session && step === 0 && <FileStep session={session} onPicked={setPicked} />}
      {session && picked && step === 1 && (
        <ColumnsStep {...picked} session={session} onEdit={edit}
          onBack={() => setPicked(undefined)} onChecked={setChecked} />
      )}
      {session && checked && picked && step === 2 && (
        <BudgetStep {...checked} session={session} onBack={() => setChecked(undefined)} onCreate={create} />
      )}
      {dataset && checked && picked && (
        <UploadStep dataset={dataset} file={picked.file} read={checked.read} />
      )}
    </main>
  );
}

function Steps({ current }: { current: number }) {
  return (
    <ol className="steps">
      {STEPS.map((name, index) => (
        <li key={name} aria-current={index === current ? "step" : undefined}>{name}</li>
      ))}
    </ol>
  );
}

/** Where this browser cannot encrypt, the command line can. */
function CommandLine() {
  return (
    <Notice tone="warn">
      <p>
        This browser cannot encrypt here: it lacks WebAssembly, or this page did not come over HTTPS.
        The command line can do the same:
      </p>
      <pre tabIndex={0}>{`fhaim login --server ${window.location.origin}
fhaim schema infer --data table.csv --out table.schema.json
fhaim dataset create --help`}</pre>
    </Notice>
  );
}
