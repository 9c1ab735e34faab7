// Rejects a file that is too large or empty before it is read, and detects how it is written.
import type { Dialect, Format } from "./messages";
import type { HolderSession } from "./session";

/** Larger files do not fit into the memory of a page together with room to work. */
export const MAX_FILE_BYTES = 1e9;

/** Returns how a file is written. The worker rejects a file that is not a table in text. */
export async function sniff(file: File, format: Format, session: HolderSession): Promise<Dialect> {
  const refusal = refused(file);
  if (refusal !== undefined) throw new Error(`${file.name} ${refusal}.`);
  return session.dialect(file, format);
}

function refused(file: File): string | undefined {
  if (file.size === 0) return "is empty";
  if (file.size <= MAX_FILE_BYTES) return undefined;
  const gigabytes = (file.size / 1e9).toFixed(1);
  return `has ${gigabytes} GB: more than a browser can hold. The command line, below, has no limit`;
}
