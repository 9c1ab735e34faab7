// One column's domain, as a row of the editor.
import { useId, useState } from "react";
import type { Column, ColumnDraft, Kind } from "../../crypto/messages";
import { inWords, KINDS, noteInWords } from "../../components/column-words";
import { Sketch } from "../../components/sketch";
import { Values } from "./column-kinds";
import { converted, nullableIf, turnedBack } from "./convert";
import { listsRecords } from "./lists";

interface Props {
  column: Column;
  /** The column as drafted; undefined if only a schema file has it. */
  drafted: Column | undefined;
  /** What the draft says about it; undefined if only a schema file has the column. */
  about: ColumnDraft | undefined;
  /** What the draft says about it, as sentences. */
  notes: string[];
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

/** Returns the kinds that can be chosen; `numeric` and `derived` only if the column already has them. */
function kinds({ kind }: Column): Kind[] {
  const isOffered = (other: Kind) => other === kind || (other !== "numeric" && other !== "derived");
  return (Object.keys(KINDS) as Kind[]).filter(isOffered);
}

export function ColumnRow({ column, drafted, about, notes, problem, samples, first, bases, isPublic, onChange, onConfirm }: Props) {
  const { name, kind } = column;
  const id = useId();
  // Another kind resets the fields.
  const [edition, setEdition] = useState(0);
  const change = (changed: Column) => {
    const isOther = changed.kind !== kind || !changed.edges !== !column.edges || changed.relative_to !== column.relative_to;
    if (isOther) setEdition(edition + 1);
    onChange(changed);
  };
  const convert = (other: Kind) => {
    const known = about?.flag === "near-unique" ? [] : first;
    change(kind === "derived" && drafted ? turnedBack(drafted, other, known) : converted(column, other, known));
  };
  const isLeftOut = kind === "left-out";
  const isOfRecords = listsRecords(column, about, first);
  return (
    <tr data-column={name} className={isLeftOut ? "left-out" : undefined} aria-describedby={problem ? `${id}-problem` : undefined}>
      <td>
        <strong>{name}</strong>
        <Sketch name={name} values={first} />
        {samples.length > 0 && <div className="small quiet samples">{samples.slice(0, SHOWN).map(short).join(" · ")}</div>}
        <Notes notes={notes} questions={about?.questions ?? []} />
      </td>
      <td data-label="Type">
        <select aria-label={`Type of ${name}`} value={kind}
          onChange={(event) => convert(event.target.value as Kind)}>
          {kinds(column).map((other) => <option key={other} value={other}>{KINDS[other]}</option>)}
        </select>
      </td>
      <td className="values" data-label="Values it may take">
        <Values key={edition} column={column} bases={bases} onChange={change} />
        {problem && <p className="problem" id={`${id}-problem`}>{inWords(problem)}</p>}
        {isOfRecords && (
          <p className="of-records" id={`${id}-records`}>
            Most of these values are in your records, and few records share each of them, so the list must not be public: choose
            “{KINDS.identifier}”, leave the column out, or list all values of a public code book.
          </p>
        )}
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
            <input type="checkbox" className="public" aria-label={`The values of ${name} are public`} checked={isPublic}
              disabled={isOfRecords} aria-describedby={isOfRecords ? `${id}-records` : undefined}
              onChange={(event) => onConfirm(event.target.checked)} />
            {isOfRecords ? "not possible" : isPublic ? "confirmed" : "confirm"}
          </label>
        )}
      </td>
      <td className="inline">
        {!isLeftOut && (
          <button type="button" className="plain" aria-label={`Leave out ${name}`}
            onClick={() => convert("left-out")}>
            leave out
          </button>
        )}
      </td>
    </tr>
  );
}

/** Shows what the draft says about a column: the evidence first, and questions to the holder marked as such. */
function Notes({ notes, questions }: { notes: string[]; questions: string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul className="small quiet notes">
      {notes.map((note) => (
        <li key={note}>{questions.includes(note) && <strong>Question: </strong>}{noteInWords(note)}</li>
      ))}
    </ul>
  );
}
