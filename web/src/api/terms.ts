// Checks a service's answer against the terms that were sent, because tables are encrypted under
// the answer.

/**
 * Rejects an answer with terms other than those sent, which must be complete. Otherwise a generation service could
 * answer with a larger epsilon, which would then be spent.
 */
export function checkTerms(sent: object, told: object): void {
  const [wanted, got] = [new Map(Object.entries(sent)), new Map(Object.entries(told))];
  for (const name of new Set([...wanted.keys(), ...got.keys()])) {
    if (canonical(wanted.get(name)) !== canonical(got.get(name))) {
      throw new Error(
        `the generation service answered with other terms than those sent (${name}): nothing was encrypted; tell its operator`,
      );
    }
  }
}

/** Returns the same text for the same value, with its fields in any order. */
function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_, part: unknown) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).filter(([, of]) => of != null).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
