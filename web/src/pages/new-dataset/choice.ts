// What the user chooses of a dataset's terms, and the terms that it makes.
import type { Member, Terms } from "../../api/types";
import type { ReadTable, Schema } from "../../crypto/messages";
import { isEncrypted } from "../../parts/column-words";
import { usualTerms } from "./estimate";

export interface Choice {
  name: string;
  epsilon: number;
  delta: number;
  runs: number;
  mechanism: string;
  target: string;
  weight: number;
  contribution: "records" | "counts";
  /** The cards of the other holders; none where this account has the whole table. */
  others: Member[];
  /** On how many holders' noise everyone relies. */
  honest: number;
  /** Whether a second computation service is to compute everything too. */
  witness: boolean;
}

export function usualChoice({ name, target }: Schema): Choice {
  return {
    name,
    epsilon: 1,
    delta: 1e-9,
    runs: 1,
    mechanism: "staged",
    target: target ?? "",
    weight: 2,
    contribution: "records",
    others: [],
    honest: 1,
    witness: false,
  };
}

/** Columns that can be predicted. */
export function targets(schema: Schema): string[] {
  return schema.columns.filter(isEncrypted).map(({ name }) => name);
}

/** The schema with the column that matters most. */
function targeted(schema: Schema, target: string): Schema {
  const { target: _, ...rest } = schema;
  return target === "" ? rest : { ...rest, target };
}

/** The terms chosen; `own` is this account's card, where there are other holders. */
export function termsOf(schema: Schema, table: ReadTable, choice: Choice, own: Member | undefined): Terms {
  const { epsilon, delta, runs, mechanism, weight, contribution, others, honest, witness } = choice;
  const target = targets(schema).includes(choice.target) ? choice.target : "";
  const holders = own && others.length > 0 ? [own, ...others] : [];
  const bound = holders.reduce((sum, { record_bound }) => sum + record_bound, 0);
  const terms: Terms = {
    ...usualTerms(targeted(schema, target), Math.max(bound, table.record_bound)),
    epsilon, delta, runs, mechanism, contribution,
    target_weight: target === "" ? 1 : weight,
    ...(witness ? { witness } : {}),
  };
  if (holders.length === 0) return terms;
  return { ...terms, roster: { partition: "records", honest: Math.min(honest, holders.length), holders } };
}
