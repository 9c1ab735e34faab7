// What a service answers with is held against what was sent: tables are encrypted under the answer.
import type { components } from "./generated/generation.ts";

type Terms = components["schemas"]["Terms"];

/**
 * Refuses an answer with other terms than those sent, which must name all that is left to the program. A
 * generation service that answered with a larger epsilon would else have it spent.
 */
export function checkTerms(sent: Terms, told: Terms): void {
  for (const name of new Set([...Object.keys(sent), ...Object.keys(told)]) as Set<keyof Terms>) {
    if (canonical(sent[name]) !== canonical(told[name])) {
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
