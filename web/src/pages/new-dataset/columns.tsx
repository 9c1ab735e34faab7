// Step 2: correct the columns' domains and confirm that they are public.
import { useEffect, useState } from "react";
import type { Checked, Column, ReadOptions, ReadTable, Schema } from "../../crypto/messages";
import { type HolderSession, useReading, useSession, WorkerRefusal } from "../../crypto/session";
import { inWords, isEncrypted, isTime } from "../../components/column-words";
import { count, counted, Facts, Notice, Pages, Reading, Trouble } from "../../components/ui";
import { ColumnRow } from "./column-row";
import { Estimate } from "./estimate";
import type { Picked } from "./file";
import { hasList, listsRecords } from "./lists";
import { changedColumns } from "./rules";
import { RulesCard } from "./rules-card";

interface Props {
  picked: Picked;
  /** Names of the columns that were confirmed as public. */
  confirmed: ReadonlySet<string>;
  onConfirmed: (confirmed: ReadonlySet<string>) => void;
  onEdit: (schema: Schema) => void;
  /** Undoes the last change; undefined if there is none. */
  onUndo: (() => void) | undefined;
  onBack: () => void;
  onChecked: (checked: { read: ReadOptions; table: ReadTable }) => void;
}

/** Delay between the last edit and the check of the schema. */
const PAUSE_MS = 250;
/** Columns shown at a time. */
const PAGE = 50;

/** Checks the schema after every change. Returns its cost or its problems. */
function useCheck(session: HolderSession | undefined, schema: Schema) {
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

/** Returns the schema with one column replaced. */
function edited(schema: Schema, index: number, column: Column): Schema {
  const columns = schema.columns.map((old, i) => (i === index ? column : old));
  const { target, ...rest } = schema;
  const isKept = columns.some((other) => other.name === target && isEncrypted(other));
  const changed = { ...rest, columns };
  return isKept && target ? { ...changed, target } : changed;
}

/** Returns the earlier date columns that a column may be relative to. */
function bases(columns: Column[], index: number): string[] {
  const own = columns[index];
  if (!own || !isTime(own)) return [];
  const isBase = (other: Column) => isTime(other) && other.relative_to === undefined;
  return columns.slice(0, index).filter(isBase).map(({ name }) => name);
}

export function ColumnsStep(props: Props) {
  const { picked, confirmed, onConfirmed, onEdit, onUndo, onBack, onChecked } = props;
  const { file, format, drafted: { schema, columns: drafts }, original, first, lines } = picked;
  const session = useSession();
  const [adjust, setAdjust] = useState({ clamp: false });
  const [edition, setEdition] = useState(0);
  const [from, setFrom] = useState(0);
  const [sought, setSought] = useState<{ name: string }>();
  const { checked, error } = useCheck(session, schema);
  useEffect(() => {
    if (sought) show(sought.name);
  }, [sought]);
  const about = new Map(drafts.map((draft) => [draft.column, draft]));
  const isOfRecords = (column: Column) => listsRecords(column, about.get(column.name), first[column.name] ?? []);
  const isPublic = (column: Column) =>
    column.kind === "left-out" || (confirmed.has(column.name) && !isOfRecords(column));
  const unconfirmed = schema.columns.filter((column) => !isPublic(column));
  const lists = unconfirmed.filter(hasList);
  const ranges = unconfirmed.filter((column) => !hasList(column));
  const showNextList = () => {
    const list = lists.find((column) => !isOfRecords(column)) ?? lists[0];
    if (!list) return;
    setFrom(PAGE * Math.floor(schema.columns.indexOf(list) / PAGE));
    setSought({ name: list.name });
  };
  const confirm = (name: string, isNow: boolean) => {
    const next = new Set(confirmed);
    if (isNow) next.add(name);
    else next.delete(name);
    onConfirmed(next);
  };
  const load = (loaded: Schema) => {
    onEdit(loaded);
    onConfirmed(new Set());
    setFrom(0);
    setEdition(edition + 1);
  };
  const change = (changed: Schema) => {
    onEdit(changed);
    // A confirmation holds only for the values that were on the screen.
    const others = new Set(changedColumns(schema, changed));
    onConfirmed(new Set([...confirmed].filter((name) => !others.has(name))));
    setEdition(edition + 1);
  };
  const undo = onUndo && (() => {
    onUndo();
    setEdition(edition + 1);
  });
  const problems = checked?.refused === undefined ? [] : checked.problems;
  return (
    <section>
      <WhyPublic />
      <TheFile picked={picked} />
      <SchemaFile session={session} onLoad={load} />
      <Editor key={edition} picked={picked} problems={problems} confirmed={confirmed} onConfirm={confirm}
        from={from} onFrom={setFrom} onEdit={onEdit} onUndo={undo} />
      <RulesCard drafted={picked.drafted} original={original} session={session} onEdit={change} />
      <Cost checked={checked} />
      {checked?.refused === undefined && checked && <Estimate schema={schema} records={lines} />}
      <Refused checked={checked} />
      <Trouble error={error} />
      <Adjustments adjust={adjust} onChange={setAdjust} />
      <Proceed file={file} read={{ format, schema, ...adjust }} ranges={ranges.length} lists={lists.length}
        isRefused={error !== undefined || checked?.refused !== undefined} onBack={onBack} onChecked={onChecked}
        onConfirmRanges={() => onConfirmed(new Set([...confirmed, ...ranges.map(({ name }) => name)]))}
        onNextList={showNextList} />
    </section>
  );
}

/** Scrolls to a column's row, and focuses its confirmation. */
function show(name: string) {
  const row = document.querySelector(`tr[data-column="${CSS.escape(name)}"]`);
  row?.scrollIntoView({ block: "center" });
  row?.querySelector<HTMLInputElement>("input.public")?.focus({ preventScroll: true });
}

const SEPARATORS: Record<string, string> = { ",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "blanks" };

/** Shows how the file was read. */
function TheFile({ picked: { file, dialect, lines, drafted } }: { picked: Picked }) {
  const columns = drafted.schema.columns;
  const isKept = (column: Column) => isEncrypted(column) || column.kind === "derived";
  return (
    <>
      <Facts items={[
        ["File", file.name],
        ["Records", count(lines)],
        ["Separated by", SEPARATORS[dialect.delimiter] ?? dialect.delimiter],
        ["Encoding", dialect.encoding],
        ["Columns kept", `${count(columns.filter(isKept).length)} of ${count(columns.length)}`],
      ]} />
      {dialect.remarks.length > 0 && <Notice><p>How the file was read: {dialect.remarks.join("; ")}.</p></Notice>}
      {drafted.remarks.map((remark) => <Notice key={remark} tone="warn"><p>{remark}</p></Notice>)}
    </>
  );
}

interface Adjust {
  clamp: boolean;
}

/** Options for values outside the schema. */
function Adjustments({ adjust, onChange }: { adjust: Adjust; onChange: (adjust: Adjust) => void }) {
  return (
    <p className="row">
      <label className="check">
        <input type="checkbox" checked={adjust.clamp} onChange={(event) => onChange({ clamp: event.target.checked })} />
        Clip out-of-range numbers to the nearest limit
      </label>
    </p>
  );
}

interface EditorProps {
  picked: Picked;
  problems: { column: string; text: string }[];
  confirmed: ReadonlySet<string>;
  onConfirm: (name: string, isPublic: boolean) => void;
  /** Place of the first column that is shown. */
  from: number;
  onFrom: (from: number) => void;
  onEdit: (schema: Schema) => void;
  onUndo: (() => void) | undefined;
}

/** Editor of all columns. */
function Editor({ picked, problems, confirmed, onConfirm, from, onFrom, onEdit, onUndo }: EditorProps) {
  const { drafted: { schema, columns, notes }, original, samples, first } = picked;
  return (
    <div className="card">
      <div className="row ends">
        <h2>Columns</h2>
        <button type="button" disabled={!onUndo} onClick={onUndo}>Undo</button>
      </div>
      <table className="stack editor">
        <thead>
          <tr><th>Column</th><th>Type</th><th>Values it may take</th><th>May be missing</th><th>Public</th><th>Leave out</th></tr>
        </thead>
        <tbody>
          {schema.columns.slice(from, from + PAGE).map((column, index) => (
            <ColumnRow key={column.name} column={column} drafted={original.find(({ name }) => name === column.name)} isPublic={confirmed.has(column.name)}
              about={columns.find((about) => about.column === column.name)}
              notes={notes.filter((note) => note.column === column.name).map(({ text }) => text)}
              problem={problems.find((problem) => problem.column === column.name)?.text}
              samples={samples[column.name] ?? []} first={first[column.name] ?? []} bases={bases(schema.columns, from + index)}
              onChange={(changed) => { onConfirm(column.name, false); onEdit(edited(schema, from + index, changed)); }}
              onConfirm={(isPublic) => onConfirm(column.name, isPublic)} />
          ))}
        </tbody>
      </table>
      <Pages name="Columns" from={from} size={PAGE} total={schema.columns.length} onFrom={onFrom} />
    </div>
  );
}

function SchemaFile({ session, onLoad }: { session: HolderSession | undefined; onLoad: (schema: Schema) => void }) {
  const [error, setError] = useState<unknown>();
  const [loaded, setLoaded] = useState<string>();
  const load = async (chosen: File | undefined) => {
    if (!chosen || !session) return;
    setError(undefined);
    setLoaded(undefined);
    try {
      const schema = parsed(chosen.name, await chosen.text());
      const checked = await session.check(schema);
      if (checked.refused !== undefined) throw new Error(checked.refused);
      onLoad(schema);
      setLoaded(chosen.name);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <details>
      <summary>Use a schema file in place of the draft</summary>
      <label htmlFor="schema-file">The schema, as a JSON file from the command line or an earlier dataset</label>
      <input id="schema-file" type="file" accept=".json,application/json"
        onChange={(event) => void load(event.target.files?.[0])} />
      {loaded && <Notice tone="good"><p>The columns are those of {loaded}. Confirm them again.</p></Notice>}
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
  /** Number of columns with and without a list that are not confirmed. */
  lists: number;
  ranges: number;
  isRefused: boolean;
  onConfirmRanges: () => void;
  onNextList: () => void;
  onBack: () => void;
  onChecked: Props["onChecked"];
}

/** Reads the whole table with the schema, and continues to the next step. */
function Proceed({ file, read, lists, ranges, isRefused, onConfirmRanges, onNextList, onBack, onChecked }: ProceedProps) {
  const { reading, error, read: readIn, stop } = useReading();
  const proceed = () => readIn(file, async (session, onRead) => {
    onChecked({ read, table: await session.read(file, read, onRead) });
  });
  if (reading) return <Reading {...reading} onStop={stop} />;
  return (
    <>
      <ReadTrouble error={error} />
      {lists > 0 && (
        <p className="row">
          <span>{counted(lists, "list")} to confirm, each in the row of its column</span>
          <button type="button" onClick={onNextList}>Show the next list</button>
        </p>
      )}
      <div className="row">
        <button type="button" onClick={onBack}>Back</button>
        {ranges > 0 && (
          <button type="button" onClick={onConfirmRanges}>
            Confirm remaining columns without a list: these ranges contain public knowledge only
          </button>
        )}
        <button type="button" className="main" disabled={lists + ranges > 0 || isRefused} onClick={() => void proceed()}>
          Continue
        </button>
        {lists + ranges > 0 && <span className="quiet">{lists + ranges} to confirm</span>}
      </div>
    </>
  );
}

/** Shows why the table is rejected: one problem per line. */
function ReadTrouble({ error }: { error: unknown }) {
  if (!(error instanceof WorkerRefusal)) return <Trouble error={error} />;
  const lines = error.message.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return (
    <Notice tone="bad">
      {lines.map((line) => <p key={line}>{inWords(line)}</p>)}
      <p>Correct the columns above, or the table. Nothing was sent.</p>
    </Notice>
  );
}

/** Shows why the schema is rejected. A problem in a column is also shown in its row. */
function Refused({ checked }: { checked: Checked | undefined }) {
  if (checked?.refused === undefined) return null;
  const { problems, refused } = checked;
  if (problems.length === 0) return <Notice tone="bad"><p>{refused}</p></Notice>;
  return (
    <Notice tone="bad">
      <p>Correct these columns above:</p>
      <ul>{problems.map(({ column, text }) => <li key={column}>{column}: {inWords(text)}</li>)}</ul>
    </Notice>
  );
}

function WhyPublic() {
  return (
    <div className="card">
      <h2>Which values may each column take?</h2>
      <p>
        This list is sent to the services unencrypted, and anyone may see it. It must therefore contain only
        public knowledge: the answers on a questionnaire, the codes of a code book, the physical range of a
        measurement. The draft below was read from your records. A minimum age of 17, or a category that only
        one person has, reveals something about that person: write 0 to 120, or the official list.
      </p>
    </div>
  );
}

function Cost({ checked }: { checked: Checked | undefined }) {
  if (!checked || checked.refused !== undefined) return null;
  const { cost } = checked;
  return (
    <>
      <Facts items={[
        ["Values in total", count(cost.one_hot_columns)],
        ["Pairs of columns", count(cost.pairs)],
        ["Counts over all pairs", count(cost.pair_cells)],
      ]} />
      {cost.suggestions.map(({ column, from, to }) => (
        <Notice key={column} tone="warn">
          <p>{column} has {count(from)} values. With {to}, the upload is smaller and each count is larger relative to its noise.</p>
        </Notice>
      ))}
    </>
  );
}
