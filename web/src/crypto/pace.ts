// How fast tables are encrypted here, of which a moment is measured; and what sending took beside that, which the last
// upload from this browser tells.
import { stored } from "../components/stored";
import { HolderSession } from "./session";

/** Objects that each worker is timed at. */
const REHEARSED = 8;
/** An upload of fewer objects tells nothing of the next. */
const LEAST_OBJECTS = 16;
const SENDING = "fhaim.sending";

/** What was sent, and how long that took with the encryption. */
export interface Sent {
  objects: number;
  bytes: number;
  seconds: number;
}

/** Seconds in which the workers of an upload encrypt an object, by its parameter set and how many they are. */
const timed = new Map<string, Promise<number>>();

/** The parameter set of an object, and how many workers encrypt, in a word. */
export function paceName(parameterSet: number, workers: number): string {
  return `${parameterSet} ${workers}`;
}

/** Seconds in which so many workers encrypt an object: measured when it is first asked for. */
export function objectSeconds(parameterSet: number, workers: number): Promise<number> {
  const name = paceName(parameterSet, workers);
  const known = timed.get(name);
  if (known) return known;
  const measured = time(parameterSet, workers);
  timed.set(name, measured);
  // It is measured again when it is next asked for.
  measured.catch(() => timed.delete(name));
  return measured;
}

async function time(parameterSet: number, workers: number): Promise<number> {
  // Workers of their own: others wait for what they asked meanwhile. As many as upload, since two on one core are no
  // faster than one.
  const sessions = Array.from({ length: workers }, () => new HolderSession());
  const all = async (objects: number) => {
    const done = await Promise.all(sessions.map((session) => session.rehearse(parameterSet, objects)));
    return done.reduce((sum, one) => sum + one, 0);
  };
  try {
    // The first makes the key.
    await all(1);
    const start = performance.now();
    const objects = await all(REHEARSED);
    return (performance.now() - start) / 1000 / objects;
  } finally {
    for (const session of sessions) session.end();
  }
}

/** Seconds that sending a byte takes beside the encryption, by the last upload; nothing before the first. */
export function sendingSeconds(): number | undefined {
  return stored(localStorage, SENDING, (value): value is number => typeof value === "number" && value >= 0 && Number.isFinite(value));
}

/** Remembers what sending took in an upload, where its encryption was timed before. */
export async function rememberSending(parameterSet: number, workers: number, sent: Sent): Promise<void> {
  const object = await timed.get(paceName(parameterSet, workers));
  const seconds = object === undefined ? undefined : beside(object, sent);
  if (seconds !== undefined) localStorage.setItem(SENDING, JSON.stringify(seconds));
}

/** Seconds a byte that an upload took beside encrypting its objects; nothing where they are too few to tell. */
export function beside(object: number, { objects, bytes, seconds }: Sent): number | undefined {
  if (objects < LEAST_OBJECTS || bytes <= 0) return undefined;
  return Math.max(0, seconds - objects * object) / bytes;
}
