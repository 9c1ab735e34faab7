// Receipts of each dataset's ledger, with which this browser detects a crypto service that was set back.
//
// The ledger is a hash chain, and every answer about it carries a signed receipt of its end. A service that was set
// back to an older copy has forgotten releases, and would allow their budget to be spent twice. It cannot detect this
// itself. Therefore every caller sends its last receipt and checks the answer against it.
import { isMissing, json, listAll, mayPass } from "./client";
import type { DatasetLedger, Job, Receipt } from "./types";
import { isRecord, stored } from "../components/stored";

const PREFIX = "fhaim.receipt.";
const HEADER = "fhaim-receipt";

/** The crypto service answered from an older copy of a ledger. */
export class Restored extends Error {
  constructor() {
    super(
      "The crypto service was set back to an older copy of this dataset’s ledger, and does not know what it " +
        "released since then: no more releases of it are allowed. Tell its operator. Finished tables stay; a new " +
        "dataset over the same records adds its epsilon to what was spent.",
    );
  }
}

function isReceipt(value: unknown): value is Receipt {
  return isRecord(value) && typeof value.dataset === "string" && typeof value.height === "number";
}

function kept(dataset: string): Receipt | undefined {
  return stored(localStorage, PREFIX + dataset, isReceipt);
}

function keep(receipt: Receipt): void {
  const known = kept(receipt.dataset);
  if (known && known.height >= receipt.height) return;
  localStorage.setItem(PREFIX + receipt.dataset, JSON.stringify(receipt));
}

function header(receipt: Receipt): string {
  return btoa(JSON.stringify(receipt)).replaceAll("+", "-").replaceAll("/", "_").replace(/=*$/, "");
}

/** Makes a call to the crypto service about a dataset. `receipt` extracts the receipt from the answer. */
export async function ofLedger<T>(
  method: string,
  dataset: string,
  rest: string,
  receipt: (answer: T) => Receipt,
  body?: unknown,
): Promise<T> {
  const shown = kept(dataset);
  const headers: Record<string, string> = shown ? { [HEADER]: header(shown) } : {};
  const options = body === undefined ? { headers } : { headers, json: body };
  const answer = await json<T>("crypto", method, `/v1/datasets/${dataset}${rest}`, options);
  const told = receipt(answer);
  if (shown && (told.height < shown.height || (told.height === shown.height && told.head !== shown.head))) {
    throw new Restored();
  }
  keep(told);
  return answer;
}

/**
 * Returns the current receipt of a dataset's ledger, to be passed on with a job. If the crypto service is away or does
 * not know the ledger, returns the last one seen: the other services check the crypto service against it later.
 */
export async function receiptOf(dataset: string): Promise<Receipt | undefined> {
  return orKept(dataset, () => ofLedger<Receipt>("GET", dataset, "/receipt", (told) => told));
}

/** Returns a dataset's ledger, directly from the crypto service. */
export function ledgerOf(dataset: string): Promise<DatasetLedger> {
  return ofLedger<DatasetLedger>("GET", dataset, "/ledger", ({ receipt }) => receipt);
}

/** The receipt to be passed on with a job, and a job that must be started before any other. */
export interface BeforeRun {
  receipt: Receipt | undefined;
  forgotten: string | undefined;
}

/**
 * Returns the receipt to be passed on with a new job, and a job that has a run and that the generation service does not
 * know: it was set back to an older copy. Started again, that job continues with its run at no cost. Another one would
 * be paid for in addition.
 */
export async function beforeRun(dataset: string, job: string): Promise<BeforeRun> {
  let runs: string[] = [];
  const receipt = await orKept(dataset, async () => {
    const ledger = await ledgerOf(dataset);
    runs = ledger.runs.map((run) => run.job);
    return ledger.receipt;
  });
  if (runs.length === 0 || runs.includes(job)) return { receipt, forgotten: undefined };
  const { items, damaged } = await listAll<Job>("generation", `/v1/datasets/${dataset}/jobs`);
  const known = new Set([...items.map(({ id }) => id), ...damaged]);
  return { receipt, forgotten: runs.find((run) => !known.has(run)) };
}

async function orKept(dataset: string, receipt: () => Promise<Receipt>): Promise<Receipt | undefined> {
  try {
    return await receipt();
  } catch (error) {
    if (!isMissing(error) && !mayPass(error)) throw error;
    return kept(dataset);
  }
}
