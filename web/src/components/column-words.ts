// Descriptions of a schema's columns.
import type { Bound, Column, Kind } from "../crypto/messages";
import { counted } from "./ui";

export const KINDS: Record<Kind, string> = {
  categorical: "categories",
  number: "number",
  numeric: "number in equal bins",
  date: "date",
  datetime: "date and time",
  time: "time of day",
  duration: "duration",
  code: "codes in chapters",
  identifier: "identifier, newly generated",
  derived: "from another column",
  "left-out": "left out",
};

/** Returns whether records of the column are encrypted. */
export function isEncrypted({ kind }: Column): boolean {
  return kind !== "identifier" && kind !== "derived" && kind !== "left-out";
}

/** Returns whether values of the column are days, with or without a time of day. */
export function isTime({ kind }: Column): boolean {
  return kind === "date" || kind === "datetime";
}

/** Returns whether limits of the column are texts, such as `2024-01-31` or `23:30`. */
export function hasTextLimits(column: Column): boolean {
  const { kind, relative_to } = column;
  return kind === "time" || kind === "duration" || (isTime(column) && relative_to === undefined);
}

/** Returns the listed values of the column; undefined if its kind has no list. */
export function listed({ kind, categories, codes, chapters, values }: Column): string[] | undefined {
  if (kind === "categorical") return categories ?? [];
  if (kind === "code") return codes ?? chapters?.flatMap((chapter) => chapter.codes) ?? [];
  if (kind === "derived" && values) return [...new Set(Object.values(values))].filter((value) => value !== "");
  return undefined;
}

/** Returns the names of digits: attributes whose codes are parts of a coarser attribute's values. */
export function digitsOf(attributes: string[]): Set<string> {
  const suffix = " (digit)";
  const known = new Set(attributes);
  return new Set(attributes.filter((name) => name.endsWith(suffix) && known.has(name.slice(0, -suffix.length))));
}

/** Fields of a schema, with the page's names for them. */
const FIELDS: Record<string, string> = {
  digits: "parts per bin",
  edges: "bin edges",
  min: "from",
  max: "to",
  special: "special values",
  format: "format",
  relative_to: "never before",
  prefix: "prefix length",
  other: "other values count as",
  nullable: "may be missing",
  step: "step",
  thousands: "thousands separator",
  before: "text before",
  after: "text after",
  negative: "negative numbers",
  clock: "precision of the time of day",
  first_year: "first year",
  midnight: "midnight",
  offsets: "offsets",
  months: "names of months",
  weekdays: "names of weekdays",
  missing: "texts for missing values",
  invalid: "invalid values",
};

/** Replaces names of fields and kinds in a problem by the page's names for them. */
export function inWords(problem: string): string {
  const names: Record<string, string> = { ...KINDS, ...FIELDS };
  return problem.replaceAll(/`([\w-]+)`/g, (_, name: string) => `“${names[name] ?? name}”`);
}

/** Replaces an option of the command in a note by what the page has for it. */
export function noteInWords(note: string): string {
  const paste = `Choose the type “${KINDS.code}” and paste all its codes`;
  return inWords(note).replace(/Give it with --code-book .*=FILE/, () => paste);
}

/** Describes the values that a column may take. */
export function describe(column: Column): string {
  const missing = column.nullable ? ", or missing" : "";
  return values(column) + missing;
}

function values(column: Column): string {
  switch (column.kind) {
    case "categorical":
      return (column.categories ?? []).join(", ");
    case "code":
      return counted(column.codes?.length ?? column.chapters?.flatMap(({ codes }) => codes).length ?? 0, "code");
    case "identifier":
      return `newly generated: ${column.pattern ?? ""}`;
    case "derived":
      return column.values
        ? `follows from ${column.from ?? "?"}: ${pairs(column.values).join(", ")}`
        : `the same as ${column.from ?? "?"}`;
    case "left-out":
      return `left out${column.reason ? `: ${column.reason}` : ""}`;
    case "date":
    case "datetime":
      return column.relative_to === undefined
        ? `${range(column)}, written as ${column.format ?? ""}`
        : `${range(column)} ${column.kind === "date" ? "day" : (column.unit ?? "minute")}s after ${column.relative_to}`;
    case "time":
    case "duration":
      return `${range(column)}, written as ${column.format ?? ""}${special(column.special)}`;
    default:
      return `${range(column)}${special(column.special)}`;
  }
}

/** Returns the values of a derived column, each with the value that it follows from. */
export function pairs(values: Record<string, string>): string[] {
  const shown = (value: string) => (value === "" ? "missing" : value);
  return Object.entries(values).map(([from, value]) => `${shown(from)} is ${shown(value)}`);
}

function range({ min, max, bins = 0, edges = [], digits = 1 }: Column): string {
  const [from, to] = edges.length > 1 ? [edges[0], edges.at(-1)] : [min, max];
  const groups = edges.length > 1 ? edges.length - 1 : bins;
  const parts = digits > 1 ? ` of up to ${counted(digits, "part")}` : "";
  return `${from ?? "?"} to ${to ?? "?"} in ${counted(groups, "bin")}${parts}`;
}

function special(values: Bound[] | undefined): string {
  return values && values.length > 0 ? `, special values ${values.join(", ")}` : "";
}
