// The holders of a dataset, and the progress of their uploads.
import { get, isMissing } from "./client";
import type { Account, Contribution, Dataset, Upload } from "./types";

export type Computation = "computation" | "witness";

/**
 * Returns the computation services of a dataset: the one that is uploaded to and, if its terms have one, the second.
 */
export function computationsOf({ terms }: Dataset): Computation[] {
  return terms.witness ? ["computation", "witness"] : ["computation"];
}

/** Returns the parts that were registered for upload. */
export async function contributionsOf(dataset: string, service: Computation = "computation"): Promise<Contribution[]> {
  try {
    return (await get<Upload>(service, `/v1/datasets/${dataset}`)).contributions;
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

export function isComplete({ state }: Contribution): boolean {
  return state === "complete";
}

/** Returns the account's number among a dataset's holders: 0 if one holder has the whole table. */
export async function partOf({ terms: { roster } }: Dataset): Promise<number> {
  if (!roster) return 0;
  const { id } = await get<Account>("generation", "/v1/account");
  const part = roster.holders.findIndex(({ account }) => account === id);
  if (part < 0) throw new Error("This account is not one of the dataset’s holders.");
  return part;
}
