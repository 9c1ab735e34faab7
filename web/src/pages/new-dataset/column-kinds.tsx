// Form fields for the settings of each kind of column.
import { useId, useState } from "react";
import type { Bound, Column } from "../../crypto/messages";
import { hasTextLimits, isTime } from "../../components/column-words";
import { counted } from "../../components/ui";
import { evenBins, relativeTo } from "./convert";

interface Props {
  column: Column;
  /** Date columns that this one may be relative to. */
  bases: string[];
  onChange: (column: Column) => void;
}

export function Values(props: Props) {
  const { column, onChange } = props;
  switch (column.kind) {
    case "categorical":
      return (
        <>
          <Lines column={column} field="categories" things="categories" onChange={onChange} />
          <Text column={column} field="other" label="other values count as" onChange={onChange} />
        </>
      );
    case "code":
      return <Codes {...props} />;
    case "identifier":
      return (
        <>
          <Text column={column} field="pattern" label="pattern" onChange={onChange} />
          <p className="small quiet">sequence, uuid, or a pattern such as P[0-9]{"{5}"}</p>
        </>
      );
    case "derived":
      return <Derived column={column} onChange={onChange} />;
    case "left-out":
      return <p className="small quiet">{column.reason ?? "left out"}</p>;
    case "number":
      return (
        <>
          <Limits {...props} />
          <Numbers column={column} onChange={onChange} />
          <Special column={column} onChange={onChange} />
        </>
      );
    case "time":
    case "duration":
      return (
        <>
          <Limits {...props} />
          <div className="limits">
            <Text column={column} field="format" label="format" onChange={onChange} />
          </div>
          <Special column={column} onChange={onChange} />
        </>
      );
    case "numeric":
      return (
        <>
          <Limits {...props} />
          <Flag column={column} field="integer" label="whole numbers" onChange={onChange} />
        </>
      );
    default:
      return (
        <>
          <Limits {...props} />
          <Times {...props} />
          <Special column={column} onChange={onChange} />
        </>
      );
  }
}

/** Separates a value from the text that follows from it. */
const GIVES = " = ";

/** Edits the values of a column that follows from another one: one line for each value of the other column. */
function Derived({ column, onChange }: { column: Column; onChange: OnChange }) {
  const { name, from = "", values } = column;
  const lines = Object.entries(values ?? {}).map(([key, value]) => key + GIVES + value);
  const [text, setText] = useState(lines.join("\n"));
  if (!values) return <p className="small quiet">the same as {from}</p>;
  const edit = (edited: string) => {
    setText(edited);
    const pairs = edited.split("\n").filter((line) => line !== "").map((line): [string, string] => {
      const [key = "", ...value] = line.split(GIVES);
      return [key, value.join(GIVES)];
    });
    onChange({ ...column, values: Object.fromEntries(pairs) });
  };
  return (
    <>
      <p className="small quiet">follows from {from}</p>
      <textarea className="categories" aria-label={`Values of ${name}, one per line`} value={text}
        readOnly={Object.keys(values).some((key) => key.includes(GIVES))} rows={Math.max(1, Math.min(8, lines.length))}
        onChange={(event) => edit(event.target.value)} />
      <div className="small quiet">{counted(lines.length, "value")}, one per line</div>
    </>
  );
}

type OnChange = (column: Column) => void;
type TextField = "other" | "pattern" | "format" | "thousands" | "before" | "after";
type NumberField = "bins" | "digits" | "decimals" | "prefix" | "first_year";
type FlagField = "integer" | "trailing_zeros" | "decimal_comma";
type LinesField = "categories" | "codes";

/** Returns the column with this field set, or without it if `value` is undefined. */
function having(column: Column, field: keyof Column, value: unknown): Column {
  const { [field]: _, ...rest } = column;
  return (value === undefined ? rest : { ...rest, [field]: value }) as Column;
}

function Text(props: { column: Column; field: TextField; label: string; onChange: OnChange }) {
  const { column, field, label, onChange } = props;
  return (
    <label className="check">
      {label}
      <input aria-label={`${column.name}: ${label}`} defaultValue={column[field] ?? ""}
        onChange={(event) => onChange(having(column, field, event.target.value || undefined))} />
    </label>
  );
}

function Count(props: { column: Column; field: NumberField; label: string; onChange: OnChange }) {
  const { column, field, label, onChange } = props;
  return (
    <label className="check">
      {label}
      <input aria-label={`${column.name}: ${label}`} type="number" min={0} step={1} defaultValue={column[field] ?? ""}
        onChange={(event) => onChange(having(column, field, whole(event.target.value)))} />
    </label>
  );
}

function whole(text: string): number | undefined {
  const value = Number(text);
  return text !== "" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function Flag(props: { column: Column; field: FlagField; label: string; onChange: OnChange }) {
  const { column, field, label, onChange } = props;
  return (
    <label className="check">
      <input type="checkbox" aria-label={`${column.name}: ${label}`} checked={column[field] ?? false}
        onChange={(event) => onChange(having(column, field, event.target.checked || undefined))} />
      {label}
    </label>
  );
}

/** Edits a list of texts, one per line. */
function Lines(props: { column: Column; field: LinesField; things: string; onChange: OnChange }) {
  const { column, field, things, onChange } = props;
  const texts = column[field] ?? [];
  const [text, setText] = useState(texts.join("\n"));
  const edit = (edited: string) => {
    setText(edited);
    onChange({ ...column, [field]: edited.split("\n").filter((line) => line !== "") });
  };
  const one = things === "categories" ? "category" : "code";
  return (
    <>
      <textarea className="categories" aria-label={`${one === "code" ? "Codes" : "Categories"} of ${column.name}, one per line`}
        rows={Math.max(1, Math.min(8, texts.length))} value={text} onChange={(event) => edit(event.target.value)} />
      <div className="small quiet">{counted(texts.length, one, things)}, one per line</div>
    </>
  );
}

function Codes({ column, onChange }: Props) {
  if (column.chapters) {
    return <p className="small quiet">{counted(column.chapters.length, "chapter")} of the schema file</p>;
  }
  return (
    <>
      <Lines column={column} field="codes" things="codes" onChange={onChange} />
      <div className="limits">
        <Count column={column} field="prefix" label="prefix length" onChange={onChange} />
        <Text column={column} field="other" label="other values count as" onChange={onChange} />
      </div>
    </>
  );
}

/** Parses a limit: a number, or a text if the column has dates or times. */
function parsed(text: string, isText: boolean): Bound | undefined {
  if (text.trim() === "") return undefined;
  if (isText) return text.trim();
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** Edits the edges of the bins, separated by commas, semicolons or spaces. */
function Edges({ column, isText, onChange }: { column: Column; isText: boolean; onChange: OnChange }) {
  const [text, setText] = useState((column.edges ?? []).join(", "));
  const edit = (edited: string) => {
    setText(edited);
    const bounds = edited.split(/[\s,;]+/).map((item) => parsed(item, isText));
    const known = bounds.filter((bound) => bound !== undefined);
    onChange(having(column, "edges", known.length > 0 ? known : undefined));
  };
  return (
    <label className="check wide">
      bin edges
      <input aria-label={`${column.name}: bin edges`} value={text} onChange={(event) => edit(event.target.value)} />
    </label>
  );
}

/** Edits the special values, one per line: numbers, dates or times, and words such as `<0.5`. */
function Special({ column, onChange }: { column: Column; onChange: OnChange }) {
  const special = column.special ?? [];
  const [text, setText] = useState(special.join("\n"));
  const bound = (line: string): Bound => {
    const value = Number(line);
    const isNumber = line.trim() !== "" && Number.isFinite(value) && !hasTextLimits(column);
    // A value that is not edited keeps its form.
    return special.find((known) => String(known) === line) ?? (isNumber ? value : line);
  };
  const edit = (edited: string) => {
    setText(edited);
    const bounds = edited.split("\n").filter((line) => line !== "").map(bound);
    onChange(having(column, "special", bounds.length > 0 ? bounds : undefined));
  };
  return (
    <label className="check wide">
      special values
      <textarea aria-label={`${column.name}: special values, one per line`} placeholder="one per line"
        rows={Math.max(1, Math.min(4, special.length))} value={text} onChange={(event) => edit(event.target.value)} />
    </label>
  );
}

function isDay(bound: Bound | undefined): boolean {
  return bound === undefined || /^\d{4}-\d{2}-\d{2}$/.test(String(bound));
}

/** Edits the limits or edges of the bins, and the number of parts per bin. */
function Limits({ column, onChange }: Props) {
  const id = useId();
  const isText = hasTextLimits(column);
  // Months and years have shorter limits than a field for days can show.
  const [hasDays] = useState(isTime(column) && isDay(column.min) && isDay(column.max));
  const type = !isText ? "number" : hasDays ? "date" : "text";
  const bound = (field: "min" | "max", label: string) => (
    <label htmlFor={`${id}-${field}`} className="check">
      {label}
      <input id={`${id}-${field}`} aria-label={`${column.name}: ${label}`} type={type} step="any"
        defaultValue={column[field] ?? ""}
        onChange={(event) => onChange(having(column, field, parsed(event.target.value, isText)))} />
    </label>
  );
  return (
    <div className="limits">
      {column.edges ? (
        <>
          <Edges column={column} isText={isText} onChange={onChange} />
          <button type="button" className="plain" onClick={() => onChange(evenBins(column))}>use equal bins</button>
        </>
      ) : (
        <>
          {bound("min", "from")} {bound("max", "to")}
          <Count column={column} field="bins" label="bins" onChange={onChange} />
        </>
      )}
      {column.kind !== "numeric" && <Count column={column} field="digits" label="parts per bin" onChange={onChange} />}
    </div>
  );
}

function Numbers({ column, onChange }: { column: Column; onChange: OnChange }) {
  const integer = (isWhole: boolean) => {
    const { integer: _, decimals: __, trailing_zeros: ___, ...rest } = column;
    onChange(isWhole ? { ...rest, integer: true } : { ...rest, decimals: 1 });
  };
  return (
    <div className="limits">
      <label className="check">
        <input type="checkbox" aria-label={`${column.name}: whole numbers`} checked={column.integer ?? false}
          onChange={(event) => integer(event.target.checked)} />
        whole numbers
      </label>
      {!column.integer && (
        <>
          <Count column={column} field="decimals" label="decimals" onChange={onChange} />
          <Flag column={column} field="trailing_zeros" label="trailing zeros" onChange={onChange} />
          <Flag column={column} field="decimal_comma" label="decimal comma" onChange={onChange} />
        </>
      )}
      <Step column={column} onChange={onChange} />
      <Text column={column} field="thousands" label="thousands separator" onChange={onChange} />
      <Text column={column} field="before" label="text before" onChange={onChange} />
      <Text column={column} field="after" label="text after" onChange={onChange} />
      <Negative column={column} onChange={onChange} />
    </div>
  );
}

function Step({ column, onChange }: { column: Column; onChange: OnChange }) {
  const step = (text: string) => {
    const value = Number(text);
    onChange(having(column, "step", text !== "" && value > 0 && Number.isFinite(value) ? value : undefined));
  };
  return (
    <label className="check">
      step
      <input aria-label={`${column.name}: step`} type="number" min={0} step="any" defaultValue={column.step ?? ""}
        onChange={(event) => step(event.target.value)} />
    </label>
  );
}

function Negative({ column, onChange }: { column: Column; onChange: OnChange }) {
  const choose = (form: string) => onChange(having(column, "negative", form === "minus" ? undefined : form));
  return (
    <label className="check">
      negative numbers
      <select aria-label={`${column.name}: negative numbers`} value={column.negative ?? "minus"}
        onChange={(event) => choose(event.target.value)}>
        <option value="minus">-9.5</option>
        <option value="parentheses">(9.5)</option>
        <option value="trailing">9.5-</option>
        <option value="minus-sign">−9.5</option>
        <option value="plus-minus">-9.5, +9.5</option>
      </select>
    </label>
  );
}

function Times({ column, bases, onChange }: Props) {
  return (
    <div className="limits">
      <Text column={column} field="format" label="format" onChange={onChange} />
      {column.first_year !== undefined && (
        <Count column={column} field="first_year" label="first of the hundred years" onChange={onChange} />
      )}
      {column.kind === "datetime" && (
        <label className="check">
          precision
          <select aria-label={`${column.name}: unit`} value={column.unit ?? "minute"}
            onChange={(event) => onChange({ ...column, unit: event.target.value as "day" | "hour" | "minute" })}>
            <option value="day">day</option>
            <option value="hour">hour</option>
            <option value="minute">minute</option>
          </select>
        </label>
      )}
      {(bases.length > 0 || column.relative_to !== undefined) && (
        <label className="check">
          never before
          <select aria-label={`${column.name}: never before`} value={column.relative_to ?? ""}
            onChange={(event) => onChange(relativeTo(column, event.target.value || undefined))}>
            <option value="">none (independent)</option>
            {[...new Set([...bases, ...(column.relative_to ? [column.relative_to] : [])])].map((base) => <option key={base}>{base}</option>)}
          </select>
        </label>
      )}
    </div>
  );
}
