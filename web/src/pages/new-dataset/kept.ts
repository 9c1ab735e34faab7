// Keeps the edited draft in this tab's storage. After a reload, it is restored once the same file is chosen again. It
// is deleted with the tab and never sent.
import type { Column, Drafted, Flag, Format, Taken } from "../../crypto/messages";
import { isRecord, stored } from "../../components/stored";

const KEY = "fhaim.draft";

interface Left {
  drafted: Drafted;
  /** The columns as drafted. */
  original: Column[];
  confirmed: string[];
  lines: number;
}

interface Kept extends Left {
  of: string;
}

/** Identifies a file and its reading settings, without reading the file. */
function identity({ name, size, lastModified }: File, format: Format, only: string): string {
  return JSON.stringify([name, size, lastModified, format, only]);
}

function isKept(value: unknown): value is Kept {
  if (!isRecord(value) || !isRecord(value.drafted) || !isRecord(value.drafted.schema)) return false;
  const { schema, statement, remarks, columns, notes, rules, rules_statement } = value.drafted;
  return Array.isArray(schema.columns) && typeof statement === "string" && isTexts(remarks)
    && Array.isArray(columns) && columns.every(isColumnDraft) && Array.isArray(notes) && notes.every(isRemark)
    && Array.isArray(rules) && rules.every(isRule) && typeof rules_statement === "string"
    && Array.isArray(value.original) && value.original.every(isColumn)
    && isTexts(value.confirmed) && typeof value.lines === "number";
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

function isRemark(value: unknown): boolean {
  return isRecord(value) && typeof value.column === "string" && typeof value.text === "string";
}

function isColumn(value: unknown): boolean {
  return isRecord(value) && typeof value.name === "string" && typeof value.kind === "string";
}

function isRule(value: unknown): boolean {
  return isRecord(value) && isTexts(value.columns) && typeof value.rule === "string" && typeof value.records === "number"
    && isRecord(value.change) && (isRecord(value.change.constraint) || isColumn(value.change.column));
}

const FLAGS: unknown[] = ["safe", "from-records", "near-unique"] satisfies Flag[];
const TAKEN: unknown[] = ["nothing", "range", "list"] satisfies Taken["what"][];

function isColumnDraft(value: unknown): boolean {
  return isRecord(value) && typeof value.column === "string" && typeof value.kind === "string"
    && FLAGS.includes(value.flag) && isRecord(value.taken) && TAKEN.includes(value.taken.what)
    && typeof value.evidence === "string" && Array.isArray(value.exceptions)
    && isTexts(value.proposals) && isTexts(value.questions);
}

/** Returns the kept draft of a file, if the same file was chosen with the same settings. */
export function kept(file: File, format: Format, only: string): Left | undefined {
  const found = stored(sessionStorage, KEY, isKept);
  if (!found) return undefined;
  const { of, ...left } = found;
  return of === identity(file, format, only) ? left : undefined;
}

export function keep(file: File, format: Format, only: string, left: Left): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ of: identity(file, format, only), ...left } satisfies Kept));
  } catch {
    // The storage has no room for such a large schema: after a reload it is drafted again.
  }
}

export function forgetDraft(): void {
  sessionStorage.removeItem(KEY);
}
