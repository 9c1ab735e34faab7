// Proposed rules of a draft: whether a schema has them, and how it loses them.
import type { Column, Constraint, ProposedRule, Schema } from "../../crypto/messages";

/** Returns whether two JSON values are equal. The order of keys does not matter. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return one === other;
  const keys = Object.keys(one);
  const at = (of: object, key: string) => (of as Record<string, unknown>)[key];
  return Array.isArray(one) === Array.isArray(other) && keys.length === Object.keys(other).length
    && keys.every((key) => isSame(at(one, key), at(other, key)));
}

/** Returns whether the schema has the rule. */
export function isAccepted({ change }: ProposedRule, { columns, constraints = [] }: Schema): boolean {
  if ("constraint" in change) return constraints.some((other) => isSame(other, change.constraint));
  const { name, from } = change.column;
  return columns.some((other) => other.name === name && other.kind === "derived" && other.from === from);
}

/** Returns the constraints of the schema that are not proposed rules. */
export function otherConstraints(rules: ProposedRule[], { constraints = [] }: Schema): Constraint[] {
  const proposed = rules.flatMap(({ change }) => ("constraint" in change ? [change.constraint] : []));
  return constraints.filter((constraint) => !proposed.some((other) => isSame(other, constraint)));
}

/** Returns the rules to show: those that the schema has, and those whose columns are all in it. */
export function shownRules(rules: ProposedRule[], schema: Schema, original: Column[]): ProposedRule[] {
  const wasLeftOut = new Set(original.filter(({ kind }) => kind === "left-out").map(({ name }) => name));
  const isThere = (name: string) =>
    schema.columns.some((column) => column.name === name && (column.kind !== "left-out" || wasLeftOut.has(name)));
  return rules.filter((rule) => isAccepted(rule, schema) || rule.columns.every(isThere));
}

/** Returns the schema without a constraint. */
export function without(schema: Schema, constraint: Constraint): Schema {
  return { ...schema, constraints: (schema.constraints ?? []).filter((other) => !isSame(other, constraint)) };
}

/**
 * Returns the schema without an accepted rule.
 * @param original The columns as drafted, which derived columns become again.
 */
export function withdrawn(schema: Schema, { change }: ProposedRule, original: Column[]): Schema {
  if ("constraint" in change) return without(schema, change.constraint);
  const { name } = change.column;
  const drafted = original.find((column) => column.name === name);
  const columns = schema.columns.map((column) => (column.name === name && drafted ? drafted : column));
  return { ...schema, columns };
}

/** Returns the names of the columns that differ between two schemas. */
export function changedColumns(before: Schema, after: Schema): string[] {
  const same = new Map(before.columns.map((column) => [column.name, column]));
  return after.columns.filter((column) => !isSame(same.get(column.name), column)).map(({ name }) => name);
}
