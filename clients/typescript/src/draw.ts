// Synthetic tables: the query for one, and its bytes.
import { Refusal } from "./session.ts";

export interface SyntheticOptions {
  /** Number of records, by default the model's estimate of the original number. */
  rows?: number;
  /** The same seed draws the same records. */
  seed?: number;
  /** Conditions that every record meets: `{ race: "Asian" }`. */
  where?: Record<string, string | number>;
  format?: "csv" | "parquet";
}

/** Returns the query that requests a table. */
export function asked({ rows, seed, where = {}, format = "csv" }: SyntheticOptions) {
  const all = Object.entries(where).map(([column, value]) => `${column}=${value}`);
  // Conditions that contain commas or quotes are quoted (RFC 4180).
  const conditions = all.map((text) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",");
  return {
    format,
    ...(rows === undefined ? {} : { rows }),
    ...(seed === undefined ? {} : { seed }),
    ...(conditions === "" ? {} : { where: conditions }),
  };
}

/** Returns the bytes of an answer, or throws the service's refusal. */
export async function bytes(call: Promise<{ data?: unknown; error?: unknown; response: Response }>): Promise<Uint8Array> {
  const { data, error, response } = await call;
  if (!response.ok) throw new Refusal((error ?? {}) as { detail?: string }, response.status);
  return new Uint8Array(data as ArrayBuffer);
}
