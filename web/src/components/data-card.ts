// What goes with a synthetic table to whoever uses it: nothing in it is private.
import type { LinkedResult } from "../api/types";
import type { Schema } from "../crypto/messages";
import { describe } from "./column-words";
import { count } from "./ui";

/** What a data card is written from. */
export type Carded = Omit<LinkedResult, "attributes">;

/** As the generation service says them to whoever opens a link. */
export const CAVEATS = [
  "No record is a person's. Counts of few records are mostly noise.",
  "Dependences that were not measured are not in it.",
  "How close it is to the original only its holder can say: ask for the verdict of the report.",
];

/** How many columns a synthetic table has. */
export function columnsOf(schema: Schema): string {
  return count(schema.columns.filter(({ kind }) => kind !== "left-out").length);
}

/** A data card as a text. */
export function dataCard({ job, name, made_at, epsilon, delta, runs, mechanism, spent, total, schema, caveats }: Carded): string {
  return [
    `Synthetic table: ${name}`,
    "",
    `Made with fhaim by job ${job}, which ended ${made_at.slice(0, 10)}.`,
    `Differential privacy: epsilon ${epsilon} at delta ${delta.toExponential()} for all of the dataset's`,
    `jobs together (${runs}), each under ${mechanism}; this one spent rho ${spent.rho.toPrecision(3)}.`,
    "Records were encrypted by their holder; no service saw one.",
    "",
    `Records, by the model: ${Math.round(total)}. As many as are wanted can be drawn.`,
    ...(schema.claim ? [`The schema was drafted privately, at epsilon ${schema.claim.epsilon}, as its holder says.`] : []),
    "",
    "What to know before it is used",
    ...caveats.map((caveat) => `- ${caveat}`),
    "",
    "Columns",
    ...schema.columns.map((column) => `- ${column.name}: ${describe(column)}`),
    "",
  ].join("\n");
}
