// The records that were uploaded from this browser. The costs of datasets over the same records add up, and only the
// holder of the records can know that they are the same.
//
// A file is recognized by an HMAC-SHA256 under a random key that stays in this browser. It covers the digests of the
// file's slices, because the browser's function does not accept a stream. Nothing of this is ever sent.
import type { Dataset } from "../api/types";
import { isRecord, stored } from "../components/stored";
import { hexadecimal } from "./journal";

const KEY = "fhaim.memory.key";
const USES = "fhaim.memory.uses";
const KEY_BYTES = 32;
/** Number of bytes of a file that are read at a time. */
const SLICE = 16 << 20;

/** A dataset to which some records were uploaded. */
export interface Use {
  records: string;
  dataset: string;
  name: string;
  /** The whole budget, as a count of 2^-80. */
  rho: string;
}

/** Records that were looked up, and the other datasets that used them. */
export interface Used {
  records: string;
  before: Use[];
}

function key(): Uint8Array<ArrayBuffer> {
  const kept = localStorage.getItem(KEY)?.split(",") ?? [];
  if (kept.length === KEY_BYTES && kept.every((byte) => /^\d{1,3}$/.test(byte))) return Uint8Array.from(kept.map(Number));
  const made = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  localStorage.setItem(KEY, made.join());
  return made;
}

async function digestOf(file: File): Promise<string> {
  const slices = Math.max(1, Math.ceil(file.size / SLICE));
  const digests = new Uint8Array(32 * slices);
  for (let slice = 0; slice < slices; slice++) {
    const bytes = await file.slice(slice * SLICE, (slice + 1) * SLICE).arrayBuffer();
    digests.set(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), 32 * slice);
  }
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", key(), algorithm, false, ["sign"]);
  return hexadecimal(new Uint8Array(await crypto.subtle.sign(algorithm, imported, digests)));
}

function isUse(value: unknown): value is Use {
  if (!isRecord(value) || !/^\d+$/.test(String(value.rho))) return false;
  return [value.records, value.dataset, value.name, value.rho].every((part) => typeof part === "string");
}

function uses(): Use[] {
  return (stored(localStorage, USES, Array.isArray) ?? []).filter(isUse);
}

/**
 * Looks a file up. If it was already used for `dataset` itself, the question was answered before, so nothing is
 * returned.
 */
export async function usesOf(file: File, dataset?: Dataset): Promise<Used> {
  const records = await digestOf(file);
  const before = uses().filter((use) => use.records === records);
  const goesOn = before.some((use) => use.dataset === dataset?.id);
  return { records, before: goesOn ? [] : before };
}

/** Remembers that records are uploaded to a dataset. */
export function rememberUse({ records }: Used, { id, name, budget }: Dataset): void {
  const use: Use = { records, dataset: id, name, rho: budget.exact };
  const others = uses().filter((other) => other.records !== records || other.dataset !== id);
  localStorage.setItem(USES, JSON.stringify([...others, use]));
}
