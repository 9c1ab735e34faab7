// What this browser keeps, read back with care: its user can change it.

/** What is stored under a key, where it is JSON of the shape asked for; otherwise it is as if there were nothing. */
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

/** Whether a value is an object whose fields can be looked at. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
