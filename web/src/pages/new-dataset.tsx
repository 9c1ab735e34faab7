// A new dataset: the file, its columns, the budget; then its own page has the upload.
import { useRef, useState } from "react";
import { useNavigate } from "react-router";
import { json } from "../api/client";
import { newId } from "../api/ids";
import type { Dataset, Terms } from "../api/types";
import type { Used } from "../crypto/memory";
import type { ReadOptions, ReadTable, Schema } from "../crypto/messages";
import { canEncrypt } from "../crypto/session";
import { begin } from "../crypto/uploads";
import { CommandLine } from "../parts/command-line";
import { Notice, useTitle } from "../parts/ui";
import { BudgetStep } from "./new-dataset/budget";
import { ColumnsStep } from "./new-dataset/columns";
import { FileStep, type Picked } from "./new-dataset/file";

const STEPS = ["File", "Columns", "Privacy"];

interface Checked {
  read: ReadOptions;
  table: ReadTable;
}

export default function NewDataset() {
  useTitle("New dataset");
  const navigate = useNavigate();
  const [picked, setPicked] = useState<Picked>();
  const [confirmed, setConfirmed] = useState<ReadonlySet<string>>(new Set());
  const [checked, setChecked] = useState<Checked>();
  const step = checked ? 2 : picked ? 1 : 0;
  const chosen = useRef({ id: "", content: "" });
  const create = async (file: File, read: ReadOptions, used: Used, name: string, terms: Terms) => {
    // The same content, tried again after a lost answer, is the same dataset.
    const content = JSON.stringify({ name, terms });
    if (chosen.current.content !== content) chosen.current = { id: newId(), content };
    const path = `/v1/datasets/${chosen.current.id}`;
    const dataset = await json<Dataset>("generation", "PUT", path, { json: { name, terms } });
    begin(dataset, file, read, used);
    void navigate(`/datasets/${dataset.id}`, { replace: true });
  };
  const pick = (chosen: Picked | undefined) => {
    setPicked(chosen);
    setConfirmed(new Set());
  };
  const edit = (schema: Schema) =>
    picked && setPicked({ ...picked, drafted: { ...picked.drafted, schema } });
  if (!canEncrypt()) return <Unable />;
  return (
    <main id="content">
      <h1>New dataset</h1>
      <Steps current={step} />
      {step === 0 && <FileStep onPicked={pick} />}
      {picked && step === 1 && (
        <ColumnsStep {...picked} confirmed={confirmed} onConfirmed={setConfirmed} onEdit={edit}
          onBack={() => pick(undefined)} onChecked={setChecked} />
      )}
      {picked && checked && (
        <BudgetStep {...checked} file={picked.file} onBack={() => setChecked(undefined)}
          onCreate={(used, name, terms) => create(picked.file, { ...checked.read, schema: terms.schema }, used, name, terms)} />
      )}
      {step !== 1 && <details><summary>With the command line</summary><CommandLine /></details>}
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
function Unable() {
  return (
    <main id="content">
      <h1>New dataset</h1>
      <Notice tone="warn">
        <p>
          This browser cannot encrypt here: it lacks WebAssembly, or this page did not come over HTTPS.
          The command line can do the same.
        </p>
      </Notice>
      <CommandLine />
    </main>
  );
}
