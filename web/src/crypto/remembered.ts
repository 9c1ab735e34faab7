// How a dataset's table was read, stored by the browser: an upload that is resumed after a reload
// must read the same file in the same way.
import type { Dataset } from "../api/types";
import { isRecord, stored } from "../components/stored";
import type { ReadOptions, Schema } from "./messages";
import type { HolderSession } from "./session";
import { sniff } from "./sniff";

const PREFIX = "fhaim.read.";

interface Kept {
  delimiter: string;
  missing: string[];
  clamp: boolean;
}

function isKept(value: unknown): value is Kept {
  if (!isRecord(value) || !Array.isArray(value.missing)) return false;
  return typeof value.delimiter === "string" && value.missing.every((word) => typeof word === "string") && typeof value.clamp === "boolean";
}

export function remember(dataset: string, read: ReadOptions): void {
  const { delimiter, missing } = read.format;
  const kept: Kept = { delimiter, missing, clamp: read.clamp };
  localStorage.setItem(PREFIX + dataset, JSON.stringify(kept));
}

/**
 * Returns how to read a file for a dataset with a schema: as before if this browser remembers it, otherwise as detected
 * from the file.
 */
export async function recall(dataset: Dataset, schema: Schema, file: File, session: HolderSession): Promise<ReadOptions> {
  const kept: Partial<Kept> = stored(localStorage, PREFIX + dataset.id, isKept) ?? {};
  const { refusal, delimiter } = await sniff(file, session);
  if (refusal !== undefined) throw new Error(refusal);
  const format = { file: file.name, delimiter: kept.delimiter ?? delimiter, missing: kept.missing ?? [] };
  return { format, schema, clamp: kept.clamp ?? false };
}

export function forgetRead(dataset: string): void {
  localStorage.removeItem(PREFIX + dataset);
}
