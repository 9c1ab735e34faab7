// Speed of encryption, measured for a moment, and time for sending, taken from the last upload from this browser.
import { stored } from "../components/stored";
import { HolderSession } from "./session";

/** Number of objects that each worker encrypts for the measurement. */
const REHEARSED = 8;
/** An upload of fewer objects says nothing about the next one. */
const LEAST_OBJECTS = 16;
const SENDING = "fhaim.sending";

/** An upload: what was sent, and its time including the encryption. */
export interface Sent {
  objects: number;
  bytes: number;
  seconds: number;
}

/** Seconds that an object takes with all workers of an upload, by parameter set and number of workers. */
const timed = new Map<string, Promise<number>>();

/** Returns the key for a parameter set and a number of workers. */
export function paceName(parameterSet: number, workers: number): string {
  return `${parameterSet} ${workers}`;
}

/** Returns the seconds that an object takes with a number of workers. The first call measures it. */
export function objectSeconds(parameterSet: number, workers: number): Promise<number> {
  const name = paceName(parameterSet, workers);
  const known = timed.get(name);
  if (known) return known;
  const measured = time(parameterSet, workers);
  timed.set(name, measured);
  // After a failure, the next call measures again.
  measured.catch(() => timed.delete(name));
  return measured;
}

async function time(parameterSet: number, workers: number): Promise<number> {
  // Separate workers, because the others must not wait for this. As many as for an upload, because two on one core are
  // no faster than one.
  const sessions = Array.from({ length: workers }, () => new HolderSession());
  const all = async (objects: number) => {
    const done = await Promise.all(sessions.map((session) => session.rehearse(parameterSet, objects)));
    return done.reduce((sum, one) => sum + one, 0);
  };
  try {
    // The first object makes the key.
    await all(1);
    const start = performance.now();
    const objects = await all(REHEARSED);
    return (performance.now() - start) / 1000 / objects;
  } finally {
    for (const session of sessions) session.end();
  }
}

/**
 * Returns the seconds per byte for sending, in addition to the encryption, from the last upload; undefined before the
 * first.
 */
export function sendingSeconds(): number | undefined {
  return stored(localStorage, SENDING, (value): value is number => typeof value === "number" && value >= 0 && Number.isFinite(value));
}

/** Remembers the time for sending in an upload, if its encryption was measured before. */
export async function rememberSending(parameterSet: number, workers: number, sent: Sent): Promise<void> {
  const object = await timed.get(paceName(parameterSet, workers));
  const seconds = object === undefined ? undefined : beside(object, sent);
  if (seconds !== undefined) localStorage.setItem(SENDING, JSON.stringify(seconds));
}

/** Returns the seconds per byte that an upload took in addition to the encryption, or undefined for too few objects. */
export function beside(object: number, { objects, bytes, seconds }: Sent): number | undefined {
  if (objects < LEAST_OBJECTS || bytes <= 0) return undefined;
  return Math.max(0, seconds - objects * object) / bytes;
}
