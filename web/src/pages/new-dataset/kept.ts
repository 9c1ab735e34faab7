// A draft as it was left, kept by this tab: what was edited outlives a reload, once the same file is chosen
// again. It is gone with the tab, and never sent.
import type { Drafted, Format } from "../../crypto/messages";
import { isRecord, stored } from "../../components/stored";

const KEY = "fhaim.draft";

interface Left {
  drafted: Drafted;
  confirmed: string[];
  lines: number;
}

interface Kept extends Left {
  of: string;
}

/** What tells a file from another, without reading it, and how it was read. */
function identity({ name, size, lastModified }: File, { delimiter, missing }: Format, only: string): string {
  return JSON.stringify([name, size, lastModified, delimiter, missing, only]);
}

function isKept(value: unknown): value is Kept {
  if (!isRecord(value) || !isRecord(value.drafted) || !isRecord(value.drafted.schema)) return false;
  const { schema, statement, notes } = value.drafted;
  return Array.isArray(schema.columns) && typeof statement === "string" && Array.isArray(notes)
    && Array.isArray(value.confirmed) && typeof value.lines === "number";
}

/** What was left of a file that is chosen again. */
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
    // There is no room for a schema so large: it is drafted again then.
  }
}

export function forgetDraft(): void {
  sessionStorage.removeItem(KEY);
}
