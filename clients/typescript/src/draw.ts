// Synthetic tables: how one is asked for, and what comes.
import { Refusal } from "./session.ts";

export interface SyntheticOptions {
  /** As many as the model says that there are, if it is left out. */
  rows?: number;
  /** The same seed draws the same records. */
  seed?: number;
  /** Conditions that every record meets: `{ race: "Asian" }`. */
  where?: Record<string, string | number>;
  format?: "csv" | "parquet";
}

/** The query that asks for a table. */
export function asked({ rows, seed, where = {}, format = "csv" }: SyntheticOptions) {
  const all = Object.entries(where).map(([column, value]) => `${column}=${value}`);
  // Commas and quotes inside of a condition are quoted (RFC 4180).
  const conditions = all.map((text) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",");
  return {
    format,
    ...(rows === undefined ? {} : { rows }),
    ...(seed === undefined ? {} : { seed }),
    ...(conditions === "" ? {} : { where: conditions }),
  };
}

/** The bytes that a call gave, or its refusal. */
export async function bytes(call: Promise<{ data?: unknown; error?: unknown; response: Response }>): Promise<Uint8Array> {
  const { data, error, response } = await call;
  if (!response.ok) throw new Refusal((error ?? {}) as { detail?: string }, response.status);
  return new Uint8Array(data as ArrayBuffer);
}
