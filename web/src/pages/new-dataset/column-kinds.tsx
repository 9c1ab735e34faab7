// Form fields for the settings of each kind of column.
import { useId, useState } from "react";
import type { Bound, Column } from "../../crypto/messages";
import { isTime } from "../../components/column-words";
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
    case "left-out":
      return <p className="small quiet">{column.reason ?? "left out"}</p>;
    case "number":
      return (
        <>
          <Limits {...props} />
          <Numbers column={column} onChange={onChange} />
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
        </>
      );
  }
}

type OnChange = (column: Column) => void;
type TextField = "other" | "pattern" | "format";
type NumberField = "bins" | "digits" | "decimals" | "prefix";
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

/** Parses a number, or a date if the column has dates. */
function parsed(text: string, isDate: boolean): Bound | undefined {
  if (text.trim() === "") return undefined;
  if (isDate) return text.trim();
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

/** Edits a list of bounds, separated by commas, semicolons or spaces. Words among numbers are kept. */
function List(props: { column: Column; field: "special" | "edges"; label: string; isDate: boolean; onChange: OnChange }) {
  const { column, field, label, isDate, onChange } = props;
  const isWord = (bound: Bound) => typeof bound === "string" && !isDate;
  const words = (column[field] ?? []).filter(isWord);
  const [text, setText] = useState((column[field] ?? []).filter((bound) => !isWord(bound)).join(", "));
  const edit = (edited: string) => {
    setText(edited);
    const bounds = edited.split(/[\s,;]+/).map((item) => parsed(item, isDate));
    const known = [...bounds.filter((bound) => bound !== undefined), ...words];
    onChange(having(column, field, known.length > 0 ? known : undefined));
  };
  return (
    <label className="check wide">
      {label}
      <input aria-label={`${column.name}: ${label}`} value={text} onChange={(event) => edit(event.target.value)} />
    </label>
  );
}

/** Edits the limits or edges of the bins, and the number of parts per bin. */
function Limits({ column, onChange }: Props) {
  const id = useId();
  const isDate = isTime(column) && column.relative_to === undefined;
  const bound = (field: "min" | "max", label: string) => (
    <label htmlFor={`${id}-${field}`} className="check">
      {label}
      <input id={`${id}-${field}`} aria-label={`${column.name}: ${label}`} type={isDate ? "date" : "number"} step="any"
        defaultValue={column[field] ?? ""}
        onChange={(event) => onChange(having(column, field, parsed(event.target.value, isDate)))} />
    </label>
  );
  return (
    <div className="limits">
      {column.edges ? (
        <>
          <List column={column} field="edges" label="bin edges" isDate={isDate} onChange={onChange} />
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
      <List column={column} field="special" label="special values" isDate={false} onChange={onChange} />
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
    </div>
  );
}

function Times({ column, bases, onChange }: Props) {
  return (
    <div className="limits">
      <Text column={column} field="format" label="format" onChange={onChange} />
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
