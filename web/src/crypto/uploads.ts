// The uploads of this tab. They continue while other pages are shown, until they are done or the
// tab is closed.
import { useSyncExternalStore } from "react";
import { onSession, signedInAs } from "../api/client";
import type { Dataset } from "../api/types";
import type { Used } from "./memory";
import type { ReadOptions } from "./messages";
import { remember } from "./remembered";
import { Upload, type Progress } from "./upload";

const uploads = new Map<string, Upload>();
const listeners = new Set<() => void>();

const tell = () => listeners.forEach((listener) => listener());

const ACTIVE: Progress["phase"][] = ["preparing", "sending", "sealing"];

/** Begins the upload of a sole holder's table, or continues one that stopped. */
export function begin(dataset: Dataset, file: File, read: ReadOptions, used: Used): void {
  remember(dataset.id, read);
  uploads.get(dataset.id)?.stop();
  const upload = new Upload(dataset, file, read, used, tell);
  uploads.set(dataset.id, upload);
  tell();
  void upload.run();
}

export function uploadOf(dataset: string): Upload | undefined {
  return uploads.get(dataset);
}

/** Stops an upload, if there is one, and forgets it. */
export function drop(dataset: string): void {
  uploads.get(dataset)?.stop();
  uploads.delete(dataset);
  tell();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The live progress of a dataset's upload; undefined if this tab has none. */
export function useUpload(dataset: string): Progress | undefined {
  return useSyncExternalStore(subscribe, () => uploads.get(dataset)?.state);
}

/** The upload in progress in this tab, if there is one. */
export function useActiveUpload(): Upload | undefined {
  useSyncExternalStore(subscribe, () => active()?.state);
  return active();
}

function active(): Upload | undefined {
  return [...uploads.values()].find(({ state }) => ACTIVE.includes(state.phase));
}

onSession(() => {
  if (signedInAs() === undefined) [...uploads.keys()].forEach(drop);
});

// Ciphertexts that were made but not sent are lost with the tab, so the browser asks first.
window.addEventListener("beforeunload", (event) => {
  if (active()) event.preventDefault();
});

window.addEventListener("pagehide", () => uploads.forEach((upload) => upload.keep()));
