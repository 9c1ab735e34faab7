// The upload of a sole holder: workers encrypt while objects are sent. It can be paused, and resumed after an
// interruption.
import { backoff, call, get, json, mayPass, words } from "../api/client";
import { makeKeys } from "../api/keys";
import { computationsOf, contributionsOf, isComplete, type Computation } from "../api/parts";
import type { Dataset, Missing, Upload as Uploaded } from "../api/types";
import { hexadecimal, Journal } from "./journal";
import { rememberUse, type Used } from "./memory";
import type { Encrypted, Planned, ReadOptions, ReadTable } from "./messages";
import { rememberSending } from "./pace";
import { HolderSession } from "./session";

export type Phase = "preparing" | "sending" | "paused" | "sealing" | "done" | "failed";

export interface Progress {
  phase: Phase;
  done: number;
  objects: number;
  bytesSent: number;
  /** Milliseconds since the first object, without pauses. */
  sendingMs: number;
  /** Why it is not progressing, as a message. */
  trouble?: string;
}

/** Number of objects in progress per worker. */
const PARALLEL = 2;

/** Shown if the first computation service has everything, the second lacks it, and the record of the upload is lost. */
const UNCOPIED =
  "The second computation service has no copy of this upload, and this browser has no record of it: " +
  "continue in the browser that began the upload, or create the dataset again.";

/** Minimum milliseconds between two updates of the page. */
const TELL_MS = 100;

const MAX_WORKERS = 4;
/** Maximum memory of all workers' copies of the table. */
const TABLES_BYTES = 2e9;

/** Returns the size of a worker's copy of a table: four bytes per field. */
export function tableBytes(records: number, columns: number): number {
  return 4 * records * columns;
}

/** Returns the number of workers that encrypt a table. Each reads a separate copy. */
export function workersFor(records: number, columns: number): number {
  const room = Math.floor(TABLES_BYTES / Math.max(1, tableBytes(records, columns)));
  return Math.max(1, Math.min(MAX_WORKERS, navigator.hardwareConcurrency || 2, room));
}

export class Upload {
  private progress: Progress = { phase: "preparing", done: 0, objects: 0, bytesSent: 0, sendingMs: 0 };
  private readonly sessions: HolderSession[] = [];
  /** The objects to send. `next` is the index of the next one. */
  private queue: string[] = [];
  private next = 0;
  /** Whether the computation service had a complete upload before anything was sent. */
  private complete = false;
  private readonly journal: Journal;
  private resumed: (() => void)[] = [];
  private stopped = false;
  private resumedAt = 0;
  private parameterSet: number | undefined;
  private telling: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly dataset: Dataset,
    readonly file: File,
    readonly read: ReadOptions,
    readonly used: Used,
    private readonly tell: () => void,
  ) {
    this.journal = new Journal(dataset.id);
  }

  /** The progress. The object is the same until something changes. */
  get state(): Progress {
    return this.progress;
  }

  /** Runs to the end. Errors are reported as progress. */
  async run(): Promise<void> {
    try {
      await this.prepare();
      this.resumedAt = performance.now();
      this.say({ phase: "sending" });
      const lanes = this.sessions.flatMap((session) => Array(PARALLEL).fill(session));
      await Promise.all(lanes.map((session: HolderSession) => this.lane(session)));
      if (this.stopped) return;
      this.say({ phase: "sealing", sendingMs: this.elapsed() });
      await this.seal();
      await this.remember();
      this.say({ phase: "done" });
    } catch (error) {
      if (!this.stopped) this.say({ phase: "failed", trouble: words(error) });
    } finally {
      this.stop();
    }
  }

  pause(): void {
    this.say({ phase: "paused", sendingMs: this.elapsed() });
    this.keep();
  }

  resume(): void {
    this.resumedAt = performance.now();
    this.say({ phase: "sending" });
    this.resumed.splice(0).forEach((go) => go());
  }

  /** Stores the record of sent objects, so that the upload can be resumed after a reload. */
  keep(): void {
    if (this.progress.phase !== "done") this.journal.write();
  }

  /** Ends the upload. Sent objects stay, and another upload continues from there. */
  stop(): void {
    this.stopped = true;
    this.resumed.splice(0).forEach((go) => go());
    this.sessions.forEach((session) => session.end());
    this.keep();
  }

  /** Returns the milliseconds spent sending so far, and restarts the clock. */
  private elapsed(): number {
    if (this.progress.phase !== "sending") return this.progress.sendingMs;
    const now = performance.now();
    const total = this.progress.sendingMs + now - this.resumedAt;
    this.resumedAt = now;
    return total;
  }

  private say(change: Partial<Progress>): void {
    const { trouble: _, ...rest } = this.progress;
    this.progress = { ...rest, ...change };
    this.tell();
  }

  private async prepare(): Promise<void> {
    const first = await this.open();
    const { records, columns } = first.table;
    const plan = await first.session.plan(this.dataset.terms, records);
    this.parameterSet = plan.parameter_set;
    rememberUse(this.used, this.dataset);
    const key = await this.publicKey(plan);
    await this.register(plan);
    const others = Array.from({ length: workersFor(records, columns.length) - 1 }, () => this.open());
    const { objects: missing } = await this.persist(() =>
      get<Missing>("computation", this.own("/missing")),
    );
    await this.journal.load();
    this.journal.forget(missing);
    const own = await this.uploadKey(first.session);
    await Promise.all([first, ...(await Promise.all(others))].map(({ session }) =>
      session.prepare(this.dataset.terms, key, own),
    ));
    this.queue = plan.objects.filter((object) => !this.journal.digests.has(object));
    if (this.queue.length > 0 && (await this.isComplete())) {
      if (this.dataset.terms.witness && !(await this.isComplete("witness"))) throw new Error(UNCOPIED);
      // A complete upload has no journal. The dataset is not ready because the generation service was set back.
      this.complete = true;
      this.queue = [];
    }
    this.say({ objects: plan.objects.length, done: plan.objects.length - this.queue.length });
  }

  /** Returns the upload key. A resumed upload keeps its key. */
  private async uploadKey(session: HolderSession): Promise<string> {
    if (this.journal.digests.size > 0 && this.journal.uploadKey) return this.journal.uploadKey;
    const key = await session.uploadKey(this.dataset.terms);
    await this.journal.begin(key);
    return key;
  }

  private async open(): Promise<{ session: HolderSession; table: ReadTable }> {
    const session = new HolderSession();
    this.sessions.push(session);
    return { session, table: await session.read(this.file, this.read) };
  }

  /** Returns the dataset's public key, after checking that the crypto service has the same plan as the page. */
  private async publicKey(plan: Planned): Promise<Blob> {
    const set = await this.persist(() => makeKeys(this.dataset));
    if (set.parameter_set !== plan.parameter_set || set.budget.exact !== plan.budget) {
      throw new Error("The crypto service works with another budget or other parameters.");
    }
    const bytes = await this.persist(async () =>
      (await call("crypto", "GET", this.path("/public-key"))).arrayBuffer(),
    );
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
    if (hexadecimal(digest) !== set.public_key) {
      throw new Error("The public key differs from the one that the crypto service announced.");
    }
    return new Blob([bytes]);
  }

  private async register({ layout }: Planned): Promise<void> {
    const terms = this.dataset.terms;
    const registration = layout ? { terms, layout } : { terms };
    // The second service before the first, to which objects are sent.
    for (const service of computationsOf(this.dataset).reverse()) {
      await this.persist(() => call(service, "PUT", this.path(""), { json: registration }));
    }
  }

  private async isComplete(service: Computation = "computation"): Promise<boolean> {
    const parts = await this.persist(() => contributionsOf(this.dataset.id, service));
    return parts.some(isComplete);
  }

  private path(rest: string): string {
    return `/v1/datasets/${this.dataset.id}${rest}`;
  }

  private own(rest: string): string {
    return this.path(`/contributions/0${rest}`);
  }

  /** Takes objects off the queue, one after the other. */
  private async lane(session: HolderSession): Promise<void> {
    for (;;) {
      if (this.progress.phase === "paused") await new Promise<void>((go) => this.resumed.push(go));
      const object = this.stopped ? undefined : this.queue[this.next++];
      if (object === undefined) return;
      const encrypted = await session.encrypt(object);
      await this.put(object, encrypted);
      // Another upload of the same table may have started. Then only its objects count.
      if (this.stopped) return;
      this.journal.confirm(object, encrypted.digest);
      this.count(encrypted.bytes.length);
    }
  }

  /** Counts a sent object. The page is updated a few times a second at most. */
  private count(size: number): void {
    const { done, bytesSent } = this.progress;
    const change = { done: done + 1, bytesSent: bytesSent + size, sendingMs: this.elapsed() };
    this.progress = { ...this.progress, ...change };
    this.telling ??= setTimeout(() => {
      this.telling = undefined;
      this.tell();
    }, TELL_MS);
  }

  /** Sends an object. */
  private async put(object: string, { bytes, digest }: Encrypted): Promise<void> {
    const path = this.own(`/objects/${object.replaceAll("/", "%2F")}`);
    const text = btoa(String.fromCharCode(...digest));
    const headers = { "content-digest": `sha-256=:${text}:` };
    await this.persist(() => call("computation", "PUT", path, { bytes, headers }));
  }

  /** Remembers the duration, for the estimate of the next upload. */
  private async remember(): Promise<void> {
    const { bytesSent, sendingMs } = this.progress;
    const sent = { objects: this.queue.length, bytes: bytesSent, seconds: sendingMs / 1000 };
    if (this.parameterSet !== undefined) await rememberSending(this.parameterSet, this.sessions.length, sent);
  }

  private async seal(): Promise<void> {
    if (!this.complete) {
      const manifest = await this.journal.manifest();
      await this.persist(() => call("computation", "POST", this.own("/complete"), { json: { manifest } }));
      if (this.dataset.terms.witness) await this.haveCopied(manifest);
    }
    if (await this.isComplete()) await this.persist(() => call("generation", "POST", this.path("/ready")));
    await this.journal.finish();
  }

  /**
   * Makes the second computation service copy the upload from the first, for a while with each call. It checks the copy
   * against the manifest in this call.
   */
  private async haveCopied(manifest: string): Promise<void> {
    for (;;) {
      const { contributions } = await this.persist(() =>
        json<Uploaded>("witness", "POST", this.own("/complete"), { json: { manifest } }),
      );
      if (this.stopped || contributions.some(isComplete)) return;
    }
  }

  /** Repeats the work while the connection is lost. */
  private async persist<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        const value = await work();
        if (this.progress.trouble !== undefined) this.say({});
        return value;
      } catch (error) {
        if (this.stopped || !mayPass(error)) throw error;
        this.say({ trouble: `${words(error)} Trying again.` });
        await backoff(attempt, error);
      }
    }
  }
}
