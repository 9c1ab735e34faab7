// The key set of a dataset at the crypto service: a sole holder creates it, and one of several can withdraw from it.
import { call, get, isConflict, isMissing, Refusal } from "./client";
import { computationsOf } from "./parts";
import { ofLedger } from "./receipts";
import type { Dataset, KeySet, Voucher } from "./types";

const receipt = (set: KeySet) => set.receipt;

/**
 * Returns the dataset's keys, and creates them if they do not exist yet, for the account that made the dataset. The
 * generation service does not vouch for a dataset that has released something, because its keys exist.
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

/** Prevents further runs, and takes the holder's part back if no run over it has begun. */
export async function withdraw(dataset: Dataset, part: number): Promise<void> {
  await ofLedger<KeySet>("PUT", dataset.id, "/withdrawal", receipt).catch((error: unknown) => {
    // Without keys, no run can begin.
    if (!isMissing(error)) throw error;
  });
  const path = `/v1/datasets/${dataset.id}/contributions/${part}`;
  // The copy first, as in the command: while the first service has the part, the second can be called again.
  for (const service of computationsOf(dataset).reverse()) {
    await call(service, "DELETE", path).catch((error: unknown) => {
      // Nothing was uploaded, or a run has begun, whose releases cannot be taken back.
      if (!(error instanceof Refusal && ["not-found", "conflict"].includes(error.kind))) throw error;
    });
  }
}
