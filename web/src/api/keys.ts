// The key set of a dataset, at the crypto service: made by a sole holder, withdrawn from by one of several.
import { call, get, isConflict, isMissing, Refusal } from "./client";
import { computationsOf } from "./parts";
import { ofLedger } from "./receipts";
import type { Dataset, KeySet, Voucher } from "./types";

const receipt = (set: KeySet) => set.receipt;

/**
 * The dataset's keys, made now unless they were made before, for the account that made the dataset. The generation
 * service does not vouch for a dataset that has released something: its keys exist.
 */
export async function makeKeys({ id, terms }: Dataset): Promise<KeySet> {
  const path = `/v1/datasets/${id}/voucher`;
  const vouched = await get<Voucher>("generation", path).catch((error: unknown) => {
    if (isConflict(error)) return undefined;
    throw error;
  });
  if (vouched === undefined) return keySet(id);
  return ofLedger<KeySet>("PUT", id, "", receipt, { terms, voucher: vouched.voucher });
}

export function keySet(dataset: string): Promise<KeySet> {
  return ofLedger<KeySet>("GET", dataset, "", receipt);
}

/** Lets no further run begin, and takes the holder's part back if no run over it has begun. */
export async function withdraw(dataset: Dataset, part: number): Promise<void> {
  await ofLedger<KeySet>("PUT", dataset.id, "/withdrawal", receipt).catch((error: unknown) => {
    // Without keys nothing can begin.
    if (!isMissing(error)) throw error;
  });
  const path = `/v1/datasets/${dataset.id}/contributions/${part}`;
  // The copy first, as the command does it: while the first has the part, the second can be told again.
  for (const service of computationsOf(dataset).reverse()) {
    await call(service, "DELETE", path).catch((error: unknown) => {
      // Nothing was uploaded, or a run has begun: what it released stays released.
      if (!(error instanceof Refusal && ["not-found", "conflict"].includes(error.kind))) throw error;
    });
  }
}
