// One column's domain, as a row of the editor.
import { useId, useState } from "react";
import type { Column, Kind } from "../../crypto/messages";
import { inWords, KINDS } from "../../components/column-words";
import { Sketch } from "../../components/sketch";
import { Values } from "./column-kinds";
import { converted, nullableIf } from "./convert";

interface Props {
  column: Column;
  note: string | undefined;
  /** Problem of the column, in words. */
  problem: string | undefined;
  /** Some of its values, shown only to the holder. */
  samples: string[];
  /** Its values in the first records, shown only to the holder. */
  first: string[];
  bases: string[];
  isPublic: boolean;
  onChange: (column: Column) => void;
  onConfirm: (isPublic: boolean) => void;
}

/** Number of samples that are shown, and the maximum length of each. */
const SHOWN = 3;
const MAX_SAMPLE = 24;

function short(sample: string): string {
  return sample.length > MAX_SAMPLE ? `${sample.slice(0, MAX_SAMPLE - 1)}…` : sample;
}

/** Returns the kinds that can be chosen; `numeric` only if the schema already has it. */
function kinds({ kind }: Column): Kind[] {
  return (Object.keys(KINDS) as Kind[]).filter((other) => other !== "numeric" || kind === "numeric");
}

export function ColumnRow({ column, note, problem, samples, first, bases, isPublic, onChange, onConfirm }: Props) {
  const { name, kind } = column;
  const id = useId();
  // Another kind resets the fields.
  const [edition, setEdition] = useState(0);
  const change = (changed: Column) => {
    const isOther = changed.kind !== kind || !changed.edges !== !column.edges || changed.relative_to !== column.relative_to;
    if (isOther) setEdition(edition + 1);
    onChange(changed);
  };
  const isLeftOut = kind === "left-out";
  return (
    <tr className={isLeftOut ? "left-out" : undefined} aria-describedby={problem ? `${id}-problem` : undefined}>
      <td>
        <strong>{name}</strong>
        <Sketch name={name} values={first} />
        {samples.length > 0 && <div className="small quiet samples">{samples.slice(0, SHOWN).map(short).join(" · ")}</div>}
        {note && <div className="small quiet note">{note}</div>}
      </td>
      <td data-label="Type">
        <select aria-label={`Type of ${name}`} value={kind}
          onChange={(event) => change(converted(column, event.target.value as Kind, samples))}>
          {kinds(column).map((other) => <option key={other} value={other}>{KINDS[other]}</option>)}
        </select>
      </td>
      <td className="values" data-label="Values it may take">
        <Values key={edition} column={column} bases={bases} onChange={change} />
        {problem && <p className="problem" id={`${id}-problem`}>{inWords(problem)}</p>}
      </td>
      <td className="inline" data-label="May be missing">
        {kind !== "identifier" && !isLeftOut && (
          <input type="checkbox" aria-label={`${name} may be missing`} checked={column.nullable ?? false}
            onChange={(event) => onChange(nullableIf(column, event.target.checked))} />
        )}
      </td>
      <td className="inline" data-label="Public">
        {!isLeftOut && (
          <label className="check">
            <input type="checkbox" aria-label={`The values of ${name} are public`} checked={isPublic}
              onChange={(event) => onConfirm(event.target.checked)} />
            {isPublic ? "confirmed" : "confirm"}
          </label>
        )}
      </td>
      <td className="inline">
        {!isLeftOut && (
          <button type="button" className="plain" aria-label={`Leave out ${name}`}
            onClick={() => change(converted(column, "left-out", samples))}>
            leave out
          </button>
        )}
      </td>
    </tr>
  );
}
