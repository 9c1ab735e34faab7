// The user's choices for a dataset's terms, and the terms made from them.
import type { Terms } from "../../api/types";
import type { ReadTable, Schema } from "../../crypto/messages";
import { isEncrypted } from "../../components/column-words";
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
  /** Whether a second computation service also computes everything. */
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
    witness: false,
  };
}

/** Returns the columns that can be predicted. */
export function targets(schema: Schema): string[] {
  return schema.columns.filter(isEncrypted).map(({ name }) => name);
}

/** Returns the schema with this column as the target. */
function targeted(schema: Schema, target: string): Schema {
  const { target: _, ...rest } = schema;
  return target === "" ? rest : { ...rest, target };
}

/** Returns the chosen terms. */
export function termsOf(schema: Schema, table: ReadTable, choice: Choice): Terms {
  const { epsilon, delta, runs, mechanism, weight, contribution, witness } = choice;
  const target = targets(schema).includes(choice.target) ? choice.target : "";
  return {
    ...usualTerms(targeted(schema, target), table.record_bound),
    epsilon, delta, runs, mechanism, contribution,
    target_weight: target === "" ? 1 : weight,
    ...(witness ? { witness } : {}),
  };
}
