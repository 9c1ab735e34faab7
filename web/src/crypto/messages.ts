// What passes between the page and crates/sdk-wasm, as its src/request.rs, schema.rs, table.rs and plan.rs
// have it.
import type { Terms } from "../api/types";

/** What a column holds: see GLOSSARY.md, and docs/DESIGN.md for what each becomes. */
export type Kind =
  | "categorical" | "numeric" | "number" | "date" | "datetime" | "code" | "identifier" | "left-out";

/** A limit: a number, or a date as 2024-01-31. */
export type Bound = number | string;

/** A column of a table: the fields that its kind has, and no others. */
export interface Column {
  name: string;
  kind: Kind;
  nullable?: boolean;
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
  format?: string;
  unit?: "day" | "hour" | "minute";
  relative_to?: string;
  prefix?: number;
  codes?: string[];
  chapters?: { name: string; codes: string[] }[];
  pattern?: string;
  reason?: string;
}

export interface Schema {
  /** 1, or absent. */
  format?: number;
  claim?: { epsilon: number; delta: number; rho: string };
  name: string;
  source?: string | null;
  target?: string | null;
  columns: Column[];
}

export interface Format {
  file: string;
  delimiter: string;
  missing: string[];
}

export interface ReadOptions {
  format: Format;
  schema: Schema;
  clamp: boolean;
  use_other: boolean;
  /** For a report: the values as they are stay in the worker. */
  keep_values?: boolean;
}

export type Request =
  | { op: "mechanisms" }
  | { op: "dialect" }
  | { op: "draft"; format: Format; name: string; leave_out: string[] }
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

/** A mechanism that can be chosen; the default is listed first. */
export interface Mechanism {
  name: string;
  label: string;
  about: string;
}

/** How a file is written, by its first bytes. */
export interface Dialect {
  delimiter: string;
  /** By the name that TextDecoder knows. */
  encoding: string;
}

export interface Remark {
  column: string;
  text: string;
}

export interface Drafted {
  schema: Schema;
  statement: string;
  notes: Remark[];
}

export interface SchemaCost {
  /** One an attribute. */
  columns: { name: string; size: number; pair_cells: number; share: number }[];
  one_hot_columns: number;
  pairs: number;
  pair_cells: number;
  suggestions: { column: string; from: number; to: number }[];
}

/** What a schema costs, or all that is wrong with it. */
export type Checked =
  | { cost: SchemaCost; labels: string[][]; refused?: undefined }
  | { refused: string; problems: Remark[] };

/** An attribute: of most columns there is one, of those with digits, dates and times there are several. */
export interface ReadColumn {
  name: string;
  /** It says which part of a coarser attribute's value. */
  digit: boolean;
  labels: string[];
  counts: number[];
  clamped: number;
  other: number;
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
  /** The same as a count of 2^-80. */
  budget: string;
  run_rho: number;
  /** Nothing is told of the number of records where counts are uploaded. */
  layout: { chunks: number; stride: number } | null;
  objects: string[];
  /** Of all objects. */
  bytes: number;
  /** By attribute. */
  sigmas: (number | null)[];
}

/** What uses of the same records cost together. */
export interface Composed {
  rho: number;
  epsilon: number;
}

export type Reliance = "good" | "rough" | "bad";

export interface Shares {
  real: number;
  synthetic: number;
}

/** How close a synthetic table is: crates/eval/src/report.rs. */
export interface Report {
  statement: string;
  real_records: number;
  synthetic_records: number;
  verdict: {
    sentences: string[];
    findings: { columns: string[]; distance: number; reliance: Reliance; text: string }[];
  };
  columns: { name: string; binning: string; total_variation: number; labels: string[]; real: number[]; synthetic: number[] }[];
  values: {
    name: string;
    total_variation: number | null;
    kolmogorov_smirnov: number | null;
    wasserstein: number | null;
    missing: Shares;
    furthest: { value: string; shares: Shares } | null;
  }[];
  pair_total_variation: number[][];
}

/** A report, as data and as a page of its own. */
export interface Reported {
  report: Report;
  page: string;
}

/** An encrypted object and the digest it is sent with. */
export interface Encrypted {
  bytes: Uint8Array<ArrayBuffer>;
  digest: Uint8Array<ArrayBuffer>;
}

/** To the worker: a request and the file or bytes that belong to it. */
export interface Ask {
  id: number;
  request: Request;
  input?: Blob;
}

/** How far a worker has read its input: bytes, and ends of lines in them. */
export interface Read {
  bytes: number;
  lines: number;
}

/** From the worker: how far it has read its input, and then the answer. */
export type Answer =
  | { id: number; kind: "progress"; read: Read }
  | { id: number; kind: "json"; value: unknown }
  | { id: number; kind: "encrypted"; value: Encrypted }
  | { id: number; kind: "error"; detail: string };
