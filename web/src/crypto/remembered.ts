// How a dataset's table was read, stored by the browser: an upload that is resumed after a reload
// must read the same file in the same way.
import type { Dataset } from "../api/types";
import { isRecord, stored } from "../components/stored";
import type { Format, ReadOptions, Schema } from "./messages";
import type { HolderSession } from "./session";
import { sniff } from "./sniff";

const PREFIX = "fhaim.read.";

interface Kept extends Omit<Format, "file"> {
  clamp: boolean;
}

function isKept(value: unknown): value is Kept {
  if (!isRecord(value) || !Array.isArray(value.missing)) return false;
  const isText = (part: unknown) => part === undefined || typeof part === "string";
  const isCount = (part: unknown) => part === undefined || typeof part === "number";
  return value.missing.every((word) => typeof word === "string") && typeof value.clamp === "boolean"
    && isText(value.delimiter) && isText(value.encoding) && isCount(value.skip_rows) && isCount(value.skip_footer);
}

export function remember(dataset: string, read: ReadOptions): void {
  const { file: _, ...format } = read.format;
  const kept: Kept = { ...format, clamp: read.clamp };
  localStorage.setItem(PREFIX + dataset, JSON.stringify(kept));
}

/**
 * Returns how to read a file for a dataset with a schema: as before if this browser remembers it, otherwise as detected
 * from the file.
 */
export async function recall(dataset: Dataset, schema: Schema, file: File, session: HolderSession): Promise<ReadOptions> {
  const { clamp, ...kept } = stored(localStorage, PREFIX + dataset.id, isKept) ?? { missing: [], clamp: false };
  const format: Format = { ...kept, file: file.name };
  await sniff(file, format, session);
  return { format, schema, clamp };
}

export function forgetRead(dataset: string): void {
  localStorage.removeItem(PREFIX + dataset);
}
