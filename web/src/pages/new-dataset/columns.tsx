// Step 2: the columns' domains, corrected and confirmed as public.
import { useEffect, useState } from "react";
import type { Checked, Column, Drafted, Format, ReadOptions, ReadTable, Schema } from "../../crypto/messages";
import { useReading, useSession } from "../../crypto/session";
import { count, Facts, Notice, Pages, Reading, Trouble } from "../../parts/ui";
import { ColumnRow } from "./column-row";
import { Estimate } from "./estimate";

interface Props {
  file: File;
  format: Format;
  drafted: Drafted;
  leftOut: string[];
  lines: number;
  /** Names of the columns that were confirmed as public. */
  confirmed: ReadonlySet<string>;
  onConfirmed: (confirmed: ReadonlySet<string>) => void;
  onEdit: (schema: Schema) => void;
  onBack: () => void;
  onChecked: (checked: { read: ReadOptions; table: ReadTable }) => void;
}

/** Waits so long after the last key before a schema is checked. */
const PAUSE_MS = 250;
/** Columns shown at a time. */
const PAGE = 50;

/** What a schema costs, or why it is none; checked again whenever it changes. */
function useCheck(schema: Schema) {
  const session = useSession();
  const [state, setState] = useState<{ checked?: Checked; error?: unknown }>({});
  useEffect(() => {
    if (!session) return;
    let current = true;
    const timer = setTimeout(() => {
      session.check(schema).then(
        (checked) => current && setState({ checked }),
        (error: unknown) => current && setState({ error }),
      );
    }, PAUSE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [session, schema]);
  return state;
}

/** The schema with a column changed, or without it. */
function edited(schema: Schema, index: number, column: Column | undefined): Schema {
  const columns = schema.columns.flatMap((old, i) => (i !== index ? [old] : column ? [column] : []));
  const { target, ...rest } = schema;
  const kept = columns.some(({ name }) => name === target);
  return kept && target ? { ...rest, columns, target } : { ...rest, columns };
}

export function ColumnsStep(props: Props) {
  const { file, format, drafted, leftOut, lines, confirmed, onConfirmed, onEdit, onBack, onChecked } = props;
  const { schema } = drafted;
  const [clamp, setClamp] = useState(false);
  const [loads, setLoads] = useState(0);
  const { checked, error: refused } = useCheck(schema);
  const unconfirmed = schema.columns.filter(({ name }) => !confirmed.has(name)).length;
  const confirm = (name: string, isPublic: boolean) => {
    const next = new Set(confirmed);
    if (isPublic) next.add(name);
    else next.delete(name);
    onConfirmed(next);
  };
  const load = (loaded: Schema) => {
    onEdit(loaded);
    onConfirmed(new Set());
    setLoads(loads + 1);
  };
  return (
    <section>
      <WhyPublic />
      <LeftOut columns={leftOut} />
      <SchemaFile onLoad={load} />
      <Editor key={loads} drafted={drafted} confirmed={confirmed} onConfirm={confirm} onEdit={onEdit} />
      <Cost checked={checked} />
      {checked && <Estimate schema={schema} records={lines} />}
      <Trouble error={refused} />
      <p>
        <label className="check">
          <input type="checkbox" checked={clamp} onChange={(event) => setClamp(event.target.checked)} />
          Take numbers outside the limits for the nearest limit
        </label>
      </p>
      <Proceed file={file} read={{ format, schema, clamp, use_other: false }} unconfirmed={unconfirmed}
        isRefused={refused !== undefined} onBack={onBack} onChecked={onChecked}
        onConfirmAll={() => onConfirmed(new Set(schema.columns.map(({ name }) => name)))} />
    </section>
  );
}

interface EditorProps {
  drafted: Drafted;
  confirmed: ReadonlySet<string>;
  onConfirm: (name: string, isPublic: boolean) => void;
  onEdit: (schema: Schema) => void;
}

/** The columns as a table to edit. */
function Editor({ drafted: { schema, notes }, confirmed, onConfirm, onEdit }: EditorProps) {
  const [from, setFrom] = useState(0);
  return (
    <div className="card">
      <table className="stack editor">
        <thead>
          <tr><th>Column</th><th>Type</th><th>Values it may take</th><th>May be missing</th><th>Public</th><th>Leave out</th></tr>
        </thead>
        <tbody>
          {schema.columns.slice(from, from + PAGE).map((column, index) => (
            <ColumnRow key={column.name} column={column} isPublic={confirmed.has(column.name)}
              note={notes.find((note) => note.column === column.name)?.text}
              onChange={(changed) => { onConfirm(column.name, false); onEdit(edited(schema, from + index, changed)); }}
              onConfirm={(isPublic) => onConfirm(column.name, isPublic)} />
          ))}
        </tbody>
      </table>
      <Pages name="Columns" from={from} size={PAGE} total={schema.columns.length} onFrom={setFrom} />
    </div>
  );
}

function SchemaFile({ onLoad }: { onLoad: (schema: Schema) => void }) {
  const session = useSession();
  const [error, setError] = useState<unknown>();
  const [loaded, setLoaded] = useState<string>();
  const load = async (chosen: File | undefined) => {
    if (!chosen || !session) return;
    setError(undefined);
    setLoaded(undefined);
    try {
      const schema = parsed(chosen.name, await chosen.text());
      await session.check(schema);
      onLoad(schema);
      setLoaded(chosen.name);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <details>
      <summary>Use a schema file in place of the draft</summary>
      <label htmlFor="schema-file">The schema, as a JSON file: of the command line, or of an earlier dataset</label>
      <input id="schema-file" type="file" accept=".json,application/json"
        onChange={(event) => void load(event.target.files?.[0])} />
      {loaded && <Notice tone="good"><p>The columns are those of {loaded}. Confirm them once more.</p></Notice>}
      <Trouble error={error} />
    </details>
  );
}

function parsed(name: string, text: string): Schema {
  try {
    return JSON.parse(text) as Schema;
  } catch {
    throw new Error(`${name} is not a JSON file.`);
  }
}

interface ProceedProps {
  file: File;
  read: ReadOptions;
  unconfirmed: number;
  isRefused: boolean;
  onConfirmAll: () => void;
  onBack: () => void;
  onChecked: Props["onChecked"];
}

/** Reads the whole table by the schema, and goes on. */
function Proceed({ file, read, unconfirmed, isRefused, onConfirmAll, onBack, onChecked }: ProceedProps) {
  const { reading, error, read: readIn, stop } = useReading();
  const proceed = () => readIn(file, async (session, onRead) => {
    onChecked({ read, table: await session.read(file, read, onRead) });
  });
  if (reading) return <Reading {...reading} onStop={stop} />;
  return (
    <>
      <Trouble error={error} />
      <div className="row">
        <button type="button" onClick={onBack}>Back</button>
        {unconfirmed > 0 && (
          <button type="button" onClick={onConfirmAll}>I have checked every column: all are public</button>
        )}
        <button type="button" className="main" disabled={unconfirmed > 0 || isRefused} onClick={() => void proceed()}>
          Continue
        </button>
        {unconfirmed > 0 && <span className="quiet">{unconfirmed} to confirm</span>}
      </div>
    </>
  );
}

function LeftOut({ columns }: { columns: string[] }) {
  if (columns.length === 0) return null;
  return (
    <Notice tone="warn">
      <p>
        Left out, since they hold identifiers, free text or nothing at all: {columns.join(", ")}.
        To keep one of them, recode it into few categories first.
      </p>
    </Notice>
  );
}

function WhyPublic() {
  return (
    <div className="card">
      <h2>Which values may each column take?</h2>
      <p>
        This list goes to the services unencrypted, and anyone may come to see it. So it must hold only
        what is known without the records: the answers on a questionnaire, the codes of a code book, the
        physical range of a measurement. The draft below was read off your records. A smallest age of 17,
        or a category that one person has, tells something about that person: write 0 to 120, or the
        official list.
      </p>
    </div>
  );
}

function Cost({ checked }: { checked: Checked | undefined }) {
  if (!checked) return null;
  const { cost } = checked;
  return (
    <>
      <Facts items={[
        ["Columns", count(cost.columns.length)],
        ["Values in all", count(cost.one_hot_columns)],
        ["Pairs of columns", count(cost.pairs)],
        ["Counts over all pairs", count(cost.pair_cells)],
      ]} />
      {cost.suggestions.map(({ column, from, to }) => (
        <Notice key={column} tone="warn">
          <p>{column} has {count(from)} values. With {to}, the upload is smaller and each count larger beside its noise.</p>
        </Notice>
      ))}
    </>
  );
}
