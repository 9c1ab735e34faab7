// Reads back data that this browser stores, and checks it, because the user can change it.

/** Returns the value stored under a key if it is JSON of the requested form, otherwise undefined. */
export function stored<T>(storage: Storage, key: string, isOne: (value: unknown) => value is T): T | undefined {
  const text = storage.getItem(key);
  if (text === null) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isOne(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether a value is an object with readable fields. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
