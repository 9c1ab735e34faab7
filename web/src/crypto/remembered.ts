// How a dataset's table was read, kept by the browser: an upload that goes on after a reload must
// read the same file the same way.
import type { Dataset } from "../api/types";
import type { ReadOptions } from "./messages";

const PREFIX = "fhaim.read.";

interface Kept {
  missing: string[];
  clamp: boolean;
}

export function remember(dataset: string, read: ReadOptions): void {
  const kept: Kept = { missing: read.format.missing, clamp: read.clamp };
  localStorage.setItem(PREFIX + dataset, JSON.stringify(kept));
}

/** How to read a file for a dataset, as it was read before if this browser knows. */
export function recall(dataset: Dataset, file: string): ReadOptions {
  const text = localStorage.getItem(PREFIX + dataset.id);
  const kept: Kept = text ? (JSON.parse(text) as Kept) : { missing: [], clamp: false };
  const format = { file, delimiter: ",", missing: kept.missing };
  return { format, schema: dataset.terms.schema, clamp: kept.clamp, use_other: false };
}

export function forgetRead(dataset: string): void {
  localStorage.removeItem(PREFIX + dataset);
}
