// Messages between the page and crates/sdk-wasm, as defined in its src/request.rs, schema.rs, table.rs and plan.rs.
import type { Terms } from "../api/types";

/** The kind of a column: see GLOSSARY.md, and docs/DESIGN.md for what each becomes. */
export type Kind =
  | "categorical" | "numeric" | "number" | "date" | "datetime" | "time" | "duration" | "code" | "identifier" | "derived"
  | "left-out";

/** A limit or a special value: a number, a date as 2024-01-31, a time as 23:30, or a word. */
export type Bound = number | string;

/** A column of a table, with only the fields of its kind. */
export interface Column {
  name: string;
  kind: Kind;
  nullable?: boolean;
  missing?: string[];
  invalid?: "missing";
  categories?: string[];
  other?: string;
  special?: Bound[];
  min?: Bound;
  max?: Bound;
  bins?: number;
  edges?: Bound[];
  digits?: number;
  integer?: boolean;
  decimals?: number;
  trailing_zeros?: boolean;
  decimal_comma?: boolean;
  step?: number;
  thousands?: string;
  before?: string;
  after?: string;
  negative?: "minus" | "parentheses" | "trailing" | "minus-sign" | "plus-minus";
  format?: string;
  unit?: "day" | "hour" | "minute";
  relative_to?: string;
  clock?: "day" | "hour" | "minute";
  first_year?: number;
  midnight?: string;
  offsets?: string[];
  months?: string[];
  weekdays?: string[];
  prefix?: number;
  codes?: string[];
  chapters?: { name: string; codes: string[] }[];
  pattern?: string;
  /** The column that a derived column follows from. */
  from?: string;
  /** The value of a derived column for each value of the other one; the same value if absent. */
  values?: Record<string, string>;
  reason?: string;
}

/** A rule that every record satisfies: see docs/reference/schema.md. */
export type Constraint =
  | { at_most: [string, string] }
  | { missing_together: [string, string] }
  | { never: Record<string, string> }
  | { implies: { when: Record<string, string[]>; then: Record<string, string[]> } }
  | { age: { age: string; born: string; at: number | string | { end_of: number | string } } }
  | { sum: { total: string; parts: string[] } };

export interface Schema {
  /** 1, or absent. */
  format?: number;
  claim?: { epsilon: number; delta: number; rho: string };
  name: string;
  source?: string | null;
  target?: string | null;
  columns: Column[];
  constraints?: Constraint[];
}

/** How a file is written. Its first bytes show every property that is absent here. */
export interface Format {
  file: string;
  delimiter?: string;
  /** The encoding's name in the WHATWG's Encoding Standard. */
  encoding?: string;
  /** Number of lines before the header. */
  skip_rows?: number;
  /** Number of rows at the end that are no records. */
  skip_footer?: number;
  missing: string[];
}

export interface ReadOptions {
  format: Format;
  schema: Schema;
  clamp: boolean;
  /** For a report: whether the original values stay in the worker. */
  keep_values?: boolean;
}

export type Request =
  | { op: "mechanisms" }
  | { op: "dialect"; format: Format }
  | { op: "draft"; format: Format; name: string; leave_out: string[] }
  | { op: "accept"; schema: Schema; rules: ProposedRule[] }
  | { op: "check"; schema: Schema }
  | ({ op: "read" } & ReadOptions)
  | { op: "name"; terms: Terms }
  | { op: "part"; terms: Terms; part: number }
  | { op: "plan"; terms: Terms; records: number }
  | { op: "compose"; costs: string[]; delta: number }
  | { op: "upload-key"; terms: Terms }
  | { op: "prepare"; terms: Terms; upload_key: string }
  | { op: "encrypt"; object: string }
  | { op: "rehearse"; parameter_set: number; objects: number }
  | { op: "report"; file: string; facts: [string, string][] };

/** A mechanism to choose from. The default is listed first. */
export interface Mechanism {
  name: string;
  label: string;
  about: string;
}

/** How a file is written, detected from its first bytes, and its first records. */
export interface Dialect {
  delimiter: string;
  encoding: string;
  /** Unusual properties that were detected. */
  remarks: string[];
  /** Names of the columns. */
  header: string[];
  samples: string[][];
}

export interface Remark {
  column: string;
  text: string;
}

/** Whether a drafted column may be public. */
export type Flag = "safe" | "from-records" | "near-unique";

/** The part of a drafted column that was read from the records: see crates/intake/src/draft.rs. */
export type Taken = { what: "nothing" } | { what: "range" } | { what: "list"; values: number; shared_by: number };

/** Cells of a column that have no value of its kind. */
export interface Exception {
  cells: number;
  /** The first of them, as a record counted from 1 without the header. */
  row: number;
  shape: string;
  read_as: string;
}

/** What a draft says about a column. */
export interface ColumnDraft {
  column: string;
  kind: Kind;
  flag: Flag;
  taken: Taken;
  evidence: string;
  exceptions: Exception[];
  proposals: string[];
  /** Questions that only the holder can answer. */
  questions: string[];
}

/** A rule that holds in all records of the table. It is not in the drafted schema. */
export interface ProposedRule {
  columns: string[];
  /** The rule, as a sentence without a full stop. */
  rule: string;
  /** Number of records that support it. Private: it is not a part of the schema. */
  records: number;
  /** The change to the schema: a constraint, or a column that becomes a derived one. */
  change: { constraint: Constraint } | { column: Column };
}

export interface Drafted {
  schema: Schema;
  statement: string;
  /** Number of records of the table. */
  records: number;
  /** Remarks on the file as a whole. */
  remarks: string[];
  /** One entry for each column of the drafted schema. */
  columns: ColumnDraft[];
  /** Everything that the holder should read about single columns: the evidence of a column comes first. */
  notes: Remark[];
  rules: ProposedRule[];
  /** Warning that is shown with the rules. */
  rules_statement: string;
}

export interface SchemaCost {
  /** One entry per attribute. */
  columns: { name: string; size: number; pair_cells: number; share: number }[];
  one_hot_columns: number;
  pairs: number;
  pair_cells: number;
  suggestions: { column: string; from: number; to: number }[];
}

/** The cost of a schema, or all its problems. */
export type Checked =
  | { cost: SchemaCost; labels: string[][]; refused?: undefined }
  | { refused: string; problems: Remark[] };

/** An attribute. Most columns have one; those with digits, dates and times have several. */
export interface ReadColumn {
  name: string;
  /** Whether its codes are parts of a coarser attribute's values. */
  digit: boolean;
  labels: string[];
  counts: number[];
  clamped: number;
  other: number;
  invalid: number;
  missing: number;
}

export interface ReadTable {
  records: number;
  record_bound: number;
  left_out: string[];
  columns: ReadColumn[];
}

/** A holder's part of a dataset. */
export interface Part {
  schema: Schema;
  record_bound: number;
}

export interface Planned {
  parameter_set: number;
  rho: number;
  /** The whole budget as a count of 2^-80. */
  budget: string;
  run_rho: number;
  /** The layout, by which an upload reveals the number of records; null for counts. */
  layout: { chunks: number; stride: number } | null;
  objects: string[];
  /** Size of all objects. */
  bytes: number;
  /** One entry per attribute. */
  sigmas: (number | null)[];
}

/** The total cost of uses of the same records. */
export interface Composed {
  rho: number;
  epsilon: number;
}

export type Reliance = "good" | "rough" | "bad";

/** How severe a failed check is: crates/eval/src/assessment/mod.rs. */
export type Severity = "minor" | "major";

/** The part of a report that the page itself uses: crates/eval/src/report.rs. Distances are total variations. */
export interface Report {
  assessment: { findings: { severity: Severity }[] };
  columns: { name: string; total_variation: number }[];
  pair_total_variation: number[][];
}

/** A report, as data and as a separate page. */
export interface Reported {
  report: Report;
  page: string;
}

/** An encrypted object, with the digest that is sent with it. */
export interface Encrypted {
  bytes: Uint8Array<ArrayBuffer>;
  digest: Uint8Array<ArrayBuffer>;
}

/** A message to the worker: a request, with the file or bytes that belong to it. */
export interface Ask {
  id: number;
  request: Request;
  input?: Blob;
}

/** How much of its input a worker has read, in bytes and in line ends. */
export interface Read {
  bytes: number;
  lines: number;
}

/** A message from the worker: its reading progress, and then the answer. */
export type Answer =
  | { id: number; kind: "progress"; read: Read }
  | { id: number; kind: "json"; value: unknown }
  | { id: number; kind: "encrypted"; value: Encrypted }
  | { id: number; kind: "error"; detail: string };
