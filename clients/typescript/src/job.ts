// A job: one run over a dataset, and the tables that can be drawn from its model.
import type { components } from "../../../web/src/api/generated/generation.ts";
import { written, type LinkEntry } from "./link.ts";
import { asked, bytes, type SyntheticOptions } from "./draw.ts";
import { answered, type Session } from "./session.ts";

type State = components["schemas"]["Job"];

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
  async synthetic(options: SyntheticOptions = {}): Promise<Uint8Array> {
    return bytes(this.session.generation.GET("/v1/jobs/{job}/synthetic", {
      params: { path: { job: this.id }, query: asked(options) }, parseAs: "arrayBuffer",
    }));
  }

  /** Its model as a file, for `fhaim sample` and `fhaim-lab attack`. */
  async model(): Promise<Uint8Array> {
    return bytes(this.session.generation.GET("/v1/jobs/{job}/model/file", {
      params: { path: { job: this.id } }, parseAs: "arrayBuffer",
    }));
  }

  /**
   * Makes a link to its result, once it is done; it is known this once. Whoever opens it, signed in to any
   * account, sees a data card and draws tables, and nothing else of the dataset. It is good for so many days,
   * or, with null, until it is revoked.
   */
  async link(name: string, days: number | null = 90): Promise<string> {
    const { link, secret } = await answered(this.session.generation.PUT("/v1/jobs/{job}/links/{link}", {
      params: { path: { job: this.id, link: crypto.randomUUID() } }, body: { name, ...(days === null ? {} : { days }) },
    }));
    return written(this.session.server, link.id, secret);
  }

  /** The links to its result, the newest first, and when they were last opened. */
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

  /** Revokes a link, by its identifier: it opens nothing after. */
  async revoke(link: string): Promise<void> {
    await answered(this.session.generation.DELETE("/v1/jobs/{job}/links/{link}", { params: { path: { job: this.id, link } } }));
  }
}
