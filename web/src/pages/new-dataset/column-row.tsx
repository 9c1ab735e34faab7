// One column's domain, as a row to edit.
import { useId, useState } from "react";
import type { CategoricalColumn, Column, NumericColumn } from "../../crypto/messages";
import { counted } from "../../parts/ui";

interface Props {
  column: Column;
  note: string | undefined;
  isPublic: boolean;
  onChange: (column: Column | undefined) => void;
  onConfirm: (isPublic: boolean) => void;
}

/** The same column as the other kind. */
function converted(column: Column): Column {
  const { name, nullable } = column;
  const common = nullable ? { name, nullable } : { name };
  if (column.kind === "numeric") {
    return { ...common, kind: "categorical", categories: [String(column.min), String(column.max)] };
  }
  const numbers = column.categories.map(Number).filter(Number.isFinite);
  const [min, max] = numbers.length > 1 ? [Math.min(...numbers), Math.max(...numbers)] : [0, 100];
  return { ...common, kind: "numeric", min, max, bins: 10 };
}

export function ColumnRow({ column, note, isPublic, onChange, onConfirm }: Props) {
  const { name } = column;
  return (
    <tr>
      <td>
        <strong>{name}</strong>
        {note && <div className="small quiet" style={{ maxWidth: "16rem" }}>{note}</div>}
      </td>
      <td data-label="Type">
        <select aria-label={`Type of ${name}`} value={column.kind} onChange={() => onChange(converted(column))}>
          <option value="categorical">categories</option>
          <option value="numeric">number</option>
        </select>
      </td>
      <td className="values" data-label="Values it may take">
        {column.kind === "numeric"
          ? <Limits column={column} onChange={onChange} />
          : <Categories column={column} onChange={onChange} />}
      </td>
      <td className="inline" data-label="May be missing">
        <input type="checkbox" aria-label={`${name} may be missing`} checked={column.nullable ?? false}
          onChange={(event) => onChange({ ...column, nullable: event.target.checked })} />
      </td>
      <td className="inline" data-label="Public">
        <label className="check">
          <input type="checkbox" aria-label={`The values of ${name} are public`} checked={isPublic}
            onChange={(event) => onConfirm(event.target.checked)} />
          {isPublic ? "confirmed" : "confirm"}
        </label>
      </td>
      <td className="inline">
        <button type="button" className="plain" aria-label={`Leave out ${name}`} onClick={() => onChange(undefined)}>
          leave out
        </button>
      </td>
    </tr>
  );
}

function Categories({ column, onChange }: { column: CategoricalColumn; onChange: (column: Column) => void }) {
  const [text, setText] = useState(column.categories.join("\n"));
  const edit = (edited: string) => {
    setText(edited);
    const categories = edited.split("\n").filter((line) => line !== "");
    onChange({ ...column, categories });
  };
  return (
    <>
      <textarea className="categories" aria-label={`Categories of ${column.name}, one a line`}
        rows={Math.max(1, Math.min(8, column.categories.length))} value={text} onChange={(event) => edit(event.target.value)} />
      <div className="small quiet">{counted(column.categories.length, "category", "categories")}, one a line</div>
    </>
  );
}

function Limits({ column, onChange }: { column: NumericColumn; onChange: (column: Column) => void }) {
  const id = useId();
  const field = (key: "min" | "max" | "bins", label: string) => (
    <label htmlFor={`${id}-${key}`} className="check">
      {label}
      <input id={`${id}-${key}`} aria-label={`${column.name}: ${label}`} type="number" step="any"
        defaultValue={column[key]}
        onChange={(event) => event.target.value !== "" && onChange({ ...column, [key]: Number(event.target.value) })} />
    </label>
  );
  const integer = (checked: boolean) => {
    const { integer: _, ...rest } = column;
    onChange(checked ? { ...rest, integer: true } : rest);
  };
  return (
    <div className="limits">
      {field("min", "from")} {field("max", "to")} {field("bins", "bins")}
      <label className="check">
        <input type="checkbox" checked={column.integer ?? false} onChange={(event) => integer(event.target.checked)} />
        whole numbers
      </label>
    </div>
  );
}
