// Deletion of a dataset, and of an account with all its data.
import { drop } from "../crypto/uploads";
import { forgetUpload } from "../crypto/journal";
import { forgetRead } from "../crypto/remembered";
import { call, forget, get, hasWitness, isMissing, list, listAll, Refusal, signedInAs, signIn } from "./client";
import { withdraw } from "./keys";
import { computationsOf, partOf } from "./parts";
import type { Dataset, Job } from "./types";

const FINAL: Job["state"][] = ["done", "failed", "cancelled"];

function unless(kinds: string[]): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof Refusal && kinds.includes(error.kind))) throw error;
  };
}

/** Returns whether a service does not know an object, or cannot read its stored data. */
function isMissingOrDamaged(error: unknown): boolean {
  return isMissing(error) || (error instanceof Refusal && error.kind === "damaged");
}

/**
 * Deletes a dataset everywhere, as its maker. The generation service marks it first, and continues the deletion if this
 * page is closed. Running jobs are stopped first. Then the keys are destroyed, after which
 * nothing can be decrypted, even if a later step fails. Repeating the call continues the deletion.
 */
export async function deleteDataset(id: string): Promise<void> {
  let known = true;
  let missing: unknown;
  const computations = await get<Dataset>("generation", `/v1/datasets/${id}`).then(computationsOf, async (error: unknown) => {
    if (!isMissingOrDamaged(error)) throw error;
    known = false;
    return (await hasWitness()) ? (["computation", "witness"] as const) : (["computation"] as const);
  });
  await call("generation", "PUT", `/v1/datasets/${id}/deletion`).catch(unless(["not-found"]));
  const jobs = await list<Job>("generation", `/v1/datasets/${id}/jobs`).catch((error: unknown) => {
    if (isMissingOrDamaged(error)) return [];
    throw error;
  });
  for (const job of jobs.filter(({ state }) => !FINAL.includes(state))) {
    // The job may end in the meantime.
    await call("generation", "POST", `/v1/jobs/${job.id}/cancel`).catch(unless(["conflict", "not-found"]));
  }
  for (const service of ["crypto", ...computations, "generation"] as const) {
    await call(service, "DELETE", `/v1/datasets/${id}`).then(() => (known = true), (error: unknown) => {
      if (!isMissing(error)) throw error;
      missing = error;
    });
  }
  if (!known) throw missing;
  drop(id);
  forgetRead(id);
  await forgetUpload(id);
}

/** Deletes all datasets of the account, withdraws from those of other accounts, and then deletes the account. */
export async function closeAccount(password: string): Promise<void> {
  // A wrong password is rejected before anything is deleted.
  await signIn(signedInAs() ?? "", password);
  const { items, damaged } = await listAll<Dataset>("generation", "/v1/datasets");
  for (const dataset of items) {
    const part = await partOf(dataset);
    if (part === 0) await deleteDataset(dataset.id);
    else await withdraw(dataset, part);
  }
  for (const id of damaged) {
    await deleteDataset(id).catch(async (error: unknown) => {
      if (!isMissing(error)) throw error;
      // Another holder made it.
      await call("crypto", "PUT", `/v1/datasets/${id}/withdrawal`).catch(unless(["not-found"]));
    });
  }
  await call("generation", "DELETE", "/v1/account", { json: { password } });
  forget();
}
