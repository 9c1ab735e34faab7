// Descriptions of the rules between a schema's columns.
import type { Column, Constraint, Schema } from "../crypto/messages";
import { describe } from "./column-words";

/** Describes a constraint, in the words of the program. */
export function ruleInWords(constraint: Constraint): string {
  if ("at_most" in constraint) return `${constraint.at_most[0]} is at most ${constraint.at_most[1]}`;
  if ("missing_together" in constraint) return `${constraint.missing_together.join(" and ")} are missing together`;
  if ("never" in constraint) {
    const values = Object.entries(constraint.never).map(([column, value]) => `${column} ${shown(value)}`);
    return `no record has ${values.join(" with ")}`;
  }
  if ("implies" in constraint) {
    const { when, then } = constraint.implies;
    return `records with ${anyOf(when)} have ${anyOf(then)}`;
  }
  if ("age" in constraint) {
    const { age, born, at } = constraint.age;
    return `${age} is the age ${timeOfAge(at)} by ${born}`;
  }
  if ("sum" in constraint) return `${constraint.sum.total} is ${constraint.sum.parts.join(" + ")}`;
  // A later program may have other constraints.
  return JSON.stringify(constraint);
}

function timeOfAge(at: number | string | { end_of: number | string }): string {
  if (typeof at === "number") return `in ${at}`;
  if (typeof at === "string") return `at ${at}`;
  return typeof at.end_of === "number" ? `at the end of ${at.end_of}` : `at the end of the year of ${at.end_of}`;
}

function shown(value: string): string {
  return value === "" ? "no value" : `“${value}”`;
}

function anyOf(values: Record<string, string[]>): string {
  const columns = Object.entries(values).map(([column, any]) => `${column} ${any.map(shown).join(" or ")}`);
  return columns.join(" and ");
}

/** Describes all rules of a schema: its constraints, and the columns that follow from another one. */
export function rulesInWords(schema: Schema): string[] {
  const isDerived = ({ kind }: Column) => kind === "derived";
  const derived = schema.columns.filter(isDerived).map((column) => `${column.name}: ${describe(column)}`);
  return [...derived, ...(schema.constraints ?? []).map(ruleInWords)];
}
