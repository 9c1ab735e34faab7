// Conditions on drawn records: a column, and one of its values, bins or chapters.
import { useState } from "react";
import type { Schema } from "../crypto/messages";
import { isEncrypted } from "../components/column-words";
import { Field } from "../components/ui";

export interface Condition {
  column: string;
  value: string;
}

/** Writes conditions in the format of the service. A condition with commas or quotes is quoted (RFC 4180). */
export function written(conditions: Condition[]): string {
  const all = conditions.map(({ column, value }) => `${column}=${value}`);
  return all.map((text) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",");
}

interface Props {
  schema: Schema;
  /** The bins, groups or categories of a column. */
  labels: (column: string) => string[];
  conditions: Condition[];
  onChange: (conditions: Condition[]) => void;
}

export function Filters({ schema, labels, conditions, onChange }: Props) {
  const free = schema.columns.filter((column) => isEncrypted(column) && !conditions.some((other) => other.column === column.name));
  return (
    <fieldset className="filters">
      <legend>Only records with</legend>
      {conditions.map((condition) => (
        <span className="filter" key={condition.column}>
          {condition.column}: <strong>{condition.value || "(missing)"}</strong>
          <button type="button" className="plain" aria-label={`Drop the condition on ${condition.column}`}
            onClick={() => onChange(conditions.filter((other) => other !== condition))}>drop</button>
        </span>
      ))}
      {free.length > 0 && (
        <Add names={free.map(({ name }) => name)} schema={schema} labels={labels}
          onAdd={(condition) => onChange([...conditions, condition])} />
      )}
    </fieldset>
  );
}

interface AddProps {
  names: string[];
  schema: Schema;
  /** The bins, groups or categories of a column. */
  labels: (column: string) => string[];
  onAdd: (condition: Condition) => void;
}

function Add({ names, schema, labels, onAdd }: AddProps) {
  const [column, setColumn] = useState("");
  const [value, setValue] = useState("");
  const [exact, setExact] = useState("");
  const chosen = schema.columns.find(({ name }) => name === column);
  const choose = (name: string) => {
    setColumn(name);
    setValue("");
    setExact("");
  };
  const add = () => {
    onAdd({ column, value: exact || value });
    choose("");
  };
  // A bin or chapter has many values, so a condition may also name a single one.
  const hasExact = chosen !== undefined && chosen.kind !== "categorical";
  return (
    <div className="grid fields">
      <Field label="Column">
        {(id) => (
          <select id={id} value={column} onChange={(event) => choose(event.target.value)}>
            <option value="">any</option>
            {names.map((name) => <option key={name}>{name}</option>)}
          </select>
        )}
      </Field>
      {chosen && (
        <Field label={hasExact ? "Range or group" : "Value"}>
          {(id) => (
            <select id={id} value={value} onChange={(event) => setValue(event.target.value)}>
              <option value="">choose</option>
              {labels(column).map((label) => <option key={label}>{label}</option>)}
            </select>
          )}
        </Field>
      )}
      {hasExact && (
        <Field label="or this exact value">
          {(id) => <input id={id} value={exact} onChange={(event) => setExact(event.target.value)} />}
        </Field>
      )}
      {chosen && <button type="button" disabled={value === "" && exact === ""} onClick={add}>Add the condition</button>}
    </div>
  );
}
