// Deleting a dataset, and an account with all it has.
import { drop } from "../crypto/uploads";
import { forgetUpload } from "../crypto/journal";
import { forgetRead } from "../crypto/remembered";
import { call, forget, get, isMissing, list, Refusal, signedInAs, signIn } from "./client";
import { withdraw } from "./keys";
import { computationsOf, partOf } from "./parts";
import type { Dataset, Job } from "./types";

const FINAL: Job["state"][] = ["done", "failed", "cancelled"];

function unless(kinds: string[]): (error: unknown) => void {
  return (error) => {
    if (!(error instanceof Refusal && kinds.includes(error.kind))) throw error;
  };
}

/**
 * Deletes a dataset everywhere, as whoever made it: jobs under way are stopped, then its keys go, after which
 * nothing can be decrypted, whatever else fails. The same again goes on where it was.
 */
export async function deleteDataset(id: string): Promise<void> {
  // Where the generation service has forgotten it, all others had before.
  const computations = await get<Dataset>("generation", `/v1/datasets/${id}`).then(computationsOf, (error: unknown) => {
    if (isMissing(error)) return ["computation" as const];
    throw error;
  });
  const jobs = await list<Job>("generation", `/v1/datasets/${id}/jobs`).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  for (const job of jobs.filter(({ state }) => !FINAL.includes(state))) {
    // It may come to its end meanwhile.
    await call("generation", "POST", `/v1/jobs/${job.id}/cancel`).catch(unless(["conflict", "not-found"]));
  }
  for (const service of ["crypto", ...computations, "generation"] as const) {
    await call(service, "DELETE", `/v1/datasets/${id}`).catch(unless(["not-found"]));
  }
  drop(id);
  forgetRead(id);
  await forgetUpload(id);
}

/** Deletes all of the account's datasets, withdraws from those of others, and then deletes the account. */
export async function closeAccount(password: string): Promise<void> {
  // A wrong password is refused before anything is gone.
  await signIn(signedInAs() ?? "", password);
  for (const dataset of await list<Dataset>("generation", "/v1/datasets")) {
    const part = await partOf(dataset);
    if (part === 0) await deleteDataset(dataset.id);
    else await withdraw(dataset, part);
  }
  await call("generation", "DELETE", "/v1/account", { json: { password } });
  forget();
}
