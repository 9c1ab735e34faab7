// The data card, which is passed on with a synthetic table. It contains nothing private.
import type { LinkedResult } from "../api/types";
import type { Schema } from "../crypto/messages";
import { describe } from "./column-words";
import { ruleInWords } from "./rule-words";
import { count } from "./ui";

/** The data of a data card. */
export type Carded = Omit<LinkedResult, "attributes">;

/** The same caveats as the generation service shows when a link is opened. */
export const CAVEATS = [
  "No record belongs to a real person. Counts of few records are mostly noise.",
  "Dependences between columns that were not measured are missing.",
  "Only the holder can say how close the table is to the original: ask for the report.",
];

/** Returns the number of columns of a synthetic table. */
export function columnsOf(schema: Schema): string {
  return count(schema.columns.filter(({ kind }) => kind !== "left-out").length);
}

/** Returns the rules between columns, one per line. */
function rules({ constraints = [] }: Schema): string[] {
  if (constraints.length === 0) return [];
  return ["", "Rules that every record satisfies", ...constraints.map((constraint) => `- ${ruleInWords(constraint)}`)];
}

/** Returns a data card as text. */
export function dataCard({ job, name, made_at, epsilon, delta, runs, mechanism, spent, total, schema, caveats }: Carded): string {
  return [
    `Synthetic table: ${name}`,
    "",
    `Made with fhaim by job ${job}, which ended ${made_at.slice(0, 10)}.`,
    `Differential privacy: epsilon ${epsilon} at delta ${delta.toExponential()} for all of the dataset's`,
    `jobs together (${runs}), each under ${mechanism}; this one spent rho ${spent.rho.toPrecision(3)}.`,
    "Records were encrypted by their holder; no service saw one.",
    "",
    `Records, as the model estimates: ${Math.round(total)}. Any number of records can be drawn.`,
    ...(schema.claim ? [`The schema was drafted privately, at epsilon ${schema.claim.epsilon}, as its holder states.`] : []),
    "",
    "Before you use it",
    ...caveats.map((caveat) => `- ${caveat}`),
    "",
    "Columns",
    ...schema.columns.map((column) => `- ${column.name}: ${describe(column)}`),
    ...rules(schema),
    "",
  ].join("\n");
}
