// What a service answers with is held against what was sent: tables are encrypted under the answer.

/**
 * Refuses an answer with other terms than those sent, which must name all that is left to the program. A
 * generation service that answered with a larger epsilon would else have it spent.
 */
export function checkTerms(sent: object, told: object): void {
  const [wanted, got] = [new Map(Object.entries(sent)), new Map(Object.entries(told))];
  for (const name of new Set([...wanted.keys(), ...got.keys()])) {
    if (canonical(wanted.get(name)) !== canonical(got.get(name))) {
      throw new Error(
        `the generation service answered with other terms than it was sent (${name}): nothing was encrypted; tell its operator`,
      );
    }
  }
}

/** The same text for the same value, in whatever order its fields are. */
function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_, part: unknown) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).filter(([, of]) => of != null).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
