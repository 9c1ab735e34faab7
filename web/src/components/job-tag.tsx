import type { Job } from "../api/types";

const TONES: Record<Job["state"], string> = {
  queued: "busy",
  running: "busy",
  done: "good",
  failed: "bad",
  cancelled: "",
};

export function JobTag({ state }: { state: Job["state"] }) {
  return <span className={`tag ${TONES[state]}`}>{state}</span>;
}
