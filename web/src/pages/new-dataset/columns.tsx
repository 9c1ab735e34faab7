// Step 2: the columns' domains, corrected and confirmed as public.
import { useEffect, useState } from "react";
import type { Checked, Column, Drafted, ReadOptions, ReadTable, Schema } from "../../crypto/messages";
import type { HolderSession } from "../../crypto/session";
import { count, Facts, Notice, Trouble } from "../../parts/ui";
import { ColumnRow } from "./column-row";

interface Props {
  session: HolderSession;
  file: File;
  drafted: Drafted;
  leftOut: string[];
  missing: string[];
  onEdit: (schema: Schema) => void;
  onBack: () => void;
  onChecked: (checked: { read: ReadOptions; table: ReadTable }) => void;
}

/** Waits so long after the last key before a schema is checked. */
const PAUSE_MS = 250;

/** What a schema costs, or why it is none; checked again whenever it changes. */
function useCheck(session: HolderSession, schema: Schema) {
  const [state, setState] = useState<{ checked?: Checked; error?: unknown }>({});
  useEffect(() => {
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

export function ColumnsStep(props: Props) {
  const { session, file, drafted, leftOut, missing, onEdit, onBack, onChecked } = props;
  const { schema, notes } = drafted;
  const [confirmed, setConfirmed] = useState<ReadonlySet<string>>(new Set());
  const [clamp, setClamp] = useState(false);
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [loads, setLoads] = useState(0);
  const { checked, error: refused } = useCheck(session, schema);
  const unconfirmed = schema.columns.filter(({ name }) => !confirmed.has(name)).length;

  const confirm = (name: string, isPublic: boolean) => {
    const next = new Set(confirmed);
    if (isPublic) next.add(name);
    else next.delete(name);
    setConfirmed(next);
  };
  const change = (index: number, column: Column | undefined) => {
    const columns = schema.columns.flatMap((old, i) => (i !== index ? [old] : column ? [column] : []));
    const target = columns.some(({ name }) => name === schema.target) ? schema.target : undefined;
    const { target: _, ...rest } = schema;
    onEdit(target ? { ...rest, columns, target } : { ...rest, columns });
  };
  const load = async (chosen: File | undefined) => {
    if (!chosen) return;
    setError(undefined);
    try {
      const loaded = JSON.parse(await chosen.text()) as Schema;
      await session.check(loaded);
      onEdit(loaded);
      setConfirmed(new Set());
      setLoads(loads + 1);
    } catch (problem) {
      setError(problem);
    }
  };
  const proceed = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const format = { file: file.name, delimiter: ",", missing };
      const read = { format, schema, clamp, use_other: false };
      onChecked({ read, table: await session.read(file, read) });
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <section>
      <WhyPublic />
      <p>
        <label htmlFor="schema-file">You have a schema file already? Load it in place of the draft.</label>
        <input id="schema-file" type="file" accept=".json,application/json"
          onChange={(event) => void load(event.target.files?.[0])} />
      </p>
      {leftOut.length > 0 && (
        <Notice tone="warn">
          <p>
            Left out, since they hold identifiers, free text or nothing at all: {leftOut.join(", ")}.
            To keep one of them, recode it into few categories first.
          </p>
        </Notice>
      )}
      <div className="card scroll">
        <table className="stack">
          <thead>
            <tr><th>Column</th><th>Type</th><th>Values it may take</th><th>May be missing</th><th>Public</th><th>Leave out</th></tr>
          </thead>
          <tbody>
            {schema.columns.map((column, index) => (
              <ColumnRow key={`${loads} ${column.name}`} column={column} isPublic={confirmed.has(column.name)}
                note={notes.find((note) => note.column === column.name)?.text}
                onChange={(edited) => { confirm(column.name, false); change(index, edited); }}
                onConfirm={(isPublic) => confirm(column.name, isPublic)} />
            ))}
          </tbody>
        </table>
      </div>
      <Cost checked={checked} />
      <Trouble error={refused} />
      <Trouble error={error} />
      <p>
        <label className="check">
          <input type="checkbox" checked={clamp} onChange={(event) => setClamp(event.target.checked)} />
          Take numbers outside the limits for the nearest limit
        </label>
      </p>
      <div className="row">
        <button type="button" onClick={onBack}>Back</button>
        {unconfirmed > 0 && (
          <button type="button" onClick={() => setConfirmed(new Set(schema.columns.map(({ name }) => name)))}>
            I have checked every column: all are public
          </button>
        )}
        <button type="button" className="main" disabled={busy || unconfirmed > 0 || refused !== undefined}
          onClick={() => void proceed()}>
          {busy ? "Reading the table…" : "Continue"}
        </button>
        {unconfirmed > 0 && <span className="quiet">{unconfirmed} to confirm</span>}
      </div>
    </section>
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
