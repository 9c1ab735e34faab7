// A job: one run over a dataset, and the tables that can be drawn from its model.
import type { components } from "../../../web/src/api/generated/generation.ts";
import { answered, Refusal, type Session } from "./session.ts";

type State = components["schemas"]["Job"];

export interface SyntheticOptions {
  /** As many as the model says that there are, if it is left out. */
  rows?: number;
  /** The same seed draws the same records. */
  seed?: number;
  /** Conditions that every record meets: `{ race: "Asian" }`. */
  where?: Record<string, string | number>;
  format?: "csv" | "parquet";
}

const FINAL: State["state"][] = ["done", "failed", "cancelled"];

/** Milliseconds between two looks at a job. */
const EVERY_MS = 500;

export class Job {
  constructor(private readonly session: Session, readonly id: string) {}

  /** Where it is. */
  state(): Promise<State> {
    return answered(this.session.generation.GET("/v1/jobs/{job}", { params: { path: { job: this.id } } }));
  }

  /** Waits for its end; what it spent is not lost where it failed: start it again with `retry`. */
  async done(onState?: (state: State) => void): Promise<State> {
    for (;;) {
      const state = await this.state();
      onState?.(state);
      if (state.state === "done") return state;
      if (FINAL.includes(state.state)) throw new Error(state.error ?? `the job was ${state.state}`);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  /** Queues it again, after it failed or was cancelled: it goes on where it was. */
  async retry(): Promise<void> {
    await answered(this.session.generation.POST("/v1/jobs/{job}/retry", { params: { path: { job: this.id } } }));
  }

  /** Draws a synthetic table. It costs nothing: draw as many as are wanted. */
  async synthetic({ rows, seed, where = {}, format = "csv" }: SyntheticOptions = {}): Promise<Uint8Array> {
    const all = Object.entries(where).map(([column, value]) => `${column}=${value}`);
    // Commas and quotes inside of a condition are quoted (RFC 4180).
    const conditions = all.map((text) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",");
    const query = {
      format,
      ...(rows === undefined ? {} : { rows }),
      ...(seed === undefined ? {} : { seed }),
      ...(conditions === "" ? {} : { where: conditions }),
    };
    const drawn = await this.session.generation.GET("/v1/jobs/{job}/synthetic", {
      params: { path: { job: this.id }, query }, parseAs: "arrayBuffer",
    });
    if (!drawn.response.ok) throw new Refusal((drawn.error ?? {}) as { detail?: string }, drawn.response.status);
    return new Uint8Array(drawn.data as unknown as ArrayBuffer);
  }
}
