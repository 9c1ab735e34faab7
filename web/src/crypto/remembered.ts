// How a dataset's table was read, kept by the browser: an upload that goes on after a reload must
// read the same file the same way.
import type { Dataset } from "../api/types";
import type { ReadOptions } from "./messages";

const PREFIX = "fhaim.read.";

interface Kept {
  delimiter: string;
  missing: string[];
  clamp: boolean;
}

const USUAL: Kept = { delimiter: ",", missing: [], clamp: false };

export function remember(dataset: string, read: ReadOptions): void {
  const { delimiter, missing } = read.format;
  const kept: Kept = { delimiter, missing, clamp: read.clamp };
  localStorage.setItem(PREFIX + dataset, JSON.stringify(kept));
}

/** How to read a file for a dataset, as it was read before if this browser knows. */
export function recall(dataset: Dataset, file: string): ReadOptions {
  const text = localStorage.getItem(PREFIX + dataset.id);
  const kept = text ? (JSON.parse(text) as Partial<Kept>) : {};
  const { delimiter, missing, clamp } = { ...USUAL, ...kept };
  const format = { file, delimiter, missing };
  return { format, schema: dataset.terms.schema, clamp, use_other: false };
}

export function forgetRead(dataset: string): void {
  localStorage.removeItem(PREFIX + dataset);
}
