// The uploads of this tab: they go on while other pages are looked at, until they are done or the
// tab is left.
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

/** How far a dataset's upload is, live; nothing where this tab has none. */
export function useUpload(dataset: string): Progress | undefined {
  return useSyncExternalStore(subscribe, () => uploads.get(dataset)?.state);
}

/** The upload that is under way in this tab, if any. */
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

// Ciphertexts made but not yet sent are lost with the tab: the browser asks first.
window.addEventListener("beforeunload", (event) => {
  if (active()) event.preventDefault();
});

window.addEventListener("pagehide", () => uploads.forEach((upload) => upload.keep()));
