// Creates a dataset in three steps: file, columns, privacy. Its own page then shows the upload.
import { useEffect, useRef, useState } from "react";
import { useNavigate } from "react-router";
import { json } from "../api/client";
import { newId } from "../api/ids";
import { checkTerms } from "../api/terms";
import type { Dataset, Terms } from "../api/types";
import type { Used } from "../crypto/memory";
import type { ReadOptions, ReadTable, Schema } from "../crypto/messages";
import { canEncrypt } from "../crypto/session";
import { begin } from "../crypto/uploads";
import { CommandLine } from "../components/command-line";
import { Notice, useTitle } from "../components/ui";
import { BudgetStep } from "./new-dataset/budget";
import { usualChoice, type Choice } from "./new-dataset/choice";
import { ColumnsStep } from "./new-dataset/columns";
import { FileStep, type Picked } from "./new-dataset/file";
import { forgetDraft, keep } from "./new-dataset/kept";

const STEPS = ["File", "Columns", "Privacy"];

/** Maximum number of changes that can be undone. */
const MAX_UNDONE = 50;

interface Checked {
  read: ReadOptions;
  table: ReadTable;
}

/** The draft as it is edited. Every change is also kept in the tab's storage. */
function useDraft() {
  const [picked, setPicked] = useState<Picked>();
  const [confirmed, setConfirmed] = useState<ReadonlySet<string>>(new Set());
  const [past, setPast] = useState<Schema[]>([]);
  useEffect(() => {
    if (!picked) return;
    const { file, format, only, drafted, original, lines } = picked;
    keep(file, format, only, { drafted, original, lines, confirmed: [...confirmed] });
  }, [picked, confirmed]);
  const show = (schema: Schema) =>
    setPicked((now) => now && { ...now, drafted: { ...now.drafted, schema } });
  return {
    picked,
    confirmed,
    confirm: setConfirmed,
    pick: (chosen: Picked) => {
      setPicked(chosen);
      setConfirmed(new Set(chosen.confirmed));
      setPast([]);
    },
    edit: (schema: Schema) => {
      if (picked) setPast([...past, picked.drafted.schema].slice(-MAX_UNDONE));
      show(schema);
    },
    undo: past.length === 0 ? undefined : () => {
      const last = past.at(-1);
      if (last) show(last);
      setPast(past.slice(0, -1));
      // A confirmation holds only for the values that were on the screen.
      setConfirmed(new Set());
    },
  };
}

export default function NewDataset() {
  useTitle("New dataset");
  const navigate = useNavigate();
  const { picked, confirmed, confirm, pick, edit, undo } = useDraft();
  const [step, setStep] = useState(0);
  const [checked, setChecked] = useState<Checked>();
  const [choice, setChoice] = useState<Choice>();
  const chosen = useRef({ id: "", content: "" });
  const create = async (file: File, read: ReadOptions, used: Used, name: string, terms: Terms) => {
    // A retry with the same content after a lost answer must not create a second dataset.
    const content = JSON.stringify({ name, terms });
    if (chosen.current.content !== content) chosen.current = { id: newId(), content };
    const path = `/v1/datasets/${chosen.current.id}`;
    const dataset = await json<Dataset>("generation", "PUT", path, { json: { name, terms } });
    checkTerms(terms, dataset.terms);
    begin(dataset, file, read, used);
    forgetDraft();
    void navigate(`/datasets/${dataset.id}`, { replace: true });
  };
  if (!canEncrypt()) return <Unable />;
  return (
    <main id="content">
      <h1>New dataset</h1>
      <Steps current={step} />
      {step === 0 && (
        <FileStep before={picked?.file} onGoOn={() => setStep(1)}
          onPicked={(chosen) => { pick(chosen); setChoice(undefined); setStep(1); }} />
      )}
      {picked && step === 1 && (
        <ColumnsStep picked={picked} confirmed={confirmed} onConfirmed={confirm} onEdit={edit} onUndo={undo}
          onBack={() => setStep(0)}
          onChecked={(checked) => {
            setChecked(checked);
            setChoice(choice ?? usualChoice(checked.read.schema));
            setStep(2);
          }} />
      )}
      {picked && checked && choice && step === 2 && (
        <BudgetStep {...checked} file={picked.file} choice={choice} onChoice={setChoice} onBack={() => setStep(1)}
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

/** Shows the commands to use if this browser cannot encrypt. */
function Unable() {
  return (
    <main id="content">
      <h1>New dataset</h1>
      <Notice tone="warn">
        <p>
          This browser cannot encrypt here: it lacks WebAssembly, or this page was not loaded over HTTPS.
          Use the command line instead.
        </p>
      </Notice>
      <CommandLine />
    </main>
  );
}
