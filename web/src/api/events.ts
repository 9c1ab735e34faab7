// A job's event stream, read with fetch because it needs the session's token.
import { backoff, call, mayPass } from "./client";
import type { JobEvent } from "./types";

const FINAL: string[] = ["done", "failed", "cancelled"];

/**
 * Passes on every event of a job in order, and reconnects after an interruption, until the job ends. `lost` is called
 * with whether the connection is down.
 */
export async function follow(
  job: string,
  onEvent: (event: JobEvent) => void,
  lost: (isLost: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = 0;
  let ended = false;
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (last > 0) headers["last-event-id"] = String(last);
      const answer = await call("generation", "GET", `/v1/jobs/${job}/events`, { headers, signal });
      lost(false);
      for await (const event of events(answer)) {
        attempt = 0;
        last = event.number;
        if (event.what.kind === "state") ended = FINAL.includes(event.what.state);
        onEvent(event);
      }
      // A service that stops, or a proxy, also ends the stream.
      if (ended) return;
      await backoff(attempt, undefined);
    } catch (error) {
      if (signal.aborted) return;
      // A broken stream is a TypeError of the reader.
      if (!(error instanceof TypeError) && !mayPass(error)) throw error;
      lost(true);
      await backoff(attempt, error);
    }
  }
}

async function* events(answer: Response): AsyncGenerator<JobEvent> {
  if (!answer.body) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (waiting + value).split("\n\n");
    waiting = blocks.pop() ?? "";
    for (const block of blocks) {
      const data = block.split("\n").filter((line) => line.startsWith("data:"));
      if (data.length > 0) {
        yield JSON.parse(data.map((line) => line.slice(5)).join("\n")) as JobEvent;
      }
    }
  }
}
