// What passes between the page and crates/sdk-wasm, as src/request.rs, table.rs and plan.rs have it.
import type { Terms } from "../api/types";

export interface CategoricalColumn {
  name: string;
  kind: "categorical";
  categories: string[];
  other?: string;
  nullable?: boolean;
}

export interface NumericColumn {
  name: string;
  kind: "numeric";
  min: number;
  max: number;
  bins: number;
  integer?: boolean;
  nullable?: boolean;
}

export type Column = CategoricalColumn | NumericColumn;

export interface Schema {
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
}

export type Request =
  | { op: "mechanisms" }
  | { op: "draft"; format: Format; name: string; leave_out: string[] }
  | { op: "check"; schema: Schema }
  | ({ op: "read" } & ReadOptions)
  | { op: "plan"; terms: Terms; records: number }
  | { op: "compose"; costs: string[]; delta: number }
  | { op: "prepare"; terms: Terms }
  | { op: "encrypt"; object: string }
  | { op: "compare"; file: string };

/** A mechanism that can be chosen; the default is listed first. */
export interface Mechanism {
  name: string;
  label: string;
  about: string;
}

export interface Drafted {
  schema: Schema;
  statement: string;
  notes: { column: string; text: string }[];
}

export interface Checked {
  cost: {
    columns: { name: string; size: number; pair_cells: number; share: number }[];
    one_hot_columns: number;
    pairs: number;
    pair_cells: number;
    suggestions: { column: string; from: number; to: number }[];
  };
  labels: string[][];
}

export interface ReadColumn {
  name: string;
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

export interface Planned {
  parameter_set: number;
  rho: number;
  /** The same as a count of 2^-80. */
  budget: string;
  run_rho: number;
  chunks: number;
  stride: number;
  objects: string[];
  object_bytes: number;
  sigmas: (number | null)[];
}

/** What uses of the same records cost together. */
export interface Composed {
  rho: number;
  epsilon: number;
}

export interface Comparison {
  real_records: number;
  synthetic_records: number;
  columns: { name: string; labels: string[]; real: number[]; synthetic: number[] }[];
  pairs: number[][];
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
  | { id: number; kind: "error"; detail: string; columns: string[] };
