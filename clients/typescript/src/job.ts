// A job: one run over a dataset, and the tables that can be drawn from its model.
import type { components } from "../../../web/src/api/generated/generation.ts";
import { written, type LinkEntry } from "./link.ts";
import { asked, bytes, type SyntheticOptions } from "./draw.ts";
import { answered, type Session } from "./session.ts";

type State = components["schemas"]["Job"];

const FINAL: State["state"][] = ["done", "failed", "cancelled"];

/** Milliseconds between two requests for a job's state. */
const EVERY_MS = 500;

export class Job {
  constructor(private readonly session: Session, readonly id: string) {}

  /** Returns the current state. */
  state(): Promise<State> {
    return answered(this.session.generation.GET("/v1/jobs/{job}", { params: { path: { job: this.id } } }));
  }

  /** Waits until the job ends. A failed job keeps its spending: resume it with `retry`. */
  async done(onState?: (state: State) => void): Promise<State> {
    for (;;) {
      const state = await this.state();
      onState?.(state);
      if (state.state === "done") return state;
      if (FINAL.includes(state.state)) throw new Error(state.error ?? `the job was ${state.state}`);
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  /** Resumes the job after it failed or was cancelled. */
  async retry(): Promise<void> {
    await answered(this.session.generation.POST("/v1/jobs/{job}/retry", { params: { path: { job: this.id } } }));
  }

  /** Draws a synthetic table. This costs nothing, and can be repeated. */
  async synthetic(options: SyntheticOptions = {}): Promise<Uint8Array> {
    return bytes(this.session.generation.GET("/v1/jobs/{job}/synthetic", {
      params: { path: { job: this.id }, query: asked(options) }, parseAs: "arrayBuffer",
    }));
  }

  /** Returns the model as a file, for `fhaim sample` and `fhaim-lab attack`. */
  async model(): Promise<Uint8Array> {
    return bytes(this.session.generation.GET("/v1/jobs/{job}/model/file", {
      params: { path: { job: this.id } }, parseAs: "arrayBuffer",
    }));
  }

  /**
   * Creates a link to the result of a finished job. The link is shown only once. Anyone who opens it, signed in to any
   * account, sees a data card and can draw tables, but sees nothing else of the dataset. It is valid for `days` days
   * or, with null, until it is revoked.
   */
  async link(name: string, days: number | null = 90): Promise<string> {
    const { link, secret } = await answered(this.session.generation.PUT("/v1/jobs/{job}/links/{link}", {
      params: { path: { job: this.id, link: crypto.randomUUID() } }, body: { name, ...(days === null ? {} : { days }) },
    }));
    return written(this.session.server, link.id, secret);
  }

  /** Returns the links to the result, newest first, with the times when they were last opened. */
  async links(): Promise<LinkEntry[]> {
    const path = { job: this.id };
    const items: LinkEntry[] = [];
    for (let after: string | null | undefined; ;) {
      const page = await answered(this.session.generation.GET("/v1/jobs/{job}/links", {
        params: { path, query: after ? { after } : {} },
      }));
      items.push(...page.items);
      after = page.next;
      if (!after) return items;
    }
  }

  /** Revokes a link by its identifier. It then no longer opens. */
  async revoke(link: string): Promise<void> {
    await answered(this.session.generation.DELETE("/v1/jobs/{job}/links/{link}", { params: { path: { job: this.id, link } } }));
  }
}
